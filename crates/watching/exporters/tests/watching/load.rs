//! A process that waits for a line and then does something: what the tests watch.

use std::{
    io::{BufRead, Read, Seek, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
    time::Duration,
};

use kernel::{Kernel, Real};
use rustix::time::{ClockId, clock_gettime};

/// The first word of the process's arguments.
pub const WORD: &str = "load-of-the-watching-suite";

/// It says that it is there; `burn MS`, `take MIB`, `threads N`, `spin [N]`, `exec PROGRAM [ARGUMENT]…`, or an endless work of
/// [`endless`] after a line on standard input; then it says so and, but for `burn`, waits for the end of its input.
pub fn run(words: &[String]) -> ExitCode {
    std::io::stdout().write_all(b"here\n").unwrap();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    let number: usize = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let mut memory = Vec::new();
    match words[0].as_str() {
        "burn" => burn(Duration::from_millis(number as u64)),
        "take" => memory.resize(number << 20, 1u8),
        "threads" => {
            let start =
                |_| std::thread::Builder::new().spawn(|| std::thread::sleep(Duration::from_secs(600)));
            if (0..number).map(start).any(|started| started.is_err()) {
                return ExitCode::FAILURE;
            }
        }
        "spin" => (0..number.max(1)).for_each(|_| {
            std::thread::spawn(|| {
                loop {
                    std::hint::spin_loop();
                }
            });
        }),
        "exec" => panic!("{}", Command::new(&words[1]).args(&words[2..]).exec()),
        _ => endless(words.to_vec()),
    }
    std::io::stdout().write_all(b"done\n").unwrap();
    if words[0] != "burn" {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
    }
    ExitCode::from(memory.first().map_or(0, |byte| byte - 1))
}

/// `reread FILE MIB` (its first MiB), `touch MIB`, `direct DEVICE`, `fork`, `outgrow MIB`: again and again, in
/// a thread of its own.
fn endless(words: Vec<String>) {
    let number = words.last().and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
    let mut file = (words[0] == "reread").then(|| {
        let file = std::fs::File::open(&words[1]).unwrap();
        // what is cached already is charged to those who read it before
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        file
    });
    std::thread::spawn(move || {
        let mut memory = if words[0] == "touch" { vec![1u8; number << 20] } else { vec![0; 1 << 20] };
        loop {
            match words[0].as_str() {
                "reread" => {
                    // stays open: with its last closing a block device drops its pages
                    let file = file.as_mut().unwrap();
                    file.rewind().unwrap();
                    (0..number).for_each(|_| file.read_exact(&mut memory).unwrap());
                }
                "touch" => memory.iter_mut().step_by(4096).for_each(|byte| *byte = byte.wrapping_add(1)),
                "direct" => direct(&words[1]),
                "fork" => {
                    let _ = std::thread::Builder::new().spawn(|| ()).map(std::thread::JoinHandle::join);
                    std::thread::sleep(Duration::from_millis(5));
                }
                "outgrow" => {
                    let mut child = Load::new(&["take", &words[1]]);
                    child.go();
                    let _ = child.is_done(); // it is killed
                }
                other => panic!("{other}"),
            }
        }
    });
}

/// Reads a device past the page cache, a block at a time, from begin to end.
fn direct(path: &str) {
    use rustix::fs::{Mode, OFlags};
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECT, Mode::empty()).unwrap();
    let mut space = vec![0u8; 8192];
    let begin = space.as_ptr().align_offset(4096);
    let mut at = 0;
    while rustix::io::pread(&file, &mut space[begin..begin + 4096], at).unwrap() > 0 {
        at += 4096;
    }
}

fn burn(time: Duration) {
    loop {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        if Duration::new(now.tv_sec as u64, now.tv_nsec as u32) >= time {
            return;
        }
    }
}

/// Such a process; killed and reaped when dropped.
pub struct Load {
    child: Child,
    input: Option<ChildStdin>,
}

impl Load {
    pub fn new(words: &[&str]) -> Load {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(WORD).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let mut load = Load { child, input };
        assert!(load.is_done(), "the process did not start");
        // what it ran between a look at its time and its move to a group would count in neither
        while Real::new().process(load.pid()).unwrap().state != 'S' {
            std::thread::sleep(Duration::from_millis(1));
        }
        load
    }

    /// CPU time that it used so far, from `/proc`: what was used before it was put into a group counts elsewhere.
    pub fn used(&self) -> u64 {
        let path = format!("/proc/{}/schedstat", self.pid());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it begin.
    pub fn go(&mut self) {
        self.input.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Waits until it did what it was to do; `false` if it ended before.
    pub fn is_done(&mut self) -> bool {
        let mut said = [0; 5];
        self.child.stdout.as_mut().unwrap().read_exact(&mut said).is_ok()
    }

    /// Lets it end, and reaps it.
    pub fn end(mut self) {
        self.input = None;
        self.child.wait().unwrap();
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
