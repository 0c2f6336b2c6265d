//! The documents that people read first, compared with what the program does: README.md, docs/start.md, the glossary, and
//! the manual pages.

use std::{fs, path::Path, process::Command, sync::Arc};

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    architecture::crate_directories,
    book::pages_of,
    desk::{Desk, says},
    page::fenced,
    words::not_plain,
    world::{Need, World},
};

type Case = (&'static str, fn(&mut Desk));

const CASES: &[Case] = &[
    ("the README is as long as one reads", readme),
    ("B1: the layouts of docs/start.md are right", start),
    ("the glossary has at most 40 words, and its types exist", glossary),
    ("E: help, manual pages and documents are in plain words", plain_words),
    ("B19: manual pages have values, files, environment, exit status, and one of the layout", pages),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |&(name, case): &Case| {
        let (lacks, world) = (world.lacks(&[Need::Sources]), world.clone());
        suite::trial(format!("documents: {name}"), lacks, move || case(&mut Desk::new(&world, name)))
    };
    CASES.iter().map(trial).collect()
}

/// The source tree.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

fn readme(_: &mut Desk) {
    let text = document("README.md");
    assert!((8_000..12_000).contains(&text.len()), "{} bytes", text.len());
}

fn start(desk: &mut Desk) {
    let layouts = fenced(&document("docs/start.md"), "toml");
    assert_eq!(layouts.len(), 2);
    for layout in layouts {
        // the user is postgres, whom not every machine has
        desk.write("layout.toml", &layout.replace("postgres\"", "root\""));
        desk.ends("check {d}/layout.toml", 0);
    }
}

fn glossary(_: &mut Desk) {
    let text = document("docs/glossary.md");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!((25..=40).contains(&rows.len()), "{}", rows.len());
    let named =
        rows.iter().flat_map(|row| row.split('`').skip(1).step_by(2)).filter(|word| word.contains("::"));
    let crates = crate_directories(&root().join("crates"));
    for path in named {
        let (of, name) = path.split_once("::").unwrap();
        let last = name.rsplit("::").next().unwrap();
        let found = Command::new("grep")
            .args(["-rqw", last])
            .arg(crates.iter().find(|path| path.ends_with(of)).unwrap().join("src"))
            .status()
            .unwrap();
        assert!(found.success(), "{path}");
    }
}

fn plain_words(desk: &mut Desk) {
    desk.ends("man {d}/words", 0);
    let mut texts = pages_of(root());
    texts.extend(fs::read_dir(desk.path("words")).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.display().to_string(), fs::read_to_string(&path).unwrap().replace('\\', ""))
    }));
    assert!(texts.len() > 60, "{} texts", texts.len());
    // the pages are made from the help, but for the first one, where commands are under headings
    texts.push(("ringfence --help".to_owned(), desk.ends("--help", 0)));
    let mut found = Vec::new();
    for (name, text) in &texts {
        found.extend(not_plain(text).map(|word| format!("{name}: {word}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A page as man(1) would have it; without groff the text itself.
fn page(path: &Path) -> String {
    let source = fs::read_to_string(path).unwrap();
    match Command::new("groff").args(["-man", "-Tutf8", "-P-c", "-ww"]).arg(path).output() {
        Ok(output) => {
            let warnings = String::from_utf8(output.stderr).unwrap();
            assert!(warnings.is_empty(), "{}: {warnings}", path.display());
            String::from_utf8(output.stdout).unwrap()
        }
        Err(_) => source.replace("\\-", "-"),
    }
}

/// Their examples are right, and the packages split section 5 between them.
fn files_of_libcgroup(desk: &mut Desk) {
    for (name, file) in [("cgconfig.conf", "cgconfig.conf"), ("cgrules.conf", "cgrules.conf")] {
        let page = fs::read_to_string(desk.path(&format!("man/man5/{name}.5"))).unwrap();
        says(&page, &[".SH \"NAME\"", ".SH \"DESCRIPTION\"", ".SH \"SEE ALSO\""]);
        let source = document(&format!("crates/interfaces/cli/src/manual/{name}.md"));
        let example = source.split("```").nth(1).unwrap();
        desk.write(file, example);
        let (code, out, error) = desk.run(&format!("import {{d}}/{file}"));
        assert_eq!(code, 0, "{out}{error}");
        assert!(!error.contains("error"), "{error}");
    }
    let staged = document("packaging/files");
    says(&staged, &["@/man/man5/ringfence*.5\n", "@/man/man5/cg*.5\n"]);
}

fn pages(desk: &mut Desk) {
    desk.ends("man {d}/man", 0);
    let status = fs::read_to_string(desk.path("man/man1/ringfence-status.1")).unwrap();
    for part in ["NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "FILES", "ENVIRONMENT", "EXIT STATUS", "SEE ALSO"]
    {
        says(&status, &[&format!(".SH \"{part}\"\n")]);
    }
    assert!(!status.contains("EXTRA") && !status.contains("[OPTIONS]"), "{status}");
    says(&status, &["[\\fB\\-\\-state\\fR \\fIDIRECTORY\\fR]", "RINGFENCE_STATE", "ringfence\\-layout(5)"]);
    let main = fs::read_to_string(desk.path("man/man1/ringfence.1")).unwrap();
    says(
        &main,
        &["RINGFENCE_SOCKET", "RINGFENCE_LOG", "NO_COLOR", "/etc/cgconfig.conf", "ringfence\\-undo(1)"],
    );
    // every command, those below lab, and libcgroup's
    for name in ["ringfence-apply", "ringfence-lab-run", "cgset"] {
        assert!(desk.path(&format!("man/man1/{name}.1")).exists(), "{name}");
    }
    assert!(!desk.path("man/man1/ringfence-worker.1").exists());
    for directory in ["man/man1", "man/man5"] {
        for file in fs::read_dir(desk.path(directory)).unwrap() {
            page(&file.unwrap().path());
        }
    }
    // a table of the help stays one
    let why = fs::read_to_string(desk.path("man/man1/ringfence-why.1")).unwrap();
    says(
        &why,
        &[".PP\nCauses:\n.TP\n\\fBfrozen\\fR\nits tasks", "\n.TP\n\\fBquota\\fR\na CPU quota stopped it"],
    );
    let simulate = fs::read_to_string(desk.path("man/man1/ringfence-simulate.1")).unwrap();
    says(&simulate, &[".TP\n\\fBlost\\fR\nwork that"]);
    files_of_libcgroup(desk);
    // the same tables as docs/layout.md: each key of it
    let layout = fs::read_to_string(desk.path("man/man5/ringfence-layout.5")).unwrap();
    let document = document("docs/layout.md");
    let keys = document.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let keys: Vec<String> = keys.map(|key| format!("\\fB{}\\fR", key.replace('-', "\\-"))).collect();
    assert!(keys.len() > 60, "{}", keys.len());
    keys.iter().for_each(|key| says(&layout, &[key]));
    desk.ends("man {d}/flat", 0);
    assert!(desk.path("flat/ringfence.1").exists() && desk.path("flat/ringfence-layout.5").exists());
}
