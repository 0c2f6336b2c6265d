//! The words that nobody says of a program: not in anything that the program prints, and so in no literal of its source.

use std::{fs, path::Path};

use fake::suite;
use libtest_mimic::Trial;
use proc_macro2::{TokenStream, TokenTree};

use crate::{architecture::crate_directories, world::Need};

/// What the newcomers' review had to translate, and what else nobody says of a program.
const NOT_PLAIN: [&str; 29] = [
    "held",
    "kept",
    "asked",
    "made so",
    "nowhere",
    "told",
    "tell",
    "tells",
    "mend",
    "mends",
    "mended",
    "heed",
    "heeds",
    "heeded",
    "whoever",
    "whom",
    "anew",
    "so many",
    "be had",
    "there already",
    "is not there",
    "is there already",
    "otherwise than",
    "asked for",
    "is asked",
    "holds to",
    "not said",
    "picture",
    "pictures",
];

/// Those of them that a text has.
pub fn not_plain(text: &str) -> impl Iterator<Item = &'static str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let text = format!(" {} ", words.collect::<Vec<_>>().join(" ").to_lowercase());
    NOT_PLAIN.into_iter().filter(move |word| text.contains(&format!(" {word} ")))
}

pub fn trials() -> Vec<Trial> {
    let paths = crate_directories(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let lacks = paths.is_empty().then(|| Need::Sources.to_string());
    vec![suite::fallible("words: what the program prints is plain English", lacks, move || {
        let (mut found, mut literals) = (Vec::new(), 0);
        for path in &paths {
            each_source(&path.join("src"), &mut |file| {
                let text = fs::read_to_string(file).unwrap();
                let tokens: TokenStream = text.parse().unwrap();
                each_literal(tokens, &mut |literal| {
                    literals += 1;
                    found.extend(
                        not_plain(literal).map(|word| format!("{}: {word}: {literal}", file.display())),
                    );
                });
            });
        }
        assert!(literals > 5000, "{literals} literals");
        if found.is_empty() { Ok(()) } else { Err(found.join("\n").into()) }
    })]
}

fn each_source(directory: &Path, seen: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_source(&path, seen);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            seen(&path);
        }
    }
}

/// Texts between quotes, but for those of attributes, comments and tests.
fn each_literal(tokens: TokenStream, seen: &mut impl FnMut(&str)) {
    let mut is_attribute = false;
    let mut is_for_tests = false;
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if matches!(punct.as_char(), '#' | '!') => {
                is_attribute = punct.as_char() == '#' || is_attribute;
                continue;
            }
            TokenTree::Group(group) if is_attribute => {
                let text = group.to_string();
                is_for_tests |= text.replace(' ', "").contains("cfg(test)");
            }
            TokenTree::Group(group) => {
                let is_body = group.delimiter() == proc_macro2::Delimiter::Brace;
                if !is_for_tests {
                    each_literal(group.stream(), seen);
                }
                is_for_tests &= !is_body;
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.contains('"') && !is_for_tests {
                    seen(&text);
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => is_for_tests = false,
            TokenTree::Punct(_) | TokenTree::Ident(_) => {}
        }
        is_attribute = false;
    }
}
