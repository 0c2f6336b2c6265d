//! The first page of the help: commands under headings, as wide as the terminal. Built only where help, completions or
//! manual pages are wanted; the names and their one-line descriptions come from the definitions themselves.

use std::fmt::Write;

use clap::Command;

/// Every visible command is under one of these; what is forgotten here shows under "Other".
const HEADINGS: [(&str, &[&str]); 5] = [
    (
        "Groups",
        &[
            "create", "delete", "list", "get", "set", "stat", "run", "move", "where", "classify", "freeze",
            "thaw", "kill",
        ],
    ),
    (
        "Layouts",
        &[
            "check", "plan", "schedule", "simulate", "apply", "confirm", "undo", "status", "history",
            "elastic", "pause", "resume", "shield", "unshield", "import", "export", "schema",
        ],
    ),
    ("Watching", &["top", "web", "watch", "why", "record", "dump", "metrics", "fields", "perf", "isolate"]),
    ("Lab", &["lab"]),
    (
        "Machine and set-up",
        &[
            "doctor",
            "topology",
            "settings",
            "mount",
            "umount",
            "daemon",
            "reload",
            "completions",
            "links",
            "man",
            "help",
        ],
    ),
];

/// The column in which descriptions begin.
const INDENT: usize = 15;
/// Narrower than this, wrapping makes text worse.
const NARROWEST: usize = 40;
/// Where there is no terminal, as clap has it.
const WITHOUT_TERMINAL: usize = 100;

/// The definition with its commands under headings, everything in the terminal's width.
pub fn grouped(command: Command) -> Command {
    let width = width();
    let list = list(&command, width);
    reflowed(command)
        .term_width(width)
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{heading}Options:{reset}\n{{options}}{{after-help}}",
            heading = HEADING,
            reset = RESET,
        ))
}

/// Paragraphs below the options as one line each, so that clap breaks them only where the terminal ends. Lines
/// of examples are indented, and stay.
fn reflowed(command: Command) -> Command {
    let text = command.get_after_help().map(ToString::to_string);
    let command = match text {
        Some(text) => {
            command.after_help(text.split("\n\n").map(paragraph).collect::<Vec<String>>().join("\n\n"))
        }
        None => command,
    };
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, reflowed))
}

fn paragraph(text: &str) -> String {
    let is_list = text.lines().skip(1).any(|line| line.starts_with(' '));
    if is_list { text.to_owned() } else { text.split('\n').collect::<Vec<&str>>().join(" ") }
}

/// As clap's own headings; it takes colours away where there is no terminal.
const HEADING: &str = "\x1b[1m\x1b[4m";
const COMMAND: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

/// The terminal's width, or COLUMNS.
pub fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal =
        || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    columns.or_else(terminal).filter(|width| *width > 0).unwrap_or(WITHOUT_TERMINAL).max(NARROWEST)
}

fn list(command: &Command, width: usize) -> String {
    let mut text = String::new();
    for (heading, names) in HEADINGS {
        section(&mut text, heading, names.iter().filter_map(|name| described(command, name)), width);
    }
    let forgotten = command.get_subcommands().filter(|sub| {
        !sub.is_hide_set() && !HEADINGS.iter().any(|(_, names)| names.contains(&sub.get_name()))
    });
    let mut forgotten = forgotten.filter_map(|sub| described(command, sub.get_name())).peekable();
    if forgotten.peek().is_some() {
        section(&mut text, "Other", forgotten, width);
    }
    text
}

/// A command's name, and its description with its other names.
fn described(command: &Command, name: &str) -> Option<(String, String)> {
    if name == "help" {
        return Some((name.to_owned(), "Print this page, or the help of a command".to_owned()));
    }
    let sub = command.find_subcommand(name)?;
    let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
    let aliases: Vec<&str> = sub.get_visible_aliases().collect();
    let aliases = if aliases.is_empty() { String::new() } else { format!(" [also: {}]", aliases.join(", ")) };
    Some((name.to_owned(), format!("{about}{aliases}")))
}

fn section(text: &mut String, heading: &str, rows: impl Iterator<Item = (String, String)>, width: usize) {
    let _ = writeln!(text, "{HEADING}{heading}:{RESET}"); // a String takes everything
    for (name, about) in rows {
        let gap = " ".repeat(INDENT.saturating_sub(name.len() + 2).max(1));
        let _ = writeln!(text, "  {COMMAND}{name}{RESET}{gap}{}", wrapped(&about, INDENT, width));
    }
    text.push('\n');
}

/// Lines no wider than `width`, of which the first begins in column `indent` and the others are indented to it.
pub fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let mut lines = String::new();
    let mut column = indent;
    for word in text.split_whitespace() {
        let long = word.chars().count();
        if column > indent && column + 1 + long > width {
            let _ = write!(lines, "\n{:indent$}", "");
            column = indent;
        }
        if column > indent {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += long;
    }
    lines
}
