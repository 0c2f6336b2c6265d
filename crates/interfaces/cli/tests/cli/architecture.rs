//! Holds ARCHITECTURE.md against the tree: the order of the crates, and the absences that can be seen from outside.
//! Where the source tree is not at hand (in a VM) there is nothing to compare.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use fake::suite;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    if !root.join("ARCHITECTURE.md").exists() {
        return Vec::new();
    }
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let text = read("ARCHITECTURE.md");
    let crates = crate_directories(&root.join("crates"));
    let manifests: BTreeMap<String, String> = crates
        .iter()
        .map(|path| (file_name(path), fs::read_to_string(path.join("Cargo.toml")).unwrap()))
        .collect();
    let folders: BTreeMap<String, String> =
        crates.iter().map(|path| (file_name(path), file_name(path.parent().unwrap()))).collect();
    let sources: Vec<(String, String)> = crates.iter().flat_map(|path| rust_files(path, "src")).collect();
    vec![
        suite::fallible("crates lie in folders of the map's order, each with a front page", None, {
            let (text, root) = (text.clone(), root.clone());
            move || Ok(in_folders(&text, &folders, &root)?)
        }),
        suite::fallible("a crate uses only crates to its left", None, move || {
            Ok(only_to_the_left(&text, &manifests)?)
        }),
        suite::fallible("what only computes links nothing that asks the kernel", None, {
            let root = root.clone();
            move || Ok(only_computes(&root)?)
        }),
        suite::fallible(
            "the released program checks its counters, and a panic ends one request alone",
            None,
            {
                let workspace = read("Cargo.toml");
                move || Ok(release_profile(&workspace)?)
            },
        ),
        suite::fallible("unsafe code is only where ARCHITECTURE.md says", None, {
            let sources = sources.clone();
            move || {
                let allowed = [
                    "kernel/src/run.rs",
                    "kernel/src/bpf/",
                    "kernel/src/probe/",
                    "kernel/src/threads.rs",
                    "daemon/src/socket/peer_groups.rs",
                    "lab/src/loopdev.rs",
                    "workloads/src/drivers/reaped.rs",
                    "workloads/src/logical_io/placement.rs",
                    "cli/src/main.rs",
                ];
                absent(&sources, &["allow(unsafe_code"], &allowed)
            }
        }),
        suite::fallible("fewer and fewer names of cgroup files stand outside the table", None, {
            let sources = sources.clone();
            move || Ok(names_of_files(&sources)?)
        }),
        suite::fallible("no command of a hint has a name put in but by units::hint", None, {
            let sources = sources.clone();
            move || Ok(commands_by_hand(&sources)?)
        }),
        suite::fallible("only the kernel crate names cgroup file systems", None, move || {
            let allowed = [
                "kernel/src/",
                "fake/src/",
                "settings/src/",
                "plan/src/doctor",
                "plan/src/observed.rs",
                "bench/src",
            ];
            absent(&sources, &["\"/sys/fs/cgroup", "CGROUP_SUPER_MAGIC"], &allowed)
        }),
    ]
}

/// The directories of all crates: `crates/FOLDER/CRATE`.
pub fn crate_directories(crates: &Path) -> Vec<PathBuf> {
    let below = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    below(crates).iter().flat_map(|folder| below(folder)).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The order is the one line of the map: `units → topology → …`.
fn order(text: &str) -> Result<Vec<&str>, String> {
    let line = text.lines().find(|line| line.starts_with("units →")).ok_or("no map in ARCHITECTURE.md")?;
    Ok(line.split('→').map(str::trim).collect())
}

fn in_folders(text: &str, folders: &BTreeMap<String, String>, root: &Path) -> Result<(), String> {
    let mut seen: Vec<&String> = Vec::new();
    for name in order(text)? {
        let folder =
            folders.get(name).ok_or_else(|| format!("the map names crate {name}, which is not there"))?;
        match seen.iter().position(|known| *known == folder) {
            None => seen.push(folder),
            Some(at) if at + 1 == seen.len() => {}
            Some(_) => return Err(format!("{name} is in {folder}, which the map has left before")),
        }
    }
    let lacking = seen.iter().find(|folder| !root.join("crates").join(folder).join("README.md").exists());
    lacking.map_or(Ok(()), |folder| Err(format!("crates/{folder} has no README.md")))
}

/// Crates that read no machine: what they link, and what that links, has no system call and no D-Bus.
const COMPUTES: [&str; 6] = ["units", "settings", "layout", "policy", "plan", "experiment"];
const ASKS: [&str; 3] = ["libc", "rustix", "zbus"];

/// As cargo resolves them, each crate for itself: features that others switch on do not count.
fn only_computes(root: &Path) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = |arguments: &[&str]| {
        let mut command = Command::new(&cargo);
        command.current_dir(root).args([
            "tree",
            "--locked",
            "--offline",
            "--edges=normal",
            "--charset=ascii",
        ]);
        let output = command.args(arguments).output().map_err(|error| format!("cargo tree: {error}"))?;
        let (out, error) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
        if output.status.success() { Ok(String::from_utf8_lossy(&out).into_owned()) } else { Err(error) }
    };
    for name in COMPUTES {
        let package = format!("--package=ringfence-{name}");
        let linked = tree(&[&package, "--prefix=none", "--format={lib}"])?;
        let Some(asks) = ASKS.iter().find(|asks| linked.lines().any(|line| line.trim() == **asks)) else {
            continue;
        };
        let way = tree(&[&package, "--invert", asks])?;
        return Err(format!("{name} links {asks}:\n{way}"));
    }
    Ok(())
}

/// Attack finding 30: tests run without that profile, which ended the daemon at any panic and let counters wrap.
fn release_profile(workspace: &str) -> Result<(), String> {
    let profile = workspace.split("\n[").find(|table| table.starts_with("profile.release]"));
    let lines: Vec<&str> = profile.ok_or("there is no [profile.release]")?.lines().collect();
    for wanted in ["panic = \"unwind\"", "overflow-checks = true"] {
        if !lines.iter().any(|line| line.starts_with(wanted)) {
            return Err(format!("[profile.release] lacks {wanted}"));
        }
    }
    Ok(())
}

fn only_to_the_left(text: &str, manifests: &BTreeMap<String, String>) -> Result<(), String> {
    let order = order(text)?;
    let place = |name: &str| order.iter().position(|known| *known == name);
    for (name, manifest) in manifests {
        let own = place(name).ok_or_else(|| format!("crate {name} is not in the map"))?;
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or("");
        let dependencies = dependencies.split("\n[").next().unwrap_or("");
        for used in dependencies
            .lines()
            .filter_map(|line| line.split('.').next())
            .filter(|used| manifests.contains_key(*used))
        {
            if place(used) >= Some(own) {
                return Err(format!("{name} uses {used}, which is not to its left"));
            }
        }
    }
    Ok(())
}

/// Of a crate, or of one of its folders, with their paths from the crate's name on.
pub fn rust_files(of_crate: &Path, folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![of_crate.join(folder)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let shown = path.strip_prefix(of_crate.parent().unwrap()).unwrap().display().to_string();
                found.push((shown, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found
}

/// What a file is for belongs in its row. The number only falls: lower it with each name that goes.
const NAMES_OF_FILES: usize = 608;

fn names_of_files(sources: &[(String, String)]) -> Result<(), String> {
    let sides = settings::all().flat_map(|setting| [&setting.v1, &setting.v2]);
    let names: BTreeSet<&str> =
        sides.filter_map(settings::Side::binding).flat_map(|binding| binding.files).copied().collect();
    // the table, the kernel that tests use in place of the real one, and the old names that libcgroup's and cset's users know
    let elsewhere = ["settings/", "fake/", "libcgroup/"];
    let sources = sources
        .iter()
        .filter(|(path, _)| !elsewhere.iter().any(|part| path.starts_with(part)) && !path.contains("/tests"));
    let count = |text: &str| {
        let code = text.split("mod tests {").next().unwrap_or_default().lines();
        let code = code.filter(|line| !line.trim_start().starts_with("//"));
        code.flat_map(|line| line.split('"').skip(1).step_by(2)).filter(|word| names.contains(word)).count()
    };
    let counts: Vec<(usize, &str)> = sources.map(|(path, text)| (count(text), path.as_str())).collect();
    let sum: usize = counts.iter().map(|(count, _)| count).sum();
    if sum == NAMES_OF_FILES {
        return Ok(());
    }
    let mut most = counts;
    most.sort_unstable();
    let most: Vec<String> =
        most.iter().rev().take(5).map(|(count, path)| format!("{path} {count}")).collect();
    Err(format!(
        "{sum} names of cgroup files outside the table, not {NAMES_OF_FILES}; most in {}",
        most.join(", ")
    ))
}

/// What stands in a command without quotes: numbers, lists of CPUs, and names of the program's own.
const PLAIN: [&str; 7] = ["uid", "first", "parent", "rest", "nodes", "UNIT_NAME", "UNIT_SLICE"];

/// A group's or file's name in a command may be `a $(touch x)`: only the builder quotes it.
fn commands_by_hand(sources: &[(String, String)]) -> Result<(), String> {
    let tests = |path: &str| path.contains("/tests") || path.starts_with("units/src/hint.rs");
    for (path, text) in sources.iter().filter(|(path, _)| !tests(path)) {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code.take_while(|line| !line.contains("mod tests {")) {
            let subcommands = [
                "set", "create", "delete", "move", "get", "list", "stat", "run", "thaw", "freeze", "kill",
                "lab",
            ];
            let ours = subcommands.map(|word| format!("ringfence {word} "));
            let others = ["systemctl ", "chown ", "chmod ", "sudo "].map(str::to_owned);
            let commands = [&ours[..], &others].concat();
            let Some(at) = commands.iter().filter_map(|word| line.find(word.as_str())).min() else {
                continue;
            };
            let parts = line[at..].split('{').skip(1);
            for part in parts {
                let name = part.split(['}', ':']).next().unwrap_or_default();
                if !PLAIN.contains(&name) {
                    return Err(format!("{path} puts {{{name}}} into a command: {}", line.trim()));
                }
            }
        }
    }
    Ok(())
}

fn absent(
    sources: &[(String, String)],
    words: &[&str],
    allowed: &[&str],
) -> Result<(), libtest_mimic::Failed> {
    for (path, text) in sources {
        let word = words.iter().find(|word| text.contains(**word));
        if let Some(word) = word
            && !allowed.iter().any(|part| path.starts_with(part))
        {
            return Err(format!("{path} holds {word}").into());
        }
    }
    Ok(())
}
