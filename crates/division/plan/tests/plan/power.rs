//! Power saving: which groups are general, what they have together, and that they take nothing from elastic groups.

use plan::LintKind;
use settings::Version;

use crate::world::{cpus, machine, plan_on};

const LAYOUT: &str = "[power]\nsaving = true\nfloor = 2\n\
    [groups.db]\ncpus = { min = 1, max = 8, weight = 100 }\n\
    [groups.rt]\ncpus = \"7\"\nexclusive = true\n\
    [groups.apps]\n[groups.\"apps/batch\"]\n[groups.web]\npids.max = 100\n";

#[test]
fn general_groups_have_all_that_no_group_has_for_itself_and_elastic_groups_share_theirs() {
    for version in [Version::V1, Version::V2] {
        let plan = plan_on(version, &machine(1, 1, 8, 1), LAYOUT).unwrap();
        let sets = cpus(&plan);
        assert_eq!((sets["apps"].as_str(), sets["web"].as_str()), ("0-6", "0-6"), "{version:?}");
        assert_eq!(sets["db"].parse::<units::CpuSet>().unwrap().len(), 1, "{version:?}");
        // where v1 has a list of its own below
        assert!(sets.get("apps/batch").is_none_or(|set| set == "0-6"), "{version:?}");
        let scope = plan.upkeep.elastic.iter().find(|scope| scope.saving.is_some()).unwrap();
        let names: Vec<&str> = scope.groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["apps", "web"], "{version:?}");
        assert_eq!(scope.pool.to_string(), "0-6");
        assert!(scope.groups.iter().all(|group| (group.min, group.max) == (2, 7)));
        assert!(scope.saving.as_ref().unwrap().contains(7), "they stay far from other groups' CPUs");
    }
}

#[test]
fn a_layout_without_general_groups_is_warned_of() {
    let layout = "[power]\nsaving = true\n[groups.db]\ncpus = 2\n[groups.\"db/batch\"]\n";
    let plan = plan_on(Version::V2, &machine(1, 1, 4, 1), layout).unwrap();
    assert!(plan.upkeep.elastic.is_empty());
    let lint = plan.lints.iter().find(|lint| lint.kind == LintKind::Elastic).unwrap();
    assert!(lint.message.contains("[power] saves nothing"), "{}", lint.message);
}
