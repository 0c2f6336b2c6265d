//! The kernel's tables with a column per CPU: `/proc/interrupts` and `/proc/softirqs`. Pure.

use std::collections::BTreeMap;

/// Counts of each cause since the boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// The CPUs of the columns: those that are online.
    pub cpus: Vec<usize>,
    /// By a cause's name: a count per column.
    pub rows: BTreeMap<String, Vec<u64>>,
}

impl Table {
    /// Rows with fewer counts than CPUs, which are of the whole machine (`ERR:`), are left out.
    pub fn parse(text: &str) -> Table {
        let mut lines = text.lines();
        let heading = lines.next().unwrap_or_default().split_whitespace();
        let cpus: Vec<usize> = heading.filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
        let row = |line: &str| {
            let (id, rest) = line.split_once(':')?;
            let mut words = rest.split_whitespace();
            let counts: Vec<u64> =
                words.by_ref().take(cpus.len()).map_while(|word| word.parse().ok()).collect();
            (counts.len() == cpus.len()).then(|| (name(id.trim(), rest, cpus.len()), counts))
        };
        let rows = lines.filter_map(row).collect();
        Table { cpus, rows }
    }

    /// How often each cause occurred on a CPU since `before`. An interrupt that was set up meanwhile counts from 0, and one
    /// whose counter was set back is left out.
    pub fn since<'t>(&'t self, before: &'t Table, cpu: usize) -> impl Iterator<Item = (&'t str, u64)> {
        let of = move |table: &Table, counts: &[u64]| {
            let column = table.cpus.iter().position(|known| *known == cpu)?;
            counts.get(column).copied()
        };
        self.rows.iter().filter_map(move |(name, counts)| {
            let now = of(self, counts)?;
            let then = before.rows.get(name).and_then(|counts| of(before, counts)).unwrap_or(0);
            Some((name.as_str(), now.checked_sub(then)?))
        })
    }
}

/// `36 virtio1-req.0`, `Local timer interrupts`, `NET_RX`: the last column, behind the number that tells interrupts of one
/// name apart.
fn name(id: &str, rest: &str, cpus: usize) -> String {
    let mut text = rest;
    for _ in 0..cpus {
        text = text.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
    }
    let text = text.trim();
    let last = text.rsplit("  ").next().unwrap_or_default().trim();
    match id.parse::<u32>() {
        Ok(_) if last.is_empty() => id.to_owned(),
        Ok(_) => format!("{id} {last}"),
        Err(_) if text.is_empty() => id.to_owned(),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
           CPU0       CPU2       
 26:          0         12  IO-APIC   4-edge      ttyS0
 36:          0    3224443 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0, virtio 1
 37:          0          7
LOC:   13577910   14153793   Local timer interrupts
ERR:          0
";

    #[test]
    fn a_cause_is_named_and_counted_on_its_cpu() {
        let before = Table::parse(BEFORE);
        assert_eq!(before.cpus, [0, 2]);
        let names: Vec<&str> = before.rows.keys().map(String::as_str).collect();
        assert_eq!(names, ["26 ttyS0", "36 virtio1-req.0, virtio 1", "37", "Local timer interrupts"]);
        let after = Table::parse(&BEFORE.replace("3224443", "3224450").replace("14153793", "14153803"));
        let counted: Vec<(&str, u64)> = after.since(&before, 2).filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("36 virtio1-req.0, virtio 1", 7), ("Local timer interrupts", 10)]);
        assert_eq!(after.since(&before, 0).map(|(_, count)| count).sum::<u64>(), 0);
        assert_eq!(after.since(&before, 1).count(), 0);
    }

    #[test]
    fn softirqs_have_no_description() {
        let table =
            Table::parse("                    CPU0       CPU1       \n          HI:          0          3\n");
        assert_eq!(table.rows.into_iter().collect::<Vec<_>>(), [("HI".to_owned(), vec![0, 3])]);
    }

    #[test]
    fn what_is_no_table_has_no_rows() {
        for text in ["", "x", "CPU0\n", "CPU0 CPU1\n1: 2\n", "CPU0\n1: 99999999999999999999 x\n"] {
            assert!(Table::parse(text).rows.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_counter_that_was_set_back_is_left_out_and_a_new_interrupt_counts() {
        let before = Table::parse("CPU0\n1: 5 a\n");
        let after = Table::parse("CPU0\n1: 2 a\n2: 3 b\n");
        assert_eq!(after.since(&before, 0).collect::<Vec<_>>(), [("2 b", 3)]);
    }
}
