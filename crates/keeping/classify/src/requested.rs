//! Which programs a rule takes. A path is compared with what the kernel says a process executes, through links too; what a
//! process says of itself counts for a path only if that script's first line leads to what the kernel says. A bare name
//! also fits the name that a process goes by.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use layout::{Glob, Process};
use system::{Program, runs_script};

use crate::facts::last;

/// Executables that are many programs, each by a link: only the name that a process was called by tells them apart.
const MULTI_CALL: [&[u8]; 4] = [b"busybox", b"toybox", b"coreutils", b"sbase-box"];

/// A program, or some alike, as a rule names it.
#[derive(Debug, Clone)]
pub struct RequestedProgram(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// The whole path, and where it leads if it goes through a link.
    Path { requested: Vec<u8>, leads_to: Option<Vec<u8>> },
    /// Its last part.
    Name(Vec<u8>),
    /// The beginning of the last part.
    NamePrefix(Vec<u8>),
    /// All of the last part.
    NameGlob(Glob),
    /// The beginning of the path.
    PathPrefix { requested: Vec<u8>, leads_to: Option<Vec<u8>> },
    /// All of the path.
    PathGlob { requested: Glob, leads_to: Option<Glob> },
}

impl RequestedProgram {
    /// Looks where links lead.
    pub fn new(process: &Process) -> RequestedProgram {
        let bytes = |text: &String| text.clone().into_bytes();
        RequestedProgram(match process {
            Process::Path(path) => {
                let requested = bytes(path);
                let leads_to = real(&requested).filter(|real| *real != requested);
                Kind::Path { requested, leads_to }
            }
            Process::Name(name) => Kind::Name(bytes(name)),
            Process::Prefix(prefix) if prefix.contains('/') => {
                Kind::PathPrefix { requested: bytes(prefix), leads_to: with_real_directory(prefix) }
            }
            Process::Prefix(prefix) => Kind::NamePrefix(bytes(prefix)),
            Process::Glob(glob) if glob.as_str().contains('/') => {
                let leads_to = with_real_directory(glob.as_str());
                let leads_to = leads_to.and_then(|text| Glob::new(std::str::from_utf8(&text).ok()?));
                Kind::PathGlob { requested: glob.clone(), leads_to }
            }
            Process::Glob(glob) => Kind::NameGlob(glob.clone()),
        })
    }

    /// Is it that program, or like it?
    pub fn is(&self, program: &Program<'_>) -> bool {
        let by_name = |fits: &dyn Fn(&[u8]) -> bool| fits(last(program.executable)) || fits(program.name());
        match &self.0 {
            Kind::Path { requested, leads_to } => is_at(requested, leads_to.as_deref(), program),
            Kind::Name(requested) => by_name(&|name| name == requested),
            Kind::NamePrefix(requested) => by_name(&|name| name.starts_with(requested)),
            Kind::NameGlob(requested) => by_name(&|name| !name.is_empty() && requested.fits(name)),
            Kind::PathPrefix { requested, leads_to } => by_path(program, &|path| {
                path.starts_with(requested) || leads_to.as_ref().is_some_and(|other| path.starts_with(other))
            }),
            Kind::PathGlob { requested, leads_to } => by_path(program, &|path| {
                requested.fits(path) || leads_to.as_ref().is_some_and(|other| other.fits(path))
            }),
        }
    }

    /// As the rule has it.
    pub(crate) fn shown(&self) -> String {
        match &self.0 {
            Kind::Path { requested: bytes, .. } | Kind::Name(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            Kind::NamePrefix(bytes) | Kind::PathPrefix { requested: bytes, .. } => {
                format!("{}*", String::from_utf8_lossy(bytes))
            }
            Kind::NameGlob(glob) | Kind::PathGlob { requested: glob, .. } => glob.to_string(),
        }
    }
}

fn is_at(requested: &[u8], leads_to: Option<&[u8]>, program: &Program<'_>) -> bool {
    let executable = program.executable;
    if requested == executable {
        return true;
    }
    let called_so = program.name() == last(requested);
    // a package's upgrade and update-alternatives(1) change where a link leads
    let leads_there = leads_to == Some(executable)
        || (called_so && !executable.is_empty() && real(requested).as_deref() == Some(executable));
    if leads_there {
        return called_so || !MULTI_CALL.contains(&last(executable));
    }
    let is_script = |script: &[u8]| script == requested || leads_to == Some(script);
    program.script().is_some_and(|script| is_script(script) && runs_script(executable, script))
}

fn by_path(program: &Program<'_>, fits: &dyn Fn(&[u8]) -> bool) -> bool {
    let executable = program.executable;
    fits(executable) || program.script().is_some_and(|script| fits(script) && runs_script(executable, script))
}

/// A path without links.
#[allow(
    clippy::disallowed_methods,
    reason = "only compared with what the kernel says; nothing is opened by it"
)]
fn real(path: &[u8]) -> Option<Vec<u8>> {
    let real = std::fs::canonicalize(Path::new(OsStr::from_bytes(path))).ok()?;
    Some(real.as_os_str().as_bytes().to_vec())
}

/// The same pattern with its directory without links, as `/bin/my*` where /bin is a link to /usr/bin.
fn with_real_directory(pattern: &str) -> Option<Vec<u8>> {
    let literal = pattern.split('*').next().unwrap_or_default();
    let directory = &literal[..literal.rfind('/')?];
    let mut real = real(directory.as_bytes()).filter(|real| real != directory.as_bytes() && real != b"/")?;
    real.extend_from_slice(&pattern.as_bytes()[directory.len()..]);
    Some(real)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn requested(text: &str) -> RequestedProgram {
        RequestedProgram::new(&Process::pattern(text).unwrap())
    }

    fn is(text: &str, executable: &str, claimed: Option<&str>) -> bool {
        let claimed = claimed.map(str::as_bytes);
        requested(text).is(&Program { executable: executable.as_bytes(), claimed })
    }

    /// Files and links of a system below a directory of the test's own.
    struct System {
        at: PathBuf,
        _removed_at_the_end: tempfile::TempDir,
    }

    impl System {
        fn new() -> System {
            let at = tempfile::Builder::new().prefix("rf-test-requested").tempdir().unwrap();
            std::fs::create_dir_all(at.path().join("usr/bin")).unwrap();
            let system = System { at: at.path().canonicalize().unwrap(), _removed_at_the_end: at };
            for file in ["usr/bin/python3.11", "usr/bin/python3.12", "usr/bin/vim.basic", "usr/bin/busybox"] {
                std::fs::write(system.at.join(file), "").unwrap();
            }
            system.link("usr/bin", "bin");
            system.link("python3.11", "usr/bin/python3");
            system.link("../usr/bin/vim.basic", "alternative");
            system.link("../../alternative", "usr/bin/vi");
            system.link("busybox", "usr/bin/ls");
            system
        }

        fn link(&self, target: &str, name: &str) {
            let name = self.at.join(name);
            let _ = std::fs::remove_file(&name);
            std::os::unix::fs::symlink(target, &name).unwrap();
        }

        fn path(&self, path: &str) -> String {
            self.at.join(path).display().to_string()
        }
    }

    #[test]
    fn a_path_is_compared_with_the_executable_through_links_and_never_with_a_name_alone() {
        let system = System::new();
        system.link("usr/bin/vim.basic", "alternative");
        let at = |path: &str| system.path(path);
        let python = at("usr/bin/python3.11");
        for (rule, executable, claimed, fits) in [
            ("usr/bin/python3", &python, Some("python3"), true),
            ("usr/bin/python3.11", &python, Some("python3"), true),
            ("bin/python3", &python, Some("python3"), true),
            ("bin/python3.11", &python, None, true),
            ("usr/bin/python3", &python, None, true),
            // a script: the interpreter is what the kernel executes
            ("usr/bin/python3", &python, Some("/tmp/x.py"), true),
            ("usr/bin/vi", &at("usr/bin/vim.basic"), Some("vi"), true),
            // renamed by itself
            ("usr/bin/vi", &python, Some("vi"), false),
            ("usr/bin/vim.basic", &python, Some("/nowhere/vim.basic"), false),
            ("usr/bin/python3", &at("usr/bin/vim.basic"), Some("python3"), false),
            ("usr/bin/python3", &python, Some("something"), true),
            ("usr/bin/pyth*", &python, Some("python3"), true),
            ("bin/pyth*", &python, Some("python3"), true),
            ("bin/py*3*", &python, None, true),
            ("bin/v*", &python, Some("/usr/bin/vi"), false),
            // one file, many programs
            ("usr/bin/ls", &at("usr/bin/busybox"), Some("ls"), true),
            ("usr/bin/ls", &at("usr/bin/busybox"), Some("sh"), false),
            ("usr/bin/busybox", &at("usr/bin/busybox"), Some("sh"), true),
        ] {
            assert_eq!(is(&at(rule), executable, claimed), fits, "{rule} {executable} {claimed:?}");
        }
    }

    #[test]
    fn a_link_that_leads_elsewhere_since_the_rules_were_read_is_followed() {
        let system = System::new();
        let rule = requested(&system.path("usr/bin/python3"));
        system.link("python3.12", "usr/bin/python3");
        let new = system.path("usr/bin/python3.12");
        assert!(rule.is(&Program { executable: new.as_bytes(), claimed: Some(b"python3") }));
        assert!(!rule.is(&Program { executable: b"/bin/cat", claimed: Some(b"python3") }));
    }

    #[test]
    fn a_script_is_taken_for_its_path_only_if_its_first_line_leads_to_the_executable() {
        let system = System::new();
        let script = system.path("report.py");
        std::fs::write(&script, format!("#!{}\n", system.path("usr/bin/python3"))).unwrap();
        let python = system.path("usr/bin/python3.11");
        for rule in [script.clone(), system.path("rep*"), system.path("*.py"), "report.py".to_owned()] {
            assert!(is(&rule, &python, Some(&script)), "{rule}");
        }
        // perl -e '$0 = "/…/report.py"'
        for rule in [script.clone(), system.path("rep*"), system.path("*.py")] {
            assert!(!is(&rule, "/usr/bin/perl", Some(&script)), "{rule}");
        }
    }

    #[test]
    fn a_bare_name_fits_the_executable_and_the_name_a_process_goes_by() {
        for (rule, executable, claimed, fits) in [
            ("oracle", "/u01/bin/oracle", Some("ora_pmon_db"), true),
            ("ora_*", "/u01/bin/oracle", Some("ora_pmon_db"), true),
            ("ora_*db", "/u01/bin/oracle", Some("ora_pmon_db"), true),
            ("python3", "/usr/bin/python3.11", Some("python3"), true),
            ("python3.11", "/usr/bin/python3.11", Some("python3"), true),
            ("backup.sh", "/usr/bin/dash", Some("/home/peter/backup.sh"), true),
            ("dash", "/usr/bin/dash", Some("/home/peter/backup.sh"), true),
            ("cp", "/usr/bin/dash", Some("sh"), false),
            ("sleep*", "", Some("sleeper"), true),
        ] {
            assert_eq!(is(rule, executable, claimed), fits, "{rule} {executable} {claimed:?}");
        }
    }
}
