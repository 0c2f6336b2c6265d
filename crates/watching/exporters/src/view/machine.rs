//! The machine's figures of a picture, by CPU and node.

use std::collections::BTreeMap;

use super::picture::Picture;

/// What the machine's figures come to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineFigures {
    /// Share of the time that each CPU was busy, 0 to 1.
    pub busy: BTreeMap<usize, f64>,
    /// Bytes of each node: all, unused, caching files.
    pub nodes: BTreeMap<usize, [f64; 3]>,
    /// Interrupts per second of each CPU.
    pub interrupts: BTreeMap<usize, f64>,
    /// By name without `machine.`: what there is one of.
    pub single: BTreeMap<String, f64>,
}

impl MachineFigures {
    /// Those of a picture that has them; the others are missing.
    pub fn of(picture: &Picture) -> MachineFigures {
        let mut figures = MachineFigures::default();
        for (heading, value) in &picture.machine {
            let Some(number) = value.number() else { continue };
            let name = heading.name.strip_prefix("machine.").unwrap_or(&heading.name);
            let Some((field, part)) = name.split_once('/') else {
                figures.single.insert(name.to_owned(), number);
                continue;
            };
            let Ok(part) = part.parse::<usize>() else { continue };
            match field {
                // both are time with nothing to run
                "cpu.idle" | "cpu.iowait" => *figures.busy.entry(part).or_insert(1.0) -= number,
                "interrupts" => {
                    figures.interrupts.insert(part, number);
                }
                "memory.node.total" => figures.nodes.entry(part).or_default()[0] = number,
                "memory.node.free" => figures.nodes.entry(part).or_default()[1] = number,
                "memory.node.file" => figures.nodes.entry(part).or_default()[2] = number,
                _ => {}
            }
        }
        // the kernel counts in ticks, which end a little before or after the second
        figures.busy.values_mut().for_each(|busy| *busy = busy.clamp(0.0, 1.0));
        figures
    }

    /// A machine-wide figure.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.single.get(name).copied()
    }

    /// CPUs' worth of work.
    pub fn used_cpus(&self) -> f64 {
        self.busy.values().sum()
    }
}
