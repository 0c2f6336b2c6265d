//! What the tests share: hosts with faults, and pictures of everything that a group holds.

use std::{collections::BTreeMap, sync::Arc};

use apply::{Meta, System, Target};
use kernel::{Host, Kernel};

use crate::faulty::{Faults, Faulty};

/// A host with faults.
pub fn host(kernel: impl Kernel + 'static, faults: &Arc<Faults>) -> Host {
    Host::even_without_hierarchies(Box::new(Faulty { inner: kernel, faults: faults.clone() })).unwrap()
}

pub fn target<'t>(host: &'t Host, system: &'t dyn System) -> Target<'t> {
    Target { host, system }
}

pub fn meta(what: &str) -> Meta {
    Meta { by: apply::By::caller(), what: what.to_owned(), ..Meta::default() }
}

/// Every file of every group that is chosen, by `hierarchy:group/file`; counters that run by themselves are left out.
pub type Picture = BTreeMap<String, String>;

pub fn picture(kernel: &dyn Kernel, of: &dyn Fn(&str) -> bool) -> Picture {
    let mut picture = Picture::new();
    for at in kernel.hierarchies().unwrap() {
        let all = std::iter::once(String::new()).chain(kernel.descendants(&at, "").unwrap());
        for group in all.filter(|group| of(group)) {
            for file in kernel.files(&at, &group).unwrap_or_default() {
                if counts(&file) {
                    continue;
                }
                if let Ok(text) = kernel.read(&at, &group, &file) {
                    picture.insert(format!("{}:{group}/{file}", at.id), text);
                }
            }
        }
    }
    picture
}

/// Does the file tell what is used, or what happened, rather than what was set? A parent is charged for its children's
/// own memory, and the kernel hands pages back when it likes.
fn counts(file: &str) -> bool {
    let memory = file.starts_with("memory.") && (file.ends_with(".current") || file.ends_with(".peak"));
    let pressure = file.ends_with(".pressure") && file != "cgroup.pressure";
    let peak = file == "pids.peak"; // what ran in between is counted where pids was handed down before
    memory || pressure || peak || file.contains("usage") || file.contains("stat") && file != "freezer.state"
}
