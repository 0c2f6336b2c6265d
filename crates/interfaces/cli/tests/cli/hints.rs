//! Hints that the program prints: found in its output, and run as a reader would run them.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

/// What a row waits for may never come: it fails then, with what was printed.
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// The first words of what a reader can paste.
const PROGRAMS: [&str; 12] = [
    "ringfence",
    "sudo",
    "systemctl",
    "systemd-run",
    "mount",
    "chmod",
    "chown",
    "mv",
    "rm",
    "ps",
    "df",
    "kill",
];

/// What `hint:` lines say, in order.
pub fn hints(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.trim_start().strip_prefix("hint: ")).collect()
}

/// The command of a hint: at its begin, or behind words that end in a colon, up to words behind it.
pub fn command(hint: &str) -> Option<&str> {
    let is_command = |text: &&str| PROGRAMS.contains(&text.split(' ').next().unwrap_or_default());
    let behind = hint.match_indices(": ").map(|(at, colon)| &hint[at + colon.len()..]);
    let command = std::iter::once(hint).chain(behind).find(is_command)?;
    let ends = [
        "`",
        "\"]",
        ", or ",
        ", and ",
        ", then ",
        "; ",
        ": ",
        " continues it",
        " draws ",
        " keeps them",
        " lists",
        " makes them",
        " pins them",
        " removes it",
        " shows",
        " slows ",
        " starts it",
    ];
    let end = ends.iter().filter_map(|words| command.find(words)).min().unwrap_or(command.len());
    // what the reader has to fill in is no command yet
    let command = &command[..end];
    (!command.contains('…')).then_some(command)
}

/// Runs the command as root, with this program in the place of the installed one.
pub fn obey(program: &str, command: &str, state: Option<&Path>) -> Output {
    let directory = Path::new(program).parent().unwrap().display();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("sudo() {{ \"$@\"; }}\n{command}")]).stdin(Stdio::null());
    shell.env("PATH", format!("{directory}:{path}"));
    if let Some(state) = state {
        shell.env("RINGFENCE_STATE", state);
    }
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = shell.spawn().unwrap();
    let pid = Pid::from_child(&child);
    let (done, waits) = channel::<()>();
    let watch = thread::spawn(move || {
        let is_late = waits.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout);
        // not waited for yet, so that nothing else has its number
        if is_late {
            let _ = kill_process(pid, Signal::KILL);
        }
        is_late
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    assert!(!watch.join().unwrap(), "runs for {LONGEST:?}: {command}\n{output:?}");
    output
}
