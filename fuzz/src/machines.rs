//! Listings of machines, which come from other people's machines.

use topology::{Machine, print};

use crate::with_text;

/// Any listing; after a form feed, a second one to merge with it.
pub fn machine(data: &[u8]) {
    with_text(data, |text| {
        let mut listings = text.splitn(2, '\u{c}').map(|listing| Machine::from_listing("f", listing));
        let first = listings.next().unwrap_or_else(|| unreachable!("a text has a first part"));
        let both = match (&first, listings.next()) {
            (Ok(one), Some(Ok(other))) => Some(one.clone().merge(other)),
            _ => None,
        };
        for read in [Some(first), both].into_iter().flatten() {
            match read {
                Ok(machine) => prints(&machine),
                Err(error) => {
                    let said = format!("{error} {}", error.hint().unwrap_or_default());
                    assert_eq!(units::printable(&said), said);
                }
            }
        }
    });
}

fn prints(machine: &Machine) {
    let again = Machine::from_listing("g", &machine.to_json());
    assert_eq!(again.as_ref().ok(), Some(machine), "{again:?}");
    let forms = [print::numactl(machine), print::cpus(machine)].into_iter().flatten();
    for said in forms.chain([print::text(machine)]) {
        assert!(
            said.lines().all(|line| units::printable(&line.replace('\t', " ")) == line.replace('\t', " ")),
            "{said:?}"
        );
    }
    let svg = print::svg(machine, &|cpu| Some(print::Mark { group: cpu, label: "group" }));
    assert!(!svg.contains("<script"), "{svg}");
}
