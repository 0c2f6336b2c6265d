//! `lab clean` with journals that are damaged: what a line with a right checksum says is carried out, whatever is wrong
//! with the others; what is wrong is named; and no process is killed that a damaged line may have been about.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Command},
};

use kernel::{GroupName, Host, Real};
use serde_json::{Value, json};

use super::{Lab, text};
use crate::undoable::all_of_them;

/// A journal ends in unused room.
const ROOM: usize = 64 << 10;

fn owner() -> Value {
    json!({ "owner": { "pid": 1, "started": 1, "boot": "an earlier one" } })
}

fn directory(path: &Path) -> Value {
    json!({ "directory": path })
}

fn written(lines: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        apply::append_line(&mut bytes, number as u64, line).unwrap();
    }
    bytes.resize(ROOM, 0);
    bytes
}

/// What followed the damaged line was forgotten with the journal: mounts and groups stayed for good.
pub fn reported(lab: &Lab) {
    let made = |name: &str| {
        fs::create_dir_all(lab.path(name)).unwrap();
        directory(&lab.path(name))
    };
    let journal = |name: &str| lab.path(&format!("state/lab/{name}.journal"));
    fs::create_dir_all(lab.path("state/lab")).unwrap();
    let mut damaged = written(&[owner(), made("one"), made("two"), made("three")]);
    let line_of_two = damaged.windows(4).position(|bytes| bytes == b"/two").unwrap();
    damaged[line_of_two + 1] = b'T';
    fs::write(journal("4194305"), &damaged).unwrap();
    fs::write(journal("2"), written(&[owner(), made("other")])).unwrap();
    fs::create_dir(journal("3")).unwrap();
    // process 1 may be its owner, or have its number by now
    let mut without_owner = written(&[owner(), made("kept")]);
    without_owner[3] ^= 1;
    fs::write(journal("1"), &without_owner).unwrap();
    let output = lab.run("clean");
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{out}{said}");
    for part in [
        "4194305.journal:3: damaged (its checksum is another)",
        "1.journal:1: damaged (its checksum is another)",
        "process 1 may still run its experiment",
        "3.journal: it is not a regular file",
        "hint: remove by hand what the damaged lines named, then: rm ",
    ] {
        assert!(said.contains(part), "no '{part}' in: {said}");
    }
    let is_there = ["one", "two", "three", "other", "kept"].map(|name| lab.path(name).exists());
    assert_eq!(is_there, [false, true, false, false, true], "{out}{said}");
    let is_there = ["4194305", "1", "2"].map(|name| journal(name).exists());
    assert_eq!(is_there, [true, true, false], "{out}{said}");
    // two was removed by hand before
    lab.obey(&said, "rm /");
    assert_eq!(["4194305", "1"].map(|name| journal(name).exists()), [false, false]);
}

/// A process of the user's that an experiment moved into its group before it was killed.
struct Moved {
    process: Child,
    /// Where it was, as the journal has it.
    home: Value,
    group: String,
    host: Host,
}

impl Moved {
    fn new() -> Moved {
        let host = Host::new(Box::new(Real::new())).unwrap();
        let group = format!("rf-test-journal-{}", std::process::id());
        let process = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = process.id();
        let place = |at: &kernel::Hierarchy| {
            let group = host.kernel().group_of(at, pid).ok()?;
            Some((at.mount.display().to_string(), at.below_mount(&group)?))
        };
        let places: BTreeMap<String, String> = host.hierarchies().iter().filter_map(place).collect();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let started: u64 = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().parse().unwrap();
        let home =
            json!({ "pid": pid, "started": started, "group": format!("{group}/oltp"), "places": places });
        Moved { process, home, group, host }
    }

    fn enter(&self, lab: &Lab) {
        let run = |words: &[&str]| {
            let output = Command::new(&lab.program).args(words).output().unwrap();
            assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        };
        let name = format!("{}/oltp", self.group);
        if self.host.seats(&GroupName::new(&name).unwrap()).is_empty() {
            run(&["create", &name, "--controllers", "cpu"]);
        }
        run(&["move", &name, &self.process.id().to_string()]);
    }

    fn is_inside(&self) -> bool {
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", self.process.id())).unwrap();
        groups.contains(&self.group)
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = GroupName::new(&self.group).map(|name| self.host.delete(&name, true));
    }
}

/// Every bit and every cut with `RF_ALL=1`, else a sample.
pub fn flipped_and_cut(lab: &Lab) {
    let mut moved = Moved::new();
    let directories = ["a", "b", "others"].map(|name| lab.path(name));
    let lines = [
        owner(),
        json!({ "group": moved.group }),
        directory(&directories[0]),
        json!({ "moved": moved.home }),
        directory(&directories[1]),
    ];
    let whole = written(&lines);
    let path = lab.path("state/lab/4194305.journal");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut check = |what: &str, bytes: &[u8]| {
        directories.iter().for_each(|directory| fs::create_dir_all(directory).unwrap());
        moved.enter(lab);
        fs::write(&path, bytes).unwrap();
        let output = lab.run("clean");
        let said = format!("{what}: {}{}", text(&output.stdout), text(&output.stderr));
        assert!(moved.process.try_wait().unwrap().is_none(), "it was killed: {said}");
        assert!(directories[2].exists(), "{said}");
        let is_done = [!directories[0].exists(), !moved.is_inside(), !directories[1].exists()];
        if bytes == whole {
            assert!(output.status.success() && !path.exists() && is_done == [true; 3], "{said}");
            return;
        }
        assert!(output.status.code() == Some(3) && path.exists(), "{said}");
        assert!(said.contains("damaged (") && said.contains("hint: remove by hand"), "{said}");
        // what the undamaged lines say is done, and nothing else
        let read = apply::readable::<Value>(bytes).lines;
        let is_read = [2, 3, 4].map(|line| read.iter().any(|(_, value)| *value == lines[line]));
        assert_eq!(is_done, is_read, "{said}");
    };
    check("whole", &whole);
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let (flips, cuts) = if all_of_them() { (used * 8, used) } else { (40, 15) };
    for number in 0..flips {
        // spread over the file
        let bit = number * (used * 8 / flips);
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        check(&format!("bit {bit}"), &flipped);
    }
    for at in (0..used).step_by(used / cuts) {
        check(&format!("cut at {at}"), &whole[..at]);
    }
}
