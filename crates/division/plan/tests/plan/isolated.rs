//! Isolated CPUs: which places are set, in which order, and what is refused.

use plan::{Action, Anybody, LintKind, MachineFacts, Observed, Plan, Problem, Step};
use settings::{
    Version,
    knobs::{Instance, ReadOnly, Seen},
};

use crate::world::{desired, machine};

const LAYOUT: &str =
    "[groups.rt]\ncpus = \"3\"\nexclusive = true\nisolate = \"cpus\"\n[isolate]\nstat-interval = 10\n";
const INTERVAL: &str = "/proc/sys/vm/stat_interval";

fn seen(knob: &str, path: &str, text: &str) -> Seen {
    let instance = Instance::File(path.to_owned());
    let (knob, text) = (knob.to_owned(), text.to_owned());
    Seen { knob, instance, text, before: None, fixed: false, read_only: None }
}

fn planned(layout: &str, knobs: Option<Vec<Seen>>) -> Result<Plan, Vec<Problem>> {
    let (desired, machine) = (desired(layout), machine(1, 1, 4, 1));
    let command_line = knobs.as_ref().map(|_| "quiet nohz_full=3".to_owned());
    let observed = Observed { knobs, command_line, ..Observed::empty(Version::V2) };
    plan::plan(&desired, &machine, &observed, &MachineFacts(&machine), &Anybody)
}

fn set(plan: &Plan) -> Vec<String> {
    let knobs = plan.steps.iter().filter(|step| matches!(step.action, Action::SetKnob { .. }));
    knobs.map(Step::to_string).collect()
}

/// As docs/recipes/core.md has it: in place of `exclusive = true`, also of a number of CPUs.
#[test]
fn a_partition_that_is_not_balanced_is_isolated_as_well() {
    let kind = "cpus = 1\n\"cpuset.cpus.partition\" = \"isolated\"";
    let layout = LAYOUT.replace("cpus = \"3\"\nexclusive = true", kind);
    let layout = layout.replace("stat-interval = 10", "rt-throttling = -1");
    let knobs = vec![seen("rt-throttling", "/proc/sys/kernel/sched_rt_runtime_us", "950000")];
    let plan = planned(&layout, Some(knobs)).unwrap();
    assert_eq!(set(&plan), ["/proc/sys/kernel/sched_rt_runtime_us <- -1 (was 950000)"]);
    let steps: Vec<String> = plan.steps.iter().map(Step::to_string).collect();
    assert!(
        steps.iter().any(|step| step.contains("cpuset.cpus.partition") && step.contains("isolated")),
        "{steps:#?}"
    );
}

#[test]
fn what_is_not_so_becomes_steps_behind_those_of_the_groups() {
    let thread = |thread: u32, text: &str| Seen {
        instance: Instance::Thread { thread, started: 7, comm: "kthreadd".to_owned() },
        ..seen("kernel-threads", "", text)
    };
    let knobs = vec![
        thread(2, "0-3"),
        thread(80, "0-1"),
        seen("interrupts", "/proc/irq/1/smp_affinity_list", "0-3"),
        seen("interrupts", "/proc/irq/2/smp_affinity_list", "0"),
        Seen { fixed: true, ..seen("interrupts", "/proc/irq/3/smp_affinity_list", "3") },
        seen("stat-interval", INTERVAL, "1"),
    ];
    let plan = planned(LAYOUT, Some(knobs)).unwrap();
    let wanted = [
        "kernel thread 2 (kthreadd) <- 0-2 (was 0-3)",
        // as it is, for the undo; and again behind the partition
        "kernel thread 80 (kthreadd) <- 0-1 (was 0-1)",
        "/proc/irq/1/smp_affinity_list <- 0-2 (was 0-3)",
        "/proc/sys/vm/stat_interval <- 10 (was 1)",
        "kernel thread 80 (kthreadd) <- 0-1 (was 0-1)",
    ];
    assert_eq!(set(&plan), wanted);
    let is_knob = |at: usize| matches!(plan.steps[at].action, Action::SetKnob { .. });
    assert!(is_knob(0) && is_knob(1) && !is_knob(2) && is_knob(plan.steps.len() - 3));
    let lint = |kind: LintKind| plan.lints.iter().find(|lint| lint.kind == kind).unwrap();
    assert!(lint(LintKind::NotIsolated).message.contains("/proc/irq/3/smp_affinity_list"));
    let boot = &lint(LintKind::BootOnly).message;
    assert!(boot.contains("rcu_nocbs=3") && !boot.contains("nohz_full"), "{boot}");
}

#[test]
fn a_plan_for_a_machine_that_is_not_here_says_so() {
    let plan = planned(LAYOUT, None).unwrap();
    assert_eq!(set(&plan), Vec::<String>::new());
    assert!(plan.lints.iter().any(|lint| lint.kind == LintKind::Unchecked));
    assert_eq!(plan.upkeep.isolation.unwrap().housekeeping.to_string(), "0-2");
}

#[test]
fn what_can_not_be_isolated_is_refused() {
    let all = LAYOUT.replace("\"3\"", "\"0-3\"").replace("exclusive = true\n", "");
    let problems = planned(&all, Some(Vec::new())).unwrap_err();
    assert!(problems[0].to_string().contains("no CPU is left"), "{problems:?}");
}

#[test]
fn places_of_one_read_only_mount_are_one_problem() {
    let mount = |mount: &str, remount: Option<&str>| {
        Some(ReadOnly { mount: mount.to_owned(), remount: remount.map(str::to_owned) })
    };
    let irq = |number: u32| Seen {
        read_only: mount("/proc/irq", None),
        ..seen("interrupts", &format!("/proc/irq/{number}/smp_affinity_list"), "0-3")
    };
    let sysctl = mount("/proc/sys", Some("mount -o remount,bind,rw /proc/sys"));
    let sysctl = Seen { read_only: sysctl, ..seen("stat-interval", INTERVAL, "1") };
    let as_wanted = Seen { text: "0-2".to_owned(), ..irq(9) };
    let knobs = vec![irq(1), irq(2), sysctl, irq(3), as_wanted, irq(4)];
    let problems = planned(LAYOUT, Some(knobs)).unwrap_err();
    let said: Vec<(String, String)> =
        problems.iter().map(|problem| (problem.to_string(), problem.hint().unwrap())).collect();
    let wanted = [
        (
            "group 'rt': /proc/irq is mounted read-only, with 4 places to be set: /proc/irq/1/smp_affinity_list to 0-2, \
             /proc/irq/2/smp_affinity_list to 0-2, /proc/irq/3/smp_affinity_list to 0-2 and 1 more",
            "call it on the host, or in a container of Docker or Podman that was started with --privileged; or leave \
             out what needs it: interrupts = false",
        ),
        (
            "group 'rt': /proc/sys is mounted read-only, with 1 place to be set: /proc/sys/vm/stat_interval to 10",
            "mount -o remount,bind,rw /proc/sys makes it writable; or leave out what needs it: stat-interval = false",
        ),
    ];
    assert_eq!(said, wanted.map(|(what, hint)| (what.to_owned(), hint.to_owned())));
}

#[test]
fn two_groups_that_share_cpus_and_differ_in_a_row_are_refused() {
    let both = |of_first: &str, of_second: &str| {
        format!(
            "[groups.a]\ncpus = \"2-3\"\nisolate = {{ {of_first} }}\n[groups.\"a/b\"]\ncpus = \"3\"\nisolate = {{ {of_second} }}\n"
        )
    };
    let problems = planned(&both("wake-up-latency = 10", "level = \"quiet\""), Some(Vec::new())).unwrap_err();
    let said =
        "groups 'a' and 'a/b' both have CPUs 3 and request different values of wake-up-latency: 10 and n/a";
    assert_eq!(problems[0].to_string(), said);
    let Problem::Contradiction { origin, other, .. } = &problems[0] else { panic!("{problems:?}") };
    assert_eq!(
        (origin.to_string(), other.to_string()),
        ("layout.toml:6:11".to_owned(), "layout.toml:3:11".to_owned())
    );
    // the usual value by its name, and CPUs that only one of them has
    planned(&both("wake-up-latency = \"n/a\"", "level = \"quiet\""), Some(Vec::new())).unwrap();
    let apart = both("wake-up-latency = 10", "level = \"quiet\"").replace("2-3", "2").replace("a/b", "b");
    let requests = planned(&apart, Some(Vec::new())).unwrap().upkeep.isolation.unwrap().requests;
    assert_eq!(requests.iter().filter(|request| request.knob == "wake-up-latency").count(), 2);
}
