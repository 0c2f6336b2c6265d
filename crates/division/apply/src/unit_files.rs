//! Units of systemd: what is known of them, our drop-in files, and the request to read these. A trait, so that each of
//! its calls can be made to fail in a test.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use kernel::Error;
use layout::UnitName;
use plan::SeenUnit;
use rustix::io::Errno;
use units::hint::Command;

use crate::unsettled::{self, UNITS, unsettled};

/// systemd, or what a test puts in its place.
pub trait UnitFiles {
    /// What systemd knows of these units, by name; empty where it does not run.
    ///
    /// # Errors
    /// It does not answer.
    fn units(&self, names: &[&UnitName]) -> Result<BTreeMap<String, SeenUnit>, Error>;
    /// The names of loaded units that fit one of the patterns, and of those that have a drop-in file of ours and can be
    /// loaded: one that is stopped now keeps its settings. `None` where systemd does not run.
    ///
    /// # Errors
    /// It does not answer.
    fn fitting(&self, patterns: &[&UnitName]) -> Result<Option<BTreeSet<String>>, Error>;
    /// Services with a `CPUAffinity=` of their own that run.
    fn pinned(&self) -> Vec<String>;
    /// All of our drop-in files: the unit and the file.
    fn drop_ins(&self) -> Vec<(String, PathBuf)>;
    /// Did somebody set that property of the unit by systemd (`systemctl set-property`)?
    fn is_set(&self, unit: &str, property: &str) -> bool;
    /// What a drop-in file contains; `None` if it is not there.
    fn read(&self, path: &Path) -> Option<String>;
    /// Can it be written or removed? Not what is no regular file.
    ///
    /// # Errors
    /// What is in its place, with the command that moves it away.
    fn refuse_others(&self, _path: &Path) -> Result<(), Error> {
        Ok(())
    }
    /// Writes a drop-in file, or removes it. Until [`UnitFiles::settle`] the next boot goes on with what was there before.
    ///
    /// # Errors
    /// The errno, with the path.
    fn write(&self, path: &Path, text: Option<&str>) -> Result<(), Error>;
    /// What was written since the last call holds over boots from now on.
    ///
    /// # Errors
    /// The errno, with the path; systemd does not read what the boot had not.
    fn settle(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Units that this boot started without what was written before it and not settled.
    fn kept_out(&self) -> Vec<String> {
        Vec::new()
    }
    /// Lets systemd read its files again, and set what they say of these units.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    fn reload(&self, units: &[String]) -> Result<(), Error>;
    /// Did systemd read the unit's files since they were changed last? `false` where it does not say so.
    fn is_read(&self, unit: &str) -> bool;
}

/// No systemd.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoUnits;

impl UnitFiles for NoUnits {
    fn units(&self, _names: &[&UnitName]) -> Result<BTreeMap<String, SeenUnit>, Error> {
        Ok(BTreeMap::new())
    }

    fn fitting(&self, _patterns: &[&UnitName]) -> Result<Option<BTreeSet<String>>, Error> {
        Ok(None)
    }

    fn pinned(&self) -> Vec<String> {
        Vec::new()
    }

    fn drop_ins(&self) -> Vec<(String, PathBuf)> {
        Vec::new()
    }

    fn is_set(&self, _unit: &str, _property: &str) -> bool {
        false
    }

    fn read(&self, _path: &Path) -> Option<String> {
        None
    }

    fn write(&self, path: &Path, _text: Option<&str>) -> Result<(), Error> {
        Err(refused("write", path, &std::io::Error::from(Errno::NOENT)))
    }

    fn reload(&self, _units: &[String]) -> Result<(), Error> {
        Ok(())
    }

    fn is_read(&self, _unit: &str) -> bool {
        true
    }
}

/// The system's service manager.
#[derive(Debug, Clone, Copy)]
pub struct Systemd {
    /// How long its answer to a reload is waited for.
    pub reload: Duration,
}

impl Default for Systemd {
    fn default() -> Systemd {
        Systemd { reload: systemd::RELOAD }
    }
}

/// Where drop-in files of ours may be.
const ROOTS: [&str; 2] = [UNITS, "/run/systemd/system"];

/// Where the generator says at boot what a unit goes on with.
const GENERATED: &str = "/run/systemd/generator.early";

/// Where systemd writes what `set-property` sets, a file for each property.
const SET_PROPERTY: [&str; 3] =
    ["/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient"];

impl Systemd {
    /// sd_booted(3).
    fn runs() -> bool {
        Path::new("/run/systemd/system").is_dir()
    }
}

impl Systemd {
    /// What is known of a template by a unit of it: its drop-in file holds whether any is loaded or not.
    fn template(&self, name: &UnitName, of_it: systemd::Unit) -> SeenUnit {
        let drop_in = plan::drop_in(name.as_str(), false);
        SeenUnit {
            load: "loaded".to_owned(),
            path: name.path_in(&of_it.slice),
            delegates: of_it.delegates,
            undividable: undividable(&of_it),
            properties: of_it.properties,
            text: self.read(Path::new(&drop_in)),
            drop_in,
            ..SeenUnit::default()
        }
    }
}

impl UnitFiles for Systemd {
    fn units(&self, names: &[&UnitName]) -> Result<BTreeMap<String, SeenUnit>, Error> {
        if names.is_empty() || !Systemd::runs() {
            return Ok(BTreeMap::new());
        }
        refuse_fifos(names.iter().map(|name| name.as_str()))?;
        // a template is no unit: one of it says which properties the others have, and in which slice they are
        let asked = names.iter().map(|name| match name.is_template() {
            true => name.instance("ringfence"),
            false => name.to_string(),
        });
        let asked: Vec<String> = asked.collect();
        let known = systemd::units(&asked.iter().map(String::as_str).collect::<Vec<_>>())?;
        let seen = names.iter().zip(known).map(|(name, unit)| {
            if name.is_template() {
                return (name.to_string(), self.template(name, unit));
            }
            let drop_in = plan::drop_in(name.as_str(), unit.is_transient);
            let path = match unit.control_group.strip_prefix('/') {
                Some(path) if !path.is_empty() => path.to_owned(),
                _ => UnitName::new(&unit.id).as_ref().unwrap_or(name).path_in(&unit.slice),
            };
            // without the list there is no proposal
            let near = match unit.load.as_str() {
                "not-found" => systemd::near(name.as_str()).unwrap_or_default(),
                _ => Vec::new(),
            };
            let text = self.read(Path::new(&drop_in));
            let undividable = undividable(&unit);
            let (load, root, properties, delegates) = (unit.load, unit.root, unit.properties, unit.delegates);
            let others = None;
            (
                name.to_string(),
                SeenUnit {
                    load,
                    near,
                    path,
                    root,
                    delegates,
                    undividable,
                    properties,
                    drop_in,
                    text,
                    others,
                },
            )
        });
        Ok(seen.collect())
    }

    fn fitting(&self, patterns: &[&UnitName]) -> Result<Option<BTreeSet<String>>, Error> {
        if !Systemd::runs() {
            return Ok(None);
        }
        let words: Vec<&str> = patterns.iter().map(|pattern| pattern.as_str()).collect();
        let mut found: BTreeSet<String> = systemd::fitting(&words)?.into_iter().collect();
        let bound = self.drop_ins().into_iter().map(|(unit, _)| unit);
        let bound: Vec<String> = bound
            .filter(|unit| !found.contains(unit) && UnitName::new(unit).is_ok())
            .filter(|unit| patterns.iter().any(|pattern| pattern.fits(unit)))
            .collect();
        refuse_fifos(bound.iter().map(String::as_str))?;
        let known = systemd::units(&bound.iter().map(String::as_str).collect::<Vec<_>>())?;
        let loaded = bound.into_iter().zip(known).filter(|(_, unit)| unit.load == "loaded");
        found.extend(loaded.map(|(unit, _)| unit));
        Ok(Some(found))
    }

    fn pinned(&self) -> Vec<String> {
        // what is not known is not warned of
        systemd::pinned().unwrap_or_default()
    }

    fn drop_ins(&self) -> Vec<(String, PathBuf)> {
        if !Systemd::runs() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for entry in ROOTS.iter().filter_map(|root| fs::read_dir(root).ok()).flatten().flatten() {
            let directory = entry.path();
            let name = directory.file_name().and_then(|name| name.to_str());
            let Some(unit) = name.and_then(|name| name.strip_suffix(".d")) else { continue };
            for transient in [false, true] {
                let path = PathBuf::from(plan::drop_in(unit, transient));
                if path.starts_with(&directory) && fs::symlink_metadata(&path).is_ok() {
                    found.push((unit.to_owned(), path));
                }
            }
        }
        found.sort();
        found
    }

    fn is_set(&self, unit: &str, property: &str) -> bool {
        let file = |of: &str| PathBuf::from(format!("{of}/{unit}.d/50-{property}.conf"));
        SET_PROPERTY.into_iter().any(|of| file(of).exists())
    }

    fn read(&self, path: &Path) -> Option<String> {
        // what somebody put there may never end
        fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
        fs::read_to_string(path).ok()
    }

    fn refuse_others(&self, path: &Path) -> Result<(), Error> {
        let is_other = fs::symlink_metadata(path).is_ok_and(|there| !there.is_file());
        if is_other { Err(no_file("write", path)) } else { Ok(()) }
    }

    fn write(&self, path: &Path, text: Option<&str>) -> Result<(), Error> {
        let Some(directory) = path.parent() else { return Ok(()) };
        let new = directory.join(".90-ringfence.new");
        let _ = fs::remove_file(&new); // left behind by a process that was killed
        if self.read(path).as_deref() == text {
            let _ = text.is_none().then(|| fs::remove_dir(directory)); // others' drop-in files may be there
            return Ok(());
        }
        self.refuse_others(path)?;
        note_before(self, path, if text.is_some() { "write" } else { "remove" })?;
        let Some(text) = text else {
            match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(refused("remove", path, &error));
                }
                _ => {}
            }
            let _ = fs::remove_dir(directory); // others' drop-in files may be there
            sync(directory);
            return Ok(());
        };
        let written = fs::create_dir_all(directory).and_then(|()| {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, path)?;
            sync(directory);
            Ok(())
        });
        written.map_err(|error| {
            let _ = fs::remove_file(&new);
            let _ = fs::remove_dir(directory);
            refused("write", path, &error)
        })
    }

    fn settle(&self) -> Result<(), Error> {
        if !Systemd::runs() {
            return Ok(());
        }
        let kept_out = self.kept_out();
        unsettled::forget(Path::new(UNITS)).map_err(|error| refused("settle", Path::new(UNITS), &error))?;
        if kept_out.is_empty() { Ok(()) } else { self.reload(&kept_out) }
    }

    fn kept_out(&self) -> Vec<String> {
        let unit_of = |path: &Path| unit_of(path).map(str::to_owned);
        let units = unsettled(Path::new(UNITS), &boot()).into_keys().filter_map(|path| unit_of(&path));
        units
            .filter(|unit| Path::new(GENERATED).join(format!("{unit}.d/90-ringfence.conf")).exists())
            .collect()
    }

    fn reload(&self, units: &[String]) -> Result<(), Error> {
        let units = &with_instances(units)?;
        refuse_fifos(units.iter().map(String::as_str))?;
        let mut removed = units.iter().filter(|unit| remove_flags(unit)).count();
        units.iter().for_each(|unit| note_flags(unit));
        let names: Vec<&str> = units.iter().map(String::as_str).collect();
        let reloaded = systemd::reload(&names, self.reload);
        removed += units.iter().filter(|unit| remove_flags(unit)).count();
        reloaded?;
        if removed > 0 {
            // until then DropInPaths= names them, and a restart warns that they changed
            systemd::reload(&[], self.reload)?;
        }
        Ok(())
    }

    fn is_read(&self, unit: &str) -> bool {
        if !Systemd::runs() {
            return true;
        }
        let needs_none = |unit: &String| systemd::needs_reload(unit).is_ok_and(|needs| !needs);
        let all = with_instances(&[unit.to_owned()]).unwrap_or_default();
        !all.is_empty() && refuse_fifos(all.iter().map(String::as_str)).is_ok() && all.iter().all(needs_none)
    }
}

fn undividable(unit: &systemd::Unit) -> Option<String> {
    if unit.properties.contains("DelegateSubgroup") {
        return None;
    }
    match (unit.kind.as_str(), unit.kill_mode.as_str()) {
        ("oneshot", _) => Some("Type=oneshot".to_owned()),
        (_, "" | "control-group" | "mixed") => None,
        (_, mode) => Some(format!("KillMode={mode}")),
    }
}

/// Has the unit a drop-in file of ours, and not only its template?
pub(crate) fn has_own_file(files: &dyn UnitFiles, unit: &str) -> bool {
    let own = |transient| files.read(Path::new(&plan::drop_in(unit, transient)));
    [false, true].into_iter().any(|transient| own(transient).is_some())
}

/// With the units that are loaded of each template.
fn with_instances(units: &[String]) -> Result<Vec<String>, Error> {
    let templates = units.iter().filter_map(|unit| {
        let pattern = UnitName::of_file_name(unit).ok()?;
        pattern.is_pattern().then_some(pattern)
    });
    let templates: Vec<UnitName> = templates.collect();
    let patterns: Vec<&str> = templates.iter().map(UnitName::as_str).collect();
    let mut all: BTreeSet<String> = systemd::fitting(&patterns)?.into_iter().collect();
    all.extend(units.iter().cloned());
    Ok(all.into_iter().collect())
}

/// To be asked before systemd is asked for a unit: it opens drop-in files even to say whether they have changed, and would wait for
/// the writer of a FIFO, with all that it does.
fn refuse_fifos<'u>(units: impl IntoIterator<Item = &'u str>) -> Result<(), Error> {
    let files = |unit| [false, true].map(|transient| PathBuf::from(plan::drop_in(unit, transient)));
    let is_fifo = |path: &PathBuf| fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo());
    let found = units.into_iter().flat_map(files).find(is_fifo);
    found.map_or(Ok(()), |path| Err(no_file("let systemd read", &path)))
}

/// `what`: what can't be done with it.
fn no_file(what: &str, path: &Path) -> Error {
    Error::Outside {
        what: format!("cannot {what} {}, which is no regular file", path.display()),
        errno: Errno::EXIST,
        hint: Some(Command::new("mv").arg(path.to_string_lossy()).arg("/root").to_string()),
    }
}

/// The unit of a drop-in file.
fn unit_of(path: &Path) -> Option<&str> {
    path.parent()?.file_name()?.to_str()?.strip_suffix(".d")
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim_end().to_owned()
}

/// So that a boot in the middle of the change goes on with what is there now.
fn note_before(files: &Systemd, path: &Path, what: &str) -> Result<(), Error> {
    let Some(unit) = unit_of(path).filter(|_| path.starts_with(UNITS)) else { return Ok(()) };
    let noted = unsettled::note(Path::new(UNITS), unit, &boot(), files.read(path).as_deref());
    match noted {
        // of another user, who may write the unit's own directory alone
        Err(error)
            if error.kind() == std::io::ErrorKind::PermissionDenied
                && !rustix::process::geteuid().is_root() =>
        {
            Ok(())
        }
        noted => noted.map_err(|error| refused(what, path, &error)),
    }
}

/// So that a power cut does not bring a file back that an undo took away.
fn sync(directory: &Path) {
    for directory in [Some(directory), directory.parent()].into_iter().flatten() {
        let _ = fs::File::open(directory).and_then(|directory| directory.sync_all()); // one that is gone
    }
}

/// The files that systemd writes for the flag that a reload sets, and which say nothing new.
fn flag_files(unit: &str) -> [PathBuf; 2] {
    ["system.control", "transient"]
        .map(|of| PathBuf::from(format!("/run/systemd/{of}/{unit}.d/50-{}.conf", systemd::FLAG)))
}

/// Where it is noted which of them are not there before a reload: who kills it must not leave them.
fn note(unit: &str) -> PathBuf {
    Path::new("/run/ringfence/flags").join(unit)
}

fn note_flags(unit: &str) {
    let absent = flag_files(unit).into_iter().filter(|file| !file.exists());
    let lines: String = absent.map(|file| format!("{}\n", file.display())).collect();
    let note = note(unit);
    // without it the file stays if this process is killed now
    let _ = note.parent().map(fs::create_dir_all);
    let _ = fs::write(note, lines);
}

/// Removes those that a reload made; were there any?
fn remove_flags(unit: &str) -> bool {
    let noted = fs::read_to_string(note(unit)).unwrap_or_default();
    let mut removed = false;
    for file in flag_files(unit).iter().filter(|file| noted.lines().any(|line| Path::new(line) == **file)) {
        removed |= fs::remove_file(file).is_ok();
        let _ = file.parent().map(fs::remove_dir); // files of others may be there
    }
    let _ = fs::remove_file(note(unit));
    removed
}

fn refused(what: &str, path: &Path, error: &std::io::Error) -> Error {
    let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
    let hint = match errno {
        Errno::ROFS => Some("the file system is read only: findmnt shows why; a service may need ReadWritePaths=/etc/systemd/system".to_owned()),
        Errno::ACCESS | Errno::PERM => Some("call it as root".to_owned()),
        Errno::NOSPC => Some("df shows where the disk is full".to_owned()),
        _ => None,
    };
    Error::Outside { what: format!("cannot {what} {}", path.display()), errno, hint }
}
