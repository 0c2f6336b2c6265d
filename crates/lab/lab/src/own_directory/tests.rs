//! What another user could have planted, in a place of our own.

use std::{fs, os::unix::fs::symlink};

use rustix::fs::{Gid, Uid};

use super::*;

/// Nobody's number on every Linux.
const STRANGER: u32 = 65_534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn give_to_stranger(path: &Path) {
    rustix::fs::chown(path, Some(Uid::from_raw(STRANGER)), Some(Gid::from_raw(STRANGER))).unwrap();
}

fn text(error: Error) -> String {
    error.to_string()
}

/// attack finding 7: `results.new` and six others as links overwrote root's files.
#[test]
fn a_planted_link_is_replaced_and_what_it_leads_to_stays() {
    let place = tempfile::tempdir().unwrap();
    let victim = place.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    let results = place.path().join("results");
    fs::create_dir(&results).unwrap();
    let names = ["experiment.toml", "design.json", "results.json", "report.html", "summary.md", "runs.csv"];
    for name in names {
        symlink(&victim, results.join(name)).unwrap();
        // the name that the old writer used for its half-written file
        symlink(&victim, results.join(name).with_extension("new")).ok();
    }
    let own = OwnDirectory::open(&results).unwrap();
    for name in names {
        own.write(name, b"new").unwrap();
        assert_eq!(fs::read_to_string(results.join(name)).unwrap(), "new");
        assert!(!results.join(name).is_symlink());
    }
    symlink(&victim, results.join("runs.jsonl")).unwrap();
    assert!(own.append("runs.jsonl").is_err(), "a link is not added to");
    assert!(own.read("runs.jsonl", 100).is_err(), "a link is not read");
    fs::hard_link(&victim, results.join("other")).unwrap();
    assert!(own.append("other").is_err(), "a file with a second name elsewhere is not added to");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    let left: Vec<_> = fs::read_dir(&results).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
}

/// attack finding 7: a linked directory below the results was written into.
#[test]
fn a_linked_directory_is_neither_written_into_nor_emptied() {
    let place = tempfile::tempdir().unwrap();
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir_all(elsewhere.join("3")).unwrap();
    fs::write(elsewhere.join("3/file"), "untouched").unwrap();
    let results = place.path().join("results");
    fs::create_dir(&results).unwrap();
    symlink(&elsewhere, results.join("charts")).unwrap();
    symlink(&elsewhere, results.join("runs")).unwrap();
    let own = OwnDirectory::open(&results).unwrap();
    assert!(own.write("charts/one.svg", b"x").is_err());
    assert!(own.remove_all("runs/3").is_err());
    for wrong in ["../out", "/etc/x", ".", "a/../../b"] {
        assert!(own.write(wrong, b"x").is_err(), "{wrong}");
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
    assert!(elsewhere.join("3/file").exists());
    own.write("tables/1/one.csv", b"x").unwrap();
    own.remove_all("tables/1").unwrap();
    own.remove_all("tables/1").unwrap();
    assert!(results.join("tables").exists() && !results.join("tables/1").exists());
}

/// attack finding 7: `lab report` and `lab run --resume` worked in directories of other users.
#[test]
fn root_refuses_a_directory_of_another_user_and_one_that_others_can_write_to() {
    if !is_root() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let results = place.path().join("it's theirs");
    fs::create_dir(&results).unwrap();
    give_to_stranger(&results);
    let error = OwnDirectory::open(&results).unwrap_err();
    assert!(error.hint().unwrap().contains(r"'\''s theirs'"), "the command is quoted: {:?}", error.hint());
    assert!(text(error).contains("belongs to user 65534"));
    let error = OwnDirectory::create(&results.join("below")).unwrap_err();
    assert!(text(error).contains("directory of user 65534"));
    assert_eq!(fs::read_dir(&results).unwrap().count(), 0, "nothing was made");

    let open = place.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    assert!(text(OwnDirectory::open(&open).unwrap_err()).contains("others than root can write"));
    let made = OwnDirectory::create(&open.join("a/b")).unwrap();
    made.write("file", b"x").unwrap();
}

/// attack finding 7: a link that another user put on the way leads root where that user wants.
#[test]
fn root_follows_only_links_that_nobody_else_could_have_made() {
    if !is_root() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("target");
    fs::create_dir(&target).unwrap();
    let ours = place.path().join("ours");
    symlink(&target, &ours).unwrap();
    OwnDirectory::open(&ours).unwrap();
    let shared = place.path().join("shared");
    fs::create_dir(&shared).unwrap();
    symlink(&target, shared.join("ringfence-results")).unwrap();
    fs::set_permissions(&shared, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let error = OwnDirectory::create(&shared.join("ringfence-results/tour")).unwrap_err();
    assert!(text(error).contains("link of another user"));
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn a_write_that_fails_leaves_the_file_as_it_was() {
    let place = tempfile::tempdir().unwrap();
    let own = OwnDirectory::create(&place.path().join("a")).unwrap();
    own.write("file", b"before").unwrap();
    let failed: Result<(), Error> = own.write_by("file", |file| {
        file.write_all(b"half")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert!(failed.is_err());
    assert_eq!(own.read("file", 100).unwrap().unwrap(), b"before");
    assert_eq!(fs::read_dir(own.path()).unwrap().count(), 1, "nothing else is left");
    assert_eq!(own.read("none", 100).unwrap(), None);
}
