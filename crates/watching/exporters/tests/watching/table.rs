//! The field table tests itself.

use std::collections::BTreeSet;

use exporters::metrics::FAMILIES;
use libtest_mimic::Trial;
use monitor::{Field, From, GROUP_FIELDS, Kind, MACHINE_FIELDS, Pace, Per, Shape, Unit};
use settings::{Access, Version, find};

use crate::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial(
            "every file of a group's field is one of the settings table, of the same controller",
            files_are_settings,
        ),
        trial("names are unique and helps are of one style", style),
        trial("what is read with every sample is small", ticks_are_small),
        trial("docs/fields.md is the table", page),
        trial("docs/metrics.md is made of the tables", metrics_page),
        trial("docs/why.md is the table of causes", || is_page("why.md", &why::markdown())),
    ]
}

fn files_are_settings() {
    for field in GROUP_FIELDS {
        let mut any = false;
        for version in [Version::V1, Version::V2] {
            let Some(side) = field.side(version) else { continue };
            any = true;
            let at = format!("{} on {version}: {}", field.name, side.source.file);
            let found = find(side.source.file).unwrap_or_else(|_| panic!("{at} is no setting"));
            let binding =
                found.setting.side(version).binding().unwrap_or_else(|| panic!("{at} is not on it"));
            assert!(binding.files.contains(&side.source.file), "{at}: {:?}", binding.files);
            assert_eq!(binding.controller, side.controller, "{at}");
            assert_ne!(found.setting.access, Access::Write, "{at}");
        }
        assert!(any, "{} is nowhere", field.name);
    }
}

fn style() {
    for fields in [GROUP_FIELDS, MACHINE_FIELDS] {
        let mut seen = BTreeSet::new();
        for Field { name, help, unit, kind, .. } in fields {
            assert!(seen.insert(name), "{name} is there twice");
            assert!(
                !help.is_empty() && !help.ends_with(['.', ' ']) && !help.contains(['\n', '|']),
                "{name}: {help}"
            );
            assert!(help.starts_with(|c: char| c.is_uppercase()), "{name}: {help}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '.' | '_')), "{name}");
            assert!(!(*kind == Kind::Counter && *unit == Unit::Flag), "{name}");
        }
    }
}

/// memory.stat costs as much as ten others; a list by CPU grows with the machine.
fn ticks_are_small() {
    for field in GROUP_FIELDS {
        for side in [Version::V1, Version::V2].iter().filter_map(|version| field.side(*version)) {
            let is_large = matches!(side.source.file, "memory.stat" | "memory.numa_stat")
                || matches!(side.source.shape, Shape::CpuList | Shape::Nodes(_));
            assert!(!is_large || side.source.pace == Pace::Slow, "{}", field.name);
        }
        // columns of devices are made of sources that are read together
        assert!(field.per != Per::Device || !matches!(field.from, From::Machine(_)));
    }
}

fn page() {
    is_page("fields.md", &monitor::markdown());
}

fn metrics_page() {
    let page = exporters::metrics::markdown();
    is_page("metrics.md", &page);
    // a name is one metric's
    let names =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name);
    let mut seen = BTreeSet::new();
    names.for_each(|name| assert!(seen.insert(name), "{name} is there twice"));
    assert!(seen.len() > FAMILIES.len() + 50, "{seen:?}");
    for family in FAMILIES {
        let ends = |end: &str| family.name.ends_with(end);
        assert!(family.unit.is_empty() || ends(&format!("_{}", family.unit)), "{}", family.name);
        assert!(!ends("_total") && !ends("_info") && !family.help.ends_with('.'), "{}", family.name);
        assert!(family.name.starts_with("ringfence_"), "{}", family.name);
    }
}

fn is_page(name: &str, page: &str) {
    let path = format!("{}/../../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("RF_BLESS").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page, "docs/{name} is not the table: make docs");
}
