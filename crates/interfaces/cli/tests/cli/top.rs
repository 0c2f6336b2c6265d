//! `ringfence top` in a terminal (tmux), on real groups: what it shows, what its keys change, and that the terminal
//! is the user's again afterwards. States of the screen are waited for, never slept for.

use std::{
    fs,
    process::{Command, Output},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;
use nix::sys::{
    ptrace::{self, Options},
    wait::{WaitPidFlag, waitpid},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{Need, Scene, World};

type Body = fn(&mut Scene);

const CASES: &[(&str, Body)] = &[
    ("groups, pages and changes with undo, on the screen", screens),
    ("a group is frozen and thawed on the screen", freezes),
    ("the terminal is as it was, also after SIGTERM and Ctrl-C", restored),
    ("a terminal that can't place text is refused, and without colours there are none", terminals),
    ("a key that comes with another size of the terminal is read", at_once),
    ("the log is shown on the same screens", replay),
    ("without a terminal it prints what watch prints", printed),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, body): &(&'static str, Body)| {
        let (lacks, world) = (world.lacks(&[Need::Usual, Need::Program("tmux")]), world.clone());
        suite::trial(format!("top: {name}"), lacks, move || {
            body(&mut Scene::new(&world, &format!("top{name}")))
        })
    };
    CASES.iter().map(trial).collect()
}

/// A terminal of 80 by 24 with a shell in it, on a server of its own.
struct Terminal {
    directory: tempfile::TempDir,
}

impl Terminal {
    fn new() -> Terminal {
        let terminal = Terminal { directory: tempfile::tempdir().unwrap() };
        let started = terminal.tmux(&["new-session", "-d", "-x", "80", "-y", "24", "sh"]);
        assert!(started.status.success(), "{started:?}");
        terminal
    }

    fn tmux(&self, words: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.args(["-u", "-L", "rf-test-top", "-f", "/dev/null"]).args(words);
        command.env("TMUX_TMPDIR", self.directory.path()).env("LC_ALL", "C.UTF-8");
        command.env_remove("TMUX").env_remove("NO_COLOR").env_remove("TERM").env("PS1", "$ ");
        command.output().unwrap()
    }

    /// A line for the shell.
    fn line(&self, text: &str) {
        self.letters(text);
        self.keys(&["Enter"]);
    }

    fn letters(&self, text: &str) {
        assert!(self.tmux(&["send-keys", "-l", text]).status.success());
    }

    fn keys(&self, keys: &[&str]) {
        assert!(self.tmux(&[&["send-keys"], keys].concat()).status.success());
    }

    fn screen(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// The screen once it has all of these.
    fn until(&self, scene: &Scene, texts: &[&str]) -> String {
        let mut screen = String::new();
        scene.until(&format!("{texts:?} on the screen"), || {
            screen = self.screen();
            let is_there = texts.iter().all(|text| screen.contains(text));
            if !is_there {
                // told if it never comes
                LAST.with_borrow_mut(|last| last.clone_from(&screen));
            }
            is_there
        });
        screen
    }

    /// A file of this terminal's directory.
    fn file(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            LAST.with_borrow(|last| eprintln!("the screen was last:\n{last}"));
        }
        let _ = self.tmux(&["kill-server"]);
    }
}

thread_local! {
    static LAST: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

/// A group with two below it, and a process in one.
fn ready(scene: &mut Scene) {
    for group in ["{g}", "{g}/a", "{g}/b"] {
        scene.ok(&format!("create {group}"));
        scene.ok(&format!("set {group} cpuset.cpus=0 cpuset.mems=0"));
    }
    scene.start("{pid}", &["sleep", "600"]);
    scene.ok("move {g}/a {pid}");
}

/// The command of the shell that begins it; its number is in a file, and its end is told.
fn begin(scene: &Scene, terminal: &Terminal, arguments: &str) {
    let (program, pid) = (scene.program(), terminal.file("pid"));
    let arguments = scene.fill(arguments);
    terminal.line(&format!("sh -c 'echo $$ >{pid}; exec {program} top {arguments}'; echo ended $?"));
}

fn held(scene: &Scene, setting: &str) -> String {
    scene.ok(&format!("get --values {{g}}/a {setting}")).trim().to_owned()
}

fn screens(scene: &mut Scene) {
    ready(scene);
    let terminal = Terminal::new();
    begin(scene, &terminal, "{g} --interval 100ms");
    let screen = terminal.until(scene, &["GROUP", "group 1 of 3", "q quit"]);
    let group = scene.group.clone();
    let tasks = |name: &str| {
        let line = screen.lines().find(|line| line.split_whitespace().any(|word| word == name)).unwrap();
        line.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!((tasks("a"), tasks("b")), ("1".to_owned(), "0".to_owned()), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with('>') && line.contains(&group[group.len() - 10..])));
    // its page
    terminal.keys(&["Down", "Enter"]);
    terminal.until(scene, &[&format!("{group}/a"), "[SETTINGS]", "TASKS 1", "cpu.max"]);
    terminal.keys(&["Tab"]);
    terminal.until(scene, &["[TASKS 1]", "sleep"]);
    terminal.keys(&["Escape"]);
    terminal.until(scene, &["group 2 of 3"]);
    // a change is shown, written, told, and undone
    terminal.keys(&["e"]);
    terminal.until(scene, &["Set "]);
    terminal.letters("pids.max=77");
    terminal.until(scene, &["pids.max=77", "max -> 77", "/a/pids.max"]);
    assert_eq!(held(scene, "pids.max"), "max", "it is only proposed");
    terminal.keys(&["Enter"]);
    terminal.until(scene, &["pids.max max -> 77", "u undoes"]);
    assert_eq!(held(scene, "pids.max"), "77");
    terminal.keys(&["u"]);
    terminal.until(scene, &["Undo?", "77 -> max"]);
    terminal.keys(&["Enter"]);
    terminal.until(scene, &["pids.max 77 -> max"]);
    assert_eq!(held(scene, "pids.max"), "max");
    // what the kernel refuses is told, and nothing is changed
    terminal.keys(&["e"]);
    terminal.until(scene, &["Set "]);
    terminal.letters("cpuset.cpus=");
    terminal.until(scene, &["cpuset.cpus=", "0 -> (empty)"]);
    terminal.keys(&["Enter"]);
    terminal.until(scene, &["Not done", "hint:"]);
    assert_eq!(held(scene, "cpuset.cpus"), "0");
    // as one sequence, which a slow line makes of it too
    terminal.keys(&["Escape", "m"]);
    terminal.until(scene, &["CPU 0:", "Esc back"]);
    terminal.keys(&["q"]);
    terminal.until(scene, &["ended 0"]);
}

fn freezes(scene: &mut Scene) {
    ready(scene);
    let terminal = Terminal::new();
    begin(scene, &terminal, "{g} --interval 100ms");
    terminal.until(scene, &["group 1 of 3"]);
    terminal.keys(&["Down", "f"]);
    terminal.until(scene, &["Freeze ", "/a?", "would write"]);
    terminal.keys(&["Enter"]);
    scene.until("frozen", || held(scene, "cgroup.freeze") == "1");
    terminal.until(scene, &[" F "]);
    terminal.keys(&["f"]);
    terminal.until(scene, &["Thaw "]);
    terminal.keys(&["Enter"]);
    scene.until("thawed", || held(scene, "cgroup.freeze") == "0");
    terminal.keys(&["q"]);
    terminal.until(scene, &["ended 0"]);
}

fn restored(scene: &mut Scene) {
    ready(scene);
    let terminal = Terminal::new();
    let modes = |name: &str| {
        let file = terminal.file(name);
        terminal.line(&format!("stty -g >{file}.new; mv {file}.new {file}"));
        scene.until("the terminal's modes", || fs::exists(&file).unwrap());
        fs::read_to_string(&file).unwrap()
    };
    terminal.line("echo this was before");
    let before = modes("before");
    let signal = |signal: Signal| {
        let pid = fs::read_to_string(terminal.file("pid")).unwrap();
        kill_process(Pid::from_raw(pid.trim().parse().unwrap()).unwrap(), signal).unwrap();
    };
    for name in ["q", "term", "hup", "ctrl-c"] {
        begin(scene, &terminal, "{g}");
        let screen = terminal.until(scene, &["group 1 of 3"]);
        assert!(!screen.contains("this was before"), "{screen}");
        match name {
            "term" => signal(Signal::TERM),
            "hup" => signal(Signal::HUP),
            "ctrl-c" => terminal.keys(&["C-c"]),
            _ => terminal.keys(&["q"]),
        }
        let screen = terminal.until(scene, &["this was before", "ended 0"]);
        assert!(!screen.contains("group 1 of 3"), "{screen}");
        assert_eq!(modes(name), before, "{name}");
        terminal.line("clear; echo this was before");
        terminal.until(scene, &["this was before"]);
    }
}

fn terminals(scene: &mut Scene) {
    ready(scene);
    let terminal = Terminal::new();
    let (program, group) = (scene.program(), scene.group.clone());
    terminal.line(&format!("TERM=dumb {program} top {group}; echo ended $?"));
    terminal.until(scene, &["TERM=dumb", "hint: ringfence watch", "ended 1"]);
    let colours = |terminal: &Terminal| {
        let screen = String::from_utf8(terminal.tmux(&["capture-pane", "-p", "-e"]).stdout).unwrap();
        let styles =
            screen.split("\x1b[").skip(1).filter_map(|rest| Some(rest.split_once('m')?.0.to_owned()));
        let numbers: Vec<String> =
            styles.flat_map(|style| style.split(';').map(str::to_owned).collect::<Vec<_>>()).collect();
        numbers
            .iter()
            .filter_map(|number| number.parse().ok())
            .any(|number: u8| matches!(number, 30..=38 | 90..=97))
    };
    terminal.line(&format!("clear; NO_COLOR=1 {program} top {group}; echo ended $?"));
    terminal.until(scene, &["group 1 of 3"]);
    assert!(!colours(&terminal), "{}", terminal.screen());
    terminal.keys(&["q"]);
    terminal.until(scene, &["ended 0"]);
    terminal.line(&format!("clear; {program} top {group}; echo ended $?"));
    terminal.until(scene, &["group 1 of 3"]);
    assert!(colours(&terminal), "with colours there are some");
    // a smaller terminal is drawn anew
    terminal.tmux(&["resize-window", "-x", "60", "-y", "12"]);
    scene.until("the smaller screen", || {
        terminal.screen().lines().nth(11).is_some_and(|line| line.trim_end().ends_with("q quit"))
    });
    terminal.keys(&["q"]);
    terminal.until(scene, &["ended 0"]);
}

/// Both are there before the thread that reads keys looks again.
fn at_once(scene: &mut Scene) {
    ready(scene);
    let terminal = Terminal::new();
    let (program, group) = (scene.program(), scene.group.clone());
    terminal.line(&format!("{program} top {group}; echo ended $?"));
    terminal.until(scene, &["group 1 of 3"]);
    let shell = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]).stdout;
    let shell = String::from_utf8(shell).unwrap().trim().to_owned();
    let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    let top = children.split_whitespace().next().unwrap().to_owned();
    let threads = fs::read_dir(format!("/proc/{top}/task")).unwrap().map(|thread| thread.unwrap().path());
    let mut threads = threads.filter(|at| fs::read_to_string(at.join("comm")).unwrap().trim() == "keys");
    let keys = threads.next().expect("a thread reads keys");
    let keys = nix::unistd::Pid::from_raw(keys.file_name().unwrap().to_str().unwrap().parse().unwrap());
    ptrace::seize(keys, Options::empty()).unwrap();
    ptrace::interrupt(keys).unwrap();
    waitpid(keys, Some(WaitPidFlag::__WALL)).unwrap();
    let size = || {
        let size =
            Command::new("stty").arg("-F").arg(format!("/proc/{top}/fd/0")).arg("size").output().unwrap();
        assert!(size.status.success(), "{size:?}");
        size.stdout
    };
    let before = size();
    terminal.tmux(&["resize-window", "-x", "60", "-y", "12"]);
    scene.until("the other size", || size() != before);
    scene.until("the end of the signal's handler", || {
        let status = fs::read_to_string(format!("/proc/{top}/status")).unwrap();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
        u64::from_str_radix(pending.trim(), 16).unwrap() == 0
    });
    terminal.keys(&["q"]);
    ptrace::detach(keys, None).unwrap();
    terminal.until(scene, &["ended 0"]);
}

fn replay(scene: &mut Scene) {
    ready(scene);
    let terminal = Terminal::new();
    let log = terminal.file("log");
    scene.name("{log}", &log);
    scene.ok("record {g} --directory {log} --interval 20ms --count 3");
    begin(scene, &terminal, "{g} --directory {log} --at now");
    terminal.until(scene, &["LOG, stopped", "group 1 of 3", "step"]);
    terminal.keys(&["Left", "Left"]);
    terminal.keys(&["Left"]);
    terminal.until(scene, &["the log begins here"]);
    terminal.keys(&["Space"]);
    terminal.until(scene, &["the log ends here", "LOG, stopped"]);
    terminal.keys(&["e"]);
    terminal.until(scene, &["nothing can be changed"]);
    terminal.keys(&["q"]);
    terminal.until(scene, &["ended 0"]);
    terminal.line("clear");
    begin(scene, &terminal, "--directory {log} --at 2001-01-01T00:00:00Z");
    terminal.until(scene, &["nothing was recorded at 2001-01-01", "hint: the log begins at", "ended 1"]);
}

fn printed(scene: &mut Scene) {
    ready(scene);
    let keys = |text: &str| -> Vec<String> {
        let picture: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let groups = picture["groups"].as_object().unwrap();
        let first = groups.values().next().unwrap().as_object().unwrap();
        groups.keys().chain(first.keys()).cloned().collect()
    };
    let watch = scene.ok("watch {g} --once --interval 20ms --json");
    assert_eq!(keys(&scene.ok("top {g} --once --interval 20ms --json")), keys(&watch));
    // standard output is no terminal
    let text = scene.ok("top {g} -n 2 --interval 20ms");
    assert_eq!(text.lines().filter(|line| line.starts_with("group")).count(), 2, "{text}");
    let csv = scene.ok("top {g} --csv --once --interval 20ms --fields pids.current");
    assert_eq!(csv.lines().count(), 4, "{csv}");
    let output = scene.ringfence("top {g} --csv --json", None);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
