//! SVG as text: elements with their attributes. Whatever is written as an attribute's value or as text is escaped, so that
//! no name can become markup. Pure.

use std::fmt::{self, Display, Write};

/// A drawing that is being written.
#[derive(Debug, Default)]
pub struct Svg {
    out: String,
}

impl Svg {
    /// Nothing yet.
    pub fn new() -> Svg {
        Svg::default()
    }

    /// Begins an element, which one of its methods ends.
    pub fn element(&mut self, name: &'static str) -> Element<'_> {
        self.out.push('<');
        self.out.push_str(name);
        Element { svg: self, name }
    }

    /// Text inside the element that is open.
    pub fn text(&mut self, text: impl Display) {
        let _ = write!(Escaped(&mut self.out), "{text}"); // a String takes everything
    }

    /// A style sheet. It is the program's own and is not escaped.
    pub fn style(&mut self, css: &str) {
        self.element("style").end_head();
        self.out.push_str(css);
        self.out.push_str("</style>");
    }

    /// What was written.
    pub fn finish(self) -> String {
        self.out
    }
}

/// An element whose attributes are being written.
#[must_use = "an element that is not ended is no SVG"]
pub struct Element<'s> {
    svg: &'s mut Svg,
    name: &'static str,
}

impl Element<'_> {
    /// Adds an attribute.
    pub fn with(self, name: &str, value: impl Display) -> Self {
        let out = &mut self.svg.out;
        // a String takes everything
        let _ = write!(out, " {name}=\"");
        let _ = write!(Escaped(out), "{value}");
        out.push('"');
        self
    }

    /// Ends it with nothing inside.
    pub fn empty(self) {
        self.svg.out.push_str("/>");
    }

    /// Ends it with this text inside.
    pub fn text(self, text: impl Display) {
        self.around(|svg| svg.text(text));
    }

    /// Ends it with what a viewer shows when pointing at it, or with nothing inside.
    pub fn tip(self, tip: Option<&str>) {
        match tip {
            Some(tip) => self.around(|svg| svg.element("title").text(tip)),
            None => self.empty(),
        }
    }

    /// Ends it with other elements inside.
    pub fn around(self, inside: impl FnOnce(&mut Svg)) {
        let Element { svg, name } = self;
        svg.out.push('>');
        inside(svg);
        let _ = write!(svg.out, "</{name}>"); // a String takes everything
    }

    fn end_head(self) {
        self.svg.out.push('>');
    }
}

/// A length: hundredths of a pixel are enough, and a negative zero is a zero.
#[derive(Debug, Clone, Copy)]
pub struct Length(pub f64);

impl Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.2}", self.0);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        f.write_str(if text == "-0" { "0" } else { text })
    }
}

/// For XML's text and attributes; characters that XML can't have are left out.
struct Escaped<'o>(&'o mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\t' | '\n' => self.0.push(character),
                '\u{fffe}' | '\u{ffff}' => {}
                character if character.is_control() => {}
                character => self.0.push(character),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_in_each_other_and_names_can_not_become_markup() {
        let mut svg = Svg::new();
        svg.element("g").with("class", "a\"b").around(|svg| {
            svg.element("rect").with("x", Length(-0.001)).with("y", Length(1.5)).empty();
            svg.element("text").text("<b> & \u{1b}[1m'c'");
            svg.element("circle").tip(Some("1 < 2"));
        });
        assert_eq!(
            svg.finish(),
            "<g class=\"a&quot;b\"><rect x=\"0\" y=\"1.5\"/><text>&lt;b&gt; &amp; [1m&#39;c&#39;</text>\
             <circle><title>1 &lt; 2</title></circle></g>"
        );
    }
}
