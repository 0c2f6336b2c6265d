//! Attack finding 23: how much memory a large layout takes, in a process that may have no more. Small tables are the
//! worst: each key of a dotted name is a table of its own.

use std::process::Command;

use layout::{Source, read_toml};

/// Bytes of text, and of address space for each of them.
const LENGTH: usize = 4 << 20;
const PER_BYTE: usize = 100;
/// What the program, its threads and its allocator take before.
const BEFORE: usize = 200 << 20;

fn text(one: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    (0..)
        .take_while(|number| {
            text.push_str(&one(*number));
            text.len() < LENGTH
        })
        .for_each(drop);
    text
}

#[test]
#[ignore = "run by the other one, in a process of its own"]
fn large_layouts() {
    let kinds: [(&str, &dyn Fn(usize) -> String); 3] = [
        ("small groups", &|number| format!("[groups.g{number}]\npids.max = 5\n")),
        ("rules", &|number| {
            format!("[groups.g{number}]\nmatch = [{{ process = \"/usr/bin/p{number}\" }}]\n")
        }),
        ("errors", &|number| format!("x{number} = \n")),
    ];
    for (kind, one) in kinds {
        let text = text(one);
        let reading = read_toml(&[Source::new("layout.toml", &text)]);
        assert_eq!(reading.desired.is_some(), kind != "errors");
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let most = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        println!("{kind}: {} bytes, {most}", text.len());
        drop(reading);
    }
}

#[test]
fn a_large_layout_takes_at_most_so_much_memory_for_each_byte() {
    let limit = (BEFORE + LENGTH * PER_BYTE) >> 10;
    let script = format!(
        "ulimit -v {limit}; exec \"$0\" --exact memory::large_layouts --ignored --nocapture --test-threads=1"
    );
    let output =
        Command::new("sh").args(["-c", &script]).arg(std::env::current_exe().unwrap()).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("1 passed"), "{output:?}");
    print!("{out}");
}
