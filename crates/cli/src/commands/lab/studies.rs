//! The studies that come with the program.

use layout::Source;
use serde_json::json;

use crate::{failure::Failure, output};

pub struct Study {
    pub name: &'static str,
    pub text: &'static str,
}

const STUDIES: [Study; 11] = [
    Study { name: "tour", text: include_str!("../../../../../studies/tour.toml") },
    Study { name: "aa", text: include_str!("../../../../../studies/aa.toml") },
    Study { name: "s1-consolidation", text: include_str!("../../../../../studies/s1-consolidation.toml") },
    Study { name: "s1-numa", text: include_str!("../../../../../studies/s1-numa.toml") },
    Study { name: "s1-scaling", text: include_str!("../../../../../studies/s1-scaling.toml") },
    Study { name: "s1-swap", text: include_str!("../../../../../studies/s1-swap.toml") },
    Study { name: "s1-isolation", text: include_str!("../../../../../studies/s1-isolation.toml") },
    Study { name: "s2", text: include_str!("../../../../../studies/s2.toml") },
    Study { name: "s3", text: include_str!("../../../../../studies/s3.toml") },
    Study { name: "s4", text: include_str!("../../../../../studies/s4.toml") },
    Study { name: "s5", text: include_str!("../../../../../studies/s5.toml") },
];

pub fn find(name: &str) -> Result<&'static Study, Failure> {
    STUDIES.iter().find(|study| study.name == name).ok_or_else(|| {
        let near = units::nearest(name, STUDIES.iter().map(|study| study.name));
        let failure = Failure::usage(format!("there is no study and no file '{name}'"));
        match near.as_slice() {
            [] => failure.hint("ringfence lab list shows the studies; a file's name ends in .toml"),
            near => failure.hint(format!("did you mean {}?", near.join(" or "))),
        }
    })
}

pub fn list(as_json: bool) -> Result<(), Failure> {
    let title = |study: &Study| {
        let read = experiment::read(&Source::new(study.name, study.text));
        read.experiment.map(|experiment| experiment.title).unwrap_or_default()
    };
    if as_json {
        let all: Vec<_> =
            STUDIES.iter().map(|study| json!({ "name": study.name, "title": title(study) })).collect();
        return output::json(&json!({ "studies": all }));
    }
    let lines = STUDIES.iter().map(|study| format!("{:16}  {}\n", study.name, title(study)));
    output::text(&lines.collect::<String>())
}
