//! The demonstration without a machine: its conditions, order, verdicts and text, with a bench that pretends.

use std::collections::BTreeMap;

use topology::LogicalCpu;
use units::{CpuSet, NodeSet};

use super::{
    bench::{Bench, GroupRun},
    condition::conditions,
    verdict::rows,
    *,
};
use crate::{CpuReport, Latency, ReadReport, Refused, load::Others};

fn site(cpus: usize) -> Site {
    let other = usize::from(cpus > 1);
    Site {
        cpus: CpuSet::range(0, cpus - 1),
        pinned: [(0, NodeSet::range(0, 0)), (other, NodeSet::range(0, 0))],
        device: Some(PathBuf::from("/dev/loop3")),
    }
}

fn condition(kind: Kind) -> Condition {
    let all = conditions(&site(2), &Lengths::default());
    all.into_iter().find(|condition| condition.kind == kind).unwrap()
}

fn worker(units: u64, cpu_ns: u64, cpus: &str) -> CpuReport {
    let (wall_ns, cpus) = (1_000_000_000, cpus.parse().unwrap());
    CpuReport {
        units,
        wall_ns,
        cpu_ns,
        process_cpu_ns: cpu_ns,
        threads: 1,
        cpus,
        units_per_interval: Vec::new(),
    }
}

fn reader(reads: u64) -> ReadReport {
    let latency = Latency { min_ns: 1, mean_ns: 2, p50_ns: 400_000_000, p99_ns: 410_000_000, max_ns: 5 };
    ReadReport {
        reads,
        bytes: reads * 8192,
        wall_ns: 1_000_000_000,
        process_cpu_ns: 1,
        depth: 4,
        in_flight: 4,
        in_flight_ns: 1,
        latency: Some(latency),
        reads_per_interval: Vec::new(),
    }
}

const QUIET: Others = Others { other: 0.01, steal: 0.0 };
const BUSY: Others = Others { other: 0.4, steal: 0.0 };

fn run(condition: &Condition, groups: Vec<Vec<CpuReport>>, read: Option<ReadReport>, others: Others) -> Run {
    let group = |cpu| GroupRun { group: "rf-demo-1-a".to_owned(), cpu, read: read.clone() };
    let groups = groups.into_iter().map(group).collect();
    Run { condition: condition.name(), repetition: 1, groups, others, settings: Vec::new() }
}

fn verdict_of(condition: &Condition, runs: &[Run]) -> (Row, Vec<Failure>) {
    let mut failures = Vec::new();
    let mut rows = rows(std::slice::from_ref(condition), runs, &mut failures);
    (rows.remove(0), failures)
}

#[test]
fn more_workers_than_cpus_compete_and_each_group_gets_its_own_cpu() {
    for (cpus, workers, threads) in
        [(1, 1, 1), (2, 2, 1), (3, 2, 1), (8, 5, 1), (160, 81, 1), (8192, 128, 33)]
    {
        let all = conditions(&site(cpus), &Lengths::default());
        assert_eq!((all[0].workers, all[0].threads), (workers, threads));
        assert!(2 * workers * threads > cpus, "{cpus} CPUs must be competed for");
        let cpus_of = |condition: &Condition| -> Vec<String> {
            condition.groups.iter().map(|group| group.cpus.as_ref().unwrap().to_string()).collect()
        };
        assert_eq!(cpus_of(&all[1]), if cpus == 1 { ["0", "0"] } else { ["0", "1"] });
    }
    let single = conditions(&site(1), &Lengths::default());
    assert_eq!(single[1].asked(), "a and b on CPU 0, the only one");
    assert_eq!(condition(Kind::Pinned).asked(), "a on CPU 0, b on CPU 1");
}

#[test]
fn settings_are_given_as_on_the_command_line() {
    let settings = |kind| condition(kind).groups[0].settings.clone();
    assert_eq!(settings(Kind::Quota { percent: 25 }), [("cpu.max", "25%".to_owned())]);
    let limit = [("io.max", "/dev/loop3 riops=10".to_owned())];
    assert_eq!(settings(Kind::LimitedReads { per_second: 10 }), limit);
    let pinned = [("cpuset.cpus", "0".to_owned()), ("cpuset.mems", "0".to_owned())];
    assert_eq!(settings(Kind::Pinned), pinned);
    assert!(settings(Kind::Free).is_empty() && settings(Kind::Reads).is_empty());
}

#[test]
fn without_a_block_device_nothing_is_read() {
    let site = Site { device: None, ..site(2) };
    assert!(conditions(&site, &Lengths::default()).iter().all(|condition| condition.device.is_none()));
}

fn machine(cpus: &[(usize, usize, &str)]) -> Machine {
    let cpu = |(id, node, siblings): &(usize, usize, &str)| LogicalCpu {
        id: *id,
        online: true,
        package: Some(0),
        core: None,
        node: Some(*node),
        l3: None,
        siblings: Some(siblings.parse().unwrap()),
        max_mhz: None,
    };
    Machine { cpus: cpus.iter().map(cpu).collect(), ..Machine::default() }
}

#[test]
fn the_two_cpus_are_allowed_ones_on_different_cores_each_with_its_own_node() {
    let smt = machine(&[(0, 0, "0-1"), (1, 0, "0-1"), (2, 1, "2-3"), (3, 1, "2-3")]);
    let choose = |status: &str| Site::choose(&smt, status, None).map(|site| site.pinned);
    let text = |[a, b]: [(usize, NodeSet); 2]| format!("{} on {}, {} on {}", a.0, a.1, b.0, b.1);
    let chosen = |status: &str| text(choose(status).unwrap());
    assert_eq!(chosen("Cpus_allowed_list:\t0-3\nMems_allowed_list:\t0-1\n"), "0 on 0, 2 on 1");
    assert_eq!(chosen("Cpus_allowed_list:\t1-3\nMems_allowed_list:\t0\n"), "1 on 0, 2 on 0");
    assert_eq!(chosen("Cpus_allowed_list:\t2-3\nMems_allowed_list:\t1\n"), "2 on 1, 3 on 1");
    assert_eq!(chosen("Cpus_allowed_list:\t3\n"), "3 on 0, 3 on 0");
    assert!(matches!(choose("Cpus_allowed_list:\t9\n"), Err(Error::NoCpu)));
}

#[test]
fn pinned_workers_must_have_the_same_cpu_time_and_stay_on_their_cpu() {
    let pinned = condition(Kind::Pinned);
    let of = |units: u64, ms: [u64; 2], cpu: &str| {
        let groups =
            vec![vec![worker(1000, ms[0] * 1_000_000, "0")], vec![worker(units, ms[1] * 1_000_000, cpu)]];
        vec![run(&pinned, groups, None, QUIET)]
    };
    let (row, failures) = verdict_of(&pinned, &of(1000, [490, 500], "1"));
    assert_eq!((row.verdict, row.note, failures.len()), (Verdict::Ok, None, 0));
    assert_eq!(row.measured, "49.0 to 50.0 % of a CPU for each, 2.0 % apart");
    assert_eq!(row.details, "2 workers, their work 0.0 % apart; ran a on 0, b on 1");
    let (row, failures) = verdict_of(&pinned, &of(1000, [450, 500], "1"));
    assert_eq!((row.verdict, failures.len()), (Verdict::Off, 0));
    assert_eq!(row.note.unwrap(), "workers are 10.5 % apart");
    let (row, failures) = verdict_of(&pinned, &of(1000, [500, 500], "0-1"));
    assert_eq!(row.verdict, Verdict::Failed);
    assert_eq!(failures[0].error, "a worker of b on CPU 1 ran on 0-1");
}

#[test]
fn a_cpu_that_is_slower_than_the_other_is_told_of_and_no_fault_of_the_division() {
    let pinned = condition(Kind::Pinned);
    let groups = vec![vec![worker(1000, 500_000_000, "0")], vec![worker(700, 500_000_000, "1")]];
    let (row, _) = verdict_of(&pinned, &[run(&pinned, groups, None, QUIET)]);
    assert_eq!(row.verdict, Verdict::Ok);
    let note = "the CPUs are not equally fast: work for the same CPU time differs by 35.3 %";
    assert_eq!(row.note.unwrap(), note);
}

#[test]
fn a_quota_is_the_sum_of_its_groups_workers() {
    let quota = condition(Kind::Quota { percent: 50 });
    let of = |ns: u64| vec![run(&quota, vec![vec![worker(1, ns, "0"), worker(1, ns, "1")]], None, QUIET)];
    assert_eq!(verdict_of(&quota, &of(260_000_000)).0.verdict, Verdict::Ok);
    let (row, _) = verdict_of(&quota, &of(270_000_000));
    assert_eq!((row.verdict, row.note.as_deref()), (Verdict::Off, Some("8.0 % above what was asked")));
    assert_eq!(row.measured, "54.0 % (54.0 to 54.0)");
}

#[test]
fn ten_reads_a_second_are_eight_to_eleven() {
    let limited = condition(Kind::LimitedReads { per_second: 10 });
    let verdict =
        |reads| verdict_of(&limited, &[run(&limited, vec![vec![]], Some(reader(reads)), BUSY)]).0.verdict;
    assert_eq!([7, 8, 10, 11, 12].map(verdict), {
        use Verdict::{Off, Ok};
        [Off, Ok, Ok, Ok, Off]
    });
    let free = condition(Kind::Reads);
    let (row, _) = verdict_of(&free, &[run(&free, vec![vec![]], Some(reader(43_812)), QUIET)]);
    assert_eq!(row.verdict, Verdict::Comparison);
    assert_eq!(row.measured, "43,812 a second (43,812 to 43,812)");
    assert_eq!(row.details, "a read took 400 ms, 99 % up to 410 ms");
}

#[test]
fn disturbed_runs_are_left_out_as_long_as_there_are_quiet_ones() {
    let quota = condition(Kind::Quota { percent: 50 });
    let of = |ns, others| run(&quota, vec![vec![worker(1, ns, "0")]], None, others);
    let (row, _) =
        verdict_of(&quota, &[of(300_000_000, BUSY), of(500_000_000, QUIET), of(310_000_000, BUSY)]);
    assert_eq!((row.verdict, row.runs, row.left_out, row.disturbed), (Verdict::Ok, 1, 2, false));
    let (row, failures) = verdict_of(&quota, &[of(300_000_000, BUSY)]);
    assert_eq!((row.verdict, row.runs, row.left_out, row.disturbed), (Verdict::Off, 1, 0, true));
    let note = "40.0 % below what was asked; other processes used up to 40.0 % of all CPUs meanwhile";
    assert_eq!(row.note.unwrap(), note);
    assert!(failures.is_empty(), "a timing is no failure");
}

fn refusal() -> Refused {
    Refused { text: "cpu.max: refused".to_owned(), hint: Some("ask again".to_owned()) }
}

/// Pretends to run conditions.
#[derive(Default)]
struct Pretence {
    ran: Vec<String>,
    fails: &'static str,
    others: BTreeMap<String, Vec<Others>>,
}

impl Bench for Pretence {
    fn run(&mut self, condition: &Condition, _: u32) -> Result<Run, Error> {
        let name = condition.name();
        self.ran.push(name.clone());
        if name == self.fails {
            return Err(Error::Division(refusal()));
        }
        let others = self.others.get_mut(&name).and_then(Vec::pop).unwrap_or(QUIET);
        Ok(run(condition, vec![vec![worker(1, 1, "0")]], None, others))
    }
}

fn alternated(bench: &mut Pretence, stop: &AtomicBool, limit: f64) -> Result<Record, Error> {
    let lengths = Lengths { repetitions: 2, repeat_until_seconds: limit, ..Lengths::default() };
    let site = Site { device: None, ..site(2) };
    let conditions = conditions(&site, &lengths);
    let program = Program::this("worker");
    let mut options = Options { program, stop, directory: None, lengths, progress: &mut |_| {} };
    alternate(bench, &conditions, &mut options, Instant::now())
}

const ORDER: [&str; 4] = ["CPU, no limit", "CPU, pinned", "CPU, quota of 50 %", "CPU, quota of 25 %"];

#[test]
fn conditions_alternate_and_a_failed_one_does_not_stop_the_others() {
    let mut bench = Pretence { fails: "CPU, pinned", ..Pretence::default() };
    let record = alternated(&mut bench, &AtomicBool::new(false), 70.0).unwrap();
    assert_eq!(bench.ran[..4], ORDER);
    assert_eq!(bench.ran[4..], [ORDER[0], ORDER[2], ORDER[3]]);
    assert_eq!(record.runs.len(), 6);
    let failure = Failure { of: ORDER[1].to_owned(), error: refusal().text, hint: refusal().hint };
    assert_eq!(record.failures, [failure]);
}

#[test]
fn disturbed_conditions_are_run_again_while_there_is_time() {
    let disturbed = || BTreeMap::from([(ORDER[2].to_owned(), vec![BUSY, QUIET, BUSY])]);
    let mut bench = Pretence { others: disturbed(), ..Pretence::default() };
    alternated(&mut bench, &AtomicBool::new(false), 70.0).unwrap();
    assert_eq!(bench.ran[8..], [ORDER[2]; 2], "until two of its runs were quiet");
    let mut bench = Pretence { others: disturbed(), ..Pretence::default() };
    alternated(&mut bench, &AtomicBool::new(false), 0.0).unwrap();
    assert_eq!(bench.ran.len(), 8);
}

#[test]
fn an_interrupted_demonstration_runs_nothing_more() {
    let mut bench = Pretence::default();
    let result = alternated(&mut bench, &AtomicBool::new(true), 70.0);
    assert!(matches!(result, Err(Error::Interrupted)));
    assert!(bench.ran.is_empty());
}

/// Groups that are only names.
struct Names(Vec<String>);

impl Division for Names {
    fn describe(&mut self) -> Vec<String> {
        Vec::new()
    }
    fn groups(&mut self) -> Result<Vec<String>, Refused> {
        Ok(self.0.clone())
    }
    fn create(&mut self, _: &str, _: &[&str]) -> Result<(), Refused> {
        Ok(())
    }
    fn set(&mut self, _: &str, _: &[(&str, &str)]) -> Result<Vec<String>, Refused> {
        Ok(Vec::new())
    }
    fn enter(&mut self, _: &str, _: u32) -> Result<(), Refused> {
        Ok(())
    }
    fn remove(&mut self, group: &str) -> Result<(), Refused> {
        self.0.retain(|name| name != group);
        Ok(())
    }
}

#[test]
fn only_groups_of_dead_demonstrations_are_removed_at_the_start() {
    // kernel.pid_max is at most 4194304
    let (own, dead) = (format!("rf-demo-{}-b", std::process::id()), "rf-demo-4194305-a".to_owned());
    let parent = format!("rf-demo-{}-a", std::os::unix::process::parent_id());
    let kept = [parent, "rf-demo-keep".to_owned(), "db".to_owned()];
    let mut names = Names(kept.iter().chain([&own, &dead]).cloned().collect());
    assert_eq!(remove_leftovers(&mut names).unwrap(), [own, dead]);
    assert_eq!(names.0, kept);
}

fn result() -> DemoResult {
    let conditions = vec![condition(Kind::Quota { percent: 50 }), condition(Kind::Pinned)];
    let mut runs = vec![run(&conditions[0], vec![vec![worker(1, 400_000_000, "0")]], None, QUIET)];
    runs.push(Run { others: BUSY, ..runs[0].clone() });
    let wrote = vec!["wrote 50000 to /c/cpu.cfs_quota_us".to_owned()];
    runs[0].settings = vec![Applied { command: "ringfence set g cpu.max=50%".to_owned(), wrote }];
    let failure =
        Failure { of: ORDER[1].to_owned(), error: "no cpuset".to_owned(), hint: Some("mount it".to_owned()) };
    let mut failures = vec![failure];
    DemoResult {
        machine: machine(&[(0, 0, "0"), (1, 0, "1")]),
        controllers: vec!["cpu: v1".to_owned()],
        lengths: Lengths::default(),
        rows: rows(&conditions, &runs, &mut failures),
        settings: each_once(&[runs.clone(), runs.clone()].concat()),
        conditions,
        runs,
        failures,
        removed: Vec::new(),
        seconds: 42.0,
    }
}

#[test]
fn the_text_lines_up_and_tells_settings_what_is_off_and_what_failed() {
    let text = text(&result(), false);
    let tail = text.split_once("\nControllers\n").unwrap().1;
    assert_eq!(
        tail,
        "  cpu: v1
\nMeasured
          condition           asked                   measured
  off     CPU, quota of 50 %  50 % of a CPU           40.0 % (40.0 to 40.0)
                                                      disturbed runs left out: 1
  FAILED  CPU, pinned         a on CPU 0, b on CPU 1  -
\nSettings used
  ringfence set g cpu.max=50%
      wrote 50000 to /c/cpu.cfs_quota_us
\nNotes
  CPU, quota of 50 %: 20.0 % below what was asked
\nFailed
  CPU, pinned: no cpuset
      hint: mount it
\nMedians of 3 alternating runs, with their range; 42 s in all.
"
    );
}

#[test]
fn only_verdicts_are_coloured_and_only_if_asked() {
    let coloured = text(&result(), true);
    assert!(coloured.contains("\x1b[33moff   \x1b[0m  CPU, quota of 50 %"), "{coloured}");
    let plain = coloured.replace("\x1b[33m", "").replace("\x1b[31m", "").replace("\x1b[0m", "");
    assert_eq!(plain, text(&result(), false));
}

#[test]
fn the_result_as_json_holds_every_raw_run() {
    let json = serde_json::to_value(result()).unwrap();
    assert_eq!(json["runs"][0]["groups"][0]["cpu"][0]["cpu_ns"], 400_000_000);
    assert_eq!(json["rows"][0]["verdict"], "off");
    assert_eq!(json["conditions"][0]["kind"], "quota");
    assert_eq!(json["conditions"][0]["groups"][0]["settings"][0][1], "50%");
}
