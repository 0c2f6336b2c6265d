//! The studies that come with the program, as files.

pub struct Study {
    pub name: &'static str,
    pub text: &'static str,
}

pub const STUDIES: [Study; 14] = [
    Study { name: "tour", text: include_str!("../../../../studies/tour.toml") },
    Study { name: "aa", text: include_str!("../../../../studies/aa.toml") },
    Study { name: "s1-consolidation", text: include_str!("../../../../studies/s1-consolidation.toml") },
    Study { name: "s1-numa", text: include_str!("../../../../studies/s1-numa.toml") },
    Study { name: "s1-scaling", text: include_str!("../../../../studies/s1-scaling.toml") },
    Study { name: "s1-swap", text: include_str!("../../../../studies/s1-swap.toml") },
    Study { name: "s1-isolation", text: include_str!("../../../../studies/s1-isolation.toml") },
    Study { name: "s2", text: include_str!("../../../../studies/s2.toml") },
    Study { name: "s3", text: include_str!("../../../../studies/s3.toml") },
    Study { name: "s4", text: include_str!("../../../../studies/s4.toml") },
    Study { name: "s5", text: include_str!("../../../../studies/s5.toml") },
    Study { name: "s6-roles", text: include_str!("../../../../studies/s6-roles.toml") },
    Study { name: "elastic", text: include_str!("../../../../studies/elastic.toml") },
    Study { name: "elastic-wakeups", text: include_str!("../../../../studies/elastic-wakeups.toml") },
];

/// For completion.
pub fn names() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|study| study.name)
}
