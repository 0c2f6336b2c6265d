//! Holds ARCHITECTURE.md against the tree: the order of the crates, and the absences that can be seen from outside.
//! Where the source tree is not at hand (in a VM) there is nothing to compare.

use std::{collections::BTreeMap, fs, path::Path};

use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("ARCHITECTURE.md").exists() {
        return Vec::new();
    }
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let text = read("ARCHITECTURE.md");
    let manifests: BTreeMap<String, String> = fs::read_dir(root.join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| (name.clone(), read(&format!("crates/{name}/Cargo.toml"))))
        .collect();
    let sources: Vec<(String, String)> = manifests.keys().flat_map(|name| rust_files(&root, name)).collect();
    vec![
        Trial::test("a crate uses only crates to its left", move || Ok(only_to_the_left(&text, &manifests)?)),
        Trial::test("unsafe code is only where ARCHITECTURE.md says", {
            let sources = sources.clone();
            move || {
                let allowed = [
                    "kernel/src/run.rs",
                    "bpf/src/",
                    "probe/src/",
                    "daemon/src/socket/peer_groups.rs",
                    "lab/src/",
                    "cli/src/main.rs",
                ];
                absent(&sources, &["allow(unsafe_code"], &allowed)
            }
        }),
        Trial::test("only the kernel crate names cgroup file systems", move || {
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

/// The order is the one line of the map: `units → topology → …`.
fn only_to_the_left(text: &str, manifests: &BTreeMap<String, String>) -> Result<(), String> {
    let line = text.lines().find(|line| line.starts_with("units →")).ok_or("no map in ARCHITECTURE.md")?;
    let order: Vec<&str> = line.split('→').map(str::trim).collect();
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
    match order.iter().find(|name| !manifests.contains_key(**name)) {
        Some(name) => Err(format!("the map names crate {name}, which is not there")),
        None => Ok(()),
    }
}

fn rust_files(root: &Path, name: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![root.join("crates").join(name).join("src")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let shown = path.strip_prefix(root.join("crates")).unwrap().display().to_string();
                found.push((shown, fs::read_to_string(path).unwrap()));
            }
        }
    }
    found
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
