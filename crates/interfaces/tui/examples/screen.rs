//! A screen as an image: what `tmux capture-pane -e -p` printed becomes an SVG, as docs/images/top.svg was made:
//!
//!     tmux new-session -d -s top -x 100 -y 24 'ringfence top'
//!     tmux capture-pane -e -p -t top | cargo run -p ringfence-tui --example screen > docs/images/top.svg
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for the developer who runs it")]

use std::io::{Read, stdin};

fn main() {
    let mut screen = String::new();
    stdin().read_to_string(&mut screen).unwrap();
    println!("{}", anstyle_svg::Term::new().render_svg(&screen));
}
