//! The modules of a crate and the paths that each uses, read from its sources: in code, in macros and in attributes,
//! also through names that `use` brings in.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::visit::Visit;

/// A module's name, or an item's, from the crate's root: `["view", "rows"]`.
pub type Name = Vec<String>;

/// The modules of a crate.
#[derive(Default)]
pub struct Crate {
    modules: BTreeMap<Name, Module>,
    /// Absolute paths into the crate.
    uses: BTreeMap<Name, BTreeSet<Name>>,
}

#[derive(Default)]
struct Module {
    /// As they are written.
    paths: BTreeSet<Name>,
    /// What `use` brings in, by its name here.
    imports: BTreeMap<String, Name>,
    /// The modules all of whose names it brings in.
    globs: Vec<Name>,
}

impl Crate {
    /// Sources by their paths below `src`, from `lib.rs` or `main.rs` on; items for tests are left out.
    pub fn read(sources: &BTreeMap<String, String>) -> Crate {
        let root = ["lib.rs", "main.rs"].into_iter().find(|file| sources.contains_key(*file));
        let mut read = Crate::default();
        read.file(sources, root.unwrap(), &Name::new());
        let uses = read.modules.iter().map(|(name, module)| {
            let written = module.paths.iter().chain(&module.globs);
            let written = written.filter_map(|path| read.absolute(name, path, 0));
            let imported = module.imports.values().filter_map(|path| read.absolute(name, path, 0));
            // the name of a module is no use of it yet: what is written behind it is
            let imported = imported.filter(|path| !read.modules.contains_key(path));
            (name.clone(), written.chain(imported).collect())
        });
        let uses = uses.collect();
        read.uses = uses;
        read
    }

    /// Each module, and the absolute path of each item in this crate that it uses.
    pub fn uses(&self) -> impl Iterator<Item = (&Name, &Name)> {
        self.uses.iter().flat_map(|(module, paths)| paths.iter().map(move |path| (module, path)))
    }

    /// The module that has an item.
    pub fn module_of<'p>(&self, absolute: &'p [String]) -> &'p [String] {
        let ends = (0..=absolute.len()).rev();
        ends.map(|end| &absolute[..end]).find(|name| self.modules.contains_key(*name)).unwrap_or_default()
    }

    fn file(&mut self, sources: &BTreeMap<String, String>, file: &str, name: &Name) {
        let parsed = syn::parse_file(&sources[file]).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.items(sources, &parsed.items, name);
    }

    fn items(&mut self, sources: &BTreeMap<String, String>, items: &[syn::Item], name: &Name) {
        let mut reader = Reader::default();
        items.iter().for_each(|item| reader.visit_item(item));
        self.modules.insert(name.clone(), reader.module);
        for item in reader.below {
            let name: Name = name.iter().cloned().chain([item.ident.to_string()]).collect();
            match &item.content {
                Some((_, items)) => self.items(sources, items, &name),
                None => {
                    let path = name.join("/");
                    let files = [format!("{path}.rs"), format!("{path}/mod.rs")];
                    let file = files.iter().find(|file| sources.contains_key(*file));
                    self.file(sources, file.unwrap_or_else(|| panic!("no file of {path}")), &name);
                }
            }
        }
    }

    /// Where a path that a module writes leads; `None` out of the crate, or to an item of the module itself.
    fn absolute(&self, module: &[String], path: &[String], depth: usize) -> Option<Name> {
        let ups = path.iter().take_while(|part| *part == "super").count();
        match path.first()?.as_str() {
            "crate" => self.follow(&[], &path[1..], depth),
            "self" => self.follow(module, &path[1..], depth),
            "super" => self.follow(&module[..module.len().checked_sub(ups)?], &path[ups..], depth),
            _ => self.follow(module, path, depth),
        }
    }

    /// The same from a module on, through what that module brings in from elsewhere.
    fn follow(&self, from: &[String], path: &[String], depth: usize) -> Option<Name> {
        // names that lead to each other
        if depth > 16 {
            return None;
        }
        let Some(first) = path.first() else { return Some(from.to_vec()) };
        let below: Name = from.iter().cloned().chain([first.clone()]).collect();
        let module = &self.modules[from];
        // a function may have the name of a module; as the last part it is the function that is meant
        let is_module = self.modules.contains_key(&below);
        let imported = module.imports.get(first).filter(|_| !is_module || path.len() == 1);
        if let Some(target) = imported {
            // `use words::words` of a crate `words`
            if target.first() == Some(first) && !is_module {
                return None;
            }
            let target: Name = target.iter().chain(&path[1..]).cloned().collect();
            return self.absolute(from, &target, depth + 1);
        }
        if is_module {
            return self.follow(&below, &path[1..], depth);
        }
        let of_glob = module.globs.iter().find_map(|glob| {
            let found = self.absolute(from, glob, depth + 1).filter(|at| self.modules.contains_key(at))?;
            let target = self.follow(&found, path, depth + 1)?;
            (self.module_of(&target) != found).then_some(target)
        });
        of_glob.or_else(|| Some(from.iter().chain(path).cloned().collect()))
    }
}

/// Collects what one module writes, and the modules in it.
#[derive(Default)]
struct Reader<'a> {
    module: Module,
    below: Vec<&'a syn::ItemMod>,
}

impl Reader<'_> {
    fn of_use(&mut self, tree: &syn::UseTree, before: &mut Name) {
        let (last, name) = match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.of_use(&path.tree, before);
                before.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.of_use(tree, before));
                return;
            }
            syn::UseTree::Glob(_) => {
                self.module.globs.push(before.clone());
                return;
            }
            syn::UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
            syn::UseTree::Rename(rename) => (rename.ident.to_string(), rename.rename.to_string()),
        };
        let (path, name) = match last.as_str() {
            "self" => {
                let name = if name == "self" { before.last().cloned().unwrap_or_default() } else { name };
                (before.clone(), name)
            }
            _ => (before.iter().cloned().chain([last]).collect(), name),
        };
        self.module.imports.insert(name, path);
    }

    /// Paths among tokens: names with `::` between them, and in attributes also inside quotes.
    fn tokens(&mut self, tokens: TokenStream, in_attribute: bool) {
        let mut path = Name::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.path(mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    let is_first = colons == 0 && punct.spacing() == Spacing::Joint;
                    colons = if is_first || colons == 1 { colons + 1 } else { 3 };
                }
                TokenTree::Group(group) => {
                    self.path(mem::take(&mut path));
                    self.tokens(group.stream(), in_attribute);
                }
                TokenTree::Literal(literal) => {
                    self.path(mem::take(&mut path));
                    // `#[serde(with = "words::short")]`
                    let text = literal.to_string();
                    let named = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                    let named = named.filter(|_| in_attribute).map(syn::parse_str::<syn::Path>);
                    if let Some(Ok(named)) = named {
                        self.module.paths.insert(parts(&named));
                    }
                }
                TokenTree::Punct(_) => self.path(mem::take(&mut path)),
            }
        }
        self.path(path);
    }

    fn path(&mut self, path: Name) {
        if path.len() > 1 {
            self.module.paths.insert(path);
        }
    }
}

fn parts(path: &syn::Path) -> Name {
    path.segments.iter().map(|part| part.ident.to_string()).collect()
}

/// Does `#[cfg(test)]` stand before it?
pub fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

impl<'a> Visit<'a> for Reader<'a> {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let attributes = match item {
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Enum(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Macro(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Static(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Trait(item) => &item.attrs,
            syn::Item::Type(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if is_for_tests(attributes) {
            return;
        }
        match item {
            syn::Item::Mod(item) => self.below.push(item),
            _ => syn::visit::visit_item(self, item),
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            syn::visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.of_use(&item.tree, &mut Name::new());
    }

    /// `pub(in path)` names one above.
    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.path(parts(path));
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.path(parts(&call.path));
        self.tokens(call.tokens.clone(), false);
    }

    fn visit_attribute(&mut self, attribute: &'a syn::Attribute) {
        match &attribute.meta {
            syn::Meta::List(list) if !list.path.is_ident("doc") => self.tokens(list.tokens.clone(), true),
            _ => {}
        }
    }
}
