//! What follows a group's load is never advised to be written by hand.

use std::process::Command;

use serde_json::Value;

use crate::{
    reported::{Row, Stage, row},
    world::Need,
};

pub const ROWS: &[Row] =
    &[row("why never advises to write what ringfenced resizes", advised).needs(&[Need::Cpus(2)])];

const LAYOUT: &str = "[groups.\"{g}\"]\ncpus = { min = 1, max = 2, weight = 100 }\ncpu.max = { min = \"10%\", max = \"50%\" }\n";

/// All that `why` advises.
fn hints(stage: &Stage<'_>) -> Vec<String> {
    let mut command = Command::new(stage.desk.scene.program());
    command.args(["why", &stage.fill("{g}"), "--for", "1s", "--json"]);
    let output = command.env("RINGFENCE_STATE", stage.desk.path("state")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let causes = answer["causes"].as_array().unwrap();
    assert!(!causes.is_empty(), "{answer:#}");
    causes.iter().filter_map(|cause| Some(cause["hint"].as_str()?.to_owned())).collect()
}

/// Two tasks on one CPU with a tenth of it, and no daemon.
fn advised(stage: &mut Stage<'_>) {
    stage.apply(LAYOUT);
    for name in ["{one}", "{two}"] {
        stage.desk.scene.start(name, &["sh", "-c", "while :; do :; done"]);
        stage.desk.scene.ok(&format!("move {{g}} {name}"));
    }
    for (line, advice) in [("status {s}", "ringfence daemon --layout"), ("pause {s}", "ringfence resume")] {
        stage.desk.run(line);
        let hints = hints(stage);
        assert!(hints.iter().any(|hint| hint.starts_with(advice)), "{hints:?}");
        let writes = |hint: &&String| hint.contains("cpuset.cpus=") || hint.contains("cpu.max=");
        assert_eq!(hints.iter().find(writes), None);
    }
}
