//! The test tested: small crates, and the cycle that each has.

use fake::suite;
use libtest_mimic::Trial;

use super::{cycles, names::Crate};

struct Row {
    name: &'static str,
    /// File and text.
    sources: &'static [(&'static str, &'static str)],
    /// The modules of the cycles, each as the message begins.
    cycles: &'static [&'static str],
}

const ROWS: &[Row] = &[
    Row {
        name: "one that uses another is none",
        sources: &[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::X;"), ("b.rs", "pub struct X;")],
        cycles: &[],
    },
    Row {
        name: "two that import from each other",
        sources: &[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::X;"), ("b.rs", "use super::a::Y;")],
        cycles: &["a → b → a: a uses b::X, b uses a::Y"],
    },
    Row {
        name: "a path in a macro",
        sources: &[
            ("lib.rs", "mod published; mod words;"),
            ("published.rs", r#"fn shown() -> String { format!("{}, {:?}", 1, [crate::words::pair(2)]) }"#),
            ("words.rs", "use crate::published::X;"),
        ],
        cycles: &["published → words → published: "],
    },
    Row {
        name: "a path in a macro that ends in a call",
        sources: &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "json! { x: Vec::<super::b::X>::new() }"),
            ("b.rs", "fn f() { crate::a::f::<u8>() }"),
        ],
        cycles: &["a → b → a: a uses b::X, b uses a::f"],
    },
    Row {
        name: "a module that is imported by name",
        sources: &[
            ("main.rs", "mod commands;"),
            ("commands/mod.rs", "pub mod layouts; pub mod machine;"),
            ("commands/layouts.rs", "use crate::commands; fn f() { commands::machine::listings() }"),
            ("commands/machine.rs", "use super::layouts; fn f() { layouts::f() }"),
        ],
        cycles: &["commands::layouts → commands::machine → commands::layouts: "],
    },
    Row {
        name: "a module that is imported by another name",
        sources: &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::{self as other}; fn f() { other::g() }"),
            ("b.rs", "use crate::{a as one}; fn g() { one::f() }"),
        ],
        cycles: &["a → b → a: "],
    },
    Row {
        name: "a name that is imported and not used is no use of what its module has",
        sources: &[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b;"), ("b.rs", "use crate::a::X;")],
        cycles: &[],
    },
    Row {
        name: "children count as their parent",
        sources: &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod x; mod y;"),
            ("a/x.rs", "use crate::b::X;"),
            ("a/y.rs", "pub struct Y;"),
            ("b.rs", "mod z;"),
            ("b/z.rs", "use crate::a::y::Y;"),
        ],
        cycles: &["a → b → a: a::x uses b::X, b::z uses a::y::Y"],
    },
    Row {
        name: "modules in one file count too",
        sources: &[("lib.rs", "mod a { use super::b::X; } mod b { use crate::a::Y; }")],
        cycles: &["a → b → a: "],
    },
    Row {
        name: "what a module uses of those above it is not counted",
        sources: &[
            ("lib.rs", "mod a; use a::X; pub struct Y;"),
            ("a.rs", "mod b; use crate::Y; use b::Z;"),
            ("a/b.rs", "use super::X; use crate::Y;"),
        ],
        cycles: &[],
    },
    Row {
        name: "names that are passed on lead to where they come from",
        sources: &[
            ("lib.rs", "mod a; mod b; pub use b::X; pub use b::c::*;"),
            ("a.rs", "use crate::X;"),
            ("b.rs", "pub mod c; pub use c::X;"),
            ("b/c.rs", "use crate::a::Y;"),
        ],
        cycles: &["a → b → a: a uses b::c::X, b::c uses a::Y"],
    },
    Row {
        name: "a name that the parent imported for itself",
        sources: &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod c; use crate::b::X;"),
            ("a/c.rs", "use super::*; fn f() { X::new() }"),
            ("b.rs", "pub struct X; fn f() { crate::a::c::f() }"),
        ],
        cycles: &["a → b → a: "],
    },
    Row {
        name: "a function with the name of its module",
        sources: &[
            ("lib.rs", "mod a; mod b; pub use b::b;"),
            ("a.rs", "use crate::b;  fn f() { b() }"),
            ("b.rs", "pub fn b() { crate::a::f() }"),
        ],
        cycles: &["a → b → a: "],
    },
    Row {
        name: "a path in an attribute",
        sources: &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", r#"use crate::b; struct X { #[serde(with = "b")] y: u8 }"#),
            ("b.rs", r#"struct Y { #[serde(default = "crate::a::y")] y: u8 }"#),
        ],
        cycles: &["a → b → a: a uses b, b uses a::y"],
    },
    Row {
        name: "items for tests are left out",
        sources: &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::X; #[cfg(test)] mod tests { use crate::c::X; }"),
            ("b.rs", "#[cfg(test)] use crate::a::Y; #[cfg(test)] fn f() { crate::a::f() }"),
        ],
        cycles: &[],
    },
    Row {
        name: "other crates' names lead nowhere",
        sources: &[
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "use b2::a::X; use serde::serde; use std::fmt::*; fn f() { crate::b::g(); serde::x(); }",
            ),
            ("b.rs", "use std::a::f; fn g() { f::h(); std::a::b() }"),
        ],
        cycles: &[],
    },
    Row {
        name: "a way of three",
        sources: &[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::X;"),
            ("b.rs", "use crate::c::Z;"),
            ("c.rs", "type T = crate::a::Y;"),
        ],
        cycles: &["a → b → c → a: a uses b::X, b uses c::Z, c uses a::Y"],
    },
];

pub fn trials() -> Vec<Trial> {
    let rows = ROWS.iter().map(|row| {
        suite::fallible(format!("cycles of modules: {}", row.name), None, || {
            let sources = row.sources.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
            let found = cycles(&Crate::read(&sources.collect()));
            let fits = found.len() == row.cycles.len()
                && found.iter().zip(row.cycles).all(|(found, begin)| found.starts_with(begin));
            if fits { Ok(()) } else { Err(format!("{found:?}").into()) }
        })
    });
    rows.collect()
}
