//! Opening configuration files: what root must not read, and what nobody can.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's failure is a panic")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::{fs, io::Write};

use system::files::{self, Trust, files_in, layout_files, load, read_layout};

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    set_mode(path, 0o644);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Why a file is refused; empty if it is read.
fn refused(path: &Path, trust: Trust) -> String {
    let loaded = load(&[path.to_owned()], trust);
    assert_eq!(loaded.sources.is_empty(), !loaded.diagnostics.is_empty());
    loaded.diagnostics.iter().map(|error| error.message.clone()).collect()
}

#[test]
fn root_refuses_what_others_could_have_written() {
    let tree = tempfile::tempdir().unwrap();
    set_mode(tree.path(), 0o755);
    let file = tree.path().join("layout.toml");
    write(&file, "[groups.a]\n");
    assert_eq!(refused(&file, Trust::Strict), "");
    for mode in [0o646, 0o664, 0o666, 0o602] {
        set_mode(&file, mode);
        assert!(
            refused(&file, Trust::Strict).ends_with("can be written by others than its owner"),
            "{mode:o}"
        );
        assert_eq!(refused(&file, Trust::Lenient), "");
    }
    set_mode(&file, 0o600);
    for mode in [0o777, 0o775] {
        set_mode(tree.path(), mode);
        assert!(
            refused(&file, Trust::Strict).starts_with("others can put another file in the place of"),
            "{mode:o}"
        );
        assert_eq!(refused(&file, Trust::Lenient), "");
    }
    set_mode(tree.path(), 0o1777);
    assert_eq!(refused(&file, Trust::Strict), "", "in a sticky directory only the owner can exchange it");
}

#[test]
fn root_refuses_what_others_could_move_away_however_far_above() {
    let tree = tempfile::tempdir().unwrap();
    set_mode(tree.path(), 0o755);
    let above = tree.path().join("above");
    let file = above.join("between/etc/layout.toml");
    write(&file, "[groups.a]\n");
    for path in [&above, &above.join("between"), &above.join("between/etc")] {
        set_mode(path, 0o755);
    }
    assert_eq!(refused(&file, Trust::Strict), "");
    for (mode, is_read) in [(0o777, false), (0o775, false), (0o1777, true), (0o755, true)] {
        set_mode(&above, mode);
        let why = refused(&file, Trust::Strict);
        assert_eq!(why.is_empty(), is_read, "{mode:o}: {why}");
        assert!(is_read || why.ends_with("above can be written by others than its owner"), "{why}");
        assert_eq!(refused(&file, Trust::Lenient), "");
    }
    // root's own links are followed, into directories that are looked at as well
    symlink(&above, tree.path().join("link")).unwrap();
    let by_link = tree.path().join("link/between/etc/layout.toml");
    assert_eq!(refused(&by_link, Trust::Strict), "");
    set_mode(&above.join("between"), 0o777);
    assert!(refused(&by_link, Trust::Strict).contains("above/between can be written by others"));
    set_mode(&above.join("between"), 0o755);
    symlink("loop", tree.path().join("loop")).unwrap();
    let looped = files::trusted(&tree.path().join("loop/x")).unwrap_err();
    assert!(looped.to_string().contains("too many levels of symbolic links"), "{looped}");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let give = |path: &Path| std::os::unix::fs::lchown(path, Some(4_000_001), None).unwrap();
    give(&tree.path().join("link"));
    assert!(refused(&by_link, Trust::Strict).ends_with("link belongs to user 4000001"));
    give(&above);
    let error = load(std::slice::from_ref(&file), Trust::Strict).diagnostics.remove(0);
    assert!(error.message.ends_with("above belongs to user 4000001"), "{}", error.message);
    assert!(error.hint.is_some_and(|hint| hint.contains("chown root")));
}

#[test]
fn root_trusts_a_program_that_only_root_can_change() {
    assert!(files::trusted_program("sh".as_ref()).is_ok());
    assert!(files::trusted_program("/bin/sh".as_ref()).is_ok());
    let tree = tempfile::tempdir().unwrap();
    set_mode(tree.path(), 0o755);
    let program = tree.path().join("p99");
    write(&program, "#!/bin/sh\necho 4ms\n");
    set_mode(&program, 0o755);
    assert!(files::trusted_program(program.as_os_str()).is_ok());
    set_mode(&program, 0o777);
    let link = tree.path().join("link");
    symlink(&program, &link).unwrap();
    for path in [&program, &link] {
        let why = files::trusted_program(path.as_os_str()).unwrap_err();
        assert!(why.to_string().ends_with("p99 can be written by others than its owner"), "{why}");
    }
    let missing = files::trusted_program("rf-test-missing".as_ref()).unwrap_err();
    assert!(missing.to_string().ends_with("no such file or directory"), "{missing}");
}

#[test]
fn root_follows_no_link_to_a_file_or_its_directory() {
    let tree = tempfile::tempdir().unwrap();
    set_mode(tree.path(), 0o755);
    let real = tree.path().join("real/layout.toml");
    write(&real, "[groups.a]\n");
    let link = tree.path().join("real/link.toml");
    symlink(&real, &link).unwrap();
    assert!(refused(&link, Trust::Strict).ends_with("is a symbolic link, which root does not follow here"));
    assert_eq!(refused(&link, Trust::Lenient), "");
    symlink(tree.path().join("real"), tree.path().join("etc")).unwrap();
    let below = tree.path().join("etc/layout.toml");
    assert!(
        refused(&below, Trust::Strict).ends_with("etc is a symbolic link, which root does not follow here")
    );
    assert_eq!(refused(&below, Trust::Lenient), "");
    let dangling = tree.path().join("real/dangling.toml");
    symlink("nowhere", &dangling).unwrap();
    assert!(refused(&dangling, Trust::Lenient).ends_with("no such file or directory"));
}

#[test]
fn what_is_no_regular_file_is_refused_and_never_waited_for() {
    let tree = tempfile::tempdir().unwrap();
    let fifo = tree.path().join("layout.toml");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
    for trust in [Trust::Strict, Trust::Lenient] {
        assert!(refused(&fifo, trust).ends_with("is no regular file"));
        assert!(refused(tree.path(), trust).ends_with("is no regular file"));
        assert!(refused(Path::new("/dev/null"), trust).ends_with("is no regular file"));
        assert!(refused(&tree.path().join("nosuch"), trust).ends_with("nosuch: no such file or directory"));
        assert!(refused(Path::new("/"), trust).ends_with("is no file"));
    }
}

#[test]
fn a_file_of_100_mb_is_refused_without_being_read() {
    let tree = tempfile::tempdir().unwrap();
    let file = tree.path().join("layout.toml");
    fs::File::create(&file).unwrap().set_len(100 << 20).unwrap();
    assert!(refused(&file, Trust::Lenient).ends_with("is larger than 16 MB"));
    fs::File::create(&file).unwrap().set_len(files::LARGEST).unwrap();
    assert_eq!(refused(&file, Trust::Lenient), "", "exactly 16 MB are read");
}

#[test]
fn invalid_utf_8_is_told_with_its_place() {
    let tree = tempfile::tempdir().unwrap();
    set_mode(tree.path(), 0o755);
    let file = tree.path().join("layout.toml");
    fs::File::create(&file).unwrap().write_all(b"[groups.a]\n# \xc3\xa4\xff x\ncpus = 1\n").unwrap();
    let (reading, sources) = read_layout(&file, Trust::Lenient);
    assert!(reading.desired.is_none());
    let text = layout::render(&reading.diagnostics, &sources);
    let name = file.display();
    let expected = format!(
        "error: the text is not UTF-8: byte 0xff at position 16\n --> {name}:2:4\n  |\n2 | # ä\u{fffd} x\n  |    ^\n\
         hint: save the file as UTF-8\n"
    );
    assert_eq!(text, expected);
}

#[test]
fn a_directory_is_its_layout_and_what_is_in_layout_d_by_name() {
    let tree = tempfile::tempdir().unwrap();
    set_mode(tree.path(), 0o755);
    let at = |name: &str| tree.path().join(name);
    let error = layout_files(tree.path()).unwrap_err();
    assert!(error.message.starts_with("there is no layout in"));
    for name in [
        "layout.d/20-b.toml",
        "layout.d/10-a.toml",
        "layout.d/.hidden.toml",
        "layout.d/x.toml~",
        "layout.d/README",
    ] {
        write(&at(name), &format!("[groups.'{}']\n", name.len()));
    }
    let names = |files: Vec<PathBuf>| -> Vec<String> {
        files.iter().map(|file| file.strip_prefix(tree.path()).unwrap().display().to_string()).collect()
    };
    assert_eq!(names(layout_files(tree.path()).unwrap()), ["layout.d/10-a.toml", "layout.d/20-b.toml"]);
    write(&at("layout.toml"), "[groups.main]\n");
    let files = layout_files(tree.path()).unwrap();
    assert_eq!(names(files), ["layout.toml", "layout.d/10-a.toml", "layout.d/20-b.toml"]);
    assert_eq!(names(layout_files(&at("layout.toml")).unwrap()), ["layout.toml"]);
    assert_eq!(names(files_in(&at("layout.d"), "toml").unwrap()).len(), 2);
    assert!(files_in(&at("nosuch"), "conf").unwrap_err().message.ends_with("no such file or directory"));
}

#[test]
fn a_file_that_can_not_be_read_leaves_nothing_desired() {
    let tree = tempfile::tempdir().unwrap();
    set_mode(tree.path(), 0o755);
    write(&tree.path().join("layout.toml"), "[groups.a]\ncpus = 1\n");
    write(&tree.path().join("layout.d/a.toml"), "[groups.b]\ncpus = 1\n");
    let (reading, sources) = read_layout(tree.path(), Trust::Strict);
    assert_eq!((reading.desired.unwrap().groups.len(), sources.len()), (2, 2));
    set_mode(&tree.path().join("layout.d/a.toml"), 0o666);
    let (reading, sources) = read_layout(tree.path(), Trust::Strict);
    assert!(reading.desired.is_none());
    let text = layout::render(&reading.diagnostics, &sources);
    assert!(
        text.starts_with("error: ")
            && text.contains("can be written by others")
            && text.contains("hint: chmod go-w ")
    );
}

/// Attack finding 17: root's daemon took a file that was given to another user.
#[test]
fn root_reads_no_file_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return; // nobody else can give files away
    }
    let tree = tempfile::tempdir().unwrap();
    let directory = tree.path().join("etc");
    fs::create_dir(&directory).unwrap();
    let file = directory.join("layout.toml");
    fs::write(&file, "[groups.db]\n").unwrap();
    assert_eq!(refused(&file, Trust::Strict), "");
    std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
    assert!(refused(&file, Trust::Strict).ends_with("belongs to user 65534, who may change it"));
    assert_eq!(refused(&file, Trust::Lenient), "");
    std::os::unix::fs::chown(&file, Some(0), None).unwrap();
    std::os::unix::fs::chown(&directory, Some(65534), None).unwrap();
    let text = refused(&file, Trust::Strict);
    assert!(text.starts_with("others can put another file in the place of"), "{text}");
    assert_eq!(refused(&file, Trust::Lenient), "");
}
