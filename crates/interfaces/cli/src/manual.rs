//! The manual pages: a page per command in section 1, from the same definitions as the help, the layout file in section 5, from
//! the same text as docs/layout.md, and libcgroup's files. Only makes texts; the command `man` writes them.
//!
//! clap_mangen shows options without their values in the synopsis, has one section EXTRA for all other text, and no section
//! 5: with what would have to be replaced, little of it was left.

mod markdown;
mod roff;

use clap::{Arg, Command};

use self::roff::Page;
use crate::args;

/// A file of the manual.
pub struct Manual {
    pub name: String,
    pub section: u8,
    pub text: String,
}

/// Every page of a definition, those of its subcommands included.
pub fn pages(definition: Command) -> Vec<Manual> {
    let mut definition = definition.disable_help_subcommand(true);
    definition.build();
    let mut all = Vec::new();
    add(&mut all, &definition, &[]);
    all
}

/// Section 5: ringfence-layout, and libcgroup's two files.
pub fn files() -> [Manual; 3] {
    let commands =
        |names: &str| names.split(' ').map(|name| format!("{name}(1)")).collect::<Vec<_>>().join(", ");
    let layout = file(
        "ringfence-layout",
        "the layout file of ringfence",
        &::layout::markdown(),
        &["layout"],
        &commands("ringfence ringfence-check ringfence-plan ringfence-apply ringfence-import"),
    );
    let groups = file(
        "cgconfig.conf",
        "groups, templates and mount points of libcgroup's commands",
        include_str!("manual/cgconfig.conf.md"),
        &[],
        &format!("{}, cgrules.conf(5)", commands("cgconfigparser cgsnapshot ringfence-import")),
    );
    let rules = file(
        "cgrules.conf",
        "rules that put processes into groups",
        include_str!("manual/cgrules.conf.md"),
        &[],
        &format!(
            "{}, cgconfig.conf(5)",
            commands("cgrulesengd cgclassify ringfence-classify ringfence-import")
        ),
    );
    [layout, groups, rules]
}

/// A page of section 5 from a document.
fn file(name: &str, what: &str, document: &str, topics: &[&str], see_also: &str) -> Manual {
    let mut page = Page::new(name, 5);
    page.section("NAME");
    page.raw(&format!("{} \\- {}", roff::escaped(name), roff::escaped(what)));
    markdown::add(&mut page, document);
    section(&mut page, "FILES", &FILES, topics);
    page.section("SEE ALSO");
    page.paragraph(see_also);
    Manual { name: name.to_owned(), section: 5, text: page.text() }
}

fn add(all: &mut Vec<Manual>, command: &Command, above: &[&str]) {
    if command.is_hide_set() {
        return;
    }
    let mut words: Vec<&str> = above.to_vec();
    words.push(command.get_name());
    all.push(Manual { name: words.join("-"), section: 1, text: page(command, &words) });
    for below in command.get_subcommands() {
        add(all, below, &words);
    }
}

fn page(command: &Command, words: &[&str]) -> String {
    let name = words.join("-");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut page = Page::new(&name, 1);
    page.section("NAME");
    page.raw(&format!("{} \\- {}", roff::escaped(&name), roff::escaped(&about)));
    page.section("SYNOPSIS");
    page.raw(&synopsis(command, words));
    let (text, examples) = parts(command);
    page.section("DESCRIPTION");
    page.paragraph(&format!("{about}."));
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    if !aliases.is_empty() {
        page.paragraph(&format!("Other names: {}.", aliases.join(", ")));
    }
    text.iter().for_each(|part| with_table(&mut page, part));
    let (options, positionals): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(|arg| !arg.is_hide_set()).partition(|arg| !arg.is_positional());
    arguments(&mut page, "ARGUMENTS", &positionals);
    arguments(&mut page, "OPTIONS", &options);
    let below: Vec<&Command> = command.get_subcommands().filter(|below| !below.is_hide_set()).collect();
    if !below.is_empty() {
        page.section("COMMANDS");
        for below in &below {
            page.term(&format!("{name}-{}(1)", below.get_name()));
            page.lines(&below.get_about().map(ToString::to_string).unwrap_or_default());
        }
    }
    if !examples.is_empty() {
        page.section("EXAMPLES");
        page.example(&examples);
    }
    let is_ours = words.first() == Some(&"ringfence");
    let topics = topics(command, words);
    section(&mut page, "FILES", &FILES, &topics);
    section(&mut page, "ENVIRONMENT", &ENVIRONMENT, &topics);
    if is_ours {
        page.section("EXIT STATUS");
        args::EXIT.split("\n\n").take(2).for_each(|paragraph| page.paragraph(paragraph));
    }
    page.section("SEE ALSO");
    page.paragraph(&see_also(words, &topics));
    page.text()
}

/// A paragraph of the help, in which lines such as `  name  what it is` are a table.
fn with_table(page: &mut Page, part: &str) {
    let row = |line: &str| {
        let (term, text) = line.strip_prefix("  ")?.split_once("  ")?;
        Some((term.to_owned(), text.trim().to_owned()))
    };
    let mut plain = Vec::new();
    for line in part.lines() {
        let Some((term, text)) = row(line) else {
            plain.push(line);
            continue;
        };
        if !plain.is_empty() {
            page.paragraph(&std::mem::take(&mut plain).join("\n"));
        }
        page.term(&term);
        page.lines(&text);
    }
    if !plain.is_empty() {
        page.paragraph(&plain.join("\n"));
    }
}

/// The help's last part: paragraphs, and the lines of examples.
fn parts(command: &Command) -> (Vec<String>, String) {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if command.get_name() == "ringfence" {
        return (Vec::new(), String::new()); // the exit statuses have a section of their own
    }
    let (mut paragraphs, mut examples) = (Vec::new(), String::new());
    for part in text.split("\n\n").filter(|part| !part.trim().is_empty()) {
        let example = part.strip_prefix("Examples:\n").or_else(|| part.strip_prefix("Example: "));
        match example {
            Some(lines) => {
                examples.extend(
                    lines.lines().map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line))),
                );
            }
            None => paragraphs.push(part.to_owned()),
        }
    }
    (paragraphs, examples)
}

/// With the options' values, which say more than `[OPTIONS]`.
fn synopsis(command: &Command, words: &[&str]) -> String {
    let mut line = format!("\\fB{}\\fR", roff::escaped(&words.join(" ")));
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        if ["help", "version"].contains(&arg.get_id().as_str()) {
            continue;
        }
        let text = if arg.is_positional() { value(arg) } else { format!("{}{}", dashed(arg), valued(arg)) };
        let many = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
        let dots = if many { "\\~.\\|.\\|." } else { "" };
        match arg.is_required_set() {
            true => line.push_str(&format!(" {text}{dots}")),
            false => line.push_str(&format!(" [{text}{dots}]")),
        }
    }
    if command.has_subcommands() {
        line.push_str(" \\fICOMMAND\\fR \\~.\\|.\\|.");
    }
    line
}

/// `\fB--state\fR`.
fn dashed(arg: &Arg) -> String {
    let long = arg.get_long().map(|long| format!("--{long}"));
    let name = long.or_else(|| arg.get_short().map(|short| format!("-{short}"))).unwrap_or_default();
    format!("\\fB{}\\fR", roff::escaped(&name))
}

/// ` \fIDIRECTORY\fR`, or nothing for a flag.
fn valued(arg: &Arg) -> String {
    if arg.get_action().takes_values() { format!(" {}", value(arg)) } else { String::new() }
}

fn value(arg: &Arg) -> String {
    let named = arg.get_value_names().and_then(<[_]>::first).map(ToString::to_string);
    let name = named.unwrap_or_else(|| arg.get_id().as_str().to_uppercase());
    format!("\\fI{}\\fR", roff::escaped(&name))
}

fn arguments(page: &mut Page, heading: &str, arguments: &[&Arg]) {
    if arguments.is_empty() {
        return;
    }
    page.section(heading);
    for arg in arguments {
        let short = arg.get_short().filter(|_| arg.get_long().is_some());
        let short = short.map(|short| format!("\\fB\\-{short}\\fR, ")).unwrap_or_default();
        let term =
            if arg.is_positional() { value(arg) } else { format!("{short}{}{}", dashed(arg), valued(arg)) };
        page.raw_term(&term);
        page.lines(&arg.get_help().map(ToString::to_string).unwrap_or_default());
        let possible = arg.get_possible_values();
        if possible.is_empty() || arg.is_hide_possible_values_set() || !arg.get_action().takes_values() {
            let defaults: Vec<String> =
                arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
            if arg.get_action().takes_values() && !defaults.is_empty() {
                page.lines(&format!("[default: {}]", defaults.join(" ")));
            }
            continue;
        }
        for one in &possible {
            let help = one.get_help().map(ToString::to_string).unwrap_or_default();
            page.bullet(&format!("{}: {help}", one.get_name()));
        }
    }
}

/// A row of FILES or ENVIRONMENT, and what a page must be about to have it.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    text: &'static str,
    of: &'static [&'static str],
}

const FILES: [Row; 7] = [
    Row {
        name: "/etc/ringfence/layout.toml",
        text: "The layout; see ringfence-layout(5).",
        of: &["layout", "daemon"],
    },
    Row {
        name: "/etc/ringfence/layout.d/*.toml",
        text: "More of it, read after it by name.",
        of: &["layout", "daemon"],
    },
    Row {
        name: "/etc/cgconfig.conf, /etc/cgconfig.d/*.conf",
        text: "libcgroup's groups: templates for the daemon, and what import reads.",
        of: &["import", "daemon"],
    },
    Row {
        name: "/etc/cgrules.conf, /etc/cgrules.d/*.conf",
        text: "libcgroup's rules, used after those of the layout.",
        of: &["import", "daemon", "classify"],
    },
    Row {
        name: apply::STATE,
        text: "The history of what was applied, a file for each generation.",
        of: &["state", "daemon"],
    },
    Row { name: monitor::log::DIRECTORY, text: "The recorder's log.", of: &["log", "daemon"] },
    Row { name: daemon::socket::SOCKET, text: "The daemon's control socket.", of: &["socket", "daemon"] },
];

const ENVIRONMENT: [Row; 5] = [
    Row { name: apply::STATE_VARIABLE, text: "Another directory of the history.", of: &["state"] },
    Row { name: monitor::log::VARIABLE, text: "Another directory of the recorder's log.", of: &["log"] },
    Row {
        name: daemon::socket::SOCKET_VARIABLE,
        text: "Another control socket of the daemon.",
        of: &["socket"],
    },
    Row { name: "NO_COLOR", text: "If it is not empty, nothing is printed in colour.", of: &["colour"] },
    Row {
        name: "COLUMNS",
        text: "How wide the help is printed, instead of the terminal's width.",
        of: &["help"],
    },
];

/// What a page is about, by its arguments.
fn topics(command: &Command, words: &[&str]) -> Vec<&'static str> {
    match words {
        ["ringfence"] => {
            return vec![
                "layout", "import", "classify", "state", "log", "socket", "colour", "help", "daemon",
            ];
        }
        ["ringfence", ..] => {}
        _ => return Vec::new(), // libcgroup's
    }
    let has = |id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    let name = command.get_name();
    let about = [
        ("layout", has("layout")),
        ("import", name == "import"),
        ("classify", name == "classify"),
        ("daemon", name == "daemon"),
        ("state", has("state")),
        (
            "log",
            has("directory") && ["watch", "top", "web", "record", "dump"].contains(&name) || name == "daemon",
        ),
        ("socket", has("socket")),
        ("colour", ["plan", "apply", "status", "top", "watch"].contains(&name)),
    ];
    about.into_iter().filter(|(_, is)| *is).map(|(topic, _)| topic).collect()
}

fn section(page: &mut Page, heading: &str, table: &[Row], topics: &[&str]) {
    let of_page = table.iter().filter(|row| row.of.iter().any(|topic| topics.contains(topic))).copied();
    let mut of_page = of_page.peekable();
    if of_page.peek().is_some() {
        page.section(heading);
        rows(page, of_page);
    }
}

fn rows(page: &mut Page, rows: impl Iterator<Item = Row>) {
    for row in rows {
        page.term(row.name);
        page.lines(row.text);
    }
}

fn see_also(words: &[&str], topics: &[&str]) -> String {
    let mut pages: Vec<String> = Vec::new();
    match words {
        ["ringfence"] => pages.push("ringfence-doctor(1), ringfence-plan(1), ringfence-daemon(1)".to_owned()),
        _ => pages.push("ringfence(1)".to_owned()),
    }
    if let [above @ .., _] = words
        && above.len() > 1
    {
        pages.push(format!("{}(1)", above.join("-")));
    }
    if topics.contains(&"layout") || topics.contains(&"daemon") {
        pages.push("ringfence-layout(5)".to_owned());
    }
    pages.push("cgroups(7)".to_owned());
    pages.join(", ")
}
