//! A manual page in man(7)'s macros, a part at a time. Every text is escaped but where a caller marks it up himself.

/// A page that is being written.
pub struct Page {
    text: String,
}

impl Page {
    pub fn new(name: &str, section: u8) -> Page {
        let version = env!("CARGO_PKG_VERSION");
        let title = escaped(&name.to_uppercase());
        Page {
            text: format!(".TH {title} {section} \"\" \"ringfence {version}\" \"Ringfence\"\n.nh\n.ad l\n"),
        }
    }

    pub fn section(&mut self, heading: &str) {
        self.text.push_str(&format!(".SH \"{}\"\n", escaped(heading)));
    }

    pub fn subsection(&mut self, heading: &str) {
        self.text.push_str(&format!(".SS \"{}\"\n", inline(heading)));
    }

    /// With backticks and stars as Markdown has them.
    pub fn paragraph(&mut self, text: &str) {
        self.text.push_str(".PP\n");
        self.lines(text);
    }

    pub fn lines(&mut self, text: &str) {
        for line in text.lines() {
            self.text.push_str(&protected(&inline(line.trim())));
            self.text.push('\n');
        }
    }

    pub fn line_break(&mut self) {
        self.text.push_str(".br\n");
    }

    pub fn bullet(&mut self, text: &str) {
        self.text.push_str(".IP \\(bu 2\n");
        self.lines(text);
    }

    pub fn term(&mut self, term: &str) {
        self.raw_term(&format!("\\fB{}\\fR", escaped(term)));
    }

    /// Marked up already.
    pub fn raw_term(&mut self, term: &str) {
        self.text.push_str(&format!(".TP\n{}\n", protected(term)));
    }

    /// Marked up already.
    pub fn raw(&mut self, text: &str) {
        self.text.push_str(&format!("{}\n", protected(text)));
    }

    /// Lines as they are.
    pub fn example(&mut self, lines: &str) {
        self.text.push_str(".PP\n.RS 4\n.nf\n");
        for line in lines.lines() {
            self.text.push_str(&protected(&escaped(line)));
            self.text.push('\n');
        }
        self.text.push_str(".fi\n.RE\n");
    }

    pub fn text(self) -> String {
        self.text
    }
}

/// Without a meaning for roff.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '"' => out.push_str("\\(dq"),
            '\'' => out.push_str("\\(aq"),
            c if c.is_ascii() => out.push(c),
            c => out.push_str(&format!("\\[u{:04X}]", u32::from(c))),
        }
    }
    out
}

/// A line that begins with a dot would be a macro.
fn protected(line: &str) -> String {
    if line.starts_with('.') { format!("\\&{line}") } else { line.to_owned() }
}

/// Markdown within a line: code and stars in bold, a link by its text.
pub fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[', '*']) {
        let (before, mark) = rest.split_at(at);
        out.push_str(&escaped(before));
        let taken = code(mark).or_else(|| link(mark)).or_else(|| strong(mark));
        let (marked, left) = taken.unwrap_or_else(|| {
            let (plain, left) = mark.split_at(1);
            (escaped(plain), left)
        });
        out.push_str(&marked);
        rest = left;
    }
    out + &escaped(rest)
}

fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escaped(text))
}

fn code(text: &str) -> Option<(String, &str)> {
    let (inner, rest) = text.strip_prefix('`')?.split_once('`')?;
    Some((bold(inner), rest))
}

fn strong(text: &str) -> Option<(String, &str)> {
    let (inner, rest) = text.strip_prefix("**")?.split_once("**")?;
    Some((bold(inner), rest))
}

fn link(text: &str) -> Option<(String, &str)> {
    let (inner, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (_, rest) = rest.split_once(')')?;
    Some((bold(inner), rest))
}
