//! A scene with files: layouts written for one trial and a state directory of its own, all gone when it ends.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::Arc,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{Scene, World};

/// A trial's group, processes and files. In command lines and files `{g}` is the group (a second one may be called
/// `{g}-rt`), `{d}` the directory of the files, and `{s}` the option that names the state directory in it.
pub struct Desk {
    pub scene: Scene,
    directory: PathBuf,
}

impl Desk {
    pub fn new(world: &Arc<World>, test: &str) -> Desk {
        let mut scene = Scene::new(world, test);
        let directory = std::env::temp_dir().join(&scene.group);
        fs::create_dir(&directory).unwrap();
        let named = directory.to_str().unwrap().to_owned();
        scene.name("{d}", &named);
        scene.name("{s}", &format!("--state {named}/state"));
        Desk { scene, directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes a file, and the directories above it.
    pub fn write(&self, name: &str, text: &str) {
        self.write_bytes(name, self.scene.fill(text).as_bytes());
    }

    pub fn write_bytes(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Exit status, standard output, standard error.
    pub fn run(&self, line: &str) -> (i32, String, String) {
        answer(self.scene.ringfence(line, None))
    }

    /// Standard output of what must end with this status.
    pub fn ends(&self, line: &str, status: i32) -> String {
        let (code, out, error) = self.run(line);
        assert_eq!(code, status, "ringfence {}\n{out}{error}", self.scene.fill(line));
        out
    }

    pub fn json(&self, line: &str, status: i32) -> Value {
        let text = self.ends(line, status);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"))
    }

    /// Starts one of our commands with its output kept.
    pub fn spawn(&self, line: &str) -> Child {
        let line = self.scene.fill(line);
        let mut command = Command::new(self.scene.program());
        command.args(line.split_whitespace()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The groups of this trial that are there.
    pub fn groups(&self) -> Vec<String> {
        let (_, listed, _) = self.run("list {g}");
        listed.lines().map(str::to_owned).collect()
    }

    /// How many generations were made, and how many are under way or broken off.
    pub fn generations(&self) -> usize {
        let entries = fs::read_dir(self.path("state/generations")).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.ends_with(".newest")).count()
    }
}

impl Desk {
    /// Processes that would revert a change of this trial.
    pub fn reverters(&self) -> Vec<Pid> {
        let state = self.path("").display().to_string();
        let is_one = |pid: i32| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains("revert-unless-confirmed") && line.contains(&state)
        };
        let all =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        all.filter(|pid| is_one(*pid)).filter_map(Pid::from_raw).collect()
    }

    fn end_reverters(&self) {
        for pid in self.reverters() {
            let _ = kill_process(pid, Signal::KILL); // it may have ended
        }
    }

    pub fn kill_reverters(&self) {
        self.end_reverters();
        self.scene.until("the end of the process that reverts", || self.reverters().is_empty());
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // one that waits would outlive the trial
        self.end_reverters();
        self.run("delete {g}-rt");
        let _ = fs::remove_dir_all(&self.directory);
    }
}

pub fn answer(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Every part must be in the text.
pub fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "'{part}' is not in:\n{text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

/// Makes a file as large as that without writing it.
pub fn large(path: &Path, bytes: u64) {
    fs::File::create(path).unwrap().set_len(bytes).unwrap();
}

/// A program to be copied under another name: the sleep of a VM is one of many names of one program, and knows them.
pub fn sleep_program() -> &'static str {
    if Path::new("/rf/sleep").exists() { "/rf/sleep" } else { "/bin/sleep" }
}
