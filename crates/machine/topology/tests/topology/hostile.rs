//! Any text is read or refused, never a panic; what was read prints.

use proptest::prelude::*;
use topology::{Machine, print};

use super::{LISTINGS, recorded_text};

/// Reads and, if that works, prints in every form.
fn survives(text: &str) {
    if let Ok(machine) = Machine::from_listing("given", text) {
        let _ = print::numactl(&machine);
        let _ = print::cpus(&machine);
        print::text(&machine);
        let svg = print::svg(&machine, &|cpu| Some(print::Mark { group: cpu, label: "group" }));
        roxmltree::Document::parse(&svg).unwrap();
        let again = Machine::from_listing("again", &machine.to_json()).unwrap();
        assert_eq!(again, machine);
    }
}

/// A listing with some of its bytes, words or lines changed.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0..6u8, "[0-9a-z<>:,\\-\"{}() ]{0,6}");
    (0..LISTINGS.len() + 1, prop::collection::vec(edit, 1..4)).prop_map(|(which, edits)| {
        let name = LISTINGS.get(which).unwrap_or(&"synthetic-2x8.json");
        let mut text = recorded_text(name);
        for (at, kind, with) in edits {
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            if starts.is_empty() {
                break;
            }
            let start = starts[at.index(starts.len())];
            let line_end = text[start..].find('\n').map_or(text.len(), |end| start + end + 1);
            let word_end = text[start..].find([' ', '"', ',', '\n']).map_or(text.len(), |end| start + end);
            match kind {
                0 => text.insert_str(start, &with),
                1 => text.replace_range(start..word_end, &with),
                2 => text.replace_range(start..line_end, ""),
                3 => text.truncate(start),
                4 => text = text.replace(&text[start..word_end].to_owned(), &with),
                _ => text = format!("{}{}", &text[..line_end], &text[start..]),
            }
            text.truncate(text.char_indices().nth(200_000).map_or(text.len(), |(at, _)| at));
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        survives(&text);
    }

    #[test]
    fn any_text_behind_a_known_beginning_is_read_or_refused(
        start in prop::sample::select(vec![
            "available: 1 nodes (0)\n", "CPU(s): 2\n", "<topology>", "{\"format\":\"ringfence-machine\",\"version\":1,",
            "processors  (OS CPU count)  0 1\n", "CPU NODE CORE L1d:L2:L3 ONLINE\n0 0 0 0:0:0 yes\n", "# CPU,Core,Node,L3\n0,0,0,0\n",
            "{\"lscpu\": [{\"field\": \"CPU(s):\", \"data\": \"2\"},", "{\"cpus\": [{\"cpu\": 0,",
            "Machine (2GB)\n  NUMANode L#0 (P#0 2GB) + L3 L#0 (1MB) + Core L#0 + PU L#0 (P#0)\n", "root@db1# numactl -H\n",
        ]),
        text in "[\\PC\n]{0,200}",
    ) {
        survives(&format!("{start}{text}"));
    }

    #[test]
    fn a_mutated_listing_is_read_or_refused(text in mutated()) {
        survives(&text);
    }
}
