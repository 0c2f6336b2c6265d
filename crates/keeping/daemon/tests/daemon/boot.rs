//! Which units start after the daemon, by the layout of a tree.

use std::{fs, path::Path};

pub const ROWS: &[(&str, fn())] = &[
    ("a service that a layout names starts after the daemon", named),
    ("a slice with CPUs of its own starts before the daemon", slices),
    ("a unit that the daemon starts after is left out", early),
    ("a tree without a readable layout names no unit", nothing),
    ("a boot starts units without a change that nobody confirmed", unconfirmed),
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

fn unconfirmed() {
    let tree = tempfile::tempdir().unwrap();
    let early = tree.path().join("early");
    daemon::keep_out(tree.path(), &early, "2").unwrap();
    assert!(!early.exists());
    let units = tree.path().join("etc/systemd/system");
    let write = |name: &str, text: &str| {
        let path = units.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let ours = "# by ringfence, from the layout in effect; `ringfence undo 0` removes it\n[Service]\n";
    for unit in ["new.service", "changed.service", "edited.service"] {
        let text = if unit == "edited.service" { "[Service]\n" } else { ours };
        write(&format!("{unit}.d/90-ringfence.conf"), text);
        let before = if unit == "new.service" { "null" } else { "\"[Service]\\nMemoryMax=7\\n\"" };
        write(&format!(".ringfence-before/{unit}"), &format!(r#"{{"boot":"1","before":{before}}}"#));
    }
    // the same boot reads its files again, as at each change
    daemon::keep_out(tree.path(), &early, "1").unwrap();
    assert!(!early.exists());
    daemon::keep_out(tree.path(), &early, "2").unwrap();
    let of = |unit: &str| fs::read_to_string(early.join(format!("{unit}.d/90-ringfence.conf"))).ok();
    let settings = |unit: &str| of(unit).map(|text| text.lines().any(|line| !line.starts_with('#')));
    assert_eq!(settings("new.service"), Some(false), "an empty one hides that of /etc");
    assert_eq!(of("changed.service").as_deref(), Some("[Service]\nMemoryMax=7\n"));
    assert_eq!(of("edited.service"), None, "it is somebody's by now");
}
