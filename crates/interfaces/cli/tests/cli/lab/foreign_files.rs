//! Files of other users, and such as never end.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use super::{Lab, text};

/// attack finding 7: `lab report` and `run --resume` worked in directories of other users, `lab run` ran files that
/// others could change, and links that others had planted were followed. Finding 12: names went to the terminal raw.
pub fn strangers(lab: &Lab) {
    lab.experiment(1);
    lab.ok("run small.toml --directory out");
    // a file that a link leads to stays as it is
    fs::write(lab.path("victim"), "untouched").unwrap();
    for name in ["report.html", "summary.md", "runs.csv"] {
        fs::remove_file(lab.path("out").join(name)).unwrap();
        std::os::unix::fs::symlink(lab.path("victim"), lab.path("out").join(name)).unwrap();
    }
    lab.ok("report out");
    assert_eq!(fs::read_to_string(lab.path("victim")).unwrap(), "untouched");
    assert!(fs::read_to_string(lab.path("out/report.html")).unwrap().contains("A small experiment"));

    let results = lab.path("out/results.json");
    let text_of_results = fs::read_to_string(&results).unwrap();
    let evil = text_of_results.replace("A small experiment", "A \\u001b]0;x\\u0007small\\u202eone");
    fs::write(&results, evil).unwrap();
    let said = lab.ok("report out");
    assert!(said.starts_with("A \\u{1b}]0;x\\u{7}small\\u{202e}one\n"), "{said:?}");
    assert!(!said.contains(['\x1b', '\x07', '\u{202e}']));
    fs::write(&results, text_of_results).unwrap();

    let theirs = |path: &Path| std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).unwrap();
    theirs(&lab.path("out"));
    for line in ["report out", "run --resume out", "compare out out", "run small.toml --directory out/below"]
    {
        let output = lab.run(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains("user 65534") && said.contains("hint:"), "{line}: {said}");
    }
    assert!(!lab.path("out/below").exists());
    // what is said makes it root's again
    let said = text(&lab.run("report out").stderr);
    let (_, chown) = said.split_once("if you trust what is in it, ").unwrap();
    let succeeds = |line: &str| {
        let done = Command::new("sh").args(["-c", line]).current_dir(lab.directory.path()).status().unwrap();
        assert!(done.success(), "{line}");
    };
    succeeds(chown);
    lab.ok("report out");
    fs::set_permissions(lab.path("out"), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    lab.obey(&text(&lab.run("report out").stderr), "chmod go-w");
    lab.ok("report out");

    fs::set_permissions(lab.path("small.toml"), std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    for line in ["check small.toml", "run small.toml --directory second"] {
        let output = lab.run(line);
        assert!(!output.status.success());
        let said = text(&output.stderr);
        assert!(said.contains("can be written by others than its owner"), "{line}: {said}");
    }
    assert!(!lab.path("second").exists());
}

/// attack finding 21: `lab check /dev/zero` read 2 GB, results.json as a link to it all memory; a FIFO was waited for
/// without end.
pub fn endless(lab: &Lab) {
    lab.experiment(1);
    fs::create_dir(lab.path("results")).unwrap();
    let fifo = |name: &str| {
        let made = Command::new("mkfifo").arg(lab.path(name)).status().unwrap();
        assert!(made.success());
    };
    fifo("fifo.toml");
    let refused = |line: &str| {
        // a wait is ended with 124, memory beyond this with an abort
        let plain = lab.command(line);
        let mut command = Command::new("timeout");
        command.args(["60", "prlimit", "--as=700000000"]).arg(plain.get_program()).args(plain.get_args());
        command.current_dir(lab.directory.path()).env("RINGFENCE_STATE", lab.path("state"));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{line}: {:?} {said}", output.status);
        assert!(said.contains("error"), "{line}: {said}");
    };
    let has_root = rustix::process::geteuid().is_root();
    refused("check fifo.toml");
    refused("check /dev/zero");
    if has_root {
        refused("run fifo.toml --directory never");
    }
    let long = fs::File::create(lab.path("long.toml")).unwrap();
    long.set_len(4 << 30).unwrap();
    refused("check long.toml");
    for of in ["results.json", "experiment.toml", "design.json", "environment.json", "runs.jsonl"] {
        let at = format!("results/{of}");
        for kind in ["fifo", "link", "endless", "directory"] {
            match kind {
                "fifo" => fifo(&at),
                "link" => std::os::unix::fs::symlink("/dev/zero", lab.path(&at)).unwrap(),
                "endless" => fs::File::create(lab.path(&at)).unwrap().set_len(8 << 30).unwrap(),
                _ => fs::create_dir(lab.path(&at)).unwrap(),
            }
            refused("report results");
            refused("compare results results");
            if has_root {
                refused("run --resume results");
            }
            if kind == "directory" {
                fs::remove_dir(lab.path(&at)).unwrap();
            } else {
                fs::remove_file(lab.path(&at)).unwrap();
            }
        }
    }
}
