//! Which figures are shown: names as users type them become fields of the table, or figures that are worked out of
//! several. Reads nothing of the machine: what it lacks is missing in the picture.

use settings::DeviceNumber;

use monitor::{Field, GROUP_FIELDS, MACHINE_FIELDS, Per, rates::FigureUnit};

use super::{cell::Measure, derived::Derived};

/// What distinguishes a machine's field from a group's.
const MACHINE: &str = "machine.";

/// One figure, whole or in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What it is.
    pub of: Of,
    /// Which of several.
    pub part: Part,
}

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// A field of groups.
    Group(&'static Field),
    /// A field of the machine.
    Machine(&'static Field),
    /// What several fields of groups make together.
    Derived(Derived),
}

/// Which of the CPUs, nodes or devices that a field has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The sum of all.
    Sum,
    /// Each by itself.
    Each,
    /// This one: a CPU's or node's number, or a device's `8:16`.
    One(String),
    /// A device by its name.
    Named {
        /// As it is shown: `sda`.
        name: String,
        /// Its number on the machine that the samples are of.
        number: DeviceNumber,
    },
}

/// No field has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown field '{name}'")]
pub struct UnknownField {
    /// As it was typed.
    pub name: String,
    /// Names like it, nearest first.
    pub near: Vec<String>,
}

impl UnknownField {
    /// What may have been meant.
    pub fn hint(&self) -> String {
        if self.near.is_empty() {
            return "ringfence fields lists them".to_owned();
        }
        let of_all = format!("{}.", self.name);
        let all = known().any(|of| of.name().starts_with(&of_all));
        let all = if all { format!(" {}* is all of them", of_all) } else { String::new() };
        format!("did you mean {}?{all}", self.near.join(" or "))
    }
}

impl Choice {
    /// The name of a device that was requested by name, not by number; [`Choice::by_number`] makes it one that a picture
    /// finds.
    pub fn device_name(&self) -> Option<&str> {
        let (Of::Group(field), Part::One(one)) = (self.of, &self.part) else { return None };
        let is_name = field.per == Per::Device && one.parse::<DeviceNumber>().is_err();
        is_name.then(|| one.strip_prefix("/dev/").unwrap_or(one))
    }

    /// The same of the device with this name and number.
    #[must_use]
    pub fn by_number(self, name: String, number: DeviceNumber) -> Choice {
        Choice { part: Part::Named { name, number }, ..self }
    }
}

impl Of {
    /// As users type it.
    pub fn name(&self) -> String {
        match self {
            Of::Group(field) => field.name.to_owned(),
            Of::Machine(field) => format!("{MACHINE}{}", field.name),
            Of::Derived(derived) => derived.name().to_owned(),
        }
    }

    /// Must this field of groups be read for it?
    pub fn needs(&self, field: &Field) -> bool {
        match self {
            Of::Group(known) => *known == field,
            Of::Machine(_) => false,
            Of::Derived(derived) => derived.made_of().contains(&field.name),
        }
    }

    /// What it is, without the last full stop.
    pub fn help(&self) -> &'static str {
        match self {
            Of::Group(field) | Of::Machine(field) => field.help,
            Of::Derived(derived) => derived.help(),
        }
    }

    /// What it counts when it is shown as a figure.
    pub fn unit(&self) -> FigureUnit {
        match self {
            Of::Group(field) | Of::Machine(field) => FigureUnit::of(field),
            Of::Derived(derived) => derived.unit(),
        }
    }

    /// What it counts, as a figure or raw.
    pub fn measure(&self, raw: bool) -> Measure {
        match self {
            Of::Group(field) | Of::Machine(field) if raw => Measure::Raw(field.unit),
            _ => Measure::Figure(self.unit()),
        }
    }
}

/// All that can be chosen: groups' fields, what is worked out of them, the machine's fields.
pub fn known() -> impl Iterator<Item = Of> {
    let groups = GROUP_FIELDS.iter().map(Of::Group);
    groups.chain(Derived::ALL.map(Of::Derived)).chain(MACHINE_FIELDS.iter().map(Of::Machine))
}

/// What is shown when nothing is chosen: use against limits, and what slowed a group down.
pub fn overview() -> Vec<Choice> {
    const NAMES: [&str; 12] = [
        "cpu.usage",
        "cpu.allotment",
        "cpu.throttled",
        "memory.current",
        "memory.limit",
        "io.rbytes",
        "io.wbytes",
        "pids.current",
        "cpu.pressure.some",
        "memory.pressure.some",
        "io.pressure.some",
        // a column that is shown only where there is one
        "cpuset.partition.invalid",
    ];
    let is_shown = |of: &Of| !matches!(of, Of::Machine(_)) && NAMES.contains(&of.name().as_str());
    let mut shown: Vec<Choice> = known().filter(is_shown).map(|of| Choice { of, part: Part::Sum }).collect();
    shown.sort_by_key(|choice| NAMES.iter().position(|name| *name == choice.of.name()));
    shown
}

/// The figures of a name: a field (`memory.current`), all that begin alike (`memory.*`), all of a kernel's file
/// (`cpuacct.usage`, `memory.stat`), the machine's with `machine.` before; and a part (`io.rbytes/8:16`, `io.rbytes/sda`) or each
/// (`cpu.percpu/*`) behind a slash, else their sum.
///
/// # Errors
/// [`UnknownField`].
pub fn choices(text: &str) -> Result<Vec<Choice>, UnknownField> {
    let (name, part) = match text.split_once('/') {
        None => (text, Part::Sum),
        Some((name, "*")) => (name, Part::Each),
        Some((name, one)) => (name, Part::One(one.to_owned())),
    };
    let found: Vec<Of> = match name.strip_suffix('*') {
        Some(begin) => known().filter(|of| begins(of, begin)).collect(),
        None => match known().find(|of| of.name() == name) {
            Some(of) => vec![of],
            None => known().filter(|of| is_in_file(of, name)).collect(),
        },
    };
    if found.is_empty() {
        let names: Vec<String> = known().map(|of| of.name()).collect();
        let near = units::nearest(name, names.iter().map(String::as_str));
        let near = near.into_iter().map(str::to_owned).collect();
        return Err(UnknownField { name: name.to_owned(), near });
    }
    Ok(found.into_iter().map(|of| Choice { of, part: part.clone() }).collect())
}

/// `*` alone is every figure of groups: the machine's are requested by their prefix.
fn begins(of: &Of, begin: &str) -> bool {
    let is_of_machine = matches!(of, Of::Machine(_));
    is_of_machine == begin.starts_with(MACHINE) && of.name().starts_with(begin)
}

fn is_in_file(of: &Of, file: &str) -> bool {
    let Of::Group(field) = of else { return false };
    let versions = [settings::Version::V1, settings::Version::V2];
    versions.iter().filter_map(|version| field.side(*version)).any(|side| side.source.file == file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        choices(text).unwrap().iter().map(|choice| choice.of.name()).collect()
    }

    #[test]
    fn a_field_is_found_by_its_name_its_beginning_and_the_kernels_file() {
        assert_eq!(names("memory.current"), ["memory.current"]);
        assert_eq!(names("memory.usage_in_bytes"), ["memory.current"]);
        assert_eq!(names("cpuacct.usage"), ["cpu.usage"]);
        assert_eq!(names("freezer.state"), ["frozen"]);
        assert_eq!(names("io.pressure.*"), ["io.pressure.some", "io.pressure.full"]);
        assert_eq!(names("machine.load"), ["machine.load"]);
        assert!(names("memory.stat").len() > 10);
    }

    #[test]
    fn a_star_alone_is_every_figure_of_groups_and_none_of_the_machine() {
        let all = names("*");
        assert_eq!(all.len(), GROUP_FIELDS.len() + Derived::ALL.len());
        assert!(!all.iter().any(|name| name.starts_with(MACHINE)));
        assert_eq!(names("machine.*").len(), MACHINE_FIELDS.len());
    }

    #[test]
    fn a_part_stands_behind_a_slash() {
        let part = |text| choices(text).unwrap()[0].part.clone();
        assert_eq!(part("io.rbytes"), Part::Sum);
        assert_eq!(part("io.rbytes/*"), Part::Each);
        assert_eq!(part("io.rbytes/8:16"), Part::One("8:16".to_owned()));
        let device = |text| choices(text).unwrap()[0].device_name().map(str::to_owned);
        assert_eq!(device("io.rbytes/sda").as_deref(), Some("sda"));
        assert_eq!(device("io.rbytes//dev/sda").as_deref(), Some("sda"));
        assert_eq!(
            [device("io.rbytes/8:16"), device("io.rbytes/*"), device("cpu.percpu/0")],
            [None, None, None]
        );
    }

    #[test]
    fn a_mistyped_field_is_refused_with_the_nearest() {
        let error = choices("memory.curent").unwrap_err();
        assert_eq!(error.hint(), "did you mean memory.current or memory.kernel?");
        assert_eq!(choices("zzz").unwrap_err().hint(), "ringfence fields lists them");
        // newcomers' finding A12: a controller, or what a layout calls it
        let hint = |name| choices(name).unwrap_err().hint();
        assert_eq!(hint("cpu"), "did you mean cpu.user or cpu.usage or cpu.percpu? cpu.* is all of them");
        assert_eq!(
            hint("pids"),
            "did you mean pids.max or pids.current or pids.events.max? pids.* is all of them"
        );
        assert_eq!(hint("usage"), "did you mean cpu.usage?");
    }

    #[test]
    fn every_name_is_one_figures_alone() {
        let mut all: Vec<String> = known().map(|of| of.name()).collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!(overview().len(), 12);
    }
}
