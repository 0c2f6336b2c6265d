//! The tree of cpusets, found by name or by path, and how one is listed. Reads only.

use kernel::{GroupName, Hierarchy, Host, Real, Seat};
use settings::{Controller, Version};
use units::{CpuSet, NodeSet, group_path};

use crate::cset::{cpus, failure::Failure, out::Out};

/// The hierarchy that has cpusets.
pub(crate) struct Sets {
    pub host: Host,
}

/// A cpuset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Set {
    /// From the root set on, without a leading slash; empty for the root set itself.
    path: String,
}

impl Set {
    pub fn root() -> Set {
        Set { path: String::new() }
    }

    pub fn is_root(&self) -> bool {
        self.path.is_empty()
    }

    /// `root`, or the last part of its path.
    pub fn name(&self) -> &str {
        if self.is_root() { "root" } else { group_path::name(&self.path) }
    }

    /// With its leading slash.
    pub fn path(&self) -> String {
        format!("/{}", self.path)
    }

    pub fn parent(&self) -> Set {
        Set { path: group_path::parent(&self.path).unwrap_or_default().to_owned() }
    }

    /// The group that it is.
    pub fn group(&self) -> Result<GroupName, Failure> {
        if self.is_root() { Ok(GroupName::root()) } else { Ok(GroupName::new(&self.path)?) }
    }

    /// One by a path that need not be there.
    pub fn at(path: &str) -> Result<Set, Failure> {
        let set = Set { path: path.trim_matches('/').to_owned() };
        set.group()?;
        Ok(set)
    }
}

impl Sets {
    pub fn new() -> Result<Sets, Failure> {
        let sets = Sets { host: Host::new(Box::new(Real::new()))? };
        sets.hierarchy()?;
        Ok(sets)
    }

    pub fn hierarchy(&self) -> Result<&Hierarchy, Failure> {
        let none = || {
            Failure::new("no mounted hierarchy has the cpuset controller")
                .maybe_hint(Some("ringfence doctor".to_owned()))
        };
        self.host.hierarchy_of(Controller::Cpuset).ok_or_else(none)
    }

    pub fn is_v1(&self) -> bool {
        self.hierarchy().is_ok_and(|at| at.version == Version::V1)
    }

    pub fn seat(&self, set: &Set) -> Result<Seat<'_>, Failure> {
        let at = self.hierarchy()?;
        if set.is_root() {
            return Ok(Seat { at, path: String::new() });
        }
        Ok(self.host.seat_in(at, &set.group()?))
    }

    /// Is there a group of that path, with cpusets or without?
    pub fn is_there(&self, set: &Set) -> bool {
        self.seat(set).is_ok_and(|seat| self.host.kernel().exists(seat.at, &seat.path))
    }

    fn text(&self, set: &Set, file: &str) -> Option<String> {
        let seat = self.seat(set).ok()?;
        self.host.kernel().read(seat.at, &seat.path, file).ok().map(|text| text.trim().to_owned())
    }

    /// Its list; on v2 one without a list has what the kernel gives it.
    fn list(&self, set: &Set, [own, effective]: [&str; 2]) -> String {
        let list = self.text(set, own).unwrap_or_default();
        if !list.is_empty() || self.is_v1() { list } else { self.text(set, effective).unwrap_or_default() }
    }

    pub fn cpus(&self, set: &Set) -> CpuSet {
        self.list(set, ["cpuset.cpus", "cpuset.cpus.effective"]).parse().unwrap_or_default()
    }

    pub fn mems(&self, set: &Set) -> NodeSet {
        self.list(set, ["cpuset.mems", "cpuset.mems.effective"]).parse().unwrap_or_default()
    }

    /// Are its CPUs its own?
    pub fn is_cpu_exclusive(&self, set: &Set) -> bool {
        let has = |file: &str, is: fn(&str) -> bool| self.text(set, file).is_some_and(|text| is(&text));
        match self.is_v1() {
            true => has("cpuset.cpu_exclusive", |text| text == "1"),
            false => {
                set.is_root() || has("cpuset.cpus.partition", |text| matches!(text, "root" | "isolated"))
            }
        }
    }

    fn is_mem_exclusive(&self, set: &Set) -> bool {
        match self.is_v1() {
            true => self.text(set, "cpuset.mem_exclusive").is_some_and(|text| text == "1"),
            false => set.is_root(),
        }
    }

    /// Those directly below it, by name.
    pub fn below(&self, set: &Set) -> Vec<Set> {
        let Ok(at) = self.hierarchy() else { return Vec::new() };
        // our groups' place, which need not be the hierarchy's root
        let place = match (set.is_root(), self.seat(set)) {
            (false, Ok(seat)) => seat.path,
            _ => self.host.base(at).path().to_owned(),
        };
        let names = self.host.kernel().children(at, &place).unwrap_or_default();
        let found = names.iter().map(|name| Set { path: group_path::join(&set.path, name) });
        found.filter(|set| self.text(set, "cpuset.cpus").is_some()).collect()
    }

    /// All below it, one after the other with those below that.
    pub fn walk(&self, set: &Set) -> Vec<Set> {
        let below = self.below(set);
        let deeper: Vec<Set> = below.iter().flat_map(|set| self.walk(set)).collect();
        below.into_iter().chain(deeper).collect()
    }

    /// By path, or all of that name.
    pub fn find(&self, name: &str) -> Result<Vec<Set>, Failure> {
        let found: Vec<Set> = match name {
            "root" | "/" => vec![Set::root()],
            path if path.contains('/') => {
                let set = Set::at(path)?;
                let is_there = self.text(&set, "cpuset.cpus").is_some();
                is_there.then_some(set).into_iter().collect()
            }
            name => self.walk(&Set::root()).into_iter().filter(|set| set.name() == name).collect(),
        };
        if found.is_empty() { Err(Failure::missing(name)) } else { Ok(found) }
    }

    /// The only one of that name.
    pub fn unique(&self, name: &str) -> Result<Set, Failure> {
        let mut found = self.find(name)?;
        match found.len() {
            1 => Ok(found.remove(0)),
            _ => {
                let paths: Vec<String> = found.iter().map(|set| format!("'{}'", set.path())).collect();
                let paths = paths.join(", ");
                Err(Failure::new(format!("cpuset name \"{name}\" not unique: [{paths}]")))
            }
        }
    }

    /// Its tasks: on v1 threads, which may be in different sets; on v2 processes.
    pub fn tasks(&self, set: &Set) -> Vec<u32> {
        let text = if self.is_v1() { self.text(set, "tasks") } else { self.text(set, "cgroup.procs") };
        let text = text.unwrap_or_default();
        // 0: of another namespace
        text.lines().filter_map(|line| line.parse().ok()).filter(|task| *task != 0).collect()
    }

    /// `"user" cpuset of CPUSPEC(1-3) with 0 tasks running`.
    pub fn summary(&self, set: &Set) -> String {
        let tasks = units::counted(self.tasks(set).len(), "task");
        format!("\"{}\" cpuset of CPUSPEC({}) with {tasks} running", set.name(), self.shown(set))
    }

    fn shown(&self, set: &Set) -> String {
        self.cpus(set).to_string()
    }

    /// Its line of a listing. `wide`: however long it is.
    pub fn line(&self, set: &Set, out: Out, hex: bool, wide: bool) -> String {
        let flag = |is: bool| if is { 'y' } else { 'n' };
        let shown = |list: String, in_hex: String| match (list.is_empty(), hex) {
            (true, _) => "*****".to_owned(),
            (false, true) => in_hex,
            (false, false) => list,
        };
        let (cpus, mems) = (self.cpus(set), self.mems(set));
        let columns = [
            format!("{:>12}", units::printable(set.name())),
            format!("{:>10}", shown(cpus.to_string(), cpus::hex(&cpus))),
            flag(self.is_cpu_exclusive(set)).to_string(),
            format!("{:>7}", shown(mems.to_string(), cpus::hex(&mems))),
            flag(self.is_mem_exclusive(set)).to_string(),
            format!("{:>5}", self.tasks(set).len()),
            format!("{:>4}", self.below(set).len()),
        ];
        let path = units::printable(&set.path()).into_owned();
        if out.machine {
            let fields: Vec<&str> = columns.iter().map(|one| one.trim()).chain([path.as_str()]).collect();
            return fields.join(";");
        }
        let line = format!(" {} ", columns.join(" "));
        format!("{line}{}", if wide { path } else { shortened(&path, WIDTH.saturating_sub(line.len())) })
    }
}

/// How wide a line of a listing is, unless it is to be whole.
const WIDTH: usize = 79;

/// `/prio_all/pr...rio_med/prio_low`: the two ends of a path that does not fit.
fn shortened(path: &str, room: usize) -> String {
    let chars: Vec<char> = path.chars().collect();
    if chars.len() <= room {
        return path.to_owned();
    }
    let half = chars.len() / 2;
    let first: String = chars[..half.saturating_sub(3)].iter().take((room / 2).saturating_sub(3)).collect();
    let second = &chars[half..];
    let last: String = second[second.len().saturating_sub(room.div_ceil(2))..].iter().collect();
    format!("{first}...{last}")
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn a_long_path_is_shortened_as_the_tutorial_shows() {
        assert_eq!(shortened("/prio_all/prio_high/prio_med/prio_low", 31), "/prio_all/pr...rio_med/prio_low");
        assert_eq!(shortened("/one/two", 30), "/one/two");
    }
}
