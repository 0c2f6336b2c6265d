//! Which rows are requested for which CPUs, and what they want of what was seen. Asks nobody.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::knobs::{Aim, Instance, Knob, Per, Seen, find, text};

/// What is requested of a machine's knobs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Isolation {
    /// The rows.
    pub requests: Vec<Request>,
    /// The online CPUs that are nobody's alone: what is moved goes there. Never empty if there are requests.
    pub housekeeping: CpuSet,
    /// What a measurement may find, by group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budgets: BTreeMap<String, Budget>,
}

/// The most that a measurement of a CPU may find; `None` is any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Interruptions per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<u32>,
    /// Microseconds that anything else takes the CPU away at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_us: Option<u32>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The row's name.
    pub knob: String,
    /// The first group that requests it, as the user writes it.
    pub group: String,
    /// The CPUs of all groups that do.
    pub cpus: CpuSet,
    /// The value that the layout names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// What a row wants at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want<'s> {
    /// The row.
    pub knob: &'static Knob,
    /// What requests it.
    pub request: &'s Request,
    /// What is there now.
    pub seen: &'s Seen,
    /// What is to be there.
    pub text: String,
}

impl Want<'_> {
    /// Is it so already?
    pub fn is_so(&self) -> bool {
        self.knob.same(&self.seen.text, &self.text)
    }

    /// The place.
    pub fn instance(&self) -> &Instance {
        &self.seen.instance
    }
}

impl PartialEq for Knob {
    fn eq(&self, other: &Knob) -> bool {
        self.name == other.name
    }
}

impl Eq for Knob {}

impl Isolation {
    /// The rows' names, each once.
    pub fn knobs(&self) -> Vec<&'static Knob> {
        let mut knobs: Vec<&'static Knob> = Vec::new();
        for knob in self.requests.iter().filter_map(|request| find(&request.knob)) {
            if !knobs.contains(&knob) {
                knobs.push(knob);
            }
        }
        knobs
    }

    /// What is wanted of what was seen; a place that a row has nothing to say about is not among it.
    pub fn wants<'s>(&'s self, seen: &'s [Seen]) -> Vec<Want<'s>> {
        let of_request = |request: &'s Request| {
            let of_row = seen.iter().filter(move |seen| seen.knob == request.knob);
            of_row.filter_map(move |seen| {
                let knob = find(&request.knob)?;
                Some(Want { knob, request, seen, text: self.text(knob, request, seen)? })
            })
        };
        self.requests.iter().flat_map(of_request).collect()
    }

    fn text(&self, knob: &Knob, request: &Request, seen: &Seen) -> Option<String> {
        if matches!(knob.per, Per::Cpu | Per::ThreadOfCpu) && !request.cpus.contains(seen.instance.cpu()?) {
            return None;
        }
        let base = seen.before.as_ref().unwrap_or(&seen.text);
        let rest = || Some(text::cpus(knob.encoding, base)?.difference(&request.cpus));
        match knob.aim {
            Aim::Off => {
                // CPUs that are offline may be left in a mask; alone they are refused, or wait for one to come
                let rest = rest()?;
                let nowhere = rest.is_disjoint(&self.housekeeping);
                let cpus = if nowhere { self.housekeeping.clone() } else { rest };
                Some(text::of_cpus(knob.encoding, &cpus))
            }
            Aim::OffOrNone => Some(text::of_cpus(knob.encoding, &rest()?)),
            Aim::Value(_) | Aim::Named => knob.value(request.value.as_deref()).map(str::to_owned),
        }
    }
}

/// A knob's text as people read it: sets of CPUs as lists.
pub fn shown_cpus(knob: &Knob, content: &str) -> String {
    let plain = knob.plain(content);
    match text::cpus(knob.encoding, plain) {
        Some(cpus) if cpus.is_empty() => "none".to_owned(),
        Some(cpus) => cpus.to_string(),
        None => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(knob: &str, path: &str, text: &str, before: Option<&str>, isolated: &str) -> Option<String> {
        let request = Request {
            knob: knob.to_owned(),
            group: "rt".to_owned(),
            cpus: isolated.parse().unwrap(),
            value: None,
        };
        let housekeeping = "0-7".parse::<CpuSet>().unwrap().difference(&request.cpus);
        let seen = Seen {
            knob: knob.to_owned(),
            instance: Instance::File(path.to_owned()),
            text: text.to_owned(),
            before: before.map(str::to_owned),
            fixed: false,
            read_only: None,
        };
        let isolation = Isolation { requests: vec![request], housekeeping, ..Isolation::default() };
        let seen = [seen];
        let wants = isolation.wants(&seen);
        wants.first().map(|want| want.text.clone())
    }

    #[test]
    fn what_rows_want() {
        let irq = "/proc/irq/9/smp_affinity_list";
        assert_eq!(wanted("interrupts", irq, "0-7", None, "3").unwrap(), "0-2,4-7");
        // nothing is left: all others
        assert_eq!(wanted("interrupts", irq, "3", None, "3").unwrap(), "0-2,4-7");
        // an offline CPU alone is no place
        assert_eq!(wanted("interrupts", irq, "3,8", None, "3").unwrap(), "0-2,4-7");
        // a layout before this one had isolated another CPU
        assert_eq!(wanted("interrupts", irq, "0-6", Some("0-7"), "3").unwrap(), "0-2,4-7");
        let rps = "/sys/class/net/lo/queues/rx-0/rps_cpus";
        assert_eq!(wanted("receive-steering", rps, "00", None, "3").unwrap(), "00000000");
        let governor = |cpu: usize| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        assert_eq!(wanted("governor", &governor(3), "schedutil", None, "3").unwrap(), "performance");
        assert_eq!(wanted("governor", &governor(2), "schedutil", None, "3"), None);
    }
}
