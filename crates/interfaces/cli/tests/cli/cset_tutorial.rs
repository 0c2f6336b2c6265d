//! cset's tutorial from its first command to its last, typed into one shell as it stands there: what each command prints and
//! where the kernel then lets the tasks run.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::{PermissionsExt, symlink},
    process::{Child, ChildStdin, Command, Stdio},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::Desk,
    world::{Need, World},
};

const TUTORIAL: &str = include_str!("cset_tutorial.txt");
const NEEDS: [Need; 4] = [Need::Groups, Need::Plain, Need::OwnMachine, Need::Cpus(4)];
/// What the shell prints behind each command.
const END: &str = "@end@";

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let (lacks, world) = (world.lacks(&[&[Need::On("cpuset")], &NEEDS[..]].concat()), world.clone());
    let name = "cset: the tutorial, command by command";
    vec![suite::trial(name, lacks, move || tutorial(&mut Desk::new(&world, "cset tutorial")))]
}

/// A shell that is typed into. What it starts may read the next commands, as a shell does.
struct Shell {
    child: Child,
    input: ChildStdin,
    log: std::path::PathBuf,
}

impl Shell {
    fn start(desk: &Desk) -> Shell {
        symlink(std::path::absolute(desk.scene.program()).unwrap(), desk.path("cset")).unwrap();
        let bash = desk.path("bash");
        // a guest may have no other shell than sh
        match ["/bin/bash", "/rf/bash"].iter().find(|path| fs::exists(path).unwrap()) {
            Some(there) => symlink(there, &bash).unwrap(),
            None => {
                fs::write(&bash, "#!/bin/sh\nexec sh\n").unwrap();
                fs::set_permissions(&bash, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        // other users start programs from there
        fs::set_permissions(desk.path("."), fs::Permissions::from_mode(0o755)).unwrap();
        let log = desk.path("log");
        let output = File::create(&log).unwrap();
        let path = format!("{}:{}", desk.path("").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("/bin/sh");
        command.env("PATH", path).current_dir(desk.path(".")).stdin(Stdio::piped());
        let mut child = command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        Shell { child, input, log }
    }

    /// What the command printed, and the number of the shell that now reads.
    fn types(&mut self, desk: &Desk, command: &str) -> (String, u32) {
        let before = fs::read_to_string(&self.log).unwrap().len();
        writeln!(self.input, "{command}").unwrap();
        // else the shell would take the next line from a shell that the command starts
        desk.scene.until("the shell", || rustix::io::ioctl_fionread(&self.input).unwrap() == 0);
        writeln!(self.input, "echo {END} $$").unwrap();
        let printed = || fs::read_to_string(&self.log).unwrap().split_off(before);
        desk.scene.until(command, || {
            printed().lines().any(|line| line.starts_with(END) && printed().ends_with('\n'))
        });
        let printed = printed();
        let (said, shell) = printed.split_once(END).unwrap();
        assert!(!said.contains("panicked"), "{command}: {said}");
        (said.to_owned(), shell.trim().parse().unwrap())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn allowed(pid: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

/// Is the line as wanted, where `…` stands for anything?
fn is_like(line: &str, wanted: &str) -> bool {
    let parts: Vec<&str> = wanted.split('…').collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    if parts.len() == 1 {
        return line.trim_end() == wanted.trim_end();
    }
    let mut rest = line;
    line.starts_with(first)
        && line.ends_with(last)
        && parts.iter().all(|part| {
            let at = rest.find(part);
            rest = at.map_or(rest, |at| &rest[at + part.len()..]);
            at.is_some()
        })
}

/// Are the lines as wanted, where a line `...` stands for any lines?
fn are_like(lines: &[&str], wanted: &[String]) -> bool {
    match wanted.split_first() {
        None => lines.is_empty(),
        Some((first, wanted)) if first == "..." => {
            (0..=lines.len()).any(|skipped| are_like(&lines[skipped..], wanted))
        }
        Some((first, wanted)) => {
            lines.split_first().is_some_and(|(line, lines)| is_like(line, first) && are_like(lines, wanted))
        }
    }
}

fn tutorial(desk: &mut Desk) {
    let pid = desk.scene.start("{p}", &["sleep", "1000"]);
    let all = allowed(&pid.to_string());
    let rest: units::CpuSet = all.parse().unwrap();
    let rest = rest.difference(&"1-3".parse().unwrap()).to_string();
    desk.scene.name("{all}", &all);
    desk.scene.name("{rest}", &rest);
    let mut shell = Shell::start(desk);
    let mut reader = shell.types(desk, "true").1;
    // a range that has no other task
    desk.scene.name("{range}", &format!("{reader}-{reader}"));
    let mut lines = TUTORIAL.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    let mut commands = 0;
    while let Some(line) = lines.next() {
        let fill = |text: &str| desk.scene.fill(text).replace("{shell}", &reader.to_string());
        if let Some(claim) = line.strip_prefix("= ") {
            let claim = fill(claim);
            let (task, cpus) = claim.split_once(' ').unwrap();
            assert_eq!(allowed(task), cpus, "{line}, behind command {commands}");
            continue;
        }
        let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("{line}"));
        let mut wanted = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && !line.starts_with("= ")) {
            wanted.push(fill(line));
        }
        let command = fill(command);
        let (said, now) = shell.types(desk, &command);
        let said: Vec<&str> = said.lines().collect();
        assert!(are_like(&said, &wanted), "{command}\n{}\nis not\n{}", said.join("\n"), wanted.join("\n"));
        (reader, commands) = (now, commands + 1);
    }
    assert!(commands > 80, "{commands}");
}
