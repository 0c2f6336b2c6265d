//! No two modules of a crate need each other. A module and those in it count as one subject, so what a module uses of
//! those above it is not looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use libtest_mimic::Trial;
use syn::visit::Visit;

use crate::architecture::crate_directories;

/// A module's name from the crate's root, and what it needs: `["view", "rows"]`.
type Name = Vec<String>;

pub fn trials() -> Vec<Trial> {
    let paths = crate_directories(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    // in a VM there is no source
    if paths.is_empty() {
        return Vec::new();
    }
    vec![Trial::test("no two modules need each other", move || {
        let mut wrong = Vec::new();
        for path in &paths {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if let Some(cycle) = Modules::read(path).cycle() {
                wrong.push(format!("{name}: {}", cycle.join(" → ")));
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
    })]
}

/// The modules of a crate.
#[derive(Default)]
struct Modules {
    /// What each uses, as paths from the crate's root.
    uses: BTreeMap<Name, BTreeSet<Name>>,
    /// Names that a module passes on, with where they come from.
    passed_on: BTreeMap<Name, Name>,
}

impl Modules {
    fn read(of_crate: &Path) -> Modules {
        let mut modules = Modules::default();
        let source = of_crate.join("src");
        let root = ["lib.rs", "main.rs"].map(|file| source.join(file)).into_iter().find(|file| file.exists());
        modules.add(&root.unwrap(), &source, &Name::new());
        modules
    }

    fn add(&mut self, file: &Path, directory: &Path, name: &Name) {
        let text = fs::read_to_string(file).unwrap();
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut paths = Paths { module: name.clone(), found: Vec::new(), passed_on: Vec::new() };
        paths.visit_file(&parsed);
        self.uses.insert(name.clone(), paths.found.into_iter().collect());
        self.passed_on.extend(paths.passed_on);
        for item in &parsed.items {
            let syn::Item::Mod(item) = item else { continue };
            if item.content.is_some() || is_for_tests(&item.attrs) {
                continue;
            }
            let below = item.ident.to_string();
            let name: Name = name.iter().cloned().chain([below.clone()]).collect();
            let files = [directory.join(format!("{below}.rs")), directory.join(&below).join("mod.rs")];
            let file = files.iter().find(|file| file.exists()).unwrap();
            self.add(file, &directory.join(&below), &name);
        }
    }

    /// The module that a path leads into.
    fn module_of(&self, path: &[String]) -> Option<&Name> {
        let mut path = path.to_vec();
        // a name may be passed on by several
        for _ in 0..8 {
            // a function may have the name of its module
            let is_module = |end: usize| end < path.len() && self.uses.contains_key(&path[..end]);
            let passed =
                (1..=path.len()).find(|end| self.passed_on.contains_key(&path[..*end]) && !is_module(*end));
            let Some(end) = passed else { break };
            let rest = path.split_off(end);
            path = self.passed_on[&path].iter().cloned().chain(rest).collect();
        }
        let (name, _) = (0..=path.len()).rev().find_map(|end| self.uses.get_key_value(&path[..end]))?;
        Some(name)
    }

    /// One of the cycles.
    fn cycle(&self) -> Option<Vec<String>> {
        let needs: BTreeMap<&Name, BTreeSet<&Name>> = self
            .uses
            .iter()
            .map(|(name, uses)| {
                let used = uses.iter().filter_map(|path| self.module_of(path));
                (name, used.filter(|used| !name.starts_with(used)).collect())
            })
            .collect();
        let mut done = BTreeSet::new();
        needs.keys().find_map(|name| walk(name, &needs, &mut Vec::new(), &mut done))
    }
}

fn walk<'m>(
    name: &'m Name,
    needs: &BTreeMap<&'m Name, BTreeSet<&'m Name>>,
    way: &mut Vec<&'m Name>,
    done: &mut BTreeSet<&'m Name>,
) -> Option<Vec<String>> {
    if let Some(begin) = way.iter().position(|before| *before == name) {
        return Some(way[begin..].iter().chain([&name]).map(|name| name.join("::")).collect());
    }
    if done.contains(name) {
        return None;
    }
    way.push(name);
    let found = needs[name].iter().find_map(|used| walk(used, needs, way, done));
    way.pop();
    done.insert(name);
    found
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

/// Collects the paths into the own crate.
struct Paths {
    module: Name,
    found: Vec<Name>,
    passed_on: Vec<(Name, Name)>,
}

impl Paths {
    fn resolve(&self, path: &[String]) -> Option<Name> {
        let ups = path.iter().take_while(|part| *part == "super").count();
        match path.first().map(String::as_str)? {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some(self.module.iter().chain(&path[1..]).cloned().collect()),
            "super" => {
                let above = &self.module[..self.module.len().checked_sub(ups)?];
                Some(above.iter().chain(&path[ups..]).cloned().collect())
            }
            // one of its own modules, or another crate, which leads to no module
            _ => Some(self.module.iter().chain(path).cloned().collect()),
        }
    }

    fn of_use(&mut self, tree: &syn::UseTree, before: &mut Name, is_passed_on: bool) {
        let (last, name) = match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.of_use(&path.tree, before, is_passed_on);
                before.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.of_use(tree, before, is_passed_on));
                return;
            }
            syn::UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
            syn::UseTree::Rename(rename) => (rename.ident.to_string(), rename.rename.to_string()),
            syn::UseTree::Glob(_) => ("self".to_owned(), "self".to_owned()),
        };
        let path: Name = before.iter().cloned().chain((last != "self").then_some(last)).collect();
        let Some(path) = self.resolve(&path) else { return };
        if is_passed_on {
            let own = self.module.iter().cloned().chain([name]).collect();
            self.passed_on.push((own, path));
        } else {
            self.found.push(path);
        }
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if !is_for_tests(attributes) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let is_passed_on = !matches!(item.vis, syn::Visibility::Inherited);
        self.of_use(&item.tree, &mut Name::new(), is_passed_on);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let parts: Name = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if parts.len() > 1
            && let Some(path) = self.resolve(&parts)
        {
            self.found.push(path);
        }
        syn::visit::visit_path(self, path);
    }
}
