//! What somebody meets who has never seen the program: the help, a plan, a status, a mistyped line, an answer for a
//! program. Each names its finding in the newcomers' review.

use std::{fs, process::Command, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;
use serde_json::Value;

mod bad_input;
mod commands;

use crate::{
    desk::{Desk, says},
    world::{Need, Scene, World, words},
};

type Case = (&'static str, fn(&mut Desk));

/// These need no right and no hierarchy.
const ANYWHERE: &[Case] = &[
    ("B9: every command is under a heading", headings),
    ("B10: help is as wide as the terminal, and indented where it is narrow", widths),
    ("E: every command has an example", examples),
    ("C: what other programs call it leads to the right command", guesses),
    ("C: tips that would do harm are gone", tips),
    ("A14: hidden commands are never suggested", hidden),
    ("C: the group before the numbers, said with the right line", swapped),
    ("B14: one way to type a time", durations),
    ("B18: mistakes on the command line are JSON objects too", usage_as_json),
    ("B20: settings by pattern, as wide as the terminal", patterns),
    ("A14: a wrong layout and a wrong experiment end alike", exit_codes),
    ("B11: import reads several files and directories", imports),
    ("B16: a plan for a described machine has blocks and a count", blocks),
    ("B16: a warning about several groups is said once, with all places", warned_once),
    ("B13: --socket is the daemon that is spoken to", socket),
];

const ON_GROUPS: &[Case] = &[
    ("C: other names of commands do the same, also where they are read the quick way", aliases),
    ("B16: a plan shows what is added, changed and taken away", signs),
    ("B15: status shows values as the layout has them", as_written),
    ("C: status of some groups", of_some),
    ("C: apply --dry-run and -f", dry_run),
    ("B: history of one generation, of the last ones, and what is in effect", history),
    ("B16: colours on a terminal, unless NO_COLOR is set", colours),
    ("B17: who else is on a CPU", on_cpu),
    ("B18: failures of every command are one JSON object", failures_as_json),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let lacks = |on_groups: bool, name: &str| {
        let needs = [
            (on_groups, Need::Usual),
            (name.contains("CFQ"), Need::V1("blkio")),
            (name.contains("colours"), Need::Program("script")),
        ];
        world.lacks(&needs.into_iter().filter(|(is_so, _)| *is_so).map(|(_, need)| need).collect::<Vec<_>>())
    };
    let anywhere = ANYWHERE.iter().chain(commands::ANYWHERE).map(|case| (case, false));
    let on_groups = ON_GROUPS.iter().chain(commands::ON_GROUPS).chain(bad_input::ON_GROUPS);
    let all = anywhere.chain(on_groups.map(|case| (case, true)));
    all.map(|(&(name, case), on_groups)| {
        let (world, lacks) = (world.clone(), lacks(on_groups, name));
        // what asks nothing of a kernel is left out in VMs, where each start of a program takes a tenth of a second
        let of = if on_groups { "newcomers" } else { "newcomers anywhere" };
        suite::trial(format!("{of}: {name}"), lacks, move || case(&mut Desk::new(&world, name)))
    })
    .collect()
}

/// Standard output in a terminal of so many columns.
fn wide(scene: &Scene, columns: &str, line: &str) -> String {
    let mut command = Command::new(scene.program());
    let output = command.args(words(line)).env("COLUMNS", columns).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The names of all commands that are not hidden, as completion lists them.
fn command_names(scene: &Scene) -> Vec<String> {
    let help = wide(scene, "1000", "--help");
    let named = help.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = named.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| !name.starts_with('-')).collect()
}

fn headings(desk: &mut Desk) {
    let help = wide(&desk.scene, "100", "--help");
    let mut at = 0;
    for heading in
        ["Groups:", "Layouts:", "Watching:", "Lab:", "Machine and set-up:", "Options:", "Exit status:"]
    {
        let found = help[at..].find(&format!("\n{heading}"));
        at += found.unwrap_or_else(|| panic!("no '{heading}' in its place:\n{help}"));
    }
    assert!(!help.contains("\nOther:"), "a command has no heading:\n{help}");
    assert!(!help.contains("\n\n\n"), "{help}");
    // each leads to its own help, so the list names nothing that does not exist
    let commands = command_names(&desk.scene);
    assert!(commands.len() > 35, "{commands:?}");
    for name in commands.iter().filter(|name| *name != "help") {
        says(&desk.ends(&format!("{name} --help"), 0), &[&format!("Usage: ringfence {name}")]);
    }
    // and the other way round: the manual pages are made from the definitions
    desk.ends("man {d}/pages", 0);
    for page in fs::read_dir(desk.path("pages")).unwrap() {
        let page = page.unwrap().file_name().into_string().unwrap();
        let Some(name) = page.strip_prefix("ringfence-").and_then(|page| page.strip_suffix(".1")) else {
            continue;
        };
        let top = name.split('-').next().unwrap();
        assert!(commands.iter().any(|known| known == top), "{name} is not in the help");
    }
}

fn widths(desk: &mut Desk) {
    for line in ["--help", "watch --help", "create --help", "daemon --help", "undo --help"] {
        for columns in [60usize, 80, 100] {
            let help = wide(&desk.scene, &columns.to_string(), line);
            // examples and usage lines are commands: they are not broken where that would be wrong
            let text = help.split("\nExample").next().unwrap();
            let wrapped = text.lines().filter(|line| !line.starts_with("Usage"));
            for row in wrapped {
                assert!(row.chars().count() <= columns, "{columns}: {row}");
            }
        }
    }
    // no line ends before the terminal does: at 120 every next word would not have fitted
    for name in command_names(&desk.scene) {
        let help = wide(&desk.scene, "120", &format!("{name} --help"));
        let footer = help.split_once("--help ").map_or("", |(_, rest)| rest);
        let rows: Vec<&str> = footer.lines().skip(1).collect();
        for pair in
            rows.windows(2).filter(|pair| pair.iter().all(|row| !row.is_empty() && !row.starts_with(' ')))
        {
            let next = pair[1].split(' ').next().unwrap();
            assert!(pair[0].chars().count() + 1 + next.chars().count() > 120, "{name}: {pair:?}");
        }
    }
    let narrow = wide(&desk.scene, "60", "--help");
    says(
        &narrow,
        &[
            "  create       Create a group, in every hierarchy or in\n               those of the given controllers\n",
        ],
    );
    let broad = wide(&desk.scene, "160", "--help");
    says(
        &broad,
        &["\n  create       Create a group, in every hierarchy or in those of the given controllers\n"],
    );
}

fn examples(desk: &mut Desk) {
    for name in command_names(&desk.scene).iter().filter(|name| *name != "help") {
        let help = desk.ends(&format!("{name} --help"), 0);
        let examples = help.split_once("Example").map(|(_, rest)| rest);
        says(examples.unwrap_or_else(|| panic!("{name} has no example")), &["ringfence"]);
    }
}

fn guesses(desk: &mut Desk) {
    for (guess, instead) in [
        ("destroy", "ringfence delete"),
        ("suspend", "ringfence freeze"),
        ("ps", "ringfence where GROUP"),
        ("enable", "ringfence"),
        ("revert", "ringfence undo"),
        ("tree", "ringfence list --tree"),
        ("show", "ringfence get"),
        ("freez", "did you mean freeze?"),
        ("xyzzy", "ringfence help lists the commands"),
    ] {
        let (code, out, error) = desk.run(guess);
        assert_eq!((code, out.as_str()), (2, ""), "{error}");
        says(&error, &[&format!("unknown command '{guess}'"), "\nhint: ", instead]);
    }
}

fn tips(desk: &mut Desk) {
    for line in ["apply --dryrun", "plan --out x", "status --watch"] {
        let (code, _, error) = desk.run(line);
        assert_eq!(code, 2);
        assert!(!error.contains("as a value"), "{error}");
    }
    let (code, _, error) = desk.run("run db --cpus 0 -- true");
    assert_eq!(code, 2);
    says(
        &error,
        &["'--cpus' is not a program", "hint: ringfence set db SETTING=VALUE, then ringfence run db --"],
    );
}

fn hidden(desk: &mut Desk) {
    for word in ["revert-unless-confirme", "worke", "workr", "reverting"] {
        let (_, _, error) = desk.run(word);
        let (_, hint) = error.split_once("hint: ").unwrap();
        assert!(!hint.contains("revert-unless") && !hint.contains("worker"), "{error}");
    }
    assert!(!desk.ends("--help", 0).contains("revert-unless"));
}

fn swapped(desk: &mut Desk) {
    let (code, _, error) = desk.run("move 4711 db/oltp1");
    assert_eq!(code, 2);
    says(&error, &["the group comes first", "hint: ringfence move db/oltp1 4711\n"]);
    let (_, _, error) = desk.run("move --tree 4711 4712 'a b;c'");
    says(&error, &["hint: ringfence move --tree 'a b;c' 4711 4712\n"]);
}

fn durations(desk: &mut Desk) {
    // what is wrong is found while the line is read; with what is right another thing fails, or nothing
    let taken = |line: &str| {
        let (code, _, error) = desk.run(line);
        (code != 2, error)
    };
    for time in ["5", "5s", "1m", "1500ms", "1.5s", "1min", "'1m 30s'"] {
        for line in [
            format!("apply /no/such/file --confirm {time}"),
            format!("watch rf-test-none -n 1 -i {time}"),
            format!("why rf-test-none --for {time}"),
            format!("freeze rf-test-none --timeout {time}"),
        ] {
            // a layout that is not there is bad input as well
            let (good, error) = taken(&line);
            assert!(good || error.contains("there is no /no/such/file"), "{line}: {error}");
        }
    }
    for (line, expected) in [
        ("apply --confirm 2d", "expected 1s to 1d"),
        ("apply --confirm soon", "expected a time from 1s to 1d, such as 5, 5s or 1m\n"),
        ("undo x", "expected the number of a generation"),
        ("where 4711 abc", "processes or groups, not both"),
        ("watch -i 1ms", "expected 10ms to 1d"),
        ("why db --for 0", "expected 100ms to 1h"),
        ("kill db --timeout -1", "-1"),
        ("daemon --check 2d", "expected 0s to 1d"),
        ("perf db --for 0 -- cycles", "expected 100ms to 1d"),
    ] {
        let (code, _, error) = desk.run(line);
        assert_eq!(code, 2, "{line}");
        says(&error, &[expected]);
    }
}

fn usage_as_json(desk: &mut Desk) {
    for line in [
        "--json frobnicate",
        "set --json",
        "list --json --nosuch",
        "move --json 12 db",
        "get --json db nosuch.x",
    ] {
        let answer = desk.json(line, 2);
        let error = answer["error"].as_object().unwrap();
        assert_eq!(error.keys().collect::<Vec<_>>(), ["hint", "message", "place"], "{line}");
        let message = error["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.starts_with("error"), "{line}: {message}");
    }
}

fn patterns(desk: &mut Desk) {
    let memory = desk.ends("settings 'memory.*'", 0);
    says(&memory, &["memory.max ", "memory.high "]);
    assert!(!memory.contains("cpu.max "), "{memory}");
    // by v1's names too
    says(&desk.ends("settings 'blkio.throttle.*'", 0), &["io.max "]);
    for row in wide(&desk.scene, "80", "settings").lines() {
        assert!(row.chars().count() <= 80, "{row}");
    }
    let (code, _, error) = desk.run("settings 'nosuch.*'");
    assert_eq!(code, 2);
    says(&error, &["no setting fits 'nosuch.*'"]);
}

fn exit_codes(desk: &mut Desk) {
    desk.write("bad.toml", "[groups.x]\npids.max = \"many\"\n");
    desk.write("experiment.toml", "name = 1\n");
    for line in ["check {d}/bad.toml", "plan {d}/bad.toml", "lab check {d}/experiment.toml"] {
        // one JSON document, with the place
        let answer = desk.json(&format!("{line} --json"), 2);
        assert!(answer["error"]["place"]["line"].is_u64() && answer["diagnostics"].is_array(), "{answer}");
        let (code, _, error) = desk.run(line);
        assert_eq!(code, 2, "{line}: {error}");
    }
}

fn imports(desk: &mut Desk) {
    desk.write("cgconfig.conf", "group one { cpu { cpu.shares = 512; } }\n");
    desk.write("cgconfig.d/two.conf", "group two { cpu { cpu.shares = 2048; } }\n");
    desk.write("cgconfig.d/ignored.txt", "not a configuration\n");
    desk.write("cgrules.conf", "root:postgres cpu one/\n");
    let toml = desk.ends("import {d}/cgconfig.conf {d}/cgconfig.d {d}/cgrules.conf", 0);
    says(&toml, &["[groups.one]", "[groups.two]", "[[rules]]", "postgres"]);
    desk.write("layout.toml", &toml);
    says(&desk.ends("check {d}/layout.toml", 0), &["2 groups, 1 rule: no error"]);
    fs::create_dir(desk.path("empty")).unwrap();
    let (code, _, error) = desk.run("import {d}/empty");
    assert_eq!(code, 1);
    says(&error, &["there is no file *.conf in"]);
    desk.write("bad.conf", "group broken {\n");
    let (code, out, error) = desk.run("import {d}/cgconfig.conf {d}/bad.conf");
    assert_eq!((code, out.as_str()), (2, ""));
    says(&error, &["bad.conf:1:"]);
    // without arguments, libcgroup's own: where there are none, that is said
    let (code, _, error) = desk.run("import");
    assert!(code == 0 || error.contains("/etc/cgconfig.conf"), "{error}");
}

const NUMACTL: &str = "\
available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3
node 0 size: 4096 MB
node 0 free: 4000 MB
node 1 cpus: 4 5 6 7
node 1 size: 4096 MB
node 1 free: 4000 MB
node distances:
node   0   1
  0:  10  20
  1:  20  10
";

fn blocks(desk: &mut Desk) {
    desk.write("numactl.txt", NUMACTL);
    desk.write(
        "l.toml",
        "[groups.db]\npids.max = 100\n[groups.db.groups.one]\nmemory.max = \"30%\"\ncpu.max = \"150%\"\n\
         [groups.db.groups.two]\nmemory.max = \"1G\"\n",
    );
    for version in ["", "--v1"] {
        let plan = desk.ends(&format!("plan {{d}}/l.toml --machine {{d}}/numactl.txt {version}"), 0);
        let blocks: Vec<&str> =
            plan.lines().filter(|line| !line.starts_with(' ') && !line.is_empty()).collect();
        let groups = blocks.iter().filter(|line| line.starts_with("db"));
        assert_eq!(groups.copied().collect::<Vec<_>>(), ["db", "db/one", "db/two"], "{plan}");
        says(
            &plan,
            &[
                "  + group",
                "  + pids.max ",
                "  + cpu.max     150%\n",
                "  + memory.max  30% (2.3G)\n",
                "  + memory.max  1G\n",
            ],
        );
        let added = plan.lines().filter(|line| line.starts_with("  + ")).count();
        assert_eq!(
            plan.lines().last(),
            Some(format!("Plan: {added} to add, 0 to change, 0 to remove").as_str())
        );
        assert!(!plan.contains('\x1b'), "colours without a terminal");
    }
}

fn warned_once(desk: &mut Desk) {
    desk.write("numactl.txt", NUMACTL);
    // a share of one CPU's time that no thread of 1 kHz can do with
    let group = |name: &str| format!("[groups.{name}]\ncpu.rt_runtime_us = \"1ms\"\n");
    desk.write("l.toml", &format!("{}{}{}", group("one"), group("two"), group("three")));
    let (code, _, error) = desk.run("plan {d}/l.toml --v1 --machine {d}/numactl.txt");
    assert_eq!(code, 0, "{error}");
    assert_eq!(error.matches("warning: ").count(), 1, "{error}");
    says(&error, &["groups 'one', 'two', 'three'", "l.toml:2:", "l.toml:4:", "l.toml:6:"]);
}

/// What a command prints on a terminal; script(1) is one.
fn on_terminal(desk: &Desk, line: &str, environment: &[(&str, &str)]) -> String {
    let line = format!("'{}' {}", desk.scene.program(), desk.scene.fill(line));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env_remove("NO_COLOR").env("TERM", "xterm");
    let output = script.envs(environment.iter().copied()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn colours(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 9\n");
    let green = "\x1b[32m+ pids.max  9\x1b[0m";
    says(&on_terminal(desk, "plan {d}/l.toml", &[]), &[green]);
    for environment in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = on_terminal(desk, "plan {d}/l.toml", &[environment]);
        says(&plain, &["  + pids.max  9"]);
        assert!(!plain.contains('\x1b'), "{plain:?}");
    }
    desk.ends("apply {d}/l.toml {s}", 0);
    desk.scene.ok("set {g} pids.max=10");
    says(
        &on_terminal(desk, "status {s}", &[]),
        &["\x1b[1;31mdrift\x1b[0m", "\x1b[1;31mpids.max: applied 9, now 10"],
    );
    let plain = on_terminal(desk, "status {s}", &[("NO_COLOR", "1")]);
    assert!(plain.contains("drift  ") && !plain.contains('\x1b'), "{plain:?}");
}

/// A socket on which nobody listens is named in the error: the option reached the client.
fn socket(desk: &mut Desk) {
    let (code, _, error) = desk.run("reload --socket {d}/none.sock");
    assert_eq!(code, 1);
    says(&error, &[desk.path("none.sock").to_str().unwrap()]);
    for command in ["set", "move", "reload"] {
        says(&desk.ends(&format!("{command} --help"), 0), &["--socket <PATH>", "RINGFENCE_SOCKET"]);
    }
}

fn aliases(desk: &mut Desk) {
    desk.scene.ok("create {g}/x -c pids");
    assert_eq!(desk.ends("ls {g}", 0), desk.ends("list {g}", 0));
    assert_eq!(desk.ends("ls --json {g}", 0), desk.ends("list --json {g}", 0));
    assert_eq!(desk.ends("exec {g}/x -- echo inside", 0), "inside\n");
    assert_eq!(desk.ends("exec {g}/x echo inside", 0), "inside\n");
    desk.ends("rm {g}/x", 0);
    assert_eq!(desk.groups(), [""; 0]);
    desk.write("l.toml", "[groups.{g}]\npids.max = 9\n");
    desk.ends("validate {d}/l.toml", 0);
    assert_eq!(desk.ends("diff {d}/l.toml", 0), desk.ends("plan {d}/l.toml", 0));
    desk.ends("apply {d}/l.toml {s}", 0);
    desk.ends("rollback {s}", 0);
}

fn signs(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 100\nmemory.max = \"64M\"\ncpu.max = \"50%\"\n");
    let first = desk.ends("plan {d}/l.toml", 0);
    says(&first, &[&desk.scene.fill("{g}\n  + group"), "  + cpu.max     50%\n", "  + memory.max  64M\n"]);
    desk.ends("apply {d}/l.toml {s}", 0);
    desk.write("m.toml", "[groups.{g}]\npids.max = 100\nmemory.max = \"32M\"\ncpu.max = \"max\"\n");
    let second = desk.ends("plan {d}/m.toml", 0);
    let expected = "{g}\n  - cpu.max     50% → max\n  ~ memory.max  64M → 32M\n\n\
                    Plan: 0 to add, 1 to change, 1 to remove\n";
    assert_eq!(second, desk.scene.fill(expected));
    // what had no limit gets one
    desk.scene.ok("set {g} pids.max=max");
    says(&desk.ends("plan {d}/l.toml", 0), &["  + pids.max  max → 100\n", "Plan: 1 to add, 0 to change"]);
    // on v1 the group is new in one hierarchy only, or leaves one only
    desk.scene.ok("create {g}/old -c memory");
    desk.scene.ok("set {g}/old memory.max=48M");
    desk.write("n.toml", "[groups.\"{g}/old\"]\npids.max = 9\nmemory.max = \"16M\"\n");
    says(&desk.ends("plan {d}/n.toml", 0), &["  ~ memory.max  48M → 16M\n", " 1 to change"]);
    desk.ends("apply {d}/l.toml {s}", 0);
    desk.write("k.toml", "[groups.{g}]\npids.max = 100\ncpu.max = \"50%\"\n");
    says(
        &desk.ends("plan {d}/k.toml {s}", 0),
        &["  - memory.max  64M → max\n", "Plan: 0 to add, 0 to change, "],
    );
}

fn as_written(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\nmemory.max = \"25%\"\ncpu.max = \"150%\"\npids.max = 10\n");
    desk.ends("apply {d}/l.toml {s}", 0);
    let status = desk.ends("status {s}", 0);
    let line = status.lines().find(|line| line.starts_with("ok ")).unwrap();
    says(line, &[&desk.scene.group, " 0 processes ", "cpu.max=150%", "memory.max=25% (", "pids.max=10"]);
    assert_eq!(status.lines().filter(|line| line.contains(&desk.scene.group)).count(), 2, "{status}");
    assert!(status.ends_with("\n1 group with 0 processes: all as applied\n"), "{status}");
    assert!(!status.contains('\x1b'), "colours without a terminal");
    desk.scene.ok("set {g} cpu.max=20% pids.max=11");
    let drifted = desk.ends("status {s}", 3);
    says(
        &drifted,
        &[
            "       cpu.max: applied 150%, now 20%\n",
            "       pids.max: applied 10, now 11\n",
            ": 1 drifted\n",
        ],
    );
    let verbose = desk.ends("status -v {s}", 3);
    says(&verbose, &["       pids.max    10  (now 11)\n", "directory  /", "no processes"]);
}

fn of_some(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 9\n[groups.{g}.groups.a]\npids.max = 8\n[groups.{g}.groups.ab]\npids.max = 7\n");
    desk.ends("apply {d}/l.toml {s}", 0);
    let one = desk.ends("status {g}/a {s}", 0);
    assert!(
        one.contains("pids.max=8") && !one.contains("pids.max=9") && !one.contains("pids.max=7"),
        "{one}"
    );
    let json = desk.json("status {g}/ab --json {s}", 0);
    assert_eq!(json["groups"].as_array().unwrap().len(), 1);
    // drift elsewhere is not this group's
    desk.scene.ok("set {g}/ab pids.max=6");
    desk.ends("status {g}/a {s}", 0);
    desk.ends("status {g} {s}", 3);
    let (code, _, error) = desk.run("status {g}/abc {s}");
    assert_eq!(code, 1);
    says(&error, &["no generation in effect has a group", &desk.scene.fill("{g}/ab")]);
    says(&desk.ends("status --layout {d}/l.toml {g} {s}", 3), &["~ pids.max  6 → 7"]);
}

fn dry_run(desk: &mut Desk) {
    desk.write("l.toml", "[groups.{g}]\npids.max = 9\n");
    let plan = desk.ends("plan {d}/l.toml", 0);
    assert_eq!(desk.ends("apply --dry-run {d}/l.toml", 0), plan);
    assert_eq!(desk.ends("apply -n -f {d}/l.toml", 0), plan);
    assert_eq!(desk.ends("plan --file {d}/l.toml", 0), plan);
    assert_eq!(desk.groups(), [""; 0]);
    desk.ends("apply -f {d}/l.toml {s}", 0);
    assert_eq!(desk.generations(), 1);
    let (code, _, _) = desk.run("apply -f {d}/l.toml {d}/l.toml");
    assert_eq!(code, 2);
}

fn history(desk: &mut Desk) {
    for limit in [7, 8, 9] {
        desk.write("l.toml", &format!("[groups.{{g}}]\npids.max = {limit}\n"));
        desk.ends("apply {d}/l.toml {s}", 0);
    }
    desk.ends("undo 2 {s}", 0);
    let lines = |text: String| text.lines().map(|line| line[..5].to_owned()).collect::<Vec<String>>();
    let all = lines(desk.ends("history {s}", 0));
    assert_eq!(lines(desk.ends("history -n 2 {s}", 0)), all[2..]);
    assert_eq!(lines(desk.ends("history 3 {s}", 0)), ["   3 "]);
    // what is in force is of generation 2, which the undo went back to
    assert_eq!(all, ["*  1 ", "*  2 ", "   3 ", "   4 "]);
    let json = desk.json("history 2 --json {s}", 0);
    assert_eq!((json.as_array().unwrap().len(), &json[0]["in_effect"]), (1, &true.into()));
    let (code, _, error) = desk.run("history 9 {s}");
    assert_eq!(code, 1);
    says(&error, &["there is no generation 9", "hint: ringfence history"]);
    let (_, _, error) = desk.run("move {g} name");
    says(&error, &["expected the number of a process; pgrep -x NAME"]);
}

/// Compared with what taskset(1)'s source says: `Cpus_allowed_list` of the process.
fn on_cpu(desk: &mut Desk) {
    let pid = desk.scene.start("{pid}", &["sleep", "60"]);
    let allowed = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
    };
    let cpus = allowed(pid);
    let first = cpus.split(['-', ',']).next().unwrap().to_owned();
    let json = desk.json(&format!("where --cpu {first} --json"), 0);
    let task =
        |json: &Value| json["tasks"].as_array().unwrap().iter().find(|task| task["pid"] == pid).cloned();
    assert_eq!(task(&json).unwrap()["cpus"], cpus.as_str());
    desk.scene.ok("create {g} -c cpuset");
    desk.scene.ok(&format!("set {{g}} cpuset.mems=0 cpuset.cpus={first}"));
    desk.scene.ok("move {g} {pid}");
    let json = desk.json(&format!("where --cpu {first} --json"), 0);
    assert_eq!(task(&json).unwrap()["group"], desk.scene.group.as_str());
    assert_eq!(task(&json).unwrap()["cpus"], first.as_str());
    let named = |group: &Value| group["group"] == desk.scene.group.as_str();
    assert!(json["groups"].as_array().unwrap().iter().any(named), "{json}");
    // and it is gone from the list of every other CPU
    if let Some(other) = cpus.rsplit(['-', ',']).next().filter(|other| *other != first) {
        let json = desk.json(&format!("where --cpu {other} --json"), 0);
        assert!(task(&json).is_none() && !json["groups"].as_array().unwrap().iter().any(named), "{json}");
    }
    let (code, _, error) = desk.run("where --cpu 99999");
    assert_eq!(code, 2);
    says(&error, &["there is no CPU 99999", "hint: this machine has CPUs "]);
}

fn failures_as_json(desk: &mut Desk) {
    for (line, status) in [
        ("list --json {g}", 1),
        ("get --json {g}", 1),
        ("set --json {g} pids.max=5", 1),
        ("freeze --json {g}", 1),
        ("kill --json {g}", 1),
        ("delete --json {g}", 1),
        ("where --json 4194000", 1),
        ("confirm --json {s}", 1),
        ("undo --json {s}", 1),
        ("watch --json --once {g}", 1),
        ("why --json {g}", 1),
        ("plan --json /no/such/file", 2),
    ] {
        let answer = desk.json(line, status);
        assert!(
            answer["error"]["message"].as_str().is_some_and(|message| message.len() > 8),
            "{line}: {answer}"
        );
    }
}
