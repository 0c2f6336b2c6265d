//! What fits in the head: no function of more than 80 lines, no file of more than 600. Functions of tests may be longer,
//! a table may be as long as it has rows.

use std::path::Path;

use fake::suite;
use libtest_mimic::Trial;
use syn::{spanned::Spanned, visit::Visit};

use crate::{
    architecture::{crate_directories, rust_files},
    modules::is_for_tests,
};

const OF_FUNCTION: usize = 80;
const OF_FILE: usize = 600;

/// Files that may be longer, and why.
const LONG: &[(&str, &str)] = &[
    ("cli/tests/cli/refusals.rs", "a table: what is refused, with the message"),
    ("plan/tests/plan/lints.rs", "a table: each kind of lint, where it is and beside it"),
];

pub fn trials() -> Vec<Trial> {
    let paths = crate_directories(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    // in a VM there is no source
    if paths.is_empty() {
        return Vec::new();
    }
    let files: Vec<(String, String)> = paths.iter().flat_map(|path| rust_files(path, "")).collect();
    vec![
        suite::fallible("sizes: functions of tests are not counted, those inside another are", None, || {
            Ok(counts()?)
        }),
        suite::fallible("sizes: no other function has more than 80 lines", None, {
            let files = files.clone();
            move || {
                let sources = files.iter().filter(|(path, _)| path.contains("/src/") && !is_test(path));
                let long = sources.flat_map(|(path, text)| {
                    let long = functions(text).into_iter().filter(|(_, _, lines)| *lines > OF_FUNCTION);
                    long.map(move |(name, line, lines)| format!("{path}:{line}: {name} has {lines} lines"))
                });
                nothing(long.collect())
            }
        }),
        suite::fallible("sizes: no file has more than 600 lines but tables", None, move || {
            let long = |path: &str| files.iter().any(|(file, text)| file == path && is_long(text));
            let others = files
                .iter()
                .filter(|(path, text)| is_long(text) && !LONG.iter().any(|(known, _)| known == path));
            let others = others.map(|(path, text)| format!("{path} has {} lines", text.lines().count()));
            let short = LONG.iter().filter(|(path, _)| !long(path));
            let short = short.map(|(path, _)| format!("{path} is in the list of long files and is not long"));
            nothing(others.chain(short).collect())
        }),
    ]
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs"))
}

fn is_long(text: &str) -> bool {
    text.lines().count() > OF_FILE
}

fn nothing(wrong: Vec<String>) -> Result<(), libtest_mimic::Failed> {
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Name, line and number of lines of each function, from `fn` to the last brace.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let mut functions = Functions::default();
    functions.visit_file(&syn::parse_file(text).unwrap());
    functions.found
}

#[derive(Default)]
struct Functions {
    found: Vec<(String, usize, usize)>,
}

impl Functions {
    fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let (first, last) = (signature.fn_token.span.start().line, body.span().end().line);
        self.found.push((signature.ident.to_string(), first, last - first + 1));
    }
}

impl<'a> Visit<'a> for Functions {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            self.add(&function.sig, &function.block);
            syn::visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            self.add(&function.sig, &function.block);
            syn::visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.sig, body);
        }
        syn::visit::visit_trait_item_fn(self, function);
    }
}

fn counts() -> Result<(), String> {
    let text = "\
/// Text.
#[must_use]
pub fn one(
    a: u8,
) -> u8 {
    fn inside() {}
    // reason
    a
}
trait T { fn none(); fn some() {
} }
impl T for X {
    #[cfg(test)]
    fn left_out() {}
    fn some() {}
}
#[cfg(test)]
mod tests {
    fn left_out() {}
}
";
    let found: Vec<String> =
        functions(text).iter().map(|(name, line, lines)| format!("{name} {line} {lines}")).collect();
    let wanted = ["one 3 7", "inside 6 1", "some 10 2", "some 15 1"];
    if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
}
