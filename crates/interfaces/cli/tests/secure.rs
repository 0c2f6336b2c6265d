//! Attack finding 29: a copy with the set-user-ID bit refuses to run, whatever it is asked.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::Command,
};

#[test]
fn a_set_user_id_copy_refuses_to_run() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("ignored: needs root");
        return;
    }
    let program = std::env::var_os("RINGFENCE").unwrap_or_else(|| env!("CARGO_BIN_EXE_ringfence").into());
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = directory.path().join("ringfence");
    fs::copy(program, &copy).unwrap();
    let run = |mode: u32, uid: u32| {
        fs::set_permissions(&copy, fs::Permissions::from_mode(mode)).unwrap();
        Command::new(&copy).arg("--version").uid(uid).gid(uid).output().unwrap()
    };
    assert!(run(0o755, 65534).status.success());
    for mode in [0o4755, 0o2755, 0o6755] {
        let refused = run(mode, 65534);
        assert_eq!(refused.status.code(), Some(1), "{mode:o} {refused:?}");
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(text.contains("does not run set-user-ID"), "{text}");
    }
    assert!(run(0o4755, 0).status.success(), "root gains nothing by it");
}
