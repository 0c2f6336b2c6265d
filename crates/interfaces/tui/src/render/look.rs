//! What the terminal can show: colours, and characters beyond ASCII. Nothing is shown by a colour alone.

use std::env;

use ratatui_core::style::{Color, Modifier, Style};

/// How figures are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Bars have colours.
    pub colour: bool,
    /// Blocks and arrows instead of ASCII.
    pub unicode: bool,
}

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    /// Names and titles.
    Strong,
    /// What is there only to show where something belongs.
    Faint,
    /// Headings of columns and the keys' line.
    Bar,
    /// The selected line.
    Selected,
    /// A figure far below what it is measured against.
    Low,
    /// Near to it.
    Near,
    /// At it.
    Full,
    /// One of several groups, distinguished by its letter too.
    Owner(usize),
}

const OWNERS: [Color; 6] =
    [Color::Cyan, Color::Yellow, Color::Magenta, Color::Green, Color::LightBlue, Color::LightRed];

impl Look {
    /// By `NO_COLOR`, the locale, and `TERM`.
    pub fn of_environment() -> Look {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find(|name| is_set(name));
        let locale = locale.and_then(|name| env::var(name).ok()).unwrap_or_default().to_uppercase();
        // the console of Linux has few of the block characters in its font
        let is_console = env::var("TERM").is_ok_and(|term| term == "linux");
        let is_utf8 = locale.contains("UTF-8") || locale.contains("UTF8");
        Look { colour: !is_set("NO_COLOR"), unicode: is_utf8 && !is_console }
    }

    pub(super) fn style(self, tone: Tone) -> Style {
        let colour = |colour| if self.colour { Style::new().fg(colour) } else { Style::new() };
        match tone {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
            Tone::Faint => Style::new().add_modifier(Modifier::DIM),
            Tone::Bar => Style::new().add_modifier(Modifier::REVERSED),
            Tone::Selected => Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED),
            Tone::Low => colour(Color::Green),
            Tone::Near => colour(Color::Yellow).add_modifier(Modifier::BOLD),
            Tone::Owner(place) => colour(OWNERS[place % OWNERS.len()]),
            Tone::Full => colour(Color::Red).add_modifier(Modifier::BOLD),
        }
    }
}
