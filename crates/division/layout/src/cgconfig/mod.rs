//! libcgroup's cgconfig.conf into a draft: `mount`, `group`, `template`, `default`, `namespace` and `systemd` sections.
//! Goes on after an error, to report all of a file's at once. What libcgroup took, this takes; what it took with
//! another meaning than ours is warned about.

mod grammar;
mod group;
mod sections;

use std::collections::HashMap;

use settings::GroupName;

use self::grammar::Grammar;
use self::group::Body;
use crate::diagnostic::{Diagnostic, Report};
use crate::merge::Draft;
use crate::names::{Names, cut};
use crate::origin::Origin;
use crate::pattern::NamePattern;
use crate::source::{Places, Source};
use crate::words::Token;

/// What a file can consist of.
pub(super) const SECTIONS: [&str; 6] = ["mount", "group", "template", "default", "namespace", "systemd"];

/// Reads one file; all that is wrong is reported.
pub(crate) fn read(source: &Source, names: &mut Names, report: &mut Report) -> Draft {
    let places = Places::new(source);
    let mut reader = Reader {
        grammar: Grammar::new(&places),
        names,
        report,
        draft: Draft { joins: true, ..Draft::default() },
        groups: Vec::new(),
        group_index: HashMap::new(),
        templates: Vec::new(),
        template_index: HashMap::new(),
        namespaces: Vec::new(),
        counter_reported: false,
    };
    reader.file();
    reader.finish()
}

/// One file on its way.
struct Reader<'r> {
    grammar: Grammar<'r>,
    names: &'r mut Names,
    report: &'r mut Report,
    draft: Draft,
    /// Groups may be given in several pieces.
    groups: Vec<(GroupName, Body)>,
    group_index: HashMap<GroupName, usize>,
    templates: Vec<(NamePattern, Body)>,
    template_index: HashMap<NamePattern, usize>,
    /// Path and place of each `namespace` entry.
    namespaces: Vec<(String, Origin)>,
    /// Was it said that counters are left out?
    counter_reported: bool,
}

impl<'r> Reader<'r> {
    fn file(&mut self) {
        while let Some(token) = self.grammar.next() {
            if self.report.is_hopeless() {
                return;
            }
            match token {
                Token::Bare("mount") => self.mount(token),
                Token::Bare("group") => self.group(token),
                Token::Bare("template") => self.template(token),
                Token::Bare("default") => self.default(token),
                Token::Bare("namespace") => self.namespace(token),
                Token::Bare("systemd") => self.systemd(token),
                other => self.no_section(other),
            }
        }
    }

    fn no_section(&mut self, token: Token<'r>) {
        let origin = self.grammar.origin(token);
        let error = match token {
            Token::Sign("}") => {
                Diagnostic::error("a '}' that closes nothing").hint("is there one too many above?")
            }
            Token::Bare(word) => {
                let hint = match units::nearest(&cut(word), SECTIONS).as_slice() {
                    [] => format!("sections are {}", SECTIONS.join(", ")),
                    near => format!("did you mean {}?", near.join(" or ")),
                };
                Diagnostic::error(format!("'{}' is no section", cut(word))).hint(hint)
            }
            other => Diagnostic::error(format!("expected a section, found {}", grammar::found(Some(other))))
                .hint(format!("sections are {}", SECTIONS.join(", "))),
        };
        self.report.push(error.at(origin));
        self.grammar.skip_section();
    }
}
