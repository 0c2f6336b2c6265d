//! Every mistake that a check says, with its place, against an experiment without any.

use topology::Machine;

use super::*;
use crate::rescale;

/// An experiment without a mistake.
const RIGHT: &str = r#"
name = "mine"
title = "Mine"
repetitions = 2
duration = "10s"

[quick]
duration = "4s"

[machine]
cpus = 8

[cpus.one]
count = 1

[device.disk]
kind = "loop"
size = "64M"

[group.server]
"memory.max" = "1G"

[workload.load]
driver = "cpu"
threads = "{one}"
group = "server"

[workload.reads]
driver = "read"
device = "disk"

[[condition]]
name = "a"
settings.server."cpu.max" = "{one.quota}"

[[condition]]
name = "b"
settings.server.cpuset.cpus = "{one}"
settings.server."io.max" = "{disk} riops=10"
options.load.threads = 2

[[load]]
name = "noise"

[[load.workload]]
driver = "cpu"

[[event]]
at = "50%"
conditions = ["a"]
settings.server."cpu.max" = "max"

[[measure]]
name = "rate"
is = "load.rate / server.cpu"
between = ["10%", "100%"]

[[comparison]]
measure = "rate"
baseline = "a"
condition = "b"
load = "noise"

[[chart]]
title = "Rates"
kind = "bars"
of = ["rate"]

[[table]]
title = "Order"
kind = "ranking"
of = "rate"
"#;

struct Nothing;

impl Facts for Nothing {
    fn memory(&self) -> Option<Bytes> {
        Some(Bytes(8 << 30))
    }

    fn cpus(&self) -> Option<usize> {
        Some(2)
    }

    fn device(&self, path: &str) -> Result<DeviceNumber, String> {
        Err(format!("{path}: No such file or directory"))
    }
}

/// Everything that is wrong with a text, as a user sees it.
fn wrong(text: &str) -> String {
    let source = Source::new("mine.toml", text);
    let read = crate::read(&source);
    let mut found = read.diagnostics;
    if let Some(experiment) = &read.experiment {
        let listing = "available: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: 8192 MB\nnode 0 free: 4096 MB\n\
                       node distances:\nnode 0\n0: 10\n";
        let machine = Machine::from_listing("numactl", listing).unwrap();
        let cpus = rescale::rescale(experiment, &machine).unwrap_or_default();
        let known = CheckContext {
            cpus: &cpus,
            facts: &Nothing,
            group_figures: &[("io.rios", "/s".to_owned())],
            machine_figures: &[("memory.free", "B".to_owned()), ("memory.node.free", "B".to_owned())],
        };
        found.extend(check(experiment, &source, &read.places, &known));
    }
    layout::render(&found, std::slice::from_ref(&source))
}

#[test]
fn what_is_right_is_not_complained_of() {
    assert_eq!(wrong(RIGHT), "");
}

#[test]
fn figures_of_the_machine_of_a_node_and_of_settling_are_known() {
    for right in ["machine.memory.free", "machine.memory.node.free.3", "server.cpu", "load.rate.settle"] {
        assert_eq!(wrong(&RIGHT.replacen("load.rate / server.cpu", right, 1)), "", "{right}");
    }
}

/// What is changed in the right text, and what is said then: place, message, hint.
#[test]
fn each_mistake_is_told_with_its_line_and_the_nearest_right_name() {
    for (right, mistake, said) in [
        (
            "repetitions = 2",
            "repetition = 2",
            "unknown key 'repetition'\n --> mine.toml:4:1\n  |\n4 | repetition = 2\n  | ^^^^^^^^^^\nhint: did you mean repetitions?",
        ),
        ("repetitions = 2", "repetitions = \"two\"", "'repetitions' is a text, not a number"),
        ("repetitions = 2", "repetitions = -2", "'repetitions' is a number, not a number in its range"),
        ("repetitions = 2", "repetitions = 0", "at least one repetition is made"),
        ("title = \"Mine\"\n", "", "the experiment lacks 'title'"),
        ("name = \"mine\"", "name = \"my own\"", "'my own' is no name for an experiment"),
        ("duration = \"10s\"", "duration = \"10\"", "'10' is no time, such as 500ms, 30s or 2min"),
        ("duration = \"10s\"", "duration = \"0s\"", "a run takes some time"),
        ("count = 1", "count = 9", "the study's machine has 8 CPUs"),
        ("count = 1", "counts = 1", "unknown key 'counts'"),
        ("count = 1", "from = \"before\"", "'cpus.one' lacks 'before'"),
        ("count = 1", "from = \"before\"\nbefore = \"two\"", "there is no other set of CPUs 'two'"),
        ("count = 1", "before = \"two\"", "needs from = \"before\""),
        ("kind = \"loop\"", "kind = \"lop\"", "unknown kind 'lop'"),
        ("size = \"64M\"", "size = \"64Q\"", "unknown unit 'Q' in '64Q'"),
        ("driver = \"cpu\"\nthreads", "driver = \"cpus\"\nthreads", "unknown driver 'cpus'"),
        ("driver = \"cpu\"\nthreads", "threads", "'workload.load' lacks 'driver'"),
        ("threads = \"{one}\"", "thread = 1", "unknown key 'thread'"),
        ("threads = \"{one}\"", "threads = \"{two}\"", "there is no set of CPUs 'two'"),
        ("threads = \"{one}\"", "threads = \"many\"", "'many' is no number of threads"),
        ("group = \"server\"", "group = \"sever\"", "there is no group 'sever'"),
        ("device = \"disk\"", "device = \"disc\"", "there is no device 'disc'"),
        ("\"memory.max\" = \"1G\"", "\"memory.maxx\" = \"1G\"", "unknown setting 'memory.maxx'"),
        ("\"memory.max\" = \"1G\"", "\"memory.max\" = \"lots\"", "memory.max"),
        (
            "settings.server.cpuset.cpus = \"{one}\"",
            "settings.server.cpuset.cpus = \"{on}\"",
            "nothing is named '{on}'",
        ),
        ("settings.server.cpuset.cpus", "settings.sever.cpuset.cpus", "there is no group 'sever'"),
        ("{disk} riops=10", "/dev/nothing riops=10", "/dev/nothing: No such file or directory"),
        ("{disk} riops=10", "{disk} rips=10", "io.max"),
        (
            "options.load.threads",
            "options.lod.threads",
            "there is no workload 'lod'\n  --> mine.toml:40:9\n   |\n40 | options.lod.threads = 2\n   |         ^^^\nhint: did you mean load?",
        ),
        ("options.load.threads", "options.load.thread", "unknown key 'thread'"),
        ("options.load.threads = 2", "options.load.driver = \"busy\"", "unknown key 'driver'"),
        ("options.load.threads = 2", "options.load = 2", "'load' is a number, not a table"),
        ("options.load.threads = 2", "options.load.threads = [2]", "'threads' is a list, not a text"),
        ("options.load.threads = 2", "options.load.threads = \"{two}\"", "there is no set of CPUs 'two'"),
        ("options.load.threads = 2", "options.load.threads = 0", "'0' is no number of threads"),
        ("options.load.threads = 2", "options.reads.device = \"disc\"", "there is no device 'disc'"),
        // attack finding 24: these names and sizes were accepted
        ("[device.disk]", "[device.\"../x\"]", "\"../x\" is not a name for a device"),
        ("[device.disk]", "[device.\"/etc/x\"]", "\"/etc/x\" is not a name for a device"),
        ("[device.disk]", "[device.\"a\\u0000b\"]", "\"a\\0b\" is not a name for a device"),
        ("[device.disk]", "[device.\"\"]", "\"\" is not a name for a device"),
        (
            "size = \"64M\"",
            "size = \"64M\"\nfile-system = \"../../bin/sh\"",
            "\"../../bin/sh\" is not a name",
        ),
        ("size = \"64M\"", "size = \"64M\"\nscheduler = \"b/q\"", "\"b/q\" is not a name"),
        ("size = \"64M\"", "size = 0", "'0' is too small"),
        ("size = \"64M\"", "size = \"18446744073709551615\"", "is too large"),
        ("device = \"disk\"", "device = \"disk\"\nblock = 0", "'0' is too small"),
        ("device = \"disk\"", "device = \"disk\"\ndepth = 1000000000", "depth 1000000000 is out of range"),
        // newcomers A9
        (
            "is = \"load.rate / server.cpu\"",
            "is = \"reads.latency.p99\"\nunit = \"1/s\"",
            "\"1/s\" is not a unit of a time\n  --> mine.toml:56:8\n   |\n56 | unit = \"1/s\"\n   |        ^^^^^\nhint: possible are ns, us, ms, s, min",
        ),
        (
            "is = \"load.rate / server.cpu\"",
            "is = \"machine.memory.free\"\nunit = \"ms\"",
            "\"ms\" is not a unit of an amount of memory",
        ),
        (
            "is = \"load.rate / server.cpu\"",
            "is = \"load.rate\"\ntarget = { c = 1 }",
            "there is no condition 'c'",
        ),
        (
            "is = \"load.rate / server.cpu\"",
            "is = \"load.rate\"\ntarget = { a = 0 }",
            "a target of 0 is not above 0",
        ),
        ("at = \"50%\"", "at = \"5s\"", "with --quick: '5s' is behind the end of the run, which takes 4 s"),
        ("at = \"50%\"", "at = \"11s\"", "'11s' is behind the end of the run, which takes 10 s"),
        ("conditions = [\"a\"]", "conditions = [\"c\"]", "there is no condition 'c'"),
        ("is = \"load.rate / server.cpu\"", "is = \"load.rat\"", "workload 'load' has no figure 'rat'"),
        ("is = \"load.rate / server.cpu\"", "is = \"reads.latency.p98\"", "'p98' is no quantile"),
        ("is = \"load.rate / server.cpu\"", "is = \"load.rate.p99\"", "'load.rate.p99' is no figure"),
        (
            "is = \"load.rate / server.cpu\"",
            "is = \"machine.memory.fee\"",
            "the machine has no figure 'memory.fee'",
        ),
        ("is = \"load.rate / server.cpu\"", "is = \"server.gpu\"", "group 'server' has no figure 'gpu'"),
        ("is = \"load.rate / server.cpu\"", "is = \"laod.rate\"", "'laod' is no workload and no group"),
        ("is = \"load.rate / server.cpu\"", "is = \"rate\"", "'rate' is no figure"),
        ("\"10%\", \"100%\"", "\"10%\", \"110%\"", "'110%' is no share from 0% to 100%"),
        ("baseline = \"a\"", "baseline = \"A\"", "there is no condition 'A'"),
        ("load = \"noise\"", "load = \"nose\"", "there is no load 'nose'"),
        ("measure = \"rate\"", "measure = \"rates\"", "there is no measure 'rates'"),
        ("kind = \"bars\"", "kind = \"bar\"", "unknown word 'bar'"),
        ("of = [\"rate\"]", "of = \"rate\"", "'of' is a text, not a list"),
        ("of = [\"rate\"]", "of = [\"rat\"]", "there is no measure 'rat'"),
        ("kind = \"ranking\"", "kind = \"rank\"", "unknown word 'rank'"),
        ("kind = \"ranking\"", "kind = \"top-events\"", "there is no workload 'rate'"),
        (
            "kind = \"ranking\"\nof = \"rate\"",
            "kind = \"load-profile\"\nof = \"load\"",
            "workload 'load' has no db-time, no db-cpu",
        ),
        ("name = \"b\"\n", "name = \"a\"\n", "condition 'a' is given twice"),
        ("[group.server]", "[group.load]", "'load' is a workload too"),
        ("title = \"Mine\"", "title = Mine", "'Mine' is no value"),
    ] {
        assert!(RIGHT.contains(right), "{right}");
        let text = wrong(&RIGHT.replacen(right, mistake, 1));
        assert!(text.contains(said), "{mistake}:\n{text}");
        assert!(text.contains(" --> mine.toml:") || said.contains("lacks 'title'"), "{mistake}:\n{text}");
    }
}

#[test]
fn memory_is_placed_on_nodes_that_can_be_read() {
    let with = |placement: &str| {
        let engine = "driver = \"logical-io\"\nreaders = \"{one}\"";
        let text = RIGHT.replace("driver = \"cpu\"\nthreads = \"{one}\"", engine);
        wrong(&text.replace("options.load.threads = 2", &format!("options.load.placement = \"{placement}\"")))
    };
    for right in ["first-touch", "interleave", "interleave:0-1", "bind:{one.mems}"] {
        assert!(!with(right).contains("placement"), "{}", with(right));
    }
    for (placement, said) in [
        ("bind", "'bind' is no placement of memory"),
        ("bind:", "'bind:' is no placement of memory"),
        ("bind:x", "'bind:x' is no placement of memory"),
        ("bind:{two.mems}", "nothing is named '{two.mems}'"),
    ] {
        assert!(with(placement).contains(said), "{}", with(placement));
    }
}

#[test]
fn a_server_of_the_labs_own_has_settings_and_roles_that_it_can_have() {
    let with = |options: &str| {
        let server = format!("driver = \"pgbench\"\n{options}");
        let text = RIGHT.replace("driver = \"cpu\"\nthreads = \"{one}\"", &server);
        wrong(&text.replace("load.rate", "load.tps").replace("options.load.threads", "options.load.clients"))
    };
    for right in [
        "roles.postgresql.autovacuum = \"server\"",
        "roles = { \"postgresql.walwriter\" = \"server\" }\npartitions = 4",
        "settings = { autovacuum_naptime = \"1s\", jit = false, random_page_cost = 1.1 }",
        "settings.auto_explain.log_min_duration = 5",
    ] {
        assert_eq!(with(right), "", "{right}");
    }
    for (mistake, said) in [
        (
            "roles.postgresql.autovacum = \"server\"",
            "PostgreSQL has no processes with the role 'postgresql.autovacum'",
        ),
        ("roles.postgresql.autovacum = \"server\"", "did you mean postgresql.autovacuum?"),
        ("roles.oracle.job = \"server\"", "PostgreSQL has no processes with the role 'oracle.job'"),
        ("roles.postgresql.io = \"sever\"", "there is no group 'sever'"),
        ("dsn = \"host=db\"\nroles.postgresql.io = \"server\"", "'roles' is for a server of the lab's own"),
        ("dsn = \"host=db\"\nsettings.jit = \"off\"", "'settings' is for a server of the lab's own"),
        ("dsn = \"host=db\"\npartitions = 2", "'partitions' is for a server of the lab's own"),
        ("settings.shared_buffers = \"1GB\"", "the option shared-buffers decides it"),
        ("settings.Port = 1", "'Port' is set by the lab"),
        (
            "settings.config_file = \"/etc/postgresql/15/main/postgresql.conf\"",
            "'config_file' is set by the lab",
        ),
        ("settings.max_parallel_workers = \"{one.count}\"", "is no value of a setting"),
        ("roles.postgresql.postmaster = \"server\"", "the server's first process has no group of its own"),
        ("settings.\"a b\" = 1", "\"a b\" is no setting of PostgreSQL"),
        ("partitions = 1001", "partitions 1001 is out of range"),
    ] {
        assert!(with(mistake).contains(said), "{mistake}:\n{}", with(mistake));
    }
    let text = RIGHT.replace(
        "driver = \"read\"\ndevice = \"disk\"",
        "driver = \"pgbench\"\nroles.postgresql.io = \"server\"",
    );
    let said = wrong(&text);
    assert!(said.contains("roles need the server's own group"), "{said}");
}

#[test]
fn what_is_wrong_with_a_workload_is_not_told_of_each_condition_again() {
    let said = wrong(
        &RIGHT
            .replace("threads = \"{one}\"", "threads = 0")
            .replace("options.load.threads = 2", "options.load.threads = 0\noptions.reads.depth = 2"),
    );
    assert_eq!(said.matches("'0' is no number of threads").count(), 1, "{said}");
    let said = wrong(
        &RIGHT
            .replace("device = \"disk\"", "device = \"disc\"")
            .replace("options.load.threads = 2", "options.reads.depth = 2"),
    );
    assert_eq!(said.matches("there is no device 'disc'").count(), 1, "{said}");
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_the_lines() {
    let text = RIGHT.replace("count = 1", "counts = 1").replace("threads", "thread").replace("of =", "off =");
    let said = wrong(&text);
    let places: Vec<usize> =
        ["counts", "thread", "off"].map(|word| said.find(&format!("'{word}'")).unwrap()).into();
    assert!(places.is_sorted(), "{said}");
}

#[test]
fn a_file_that_was_read_is_written_into_results_and_read_again_the_same() {
    let read = crate::read(&Source::new("mine.toml", RIGHT)).experiment.unwrap();
    let text = serde_json::to_string(&read).unwrap();
    assert_eq!(serde_json::from_str::<Experiment>(&text).unwrap(), read);
    assert_eq!(read.condition[1].settings["server"]["cpuset.cpus"], "{one}");
    assert_eq!(read.lengths.repetitions, Some(2));
}

/// attack finding 22: 32,770 conditions took 46 s, 10 MB of them more than 100 s.
#[test]
fn many_conditions_cost_no_square_and_a_huge_file_is_refused() {
    let many = |count: usize, of: &dyn Fn(usize) -> String| {
        let (head, rest) = RIGHT.split_once("[[load]]").unwrap();
        let more: String = (0..count).map(of).collect();
        format!("{head}{more}[[load]]{rest}")
    };
    let right = |number: usize| {
        format!(
            "[[condition]]\nname = \"c{number}\"\nsettings.server.\"cpu.weight\" = {}\n",
            number % 9999 + 1
        )
    };
    let wrong_ones = |number: usize| format!("[[condition]]\nname = \"a\"\nsettings.x.y = {number}\n");
    // seconds that this thread was on a CPU so far (Documentation/scheduler/sched-stats.rst)
    let on_cpu = || -> u64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1_000_000_000
    };
    let before = on_cpu();
    let text = many(10_000, &right);
    assert!(text.len() < crate::LARGEST);
    assert_eq!(wrong(&text), "");
    let source = Source::new("mine.toml", &text);
    let mut experiment = crate::read(&source).experiment.unwrap();
    crate::leave_out(&mut experiment, &Rescaled::default(), 2).unwrap();
    let said = wrong(&many(10_000, &wrong_ones));
    assert!(said.contains("condition 'a' is given twice"));
    // some seconds without optimisation; the square of it were minutes
    let took = on_cpu() - before;
    assert!(took < 60, "{took} s");
    let said = wrong(&many(100_000, &right));
    assert_eq!(said, "error: mine.toml is larger than 1 MiB\nhint: is it an experiment at all?\n", "{said}");
}
