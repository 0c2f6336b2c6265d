//! What only the boot can do. It is compared with the command line of the kernel that runs, and never written.

use units::CpuSet;

/// A parameter of the kernel's command line.
#[derive(Debug, Clone, Copy)]
pub struct BootParameter {
    /// Its name, with `=` where it takes a value.
    pub name: &'static str,
    /// One sentence without the full stop.
    pub doc: &'static str,
    /// Is its value the isolated CPUs, behind these words?
    pub cpus_behind: Option<&'static str>,
    /// It costs something that not every machine can do without: named as optional.
    pub is_optional: bool,
}

/// A parameter that the command line lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// As it would be written.
    pub word: String,
    /// As of the row.
    pub is_optional: bool,
}

const fn of_cpus(name: &'static str, behind: &'static str, doc: &'static str) -> BootParameter {
    BootParameter { name, doc, cpus_behind: Some(behind), is_optional: false }
}

const fn whole(name: &'static str, doc: &'static str) -> BootParameter {
    BootParameter { name, doc, cpus_behind: None, is_optional: false }
}

const fn optional(name: &'static str, doc: &'static str) -> BootParameter {
    BootParameter { is_optional: true, ..whole(name, doc) }
}

/// All of them (admin-guide/kernel-parameters.txt).
pub const BOOT: &[BootParameter] = &[
    of_cpus("nohz_full=", "", "No tick while one task runs on the CPU"),
    of_cpus("rcu_nocbs=", "", "RCU's callbacks run on other CPUs; nohz_full= contains it"),
    of_cpus(
        "isolcpus=",
        "managed_irq,",
        "Interrupts whose CPUs the kernel manages go to other CPUs where they can",
    ),
    whole("skew_tick=1", "The CPUs' ticks do not come at the same time"),
    optional(
        "tsc=reliable",
        "The clock is not compared with others, which interrupts every CPU; an unsteady one is not noticed then",
    ),
    optional("nosmt", "No two CPUs share a core; the machine has half its CPUs then"),
];

/// The parameters that the command line lacks for these CPUs, in the order of the rows.
pub fn missing(command_line: &str, isolated: &CpuSet) -> Vec<Missing> {
    let words: Vec<&str> = command_line.split_whitespace().collect();
    let has = |parameter: &BootParameter| {
        words.iter().any(|word| match (parameter.cpus_behind, word.strip_prefix(parameter.name)) {
            (None, _) => *word == parameter.name,
            (Some(behind), Some(value)) => {
                let flags = behind.trim_end_matches(',');
                let list = value.trim_start_matches(|letter: char| !letter.is_ascii_digit());
                let is_flagged = flags.is_empty() || value.split(',').any(|flag| flag == flags);
                is_flagged && list.parse::<CpuSet>().is_ok_and(|cpus| isolated.is_subset(&cpus))
            }
            (Some(_), None) => false,
        })
    };
    let lacking = BOOT.iter().filter(|parameter| !has(parameter));
    lacking
        .map(|parameter| {
            let word = match parameter.cpus_behind {
                Some(behind) => format!("{}{behind}{isolated}", parameter.name),
                None => parameter.name.to_owned(),
            };
            Missing { word, is_optional: parameter.is_optional }
        })
        .collect()
}

/// `nohz_full=3 (optional: nosmt)`; empty if nothing is missing.
pub fn line_of_missing(missing: &[Missing]) -> String {
    let words = |is_optional: bool| {
        let some = missing.iter().filter(|one| one.is_optional == is_optional);
        some.map(|one| one.word.as_str()).collect::<Vec<&str>>().join(" ")
    };
    match (words(false), words(true)) {
        (needed, optional) if optional.is_empty() => needed,
        (needed, optional) => format!("{needed} (optional: {optional})").trim_start().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_line_lacks() {
        let isolated = "2-3".parse().unwrap();
        let all = "nohz_full=2-3 rcu_nocbs=2-3 isolcpus=managed_irq,2-3 skew_tick=1 tsc=reliable nosmt";
        let words = |line: &str| -> Vec<String> {
            missing(line, &isolated).into_iter().map(|missing| missing.word).collect()
        };
        assert_eq!(words("quiet root=/dev/vda1").join(" "), all);
        assert_eq!(words(all), Vec::<String>::new());
        let line = line_of_missing(&missing("isolcpus=managed_irq,2-3 skew_tick=1 nohz_full=2-3", &isolated));
        assert_eq!(line, "rcu_nocbs=2-3 (optional: tsc=reliable nosmt)");
        let some = "nohz_full=1-3 rcu_nocbs=2 isolcpus=domain,2-3 nosmt";
        let lacking = ["rcu_nocbs=2-3", "isolcpus=managed_irq,2-3", "skew_tick=1", "tsc=reliable"];
        assert_eq!(words(some), lacking);
    }
}
