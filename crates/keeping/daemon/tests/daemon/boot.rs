//! Which units start after the daemon, by the layout of a tree.

use std::{fs, path::Path};

pub const ROWS: &[(&str, fn())] = &[
    ("a service that a layout names starts after the daemon", named),
    ("a slice with CPUs of its own starts before the daemon", slices),
    ("a unit that the daemon starts after is left out", early),
    ("a tree without a readable layout names no unit", nothing),
];

fn ordered(root: &Path, layout: &str) -> Vec<String> {
    fs::create_dir_all(root.join("etc/ringfence")).unwrap();
    fs::write(root.join("etc/ringfence/layout.toml"), layout).unwrap();
    daemon::order_units(root, &root.join("out")).unwrap()
}

fn named() {
    let tree = tempfile::tempdir().unwrap();
    let layout = r#"
        [groups.db.groups.one]
        unit = "postgresql@15-main.service"
        [groups.other]
        unit = "mydb.service"
        [groups.slice]
        unit = "a.slice"
        [groups.instances]
        unit = "mysql@*.service"
        [groups.prefix]
        unit = "app-*.service"
        [groups.all]
        unit = "*.service"
        [groups.plain]
        pids.max = 7
    "#;
    // a pattern is its template; others would take in what the daemon needs
    let units = ordered(tree.path(), layout);
    assert_eq!(units, ["mydb.service", "mysql@.service", "postgresql@15-main.service"]);
    for unit in units {
        let file = tree.path().join("out").join(format!("{unit}.d/10-ringfence.conf"));
        assert!(fs::read_to_string(file).unwrap().ends_with("[Unit]\nAfter=ringfenced.service\n"));
    }
    assert_eq!(fs::read_dir(tree.path().join("out")).unwrap().count(), 3);
}

fn slices() {
    let tree = tempfile::tempdir().unwrap();
    let layout = r#"
        [groups.rt]
        unit = "rt.slice"
        cpus = 1
        exclusive = true
        [groups.shared]
        unit = "shared.slice"
        cpus = 1
    "#;
    assert_eq!(ordered(tree.path(), layout), [""; 0]);
    let file = tree.path().join("out/ringfenced.service.d/10-ringfence.conf");
    assert!(fs::read_to_string(file).unwrap().ends_with("[Unit]\nWants=rt.slice\nAfter=rt.slice\n"));
}

fn early() {
    let tree = tempfile::tempdir().unwrap();
    let units = tree.path().join("usr/lib/systemd/system");
    fs::create_dir_all(&units).unwrap();
    fs::write(units.join("early@.service"), "[Unit]\nDefaultDependencies = no\n").unwrap();
    fs::write(units.join("users.service"), "[Unit]\nBefore=x.target nss-user-lookup.target\n").unwrap();
    fs::write(units.join("late.service"), "[Unit]\nDefaultDependencies=yes\nBefore=x.target\n").unwrap();
    let names = ["early@1", "early@*", "users", "late", "dbus", "ringfenced"];
    let numbered = names.iter().enumerate();
    let groups: Vec<String> =
        numbered.map(|(n, name)| format!("[groups.g{n}]\nunit = \"{name}.service\"\n")).collect();
    assert_eq!(ordered(tree.path(), &groups.concat()), ["late.service"]);
}

fn nothing() {
    let tree = tempfile::tempdir().unwrap();
    assert_eq!(daemon::order_units(tree.path(), &tree.path().join("out")).unwrap(), [""; 0]);
    assert_eq!(ordered(tree.path(), "[groups.x\nunit = \"a.service\"\n"), [""; 0]);
    assert_eq!(ordered(tree.path(), "groups = 7\n"), [""; 0]);
    assert!(!tree.path().join("out").exists());
}
