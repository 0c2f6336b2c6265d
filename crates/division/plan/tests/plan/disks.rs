//! Limits and weights by block device on a machine at hand: what its kernel would refuse is a problem of the plan, and
//! what is said twice of one disk is named.

use plan::{LintKind, Plan, Problem};

use crate::world::{Kind, World, desired, machine};

/// A disk with a partition, and one with BFQ.
fn planned(kind: Kind, layout: &str) -> Result<Plan, Vec<Problem>> {
    let mut machine = machine(1, 1, 2, 1);
    let devices = serde_json::json!([
        { "name": "sda", "major": 8, "minor": 0, "size": 1 << 30, "scheduler": "mq-deadline" },
        { "name": "sda1", "major": 8, "minor": 1, "size": 1 << 29, "partition_of": "sda" },
        { "name": "sdb", "major": 8, "minor": 16, "size": 1 << 30, "scheduler": "bfq" },
    ]);
    machine.block_devices = serde_json::from_value(devices).unwrap();
    let world = World::new(kind, machine);
    let desired = desired(layout);
    let mut observed = world.observed(&desired);
    observed.hostname = Some("db1".to_owned());
    world.plan_observed(&desired, &observed)
}

#[test]
fn a_device_that_is_not_there_is_a_problem_of_the_plan() {
    for kind in [Kind::V1, Kind::V2] {
        for setting in ["io.max.\"250:99\" = { riops = 10 }", "io.bfq.weight = \"250:99 50\""] {
            let problems = planned(kind, &format!("[groups.a]\n{setting}\n")).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:#?}");
            assert!(problems[0].to_string().contains("there is no block device 250:99"), "{}", problems[0]);
            assert_eq!(problems[0].hint().as_deref(), Some("lsblk lists them"));
        }
        // what is not limited is no matter
        planned(kind, "[groups.a]\nio.max.\"250:99\" = { riops = \"max\" }\n").unwrap();
        planned(kind, "[groups.a]\nio.max.\"8:16\" = { riops = 10 }\n").unwrap();
    }
}

#[test]
fn a_weight_by_device_needs_bfq_there() {
    for kind in [Kind::V1, Kind::V2] {
        let problems = planned(kind, "[groups.a]\nio.bfq.weight = \"8:0 50\"\n").unwrap_err();
        let text = problems[0].to_string();
        assert!(text.contains("/dev/sda has the scheduler mq-deadline"), "{text}");
        assert_eq!(problems[0].hint().as_deref(), Some("echo bfq > /sys/block/sda/queue/scheduler"));
        planned(kind, "[groups.a]\nio.bfq.weight = \"50; 8:16 100\"\n").unwrap();
    }
}

#[test]
fn two_limits_of_one_disk_are_named() {
    let text = "[groups.a]\nio.max.\"8:0\" = { riops = 10, wiops = 7 }\nio.max.\"8:1\" = { riops = 20, wiops = 7 }\n";
    for kind in [Kind::V1, Kind::V2] {
        let plan = planned(kind, text).unwrap();
        let lints: Vec<&str> = plan
            .lints
            .iter()
            .filter(|lint| lint.kind == LintKind::Partition)
            .map(|lint| lint.message.as_str())
            .collect();
        assert_eq!(lints.len(), 2, "{lints:#?}");
        assert!(lints[1].ends_with("has riops=10 and riops=20 for one disk, 8:0: 10 counts"), "{lints:#?}");
    }
    // the names of both versions: one disk can't have both
    let text =
        "[groups.a]\nio.max.\"8:0\" = { wbps = 4096 }\nblkio.throttle.write_bps_device = \"8:1 8192\"\n";
    let problems = planned(Kind::V2, text).unwrap_err();
    assert!(problems[0].to_string().contains("both set io.max"), "{problems:#?}");
}
