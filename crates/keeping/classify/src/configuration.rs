//! Where rules come from: the layout's own, then libcgroup's cgrules.conf and cgrules.d, with the templates of its
//! cgconfig.conf and cgconfig.d. Opens configuration files only, and those safely ([`system::files::load`]).

use std::path::{Path, PathBuf};

use layout::{Desired, Diagnostic, Source, Template};
use system::files::{self, Trust};

/// A configuration whose rules are to be followed.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// Its rules, and the templates of groups they need.
    pub desired: Desired,
    /// The texts, to show places in.
    pub sources: Vec<Source>,
    /// What is worth knowing, and no error.
    pub warnings: Vec<Diagnostic>,
}

/// A configuration that can't be followed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the layout has {}", layout::errors(.diagnostics))]
pub struct Unreadable {
    /// All that is wrong with it.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts, to show places in.
    pub sources: Vec<Source>,
}

/// Files of rules, and files that give templates only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    /// Read as one configuration, in this order.
    pub rules: Vec<PathBuf>,
    /// In the grammar of cgconfig.conf; the groups in them are for `cgconfigparser` to make.
    pub templates: Vec<PathBuf>,
}

impl Files {
    /// Those of a system, below its `/etc`; what is not there is left out.
    ///
    /// # Errors
    /// A directory that can't be read.
    pub fn below(etc: &Path) -> Result<Files, Diagnostic> {
        let there = |path: &PathBuf| path.symlink_metadata().is_ok();
        let with_directory = |file: &str, directory: &str| {
            let mut files: Vec<PathBuf> = Some(etc.join(file)).into_iter().filter(there).collect();
            let directory = etc.join(directory);
            if there(&directory) {
                files.extend(files::files_in(&directory, "conf")?);
            }
            Ok(files)
        };
        let own = etc.join("ringfence");
        let own_there = there(&own.join("layout.toml")) || there(&own.join("layout.d"));
        let mut rules = if own_there { files::layout_files(&own)? } else { Vec::new() };
        rules.extend(with_directory("cgrules.conf", "cgrules.d")?);
        Ok(Files { rules, templates: with_directory("cgconfig.conf", "cgconfig.d")? })
    }

    /// Those of the paths that somebody named: files, and directories of a layout.
    ///
    /// # Errors
    /// As [`system::files::layout_files`].
    pub fn named(paths: &[PathBuf]) -> Result<Files, Diagnostic> {
        let each: Vec<Vec<PathBuf>> =
            paths.iter().map(|path| files::layout_files(path)).collect::<Result<_, _>>()?;
        Ok(Files { rules: each.concat(), templates: Vec::new() })
    }
}

impl Configuration {
    /// Reads files. A template of the rules' own files goes before one of the same name elsewhere.
    ///
    /// # Errors
    /// [`Unreadable`] with every error; nothing of it is to be followed then.
    pub fn read(files: &Files, trust: Trust) -> Result<Configuration, Unreadable> {
        let (mut desired, mut sources, mut warnings) = whole(&files.rules, trust)?;
        let (more, texts, template_warnings) = whole(&files.templates, trust)?;
        let known = |template: &Template| desired.templates.iter().any(|one| one.name == template.name);
        let new: Vec<Template> = more.templates.into_iter().filter(|template| !known(template)).collect();
        desired.templates.extend(new);
        sources.extend(texts);
        warnings.extend(template_warnings);
        Ok(Configuration { desired, sources, warnings })
    }
}

fn whole(files: &[PathBuf], trust: Trust) -> Result<(Desired, Vec<Source>, Vec<Diagnostic>), Unreadable> {
    let loaded = files::load(files, trust);
    let unread = !loaded.diagnostics.is_empty();
    let reading = layout::read(&loaded.sources);
    let diagnostics: Vec<Diagnostic> = loaded.diagnostics.into_iter().chain(reading.diagnostics).collect();
    match reading.desired.filter(|_| !unread) {
        Some(desired) => Ok((desired, loaded.sources, diagnostics)),
        None => Err(Unreadable { diagnostics, sources: loaded.sources }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_all_files_count_in_order_and_templates_come_from_cgconfig() {
        let etc = std::env::temp_dir().join(format!("rf-test-etc-{}", std::process::id()));
        for directory in ["ringfence", "cgrules.d"] {
            std::fs::create_dir_all(etc.join(directory)).unwrap();
        }
        let write = |file: &str, text: &str| std::fs::write(etc.join(file), text).unwrap();
        let read = || Configuration::read(&Files::below(&etc).unwrap(), Trust::Lenient);
        assert!(read().unwrap().desired.rules.is_empty());
        write("ringfence/layout.toml", "[[rules]]\nuser = \"a\"\nto = \"x\"\n");
        write("cgrules.conf", "b * s/%u\n");
        write("cgrules.d/20.conf", "d * y\n");
        write("cgrules.d/10.conf", "c * y\n");
        write("cgconfig.conf", "group s { cpu { } }\ntemplate s/%u { cpu { cpu.shares = 10; } }\n");
        let read_all = read().unwrap();
        let users: Vec<String> =
            read_all.desired.rules.iter().map(|rule| rule.matcher.who.to_string()).collect();
        assert_eq!(users, ["a", "b", "c", "d"]);
        assert_eq!((read_all.desired.templates.len(), read_all.desired.groups.len()), (1, 0));
        write("cgrules.d/10.conf", "c * \"y\n");
        let error = read().unwrap_err();
        assert_eq!(error.to_string(), "the layout has 1 error");
        std::fs::remove_dir_all(&etc).unwrap();
    }
}
