//! The daemon's recorder: its log is read as any, outlives a kill, and a full disk is no end.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::SystemTime,
};

use monitor::{Log, Reading, Torn};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::{
    Case,
    metrics::layout,
    metrics_scene::{address, text, until, value},
    world::{Daemon, Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("what_the_daemon_records_is_read_after_its_end", read),
        ("a_kill_loses_at_most_the_last_record_and_a_torn_one_is_told", killed),
        ("a_full_disk_is_told_once_and_recorded_again_when_it_has_room", full),
        ("a_log_that_another_holds_is_told_and_taken_over", held),
    ]
}

const SAMPLES: &str = "ringfence_recorder_samples_total";

fn started(world: &World, log: &Path) -> Daemon {
    world.daemon(&[&format!("record={}", log.display()), "metrics=127.0.0.1:0", "paces=0"])
}

/// How many samples are in the log, `pids.max` of the group in the last one, and what was torn.
fn found(log: &Path, group: &str) -> (u64, Reading, Vec<Torn>) {
    let log = Log::open(log).unwrap();
    let mut samples = log.since(SystemTime::UNIX_EPOCH);
    let (mut count, mut last) = (0, Reading::Missing);
    while let Some(sample) = samples.next_sample().unwrap() {
        count += 1;
        last = sample.groups.get(group, "pids.max");
    }
    (count, last, samples.torn().to_vec())
}

fn recorded(daemon: &Daemon) -> u64 {
    value(&text(address(daemon)), SAMPLES).unwrap_or(0.0) as u64
}

fn wait_for(daemon: &Daemon, more: u64) -> u64 {
    eventually(&format!("{more} samples"), || recorded(daemon) >= more);
    recorded(daemon)
}

fn read() {
    let mut world = World::new();
    let (group, _) = layout(&mut world, "");
    let log = world.directory.join("samples");
    let daemon = started(&world, &log);
    let count = wait_for(&daemon, 5);
    let bytes = value(&text(address(&daemon)), "ringfence_recorder_written_bytes_total").unwrap();
    assert!(bytes > 0.0);
    daemon.end();
    let (all, last, torn) = found(&log, &group);
    assert!(
        all >= count && last == Reading::At(500) && torn.is_empty(),
        "{all} of {count}, {last:?}, {torn:?}"
    );
}

fn killed() {
    let mut world = World::new();
    let (group, _) = layout(&mut world, "");
    let log = world.directory.join("samples");
    let daemon = started(&world, &log);
    let count = wait_for(&daemon, 20);
    daemon.kill();
    // the next one has another address
    fs::remove_file(world.directory.join("log")).unwrap();
    let (all, last, torn) = found(&log, &group);
    assert!(all >= count && torn.len() <= 1 && last == Reading::At(500), "{all} of {count}, {torn:?}");
    // as lost power leaves it
    let segment = segment(&log);
    let length = fs::metadata(&segment).unwrap().len();
    fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(length - 3).unwrap();
    let (left, _, torn) = found(&log, &group);
    assert!(left + 1 >= all && torn.len() == 1, "{left} of {all}, {torn:?}");
    let daemon = started(&world, &log);
    daemon.wait_for_log("ends in a record that was cut off", 1);
    wait_for(&daemon, 3);
    daemon.end();
    let (more, _, torn) = found(&log, &group);
    assert!(more >= left + 3 && torn.is_empty(), "{more} of {left}, {torn:?}");
}

fn segment(log: &Path) -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "rflog"));
    found.sort();
    found.pop().unwrap()
}

/// A disk of a megabyte.
struct Disk(PathBuf);

impl Disk {
    fn new(world: &World) -> Disk {
        let path = world.directory.join("disk");
        fs::create_dir(&path).unwrap();
        mount("tmpfs", &path, "tmpfs", MountFlags::NODEV, Some(c"size=1m")).unwrap();
        Disk(path)
    }

    fn fill(&self) -> PathBuf {
        let filler = self.0.join("filler");
        let mut file = fs::File::create(&filler).unwrap();
        for size in [64 << 10, 4 << 10, 1] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
        filler
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

fn full() {
    let mut world = World::new();
    let (group, program) = layout(&mut world, "");
    let disk = Disk::new(&world);
    let log = disk.0.join("samples");
    let mut daemon = started(&world, &log);
    wait_for(&daemon, 3);
    let at = address(&daemon);
    let up = "ringfence_recorder_up";
    assert_eq!(value(&text(at), up), Some(1.0));
    let filler = disk.fill();
    until(at, up, Some(0.0));
    daemon.wait_for_log("nothing is recorded: ", 1);
    eventually("samples are lost", || {
        value(&text(at), "ringfence_recorder_lost_samples_total").is_some_and(|lost| lost > 3.0)
    });
    // everybody else is served
    let process = Running::start(&program, &["600"]);
    eventually("in its group", || world.place(process.pid()).as_deref() == Some(&group));
    let before = recorded(&daemon);
    fs::remove_file(filler).unwrap();
    until(at, up, Some(1.0));
    wait_for(&daemon, before + 3);
    // after a while without a loss
    daemon.wait_for_log("samples are recorded again", 1);
    let said = daemon.log();
    let times = |text: &str| said.matches(text).count();
    assert_eq!((times("nothing is recorded: "), times("samples are recorded again")), (1, 1), "{said}");
    assert!(daemon.is_alive());
    daemon.end();
    let (_, last, torn) = found(&log, &group);
    assert!(last == Reading::At(500) && torn.is_empty(), "{torn:?}");
}

fn held() {
    let mut world = World::new();
    layout(&mut world, "");
    let log = world.directory.join("samples");
    let (other, _) = monitor::Recorder::open(&log, monitor::RecorderOptions::default()).unwrap();
    let daemon = started(&world, &log);
    daemon.wait_for_log("another recorder writes to", 1);
    assert_eq!(value(&text(address(&daemon)), "ringfence_recorder_up"), Some(0.0));
    drop(other);
    wait_for(&daemon, 2);
    daemon.end();
}
