//! The exec gate on this kernel, inside this process. That is not to be done elsewhere: between fork and exec a child
//! has a copy of the gate's descriptor, and would hold itself if this process ended.

use std::{
    fs,
    os::{
        fd::OwnedFd,
        unix::{
            fs::{MetadataExt, PermissionsExt, symlink},
            net::UnixStream,
        },
    },
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, mpsc::channel},
    thread::{self, JoinHandle},
};

use events::{Control, ExecGate, Served};
use libtest_mimic::Trial;

use crate::{
    processes::{Copies, command, copy, emulated, execs, storm, until},
    trial,
};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("gate::an_exec_waits_until_the_callback_has_returned", waits),
        trial("gate::each_exec_of_a_storm_is_asked_for_once", all_once),
        trial("gate::unmarked_executables_do_not_ask", unmarked),
        trial("gate::a_replaced_executable_asks_again", replaced),
        trial("gate::an_executable_that_comes_later_asks", later),
        trial("gate::a_link_turned_to_another_file_asks_there", link),
        trial("gate::a_script_asks_for_itself_and_for_its_interpreter", script),
        trial("gate::hard_links_ask_and_copies_and_ld_so_do_not", other_ways),
        trial("gate::a_process_killed_while_it_waits_disturbs_nobody", killed),
        trial("gate::a_relative_path_is_refused", relative),
    ]
}

/// What a callback saw.
#[derive(Debug, Clone)]
struct Requested {
    pid: u32,
    /// The inode of the file that is executed.
    file: u64,
    /// What the process still was.
    before: PathBuf,
}

struct Gate {
    requested: Arc<Mutex<Vec<Requested>>>,
    line: Option<UnixStream>,
    thread: Option<JoinHandle<Served>>,
}

impl Gate {
    fn new(executables: &[&Path]) -> Gate {
        Gate::with(executables, |_| ())
    }

    fn with(executables: &[&Path], mut callback: impl FnMut(u32) + Send + 'static) -> Gate {
        let (line, theirs) = UnixStream::pair().unwrap();
        let executables = executables.iter().map(|path| path.to_path_buf()).collect();
        let requested = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&requested);
        let (opened, is_open) = channel();
        let thread = thread::spawn(move || {
            let gate = ExecGate::open(Control::new(OwnedFd::from(theirs)), executables).unwrap();
            opened.send(()).unwrap();
            gate.serve(|pid, file| {
                let file = rustix::fs::fstat(file).unwrap().st_ino;
                let before = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
                record.lock().unwrap().push(Requested { pid, file, before });
                callback(pid);
            })
            .unwrap()
        });
        is_open.recv().unwrap();
        Gate { requested, line: Some(line), thread: Some(thread) }
    }

    fn requested(&self) -> Vec<Requested> {
        self.requested.lock().unwrap().clone()
    }

    /// The inodes requested by process `pid`.
    fn files(&self, pid: u32) -> Vec<u64> {
        self.requested()
            .iter()
            .filter(|requested| requested.pid == pid)
            .map(|requested| requested.file)
            .collect()
    }

    fn end(mut self) -> Served {
        self.line = None;
        self.thread.take().unwrap().join().unwrap()
    }
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// Runs a command to its good end; its process ID.
fn run(command: &mut Command) -> u32 {
    let mut child = command.spawn().unwrap();
    assert!(child.wait().unwrap().success());
    child.id()
}

fn waits() {
    let copies = Copies::new();
    let marker = copies.path("the callback returned");
    let made = marker.clone();
    let gate = Gate::with(&[&copies.program], move |_| {
        thread::sleep(std::time::Duration::from_millis(50));
        fs::write(&made, "").unwrap();
    });
    // spawn returns after the exec
    let mut child = command(&copies.program).spawn().unwrap();
    assert!(marker.exists());
    child.wait().unwrap();
    let requested = gate.requested();
    assert_eq!(requested.len(), 1);
    assert_eq!((requested[0].pid, requested[0].file), (child.id(), inode(&copies.program)));
    assert_eq!(requested[0].before, std::env::current_exe().unwrap());
    assert_eq!(gate.end(), Served { execs: 1 });
}

fn all_once() {
    let copies = Copies::new();
    let gate = Gate::new(&[&copies.program]);
    let storm = storm(&copies.program, execs(), 16, || ());
    let mut requested: Vec<u32> = gate.requested().iter().map(|requested| requested.pid).collect();
    let mut pids = storm.pids.clone();
    requested.sort_unstable();
    pids.sort_unstable();
    assert_eq!(requested, pids);
    assert_eq!(gate.end(), Served { execs: execs() as u64 });
}

fn unmarked() {
    let copies = Copies::new();
    copy(&copies.path("other"));
    let gate = Gate::new(&[&copies.program]);
    run(&mut command(&copies.path("other")));
    fs::read(&copies.program).unwrap(); // an open that executes nothing
    assert_eq!(gate.end(), Served { execs: 0 });
}

/// Executes until the exec is requested: marks follow a change, they can't be part of it.
fn until_asked(gate: &Gate, path: &Path) {
    until("a question", || {
        let pid = run(&mut command(path));
        !gate.files(pid).is_empty()
    });
}

fn replaced() {
    let copies = Copies::new();
    let gate = Gate::new(&[&copies.program]);
    let held = fs::File::open(&copies.program).unwrap(); // so that its inode's number is not used again
    let before = held.metadata().unwrap().ino();
    for name in ["new", "newer"] {
        copy(&copies.path(name));
        fs::rename(copies.path(name), &copies.program).unwrap();
        until_asked(&gate, &copies.program);
    }
    assert!(gate.requested().iter().all(|requested| requested.file != before));
    gate.end();
}

fn later() {
    let copies = Copies::new();
    let program = copies.path("opt/bin/program");
    let gate = Gate::new(&[&program]);
    fs::create_dir_all(copies.path("opt/bin")).unwrap();
    fs::rename(&copies.program, &program).unwrap();
    until_asked(&gate, &program);
    // the directory is made anew
    fs::rename(copies.path("opt"), copies.path("old")).unwrap();
    fs::create_dir_all(copies.path("opt/bin")).unwrap();
    copy(&program);
    until_asked(&gate, &program);
    gate.end();
}

fn link() {
    let copies = Copies::new();
    for version in ["16", "17"] {
        fs::create_dir(copies.path(version)).unwrap();
        copy(&copies.path(version).join("program"));
    }
    symlink("16", copies.path("current")).unwrap();
    let program = copies.path("current/program");
    let gate = Gate::new(&[&program]);
    let pid = run(&mut command(&program));
    assert_eq!(gate.files(pid), [inode(&copies.path("16/program"))]);
    symlink("17", copies.path("next")).unwrap();
    fs::rename(copies.path("next"), copies.path("current")).unwrap();
    until_asked(&gate, &copies.path("17/program"));
    gate.end();
}

fn script() {
    let copies = Copies::new();
    let script = copies.path("script");
    fs::write(&script, format!("#!{}\n", copies.program.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let (of_script, of_program) = (inode(&script), inode(&copies.program));
    let rows: [(&[&Path], &[u64]); 3] = [
        (&[&script, &copies.program], &[of_script, of_program]),
        (&[&script], &[of_script]),
        (&[&copies.program], &[of_program]),
    ];
    for (marked, expected) in rows {
        let gate = Gate::new(marked);
        // a copy of busybox does not know its name here
        let mut child = Command::new(&script).stdout(std::process::Stdio::null()).spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(gate.files(child.id()), expected);
        gate.end();
    }
}

fn other_ways() {
    let copies = Copies::new();
    fs::hard_link(&copies.program, copies.path("linked")).unwrap();
    fs::copy(&copies.program, copies.path("copied")).unwrap();
    let gate = Gate::new(&[&copies.program]);
    let linked = run(&mut command(&copies.path("linked")));
    assert_eq!(gate.files(linked), [inode(&copies.program)]);
    let held = fs::File::open(&copies.program).unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
    rustix::io::fcntl_setfd(&held, rustix::io::FdFlags::empty()).unwrap();
    let by_descriptor = run(&mut command(Path::new(&path)));
    assert_eq!(gate.files(by_descriptor), [inode(&copies.program)]);
    let copied = run(&mut command(&copies.path("copied")));
    assert!(gate.files(copied).is_empty());
    let loader = Path::new("/lib64/ld-linux-x86-64.so.2");
    if loader.exists() && !emulated() {
        let loaded = run(Command::new(loader).arg(&copies.program));
        assert!(gate.files(loaded).is_empty());
    }
    gate.end();
}

fn killed() {
    let copies = Copies::new();
    let victim = Arc::new(Mutex::new(None));
    let told = Arc::clone(&victim);
    let gate = Gate::with(&[&copies.program], move |pid| {
        let mut victim = told.lock().unwrap();
        if victim.is_none() {
            *victim = Some(pid);
            let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    });
    let mut child = command(&copies.program).spawn();
    if let Ok(child) = &mut child {
        assert!(!child.wait().unwrap().success());
    }
    storm(&copies.program, 100, 4, || ());
    assert_eq!(gate.end(), Served { execs: 101 });
}

fn relative() {
    let (_line, theirs) = UnixStream::pair().unwrap();
    let error = ExecGate::open(Control::new(OwnedFd::from(theirs)), vec!["bin/x".into()]).unwrap_err();
    assert_eq!(error.to_string(), "bin/x: not an absolute path");
}
