//! A page of docs/ as a session: its files are written and its commands are run in one shell, and what they print is
//! compared with what the page shows, where `…` stands for anything in a line, and a line of it for any lines.
//!
//! A command starts with `$ ` or, as root, with `# ` in a block that is fenced as `console`. The text before another block
//! that ends in "`NAME`:" makes that block a file. A command must end with 0, unless the next one is `echo $?`.

use std::{
    fmt::Write as _,
    fs,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process_group};
use snapbox::{Assert, IntoData};

use crate::desk::Desk;

#[derive(Debug, PartialEq)]
enum Part {
    File { name: String, text: String },
    Command { line: String, output: String },
}

/// The blocks of a document that are fenced as `kind`.
pub fn fenced(document: &str, kind: &str) -> Vec<String> {
    let fence = format!("```{kind}\n");
    let blocks = document.split(fence.as_str()).skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

fn parts(page: &str) -> Vec<Part> {
    let pieces: Vec<&str> = page.split("```").collect();
    let blocks = pieces.chunks_exact(2).map(|pair| (pair[0], pair[1].split_once('\n').unwrap()));
    blocks
        .flat_map(|(before, (kind, text))| match kind {
            "console" => commands(text),
            _ => {
                file_name(before).map(|name| Part::File { name, text: text.to_owned() }).into_iter().collect()
            }
        })
        .collect()
}

fn file_name(before: &str) -> Option<String> {
    let (_, name) = before.trim_end().strip_suffix("`:")?.rsplit_once('`')?;
    Some(name.to_owned())
}

fn commands(block: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for row in block.lines() {
        match (row.strip_prefix("$ ").or_else(|| row.strip_prefix("# ")), parts.last_mut()) {
            (Some(line), _) => parts.push(Part::Command { line: line.to_owned(), output: String::new() }),
            (None, Some(Part::Command { line, output })) if line.ends_with('\\') && output.is_empty() => {
                *line += "\n";
                *line += row;
            }
            (None, Some(Part::Command { output, .. })) => {
                *output += row.trim_end();
                *output += "\n";
            }
            (None, _) => panic!("a block begins with output: {row}"),
        }
    }
    parts
}

/// Does what the page says, in the desk's directory. On a machine of our own it begins without any controller, and must leave
/// no group.
pub fn follow(desk: &Desk, page: &str, own_machine: bool) {
    let parts = parts(page);
    let home = desk.path("page");
    fs::create_dir_all(desk.path("bin")).unwrap();
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::symlink(desk.scene.program(), desk.path("bin/ringfence")).unwrap();
    let before = if own_machine { groups_after_boot(desk) } else { Vec::new() };
    let transcript = run(desk, &home, &parts);
    let left = if own_machine { groups(desk) } else { Vec::new() };
    let left: Vec<String> = left.into_iter().filter(|group| !before.contains(group)).collect();
    clean_up(desk, &left);
    let files = parts.iter().filter_map(|part| match part {
        Part::File { name, .. } => Some(home.join(name)),
        Part::Command { .. } => None,
    });
    // some are the machine's own, such as /etc/ringfence/layout.toml; a command may have removed them
    files.for_each(|file| drop(fs::remove_file(file)));
    let expected = expected(&parts);
    if let Err(error) = Assert::new().try_eq(Some(&"the page"), transcript.into_data(), expected.into_data())
    {
        panic!("{error}");
    }
    assert!(left.is_empty(), "the page leaves groups: {left:?}");
}

/// As after a boot, a v2 root gives no controller to groups below it, whatever tests before have left.
fn groups_after_boot(desk: &Desk) -> Vec<String> {
    let file = Path::new("/sys/fs/cgroup/cgroup.subtree_control");
    let enabled = fs::read_to_string(file).unwrap_or_default();
    for controller in enabled.split_whitespace() {
        // one that a group uses stays
        let _ = fs::write(file, format!("-{controller}"));
    }
    groups(desk)
}

fn groups(desk: &Desk) -> Vec<String> {
    desk.run("list").1.lines().map(str::to_owned).collect()
}

fn clean_up(desk: &Desk, left: &[String]) {
    for group in left {
        desk.run(&format!("kill {group}"));
    }
    desk.run("undo 0 --state {d}/state");
    for group in left.iter().rev() {
        desk.run(&format!("delete --recursive {group}"));
    }
}

/// What one shell printed that ran all commands, as a page would show it.
fn run(desk: &Desk, home: &Path, parts: &[Part]) -> String {
    let mut script = "status=0\n".to_owned();
    for part in parts {
        match part {
            Part::File { name, text } => {
                let path = home.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                // a file that a command makes use of is there from the beginning
                fs::write(path, text).unwrap();
            }
            Part::Command { line, .. } => {
                // each command finds the status of the one before it
                writeln!(script, "printf '%s\\n' {}; (exit $status)", quoted(&shown(line))).unwrap();
                writeln!(script, "{line}\nstatus=$?; echo \"{MARK}$status\"").unwrap();
                // what runs in the background is at work by the time that a reader has typed the next one
                if line.ends_with('&') {
                    script.push_str("sleep 2\n");
                }
            }
        }
    }
    let (log, file) = (desk.path("transcript"), desk.path("script"));
    fs::write(&file, script).unwrap();
    let output = fs::File::create(&log).unwrap();
    let path = format!("{}:{}", desk.path("bin").display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh")
        .arg(file)
        .current_dir(home)
        .env("PATH", path)
        .env("RINGFENCE_STATE", desk.path("state"))
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .process_group(0)
        .spawn()
        .unwrap();
    let group = Pid::from_child(&shell);
    shell.wait().unwrap();
    let _ = kill_process_group(group, Signal::KILL); // programs in the background; there may be none
    without_marks(&fs::read_to_string(log).unwrap())
}

const MARK: &str = "status of a documented command: ";

/// A status is shown where the command failed and nobody asked for it.
fn without_marks(log: &str) -> String {
    let mut rows: Vec<String> = Vec::new();
    let mut failed = None;
    for row in log.lines() {
        match row.strip_prefix(MARK) {
            Some("0") => failed = None,
            Some(status) => failed = Some(status),
            None => {
                if let Some(status) = failed.take().filter(|_| row != "# echo $?") {
                    rows.push(format!("[the command ended with {status}]"));
                }
                rows.push(row.trim_end().to_owned());
            }
        }
    }
    rows.extend(failed.map(|status| format!("[the command ended with {status}]")));
    rows.join("\n") + "\n"
}

fn expected(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        if let Part::Command { line, output } = part {
            text += &shown(line);
            text += "\n";
            for row in output.lines() {
                text += &if row == "…" { "...".to_owned() } else { row.replace('…', "[..]") };
                text += "\n";
            }
        }
    }
    text
}

fn shown(line: &str) -> String {
    format!("# {line}")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What a page means to this reader: files, commands and what they print.
pub fn reads_as_meant() {
    let page = "Write `a.toml`:\n\n```toml\nx = 1\n```\n\n```console\n$ cat \\\n  a.toml\nx = 1\n# true\n```\n\n```sh\nrm\n```\n";
    let command =
        |line: &str, output: &str| Part::Command { line: line.to_owned(), output: output.to_owned() };
    assert_eq!(
        parts(page),
        [
            Part::File { name: "a.toml".to_owned(), text: "x = 1\n".to_owned() },
            command("cat \\\n  a.toml", "x = 1\n"),
            command("true", ""),
        ]
    );
    assert_eq!(
        without_marks(&format!("# a\n{MARK}3\n# b\n{MARK}3\n# echo $?\n3\n{MARK}0\n")),
        "# a\n[the command ended with 3]\n# b\n# echo $?\n3\n"
    );
    let same = |text: &str, page: &str| {
        let expected = expected(&[command("x", page)]);
        Assert::new().try_eq(None, format!("# x\n{text}").into_data(), expected.into_data()).is_ok()
    };
    assert!(same("a 5 b\n", "a … b\n") && same("a\nb\nc\n", "a\n…\nc\n"));
    assert!(!same("a 5 b\n", "a … c\n") && !same("a\n", "b\n") && !same("a\nb\n", "a\n"));
}
