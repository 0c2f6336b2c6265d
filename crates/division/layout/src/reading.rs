//! Texts to what is desired, whichever of the three grammars they are in.

use crate::check::check;
use crate::desired::Desired;
use crate::diagnostic::{Diagnostic, Report, Severity};
use crate::merge::{Draft, merge};
use crate::names::Names;
use crate::overlay::check_schedules;
use crate::source::{Places, Source};
use crate::{cgconfig, cgrules, reader, toml_file};

/// What came out of reading configurations.
#[derive(Debug, Clone)]
pub struct Reading {
    /// What is desired; `None` if there is an error.
    pub desired: Option<Desired>,
    /// All that is wrong, in the order of the files and their lines. Without errors there may be warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads files of our own TOML as one layout.
pub fn read_toml(sources: &[Source]) -> Reading {
    read_with(sources, toml_file::read)
}

/// Reads one file in the grammar of libcgroup's cgconfig.conf.
pub fn read_cgconfig(file: &str, text: &str) -> Reading {
    read_with(&[Source::new(file, text)], cgconfig::read)
}

/// Reads several such files as one.
pub fn read_cgconfigs(sources: &[Source]) -> Reading {
    read_with(sources, cgconfig::read)
}

/// Reads one file in the grammar of libcgroup's cgrules.conf.
pub fn read_cgrules(file: &str, text: &str) -> Reading {
    read_with(&[Source::new(file, text)], |source, _, report| cgrules::read(source, report))
}

/// Reads files of any of the three grammars as one layout; a file's name determines its grammar, else what it
/// begins with.
pub fn read(sources: &[Source]) -> Reading {
    read_with(sources, |source, names, report| match Grammar::of(source) {
        Grammar::Toml => toml_file::read(source, names, report),
        Grammar::Cgconfig => cgconfig::read(source, names, report),
        Grammar::Cgrules => cgrules::read(source, report),
    })
}

/// The grammar of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// Our own TOML.
    Toml,
    /// libcgroup's cgconfig.conf.
    Cgconfig,
    /// libcgroup's cgrules.conf.
    Cgrules,
}

impl Grammar {
    /// The grammar of a text: by the file's name (`*.toml`, `cgconfig*`, `cgrules*`, `cgconfig.d/*`), else by
    /// the first line that is no comment. Our own if neither decides.
    pub fn of(source: &Source) -> Grammar {
        let parts = || source.name.rsplit('/').take(2);
        let last = source.name.rsplit('/').next().unwrap_or_default();
        if last.ends_with(".toml") {
            Grammar::Toml
        } else if parts().any(|part| part.starts_with("cgrules")) {
            Grammar::Cgrules
        } else if parts().any(|part| part.starts_with("cgconfig")) {
            Grammar::Cgconfig
        } else {
            Grammar::of_text(&source.text)
        }
    }

    fn of_text(text: &str) -> Grammar {
        let lines =
            text.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let Some(line) = lines.into_iter().next() else { return Grammar::Toml };
        let first = line.split(|c: char| c.is_whitespace() || c == '{').next().unwrap_or_default();
        if cgconfig::SECTIONS.contains(&first) && !is_toml_key(line[first.len()..].trim_start()) {
            return Grammar::Cgconfig;
        }
        let fields = line.split_whitespace().count();
        let toml = line.starts_with('[') || line.contains('=');
        if (3..=4).contains(&fields) && !toml { Grammar::Cgrules } else { Grammar::Toml }
    }
}

/// Does what stands behind a word make it a key of TOML? `group . {` is a section: libcgroup's root group is `.`.
fn is_toml_key(rest: &str) -> bool {
    let first_sign = rest.find(['=', '{']).map(|at| &rest[at..]);
    rest.starts_with('=') || rest.starts_with('.') && first_sign.is_some_and(|sign| sign.starts_with('='))
}

fn read_with(sources: &[Source], read: impl Fn(&Source, &mut Names, &mut Report) -> Draft) -> Reading {
    let (mut names, mut report) = (Names::new(reader::names(toml_file::GROUP)), Report::default());
    let drafts = sources.iter().map(|source| read(source, &mut names, &mut report)).collect();
    let desired = merge(drafts, &mut report);
    check(&desired, &mut report);
    if report.errors() == 0 {
        check_schedules(&desired, &mut report);
    }
    let desired = (report.errors() == 0).then_some(desired);
    let mut diagnostics = report.finish(sources);
    straight_quotes(&mut diagnostics, sources);
    Reading { desired, diagnostics }
}

/// What word processors and wikis make of quotes that somebody typed.
pub(crate) const TYPOGRAPHIC: [char; 8] = ['“', '”', '„', '«', '»', '‘', '’', '‚'];
/// The way out where one of those stands.
pub(crate) const STRAIGHT: &str = "write straight quotes (\") in place of typographic ones";

/// No grammar has typographic quotes: an error where one stands is about that.
fn straight_quotes(diagnostics: &mut [Diagnostic], sources: &[Source]) {
    let with_some = sources.iter().filter(|source| source.text.contains(TYPOGRAPHIC));
    let places: Vec<(&str, Places<'_>)> =
        with_some.map(|source| (&*source.name, Places::new(source))).collect();
    for error in diagnostics.iter_mut().filter(|one| one.severity == Severity::Error) {
        let Some(origin) = &error.origin else { continue };
        let Some((_, places)) = places.iter().find(|(name, _)| *name == &*origin.file) else { continue };
        let first = places.line(origin).and_then(|(line, at)| line[at..].chars().next());
        if first.is_some_and(|first| TYPOGRAPHIC.contains(&first)) {
            error.hint = Some(STRAIGHT.to_owned());
        }
    }
}
