//! The journal gets each event with its fields, where standard error is the journal's. journald is this test here, behind
//! a /run of the daemon's own.

use std::{
    fs::{self, File},
    os::{linux::fs::MetadataExt, unix::net::UnixDatagram},
    process::{Command, Stdio},
    time::Duration,
};

use crate::{
    Case,
    daemon_process::DAEMON,
    world::{World, end},
};

pub fn trials() -> Vec<Case> {
    vec![("the_journal_gets_fields", fields), ("what_is_not_the_journals_gets_lines", lines)]
}

/// A daemon that starts and ends, with standard error in `error`, and `/run/systemd/journal` in the world's directory.
fn run(world: &World, stream: &str) {
    let journal = world.directory.join("journal");
    let script = "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/journal && \
                  mount --bind \"$1\" /run/systemd/journal && shift && exec \"$@\"";
    let own = fs::read_link("/proc/self/exe").unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(&journal).arg(own);
    command.arg(DAEMON).arg(&world.directory).arg("log=error");
    let error = File::options().append(true).open(world.directory.join("error")).unwrap();
    command.env("JOURNAL_STREAM", stream).stdin(Stdio::null()).stderr(error);
    let daemon = daemon::wait_for_ready(&mut command).unwrap();
    let mut child = daemon.unwrap_or_else(|ended| panic!("{ended:?}"));
    end(child.id(), rustix::process::Signal::TERM);
    assert!(child.wait().unwrap().success());
}

fn world() -> (World, UnixDatagram, String) {
    let mut world = World::new();
    let group = world.group("db");
    let program = world.copy("sleep", "sleep");
    world.write("cgrules.conf", &format!("*:{} pids {group}\n", program.display()));
    world.write("error", "");
    fs::create_dir(world.directory.join("journal")).unwrap();
    let journal = UnixDatagram::bind(world.directory.join("journal/socket")).unwrap();
    journal.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let error = fs::metadata(world.directory.join("error")).unwrap();
    let stream = format!("{}:{}", error.st_dev(), error.st_ino());
    (world, journal, stream)
}

/// All that came, each event as lines.
fn received(journal: &UnixDatagram) -> Vec<String> {
    let mut buffer = vec![0; 1 << 16];
    let mut all = Vec::new();
    while let Ok(length) = journal.recv(&mut buffer) {
        all.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
    }
    all
}

fn fields() {
    let (world, journal, stream) = world();
    run(&world, &stream);
    let events = received(&journal);
    let ready = events.iter().find(|event| event.lines().any(|line| line == "MESSAGE=ready"));
    let ready = ready.unwrap_or_else(|| panic!("{events:?}"));
    for line in ["PRIORITY=6", "SYSLOG_IDENTIFIER=ringfenced", "RULES=1"] {
        assert!(ready.lines().any(|told| told == line), "{line}: {ready}");
    }
    assert_eq!(fs::read_to_string(world.directory.join("error")).unwrap(), "", "once is enough");
}

fn lines() {
    let (world, journal, _) = world();
    // inherited from a service's shell, which has since redirected it
    run(&world, "1:1");
    assert_eq!(received(&journal), Vec::<String>::new());
    let text = fs::read_to_string(world.directory.join("error")).unwrap();
    assert!(text.contains("ready rules=1"), "{text}");
}
