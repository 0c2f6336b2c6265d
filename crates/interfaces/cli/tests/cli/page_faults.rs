//! What the start of a one-shot command costs: page faults of the release program, beside `true` and libcgroup's own commands. Counts
//! depend on no load, so that they may decide a test. `RF_RELEASE` names the program of `scripts/build`.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use fake::suite;
use libtest_mimic::Trial;
use nix::sys::resource::{UsageWho, getrusage};

use crate::{
    documents::root,
    world::{Need, Scene, World},
};

const RUNS: usize = 40;

/// A command line of ours, how many faults its median run may take, and libcgroup's command for the same. `{s}` is a setting.
const BOUNDS: &[(&str, i64, Option<&str>)] = &[
    ("ringfence set --quiet {g} {s}=512", 75, Some("cgset -r {s}=512 {g}")),
    ("ringfence get {g} {s}", 65, Some("cgget -r {s} {g}")),
    ("ringfence run {g} -- /bin/true", 100, Some("cgexec -g cpu,memory,pids:{g} /bin/true")),
    ("ringfence list {g}", 65, None),
    ("cgset -r {s}=512 {g}", 70, Some("cgset -r {s}=512 {g}")),
    ("cgget -r {s} {g}", 65, Some("cgget -r {s} {g}")),
    ("cgexec -g cpu,memory,pids:{g} /bin/true", 102, Some("cgexec -g cpu,memory,pids:{g} /bin/true")),
];

/// Of the functions that `crates/interfaces/cli/order` names, how many per cent may be missing in the program.
const MISSING: usize = 10;

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let release = std::env::var_os("RF_RELEASE").map(PathBuf::from);
    let lacks = |needs: &[Need]| {
        let program = release.is_none().then(|| "RF_RELEASE, a release program".to_owned());
        program.or_else(|| world.lacks(needs))
    };
    let (bounds, order) = (release.clone().unwrap_or_default(), release.clone().unwrap_or_default());
    let of = world.clone();
    vec![
        suite::trial("page faults: commands take no more than their bounds", lacks(&[Need::Usual]), {
            move || within_bounds(&of, &bounds)
        }),
        suite::fallible(
            "page faults: the order of functions names those of the program",
            lacks(&[Need::Sources, Need::Program("nm"), Need::Program("c++filt")]),
            move || Ok(order_holds(&order)?),
        ),
    ]
}

fn within_bounds(world: &Arc<World>, program: &Path) {
    let scene = Scene::new(world, "page faults");
    scene.ok("create {g} -c cpu,memory,pids");
    let setting = if world.has(Need::V1("cpu")) { "cpu.shares" } else { "cpu.weight" };
    let links = tempfile::tempdir().unwrap();
    for name in ["ringfence", "cgset", "cgget", "cgexec"] {
        symlink(program, links.path().join(name)).unwrap();
    }
    let line = |line: &str| -> Vec<String> {
        scene.fill(line).replace("{s}", setting).split(' ').map(str::to_owned).collect()
    };
    let ours = |line: &[String]| median(Command::new(links.path().join(&line[0])).args(&line[1..]));
    let base = median(&mut Command::new("/bin/true"));
    let mut wrong = Vec::new();
    eprintln!("page faults, medians of {RUNS}: true {base}");
    for (command, bound, theirs) in BOUNDS {
        let faults = ours(&line(command));
        let theirs = theirs.map(&line).filter(|theirs| world.has(Need::V1("cpu")) && there(&theirs[0]));
        let theirs = theirs.map(|theirs| median(Command::new(&theirs[0]).args(&theirs[1..])));
        let beside = theirs.map_or_else(String::new, |theirs| format!(", libcgroup's {theirs}"));
        eprintln!("  {command}: {faults} of {bound}{beside}");
        if faults > *bound {
            wrong.push(format!("{command} takes {faults} page faults, and may take {bound}"));
        }
    }
    assert!(wrong.is_empty(), "{}; scripts/order makes the order of functions again", wrong.join("; "));
}

fn there(program: &str) -> bool {
    ["/usr/bin", "/usr/sbin"].iter().any(|at| Path::new(at).join(program).exists())
}

/// The page faults of a command's runs.
fn median(command: &mut Command) -> i64 {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let taken = || getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().minor_page_faults();
    let mut faults: Vec<i64> = (0..RUNS + 3)
        .map(|_| {
            let before = taken();
            assert!(command.status().unwrap().success(), "{command:?}");
            taken() - before
        })
        .skip(3)
        .collect();
    faults.sort_unstable();
    faults[RUNS / 2]
}

fn order_holds(program: &Path) -> Result<(), String> {
    let order = fs::read_to_string(root().join("crates/interfaces/cli/order")).unwrap();
    let names = "nm --defined-only \"$1\" | awk '{ print $NF }' | \"$2\"/scripts/names";
    let output = Command::new("sh").args(["-c", names, "sh"]).arg(program).arg(root()).output().unwrap();
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: BTreeSet<&str> = names.lines().collect();
    // the C library's have no path
    let ordered: Vec<&str> = order.lines().map(str::trim).filter(|name| name.contains("::")).collect();
    let missing: Vec<&&str> = ordered.iter().filter(|name| !names.contains(**name)).collect();
    eprintln!("{} of {} names of the order are in the program", ordered.len() - missing.len(), ordered.len());
    match missing.len() * 100 > ordered.len() * MISSING {
        false => Ok(()),
        true => Err(format!(
            "{} of {} names in crates/interfaces/cli/order are not in the program, such as {}: scripts/order makes it again",
            missing.len(),
            ordered.len(),
            missing.first().map_or("", |name| name)
        )),
    }
}
