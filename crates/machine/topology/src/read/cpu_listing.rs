//! Reads the per-CPU listing: the model's name and, for every CPU the system counts, its physical id, siblings,
//! core id and cores, one row each. Knows nothing of nodes and memory, and says so by leaving them out.
//!
//! Source: the values are those of `/proc/cpuinfo` (`arch/x86/kernel/cpu/proc.c`).

use std::collections::BTreeMap;

use units::CpuSet;

use super::line::{Line, Lines};
use crate::{
    LogicalCpu, MAX_CPUS, Machine, TopologyError,
    print::{CPU_ROWS as ROWS, MODEL},
};

pub(super) fn read(name: &str, text: &str) -> Result<Machine, TopologyError> {
    let mut lines = Lines::new(name, text);
    let mut first = lines.expect(&format!("'{MODEL}…' or '{}…'", ROWS[0]))?;
    let mut model_name = None;
    if let Some(value) = first.text.strip_prefix("model name") {
        let value = value.trim_start().strip_prefix(':').ok_or_else(|| first.wrong(MODEL))?;
        model_name = Some(value.trim().to_owned());
        first = lines.expect(&format!("'{}…'", ROWS[0]))?;
    }
    let ids = values(&first, ROWS[0], None)?;
    let mut row = |label| {
        let line = lines.expect(&format!("'{label}…'"))?;
        Ok((line, values(&line, label, Some(ids.len()))?))
    };
    let (_, packages) = row(ROWS[1])?;
    let (siblings_line, siblings) = row(ROWS[2])?;
    let (_, core_ids) = row(ROWS[3])?;
    let (cores_line, cores) = row(ROWS[4])?;
    lines.end()?;

    let places: Vec<(u32, u32)> = packages.iter().copied().zip(core_ids).collect();
    counts_hold(&siblings_line, &packages, &siblings, |_| true)?;
    // the first CPU of each core stands for it
    let mut seen = std::collections::BTreeSet::new();
    let leads: Vec<bool> = places.iter().map(|place| seen.insert(*place)).collect();
    counts_hold(&cores_line, &packages, &cores, |index| leads[index])?;
    Ok(Machine { model_name, cpus: cpus(&first, &ids, &places)?, ..Machine::default() })
}

/// The row's values, as many as there are CPUs.
fn values(line: &Line<'_>, label: &str, count: Option<usize>) -> Result<Vec<u32>, TopologyError> {
    let rest = line.text.strip_prefix(label.trim_end()).ok_or_else(|| line.wrong(format!("'{label}…'")))?;
    let values: Vec<u32> = (rest.split_whitespace())
        .take(MAX_CPUS + 1)
        .map(|value| line.number(value, "a number"))
        .collect::<Result<_, _>>()?;
    if values.len() > MAX_CPUS {
        return Err(line.wrong(format!("at most {MAX_CPUS} values")));
    }
    match count {
        Some(count) if count != values.len() => {
            Err(line
                .wrong_at(format!("{count} values, one for each CPU"), &format!("{} values", values.len())))
        }
        _ => Ok(values),
    }
}

/// Each CPU's stated count must be the number of CPUs of its package that `counted` takes, else CPUs are missing.
fn counts_hold(
    line: &Line<'_>,
    packages: &[u32],
    stated: &[u32],
    counted: impl Fn(usize) -> bool,
) -> Result<(), TopologyError> {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for (index, package) in packages.iter().enumerate() {
        *counts.entry(*package).or_default() += u32::from(counted(index));
    }
    for (package, stated) in packages.iter().zip(stated) {
        let count = counts.get(package).copied().unwrap_or(0);
        if count != *stated {
            return Err(line.wrong_at(
                format!("{count} for physical id {package}, as the rows above count"),
                &stated.to_string(),
            ));
        }
    }
    Ok(())
}

fn cpus(line: &Line<'_>, ids: &[u32], places: &[(u32, u32)]) -> Result<Vec<LogicalCpu>, TopologyError> {
    let mut cores: BTreeMap<(u32, u32), CpuSet> = BTreeMap::new();
    let mut seen = CpuSet::new();
    for (&id, place) in ids.iter().zip(places) {
        let id = id as usize;
        cores.entry(*place).or_default().insert(id);
        if id >= MAX_CPUS || !seen.insert(id) {
            return Err(
                line.wrong_at(format!("each CPU once, and numbers below {MAX_CPUS}"), &id.to_string())
            );
        }
    }
    let mut cpus: Vec<LogicalCpu> = (ids.iter().zip(places))
        .map(|(&id, place)| LogicalCpu {
            id: id as usize,
            online: true,
            package: Some(place.0),
            core: Some(place.1),
            siblings: cores.get(place).cloned(),
            ..LogicalCpu::default()
        })
        .collect();
    cpus.sort_by_key(|cpu| cpu.id);
    Ok(cpus)
}
