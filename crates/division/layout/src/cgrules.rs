//! libcgroup's cgrules.conf into a draft: one rule a line, `user[:process] controllers destination [options]`. A broken
//! line is reported and the others are read.

use crate::desired::Desired;
use crate::diagnostic::{Diagnostic, Report};
use crate::matcher::{Matcher, Process, Who};
use crate::merge::Draft;
use crate::names::cut;
use crate::pattern::{NamePattern, PatternError};
use crate::people::Account;
use crate::rule::{Controllers, Rule, Subsystem, Target, no_controller};
use crate::source::{Places, Source};

/// What a line looks like, for hints.
const SHAPE: &str =
    "a line is USER[:PROCESS] CONTROLLERS GROUP [OPTIONS], such as oracle cpu,memory db/oltp1";

/// Reads one file; all that is wrong is reported.
pub(crate) fn read(source: &Source, report: &mut Report) -> Draft {
    let places = Places::new(source);
    let mut reader = Reader { places: &places, report, rules: Vec::new(), ditto: Ditto::Nothing };
    for line in places.text().lines() {
        if reader.report.is_hopeless() {
            break;
        }
        reader.line(line);
    }
    let mut rules = reader.rules;
    rules.retain(|rule| rule.ignore || !rule.targets.is_empty());
    Draft { desired: Desired { rules, ..Desired::default() }, ..Draft::default() }
}

/// One file on its way.
struct Reader<'r> {
    places: &'r Places<'r>,
    report: &'r mut Report,
    rules: Vec<Rule>,
    ditto: Ditto,
}

/// What a `%` in place of the user goes on with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ditto {
    /// There is no line above.
    Nothing,
    /// Rules, by their index: that of the last line with a user, and that of the line above.
    Rule { of_user: usize, above: usize },
    /// A line with an error that has been reported.
    Broken,
}

/// A field of a line: its text without quotes, and the part of the line it is.
struct Field<'s> {
    text: String,
    part: &'s str,
    /// Where the first colon outside quotes is, in `text`.
    colon: Option<usize>,
}

impl Reader<'_> {
    fn line(&mut self, line: &str) {
        let Some(fields) = self.fields(line) else {
            self.ditto = Ditto::Broken;
            return;
        };
        let (first, rest) = match fields.as_slice() {
            [] => return,
            [first, rest @ ..] if (2..=3).contains(&rest.len()) => (first, rest),
            all => {
                let message = format!("expected 3 or 4 fields, found {}", all.len());
                self.error(line.trim(), message, Some(SHAPE.to_owned()));
                self.ditto = Ditto::Broken;
                return;
            }
        };
        let before = self.report.errors();
        let ditto = first.text == "%" || first.text.starts_with("%:");
        if ditto && self.ditto == Ditto::Nothing {
            let hint = "put it below the line whose user is meant";
            self.error(
                first.part,
                "'%' stands for the user of the line above, and there is none".to_owned(),
                Some(hint.to_owned()),
            );
        }
        let matcher = self.matcher(first, ditto);
        let controllers = self.controllers(&rest[0]);
        let group = self.group(&rest[1]);
        let (ignore, ignore_rt) = rest.get(2).map_or((false, false), |options| self.options(options));
        let (Some(matcher), Some(controllers), Some(group), false) =
            (matcher, controllers, group, self.report.errors() > before)
        else {
            if !ditto {
                self.ditto = Ditto::Broken;
            }
            return;
        };
        // of controllers that no kernel has any more, no target is left; `%` lines may still follow
        let gone = controllers == Controllers::These(Vec::new());
        let target = (!gone).then(|| Target {
            controllers,
            group,
            within: None,
            origin: self.places.of(rest[1].part),
        });
        let rule = Rule { matcher, targets: target.into_iter().collect(), ignore, ignore_rt };
        if ditto { self.add_ditto(rule) } else { self.add(rule) }
    }

    fn add(&mut self, rule: Rule) {
        let index = self.rules.len();
        self.rules.push(rule);
        self.ditto = Ditto::Rule { of_user: index, above: index };
    }

    /// `%` gives the rule above another group. `%:PROCESS` is about one program of the same user: it stands before the rule
    /// for all of his programs, whose other groups hold for it too.
    fn add_ditto(&mut self, mut rule: Rule) {
        let Ditto::Rule { of_user, above } = self.ditto else { return };
        if rule.matcher.process.is_none() {
            let above = &mut self.rules[above];
            above.targets.append(&mut rule.targets);
            above.ignore |= rule.ignore;
            above.ignore_rt |= rule.ignore_rt;
        } else if self.rules[of_user].matcher.process.is_none() {
            let mut targets = self.rules[of_user].targets.clone();
            targets.append(&mut rule.targets);
            self.rules.insert(of_user, Rule { targets, ..rule });
            self.ditto = Ditto::Rule { of_user: of_user + 1, above: of_user };
        } else {
            self.rules.push(rule);
            self.ditto = Ditto::Rule { of_user, above: self.rules.len() - 1 };
        }
    }

    /// The fields of a line up to a comment; `None` if a quote is never closed, which is reported.
    fn fields<'s>(&mut self, line: &'s str) -> Option<Vec<Field<'s>>> {
        let mut fields = Vec::new();
        let mut rest = line.trim();
        while !rest.is_empty() && !rest.starts_with('#') {
            let (field, behind) = match field(rest) {
                Ok(split) => split,
                Err(open) => {
                    let hint = "add the second '\"'".to_owned();
                    self.error(open, "the quote is never closed".to_owned(), Some(hint));
                    return None;
                }
            };
            fields.push(field);
            rest = behind.trim_start();
        }
        Some(fields)
    }

    /// Who is meant; with `ditto` whom the line above means.
    fn matcher(&mut self, field: &Field<'_>, ditto: bool) -> Option<Matcher> {
        let (who, process) = match field.colon {
            Some(colon) => (&field.text[..colon], Some(&field.text[colon + 1..])),
            None => (field.text.as_str(), None),
        };
        let of_user = match self.ditto {
            Ditto::Rule { of_user, .. } if ditto => Some(self.rules[of_user].matcher.who.clone()),
            _ => None,
        };
        let known = match who.strip_prefix('@') {
            // without a line above nothing comes of it
            None if ditto => Some(of_user.unwrap_or(Who::Anyone)),
            None if who == "*" => Some(Who::Anyone),
            None => Account::new(who).map(Who::User),
            Some(group) => Account::new(group).map(Who::GroupMember),
        };
        if known.is_none() {
            let hint = "a user, @group, * for anyone, or % for the line above";
            self.error(field.part, format!("'{}' is no user", cut(who)), Some(hint.to_owned()));
        }
        let process = match process {
            None | Some("*") => None,
            Some(text) => {
                let process = Process::new(text);
                if process.is_none() {
                    let hint = "a path, a name, or the beginning of one with a single * at its end";
                    self.error(field.part, format!("'{}' is no program", cut(text)), Some(hint.to_owned()));
                }
                Some(process?)
            }
        };
        Some(Matcher {
            who: known?,
            process,
            also: Vec::new(),
            strict: false,
            origin: self.places.of(field.part),
        })
    }

    fn controllers(&mut self, field: &Field<'_>) -> Option<Controllers> {
        if field.text == "*" {
            return Some(Controllers::All);
        }
        let mut these = Vec::new();
        let before = self.report.errors();
        // as strtok(3): a comma too many is none
        let names = field.text.split(',').filter(|name| !name.is_empty());
        for name in names.clone() {
            match Subsystem::new(name) {
                Some(subsystem) if these.contains(&subsystem) => {}
                Some(subsystem) => these.push(subsystem),
                None if name == "ns" => {
                    let warning = Diagnostic::warning("no kernel since 3.0 has a controller 'ns'");
                    self.report.push(warning.at(self.places.of(field.part)).hint("it is left out"));
                }
                None => {
                    let (message, hint) = no_controller(name);
                    self.error(field.part, message, Some(hint));
                }
            }
        }
        if names.count() == 0 {
            let (message, hint) = no_controller(&field.text);
            self.error(field.part, message, Some(hint));
        }
        (self.report.errors() == before).then_some(Controllers::These(these))
    }

    fn group(&mut self, field: &Field<'_>) -> Option<NamePattern> {
        let name = match field.text.trim_matches('/') {
            "" => field.text.as_str(),
            name => name,
        };
        match NamePattern::new(name) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let hint = match &error {
                    PatternError::UnknownCode { .. } => "codes are %u %U %g %G %p %P; \\% is a per cent sign",
                    PatternError::Name { .. } => "a name is made of parts like 'db/oltp1'",
                };
                self.error(field.part, error.to_string(), Some(hint.to_owned()));
                None
            }
        }
    }

    fn options(&mut self, field: &Field<'_>) -> (bool, bool) {
        let (mut ignore, mut ignore_rt) = (false, false);
        for option in field.text.split(',').filter(|option| !option.is_empty()) {
            match option {
                "ignore" => ignore = true,
                "ignore_rt" => ignore_rt = true,
                other => {
                    let hint = "options are ignore and ignore_rt".to_owned();
                    self.error(field.part, format!("unknown option '{}'", cut(other)), Some(hint));
                }
            }
        }
        (ignore, ignore_rt)
    }

    fn error(&mut self, part: &str, message: String, hint: Option<String>) {
        self.report.push(Diagnostic::error(message).at(self.places.of(part)).maybe_hint(hint));
    }
}

/// The first field of a line and what stands behind it. Quotes may be around any part of a field. The error is an
/// opened quote with what follows it.
fn field(line: &str) -> Result<(Field<'_>, &str), &str> {
    let mut text = String::new();
    let mut colon = None;
    let mut rest = line;
    while let Some(c) = rest.chars().next().filter(|c| !c.is_whitespace()) {
        if c == '"' {
            let (inside, behind) = rest[1..].split_once('"').ok_or(rest)?;
            text.push_str(inside);
            rest = behind;
            continue;
        }
        if c == ':' && colon.is_none() {
            colon = Some(text.len());
        }
        text.push(c);
        rest = &rest[c.len_utf8()..];
    }
    Ok((Field { text, part: &line[..line.len() - rest.len()], colon }, rest))
}
