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
}

const fn of_cpus(name: &'static str, behind: &'static str, doc: &'static str) -> BootParameter {
    BootParameter { name, doc, cpus_behind: Some(behind) }
}

const fn whole(name: &'static str, doc: &'static str) -> BootParameter {
    BootParameter { name, doc, cpus_behind: None }
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
    whole("tsc=reliable", "The clock is not compared with others, which interrupts every CPU"),
    whole("nosmt", "No two CPUs share a core"),
];

/// The parameters that the command line lacks for these CPUs, as they would be written.
pub fn missing(command_line: &str, isolated: &CpuSet) -> Vec<String> {
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
        .map(|parameter| match parameter.cpus_behind {
            Some(behind) => format!("{}{behind}{isolated}", parameter.name),
            None => parameter.name.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_line_lacks() {
        let isolated = "2-3".parse().unwrap();
        let all = "nohz_full=2-3 rcu_nocbs=2-3 isolcpus=managed_irq,2-3 skew_tick=1 tsc=reliable nosmt";
        assert_eq!(missing("quiet root=/dev/vda1", &isolated).join(" "), all);
        assert_eq!(missing(all, &isolated), Vec::<String>::new());
        let some = "nohz_full=1-3 rcu_nocbs=2 isolcpus=domain,2-3 nosmt";
        let lacking = ["rcu_nocbs=2-3", "isolcpus=managed_irq,2-3", "skew_tick=1", "tsc=reliable"];
        assert_eq!(missing(some, &isolated), lacking);
    }
}
