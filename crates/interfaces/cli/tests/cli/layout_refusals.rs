//! Layouts that can't be used: every error at once with its cause, its place and its hint, the documented status, and
//! nothing changed.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::{Desk, large, says},
    world::{Need, World},
};

/// What is said of files by each command that reads them.
pub struct Bad {
    pub name: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// Which of them is named; a directory by "".
    layout: &'static str,
    pub says: &'static [&'static str],
}

/// Refused by reading alone: by `check`, `plan` and `apply`.
pub const UNREADABLE: &[Bad] = &[
    Bad {
        name: "a syntax error",
        files: &[("l.toml", "[groups.{g}\npids.max = 5\n")],
        layout: "l.toml",
        says: &["l.toml:1:", "1 | [groups.{g}", "^", "has 1 error"],
    },
    Bad {
        name: "a mistyped key",
        files: &[("l.toml", "[groups.{g}]\ncpu = 8\n")],
        layout: "l.toml",
        says: &[
            "unknown key 'cpu' in group '{g}'",
            "l.toml:2:1\n",
            "2 | cpu = 8\n  | ^^^\n",
            "did you mean cpus?",
        ],
    },
    Bad {
        name: "a group of a unit",
        files: &[(
            "l.toml",
            "[groups.\"/system.slice/rf-test.service\"]\nmemory.max = \"64M\"\ncpu.max = \"1.5cpu\"\npids.max = \"max\"\n",
        )],
        layout: "l.toml",
        says: &[
            "belongs to systemd",
            "l.toml:1:",
            "hint: systemctl set-property rf-test.service MemoryMax=64M CPUQuota=150% TasksMax=infinity",
        ],
    },
    Bad {
        name: "a mistyped setting",
        files: &[("l.toml", "[groups.{g}]\nmemory.mx = \"8G\"\n")],
        layout: "l.toml",
        says: &["memory.mx", "l.toml:2:", "memory.max"],
    },
    Bad {
        name: "a wrong type",
        files: &[("l.toml", "[groups.{g}]\npids.max = 5\nexclusive = \"yes\"\n")],
        layout: "l.toml",
        says: &["exclusive", "l.toml:3:13\n", "true or false"],
    },
    Bad {
        name: "a value out of its range",
        files: &[("l.toml", "[groups.{g}]\ncpu.weight = 20000\n")],
        layout: "l.toml",
        says: &["cpu.weight", "10000", "l.toml:2:14\n"],
    },
    Bad {
        name: "groups that are like each other in a circle",
        files: &[(
            "l.toml",
            "[groups.{g}.groups]\na.cpus = { like = \"{g}/b\" }\nb.cpus = { like = \"{g}/a\" }\n",
        )],
        layout: "l.toml",
        says: &["in a circle: '{g}/a' → '{g}/b' → '{g}/a'", "l.toml:3:", "hint: one of them needs CPUs"],
    },
    Bad {
        name: "a group that is like itself",
        files: &[("l.toml", "[groups.{g}]\ncpus = { like = \"{g}\" }\n")],
        layout: "l.toml",
        says: &["group '{g}' depends on itself", "l.toml:2:"],
    },
    Bad {
        name: "a group that is like none",
        files: &[("l.toml", "[groups.{g}]\ncpus = { like = \"{g}x\" }\n")],
        layout: "l.toml",
        says: &["{g}x", "l.toml:2:", "did you mean {g}?"],
    },
    Bad {
        name: "a group given twice over several files",
        files: &[
            ("etc/layout.toml", "[groups.{g}]\npids.max = 5\n"),
            ("etc/layout.d/10.toml", "[groups.{g}.groups.a]\npids.max = 5\n"),
            ("etc/layout.d/20.toml", "\n[groups.\"{g}/a\"]\npids.max = 6\n"),
        ],
        layout: "etc",
        says: &["'{g}/a'", "layout.d/20.toml:2:", "layout.d/10.toml:1:"],
    },
    Bad {
        name: "many errors at once",
        files: &[
            ("etc/layout.toml", "[groups.{g}]\ncpu = 8\nmems = 0\n[grups]\n"),
            ("etc/layout.d/a.toml", "[groups.{g}.groups.a]\nexclusive = 1\ntasks = { usr = \"root\" }\n"),
        ],
        layout: "etc",
        says: &[
            "layout.toml:2:1\n",
            "layout.toml:3:8\n",
            "layout.toml:4:2\n",
            "layout.d/a.toml:2:13\n",
            "layout.d/a.toml:3:11\n",
            "has 5 errors",
        ],
    },
    Bad {
        name: "a directory without a layout",
        files: &[("etc/readme", "")],
        layout: "etc",
        says: &["there is no layout in {d}/etc", "hint: write layout.toml"],
    },
    Bad {
        name: "nothing where the layout should be",
        files: &[],
        layout: "missing",
        says: &["there is no {d}/missing", "hint: write /etc/ringfence/layout.toml"],
    },
    Bad {
        name: "cgconfig.conf: a brace that is missing",
        files: &[("cgconfig.conf", "group {g} {\n  memory {\n    memory.limit_in_bytes = 1G;\n}\n")],
        layout: "cgconfig.conf",
        says: &["cgconfig.conf:", "'}'", "^"],
    },
    Bad {
        name: "cgconfig.conf: a mistyped setting and a wrong value",
        files: &[(
            "cgconfig.conf",
            "group {g} {\n  memory { memory.limit_in_byte = 1G; }\n  cpu { cpu.shares = many; }\n}\n",
        )],
        layout: "cgconfig.conf",
        says: &[
            "memory.limit_in_byte",
            "memory.limit_in_bytes",
            "cgconfig.conf:2:",
            "cgconfig.conf:3:",
            "2 errors",
        ],
    },
    Bad {
        name: "cgconfig.conf: a mistyped section",
        files: &[("cgconfig.conf", "grup {g} {\n}\n")],
        layout: "cgconfig.conf",
        says: &["grup", "cgconfig.conf:1:1\n", "group"],
    },
    Bad {
        name: "cgrules.conf: a line with too little",
        files: &[("cgrules.conf", "root cpu\n")],
        layout: "cgrules.conf",
        says: &["cgrules.conf:1:", "^"],
    },
];

/// Refused by the machine: by `plan` and `apply`.
pub const IMPOSSIBLE: &[Bad] = &[
    Bad {
        name: "more exclusive CPUs than there are",
        files: &[("l.toml", "[groups.{g}]\npids.max = 5\n[groups.{g}-rt]\ncpus = 9000\nexclusive = true\n")],
        layout: "l.toml",
        says: &["'{g}-rt'", "9000", "l.toml:4:8\n", "this machine cannot satisfy"],
    },
    Bad {
        name: "a CPU that the machine lacks",
        files: &[("l.toml", "[groups.{g}]\ncpus = \"8000\"\n")],
        layout: "l.toml",
        says: &["8000", "l.toml:2:8\n", "hint:"],
    },
    Bad {
        name: "a layout for another machine",
        files: &[(
            "l.toml",
            "[host]\nhostname = \"rf-other*\"\nnodes = { min = 900 }\n[groups.{g}]\npids.max = 5\n",
        )],
        layout: "l.toml",
        says: &[
            "for another machine: host name",
            "expected 'rf-other*'",
            "l.toml:2:12\n",
            "NUMA nodes",
            "l.toml:3:9\n",
        ],
    },
];

type Case = (&'static str, &'static [Need], fn(&mut Desk));

const CASES: &[Case] = &[
    ("a user and a group that do not exist", &[], unknown_accounts),
    ("for another machine, its users are no error", &[], accounts_elsewhere),
    ("bytes that are no UTF-8", &[], not_utf8),
    ("100 MB", &[], too_large),
    ("what others than root could have written", &[], not_trusted),
    ("a state directory that others may write to", &[], state_not_trusted),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let rows = |bad: &'static [Bad], check| {
        bad.iter().map(move |row| {
            let (lacks, world) = (world.lacks(&[Need::Usual]), world.clone());
            suite::trial(format!("bad layout: {}", row.name), lacks, move || {
                refused(&mut Desk::new(&world, row.name), row, check);
            })
        })
    };
    let cases = CASES.iter().map(|&(name, needs, case)| {
        let (lacks, world) = (world.lacks(&[&[Need::Usual], needs].concat()), world.clone());
        suite::trial(format!("bad layout: {name}"), lacks, move || case(&mut Desk::new(&world, name)))
    });
    rows(UNREADABLE, 2).chain(rows(IMPOSSIBLE, 0)).chain(cases).collect()
}

/// `check` is the exit status of the command of that name.
fn refused(desk: &mut Desk, row: &Bad, check: i32) {
    for (name, text) in row.files {
        desk.write(name, text);
    }
    let says: Vec<String> = row.says.iter().map(|part| desk.scene.fill(part)).collect();
    let says: Vec<&str> = says.iter().map(String::as_str).collect();
    let path = format!("{{d}}/{}", row.layout);
    assert_eq!(desk.run(&format!("check {path}")).0, check);
    // a wrong layout is bad input, as a wrong experiment is; one that this machine cannot satisfy failed
    let reads: &[&str] = if check == 2 { &["check", "plan"] } else { &["plan"] };
    let code = if check == 2 { 2 } else { 1 };
    for command in reads {
        refused_with(desk, code, &format!("{command} {path}"), &says);
    }
    let says: Vec<&str> = says.into_iter().chain(["; nothing was changed"]).collect();
    refused_with(desk, code, &format!("apply {path} {{s}}"), &says);
}

/// Refused as bad input, with every part said, and neither a group nor a generation made.
fn all_refused(desk: &Desk, line: &str, parts: &[&str]) {
    refused_with(desk, 2, line, parts);
}

fn refused_with(desk: &Desk, status: i32, line: &str, parts: &[&str]) {
    let (code, out, error) = desk.run(line);
    assert_eq!((code, out.as_str()), (status, ""), "{line}: {error}");
    says(&error, parts);
    // only of a command that might have
    assert!(line.starts_with("apply") || !error.contains("nothing was changed"), "{line}: {error}");
    assert_eq!(desk.groups(), [""; 0]);
    assert_ne!(desk.run("list {g}").0, 0, "a group was made");
    assert_eq!(desk.generations(), 0);
}

fn unknown_accounts(desk: &mut Desk) {
    desk.write(
        "l.toml",
        "[groups.{g}]\npids.max = 5\ntasks = { user = \"roott\", group = \"rf-test-nobody\" }\n",
    );
    for line in ["check {d}/l.toml", "plan {d}/l.toml", "apply {d}/l.toml {s}"] {
        all_refused(
            desk,
            line,
            &[
                "no user 'roott' exists on this system",
                "l.toml:3:9\n",
                "hint: did you mean root?",
                "no group 'rf-test-nobody' exists",
                "hint: getent group lists those that exist; to add it: groupadd rf-test-nobody",
            ],
        );
    }
    desk.write("cgconfig.conf", "group {g} {\n  perm { task { uid = rf-test-who; } }\n  cpu { }\n}\n");
    for line in ["check {d}/cgconfig.conf", "apply {d}/cgconfig.conf {s}"] {
        all_refused(desk, line, &["no user 'rf-test-who' exists", "cgconfig.conf:2:"]);
    }
    // a rule takes nobody then, as in the daemon and in libcgroup's, and all else holds
    desk.write("rule.toml", "[groups.{g}]\npids.max = 5\nmatch = [{ user = \"rf-test-who\" }]\n");
    for line in ["check {d}/rule.toml", "plan {d}/rule.toml", "apply {d}/rule.toml {s}", "undo {s}"] {
        let (code, _, error) = desk.run(line);
        assert_eq!(code, 0, "{line}: {error}");
        let parts =
            ["warning: no user 'rf-test-who' exists on this system, so this takes nobody", "rule.toml:3:"];
        says(&error, if line.starts_with("undo") { &[] } else { &parts });
    }
    let plan = desk.json("plan --json {d}/rule.toml", 0);
    let lint = &plan["lints"][0];
    assert!(
        lint["kind"] == "no-account" && lint["message"].as_str().unwrap().contains("'rf-test-who'"),
        "{lint}"
    );
    // of another machine's users nothing is known here
    desk.write(
        "machine.txt",
        "available: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: 1000 MB\nnode 0 free: 100 MB\nnode distances:\nnode 0\n  0: 10\n",
    );
    let (code, out, error) = desk.run("plan {d}/rule.toml --machine {d}/machine.txt");
    assert!(code == 0 && !error.contains("rf-test-who"), "{code}: {out}{error}");
}

fn accounts_elsewhere(desk: &mut Desk) {
    desk.write(
        "l.toml",
        "[host]\nhostname = \"rf-other\"\n[groups.{g}]\npids.max = 5\ntasks = { user = \"rf-test-who\" }\n",
    );
    let (code, out, error) = desk.run("check {d}/l.toml");
    assert_eq!(code, 0, "{error}");
    says(&out, &["1 group, 0 rules: no error"]);
    says(
        &error,
        &["warning: this layout is for another machine: host name", "warning: no user 'rf-test-who'"],
    );
    let found = desk.json("check --json {d}/l.toml", 0);
    assert_eq!(found["diagnostics"][0]["severity"], "warning");
    assert_eq!(found["diagnostics"][0]["origin"]["line"], 2);
}

fn not_utf8(desk: &mut Desk) {
    let text = desk.scene.fill("[groups.{g}]\npids.max = 5 # caf\u{0}\n");
    let bytes: Vec<u8> = text.bytes().map(|byte| if byte == 0 { 0xe9 } else { byte }).collect();
    desk.write_bytes("l.toml", &bytes);
    for line in ["check {d}/l.toml", "apply {d}/l.toml {s}"] {
        all_refused(desk, line, &["not UTF-8: byte 0xe9", "l.toml:2:19\n", "hint: save the file as UTF-8"]);
    }
}

fn too_large(desk: &mut Desk) {
    for name in ["l.toml", "cgconfig.conf"] {
        large(&desk.path(name), 100 << 20);
        for line in ["check {d}/", "apply {s} {d}/"] {
            let line = format!("{line}{name}");
            all_refused(desk, &line, &["is larger than 16 MB", "hint: is it a configuration at all?"]);
        }
    }
}

fn not_trusted(desk: &mut Desk) {
    const TEXT: &str = "[groups.{g}]\npids.max = 5\n";
    let mode =
        |path: &str, mode| fs::set_permissions(desk.path(path), fs::Permissions::from_mode(mode)).unwrap();
    desk.write("real.toml", TEXT);
    symlink(desk.path("real.toml"), desk.path("link.toml")).unwrap();
    all_refused(
        desk,
        "apply {d}/link.toml {s}",
        &["link.toml is a symbolic link", "hint: name the file it leads to"],
    );
    desk.write("open.toml", TEXT);
    mode("open.toml", 0o666);
    let chmod = desk.scene.fill("hint: chmod go-w {d}/open.toml");
    all_refused(desk, "apply {d}/open.toml {s}", &["can be written by others than its owner", &chmod]);
    desk.write("open/layout.toml", TEXT);
    mode("open", 0o777);
    all_refused(desk, "apply {d}/open {s}", &["others can put another file in the place of"]);
    desk.write("etc/layout.toml", TEXT);
    fs::create_dir(desk.path("elsewhere")).unwrap();
    desk.write("elsewhere/x.toml", TEXT);
    symlink(desk.path("elsewhere"), desk.path("etc/layout.d")).unwrap();
    all_refused(desk, "apply {d}/etc {s}", &["is a symbolic link"]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        desk.path("fifo.toml"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    all_refused(desk, "apply {d}/fifo.toml {s}", &["is no regular file"]);
}

fn state_not_trusted(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 5\n");
    fs::create_dir(desk.path("state")).unwrap();
    fs::set_permissions(desk.path("state"), fs::Permissions::from_mode(0o777)).unwrap();
    refused_with(
        desk,
        1,
        "apply {d}/l.toml {s}",
        &["cannot trust", "mode 777", "that only you can write to"],
    );
}
