//! On this machine: processes that are started here run a copy of sleep(1) under a name of its own, and the only rules
//! that are followed name that very path and name. Groups are removed whatever happens.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use classify::{ClassifyOptions, Decision, Done, Placer, Rules, sweep};
use kernel::{GroupName, Host, Real};
use system::{Accounts, ProcessReader};

/// A program of its own path and name, its processes, and groups below one of its own.
struct Here {
    directory: PathBuf,
    program: PathBuf,
    children: Vec<Child>,
    group: String,
    host: Host,
}

impl Here {
    fn new(test: &str) -> Here {
        assert!(rustix::process::geteuid().is_root(), "these tests move processes, which takes root");
        let group = format!("rf-test-classify-{test}-{}", std::process::id());
        let directory = std::env::temp_dir().join(&group);
        std::fs::create_dir_all(&directory).unwrap();
        let program = directory.join(format!("rf-test-sleep-{test}-{}", std::process::id()));
        // in a process of its own: what another test starts meanwhile would have a file of this one open for writing until it
        // execs, and nobody can run such a file (ETXTBSY)
        let copied = Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap();
        assert!(copied.success());
        Here {
            directory,
            program,
            children: Vec::new(),
            group,
            host: Host::new(Box::new(Real::new())).unwrap(),
        }
    }

    fn name(&self) -> &str {
        self.program.file_name().unwrap().to_str().unwrap()
    }

    /// A process that runs the program.
    fn start(&mut self) -> u32 {
        let child = Command::new(&self.program).arg("300").stdin(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        self.children.push(child);
        let mut reader = ProcessReader::new();
        // a fork is a copy of this test until it execs
        while reader.process(pid).unwrap().executable().unwrap() != Some(self.path().as_bytes()) {
            std::thread::yield_now();
        }
        pid
    }

    fn path(&self) -> String {
        self.program.to_str().unwrap().to_owned()
    }

    fn groups_of(pid: u32) -> String {
        std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap()
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Ok(group) = GroupName::new(&self.group) {
            let _ = self.host.delete(&group, true);
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn compiled(text: &str) -> (layout::Desired, Rules) {
    let desired = layout::read_cgrules("cgrules.conf", text).desired.unwrap();
    let (rules, unknown) = Rules::compile(&desired.all_rules(), &Accounts::new());
    assert_eq!(unknown, []);
    (desired, rules)
}

#[test]
fn running_processes_go_where_their_rule_leads_and_their_children_with_them() {
    let mut here = Here::new("move");
    let (first, second) = (here.start(), here.start());
    let other = Command::new("/bin/sleep").arg("300").spawn().unwrap();
    let other_pid = other.id();
    here.children.push(other);
    let text = format!("root:{} pids,freezer {}/%u/%p\n", here.path(), here.group);
    let (desired, rules) = compiled(&text);
    let names = Accounts::new();
    let placer = Placer::new(&here.host, &desired, &names);
    let mut reader = ProcessReader::new();
    let before = Here::groups_of(other_pid);
    for pid in [first, second, other_pid] {
        let mut process = reader.process(pid).unwrap();
        if let Decision::To { rule } = rules.decide(&mut process).unwrap() {
            assert_ne!(pid, other_pid);
            let goals = rules.goals(rule, &mut process, &names).unwrap();
            assert!(!placer.is_there(&rules, &goals, &mut process).unwrap());
            placer.place(&rules, rule, &mut process).unwrap();
            let mut again = reader.process(pid).unwrap();
            assert!(placer.is_there(&rules, &goals, &mut again).unwrap());
        }
    }
    let place = format!("/{}/root/{}", here.group, here.name());
    for pid in [first, second] {
        let groups = Here::groups_of(pid);
        assert!(groups.lines().any(|line| line.contains("pids") && line.ends_with(&place)), "{groups}");
        let moved = groups.lines().filter(|line| line.ends_with(&place)).count();
        assert!((1..=2).contains(&moved), "in the rule's hierarchies only: {groups}");
    }
    assert_eq!(Here::groups_of(other_pid), before, "who no rule takes stays");
    // emptied, the group is swept away, and made again when it is needed
    for child in &mut here.children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let group = GroupName::new(&place[1..]).unwrap();
    let swept = sweep(&here.host, &placer.take_made());
    assert!(swept.iter().any(|made| made.group == group) && here.host.seats(&group).is_empty(), "{swept:?}");
    let third = here.start();
    let placer = Placer::new(&here.host, &desired, &names);
    placer.place(&rules, 0, &mut reader.process(third).unwrap()).unwrap();
    assert!(Here::groups_of(third).contains(&place));
}

#[test]
fn a_new_v1_cpuset_takes_the_process() {
    let mut here = Here::new("cpuset");
    let pid = here.start();
    let text = format!("*:{} cpuset {}/%U/%P\n", here.path(), here.group);
    let (desired, rules) = compiled(&text);
    let names = Accounts::new();
    let mut reader = ProcessReader::new();
    let mut process = reader.process(pid).unwrap();
    assert_eq!(rules.decide(&mut process), Ok(Decision::To { rule: 0 }));
    let placed = Placer::new(&here.host, &desired, &names).place(&rules, 0, &mut process).unwrap();
    assert_eq!(placed.groups.len(), 1);
    let place = format!("/{}/0/{pid}", here.group);
    assert!(Here::groups_of(pid).lines().any(|line| line.contains("cpuset") && line.ends_with(&place)));
}

#[test]
fn a_process_that_ended_is_gone_and_no_error() {
    let mut here = Here::new("gone");
    let pid = here.start();
    let (desired, rules) = compiled(&format!("*:{} pids {}/%u\n", here.path(), here.group));
    let names = Accounts::new();
    let mut reader = ProcessReader::new();
    let mut process = reader.process(pid).unwrap();
    assert_eq!(rules.decide(&mut process), Ok(Decision::To { rule: 0 }));
    let mut child = here.children.pop().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let placed = Placer::new(&here.host, &desired, &names).place(&rules, 0, &mut process);
    assert!(placed.as_ref().is_err_and(|error| error.gone().is_some()), "{placed:?}");
}

#[test]
fn what_was_put_elsewhere_by_hand_is_left_unless_it_is_named() {
    let mut here = Here::new("hand");
    let pid = here.start();
    let chosen = GroupName::new(&format!("{}/chosen", here.group)).unwrap();
    here.host.create(&chosen, Some(&[settings::Controller::Pids]), &Default::default()).unwrap();
    here.host.move_tasks(&chosen, &[pid], kernel::What::Process).unwrap();
    let (desired, rules) = compiled(&format!("*:{} pids {}/%u\n", here.path(), here.group));
    let names = Accounts::new();
    let placer = Placer::new(&here.host, &desired, &names);
    let mut reader = ProcessReader::new();
    let mut classify = |how| placer.classify(&rules, &mut reader.process(pid).unwrap(), how).unwrap();
    let all = classify(ClassifyOptions { respect_manual_moves: true, dry_run: false });
    assert_eq!((all.done, all.explained.decision), (Done::Left, Decision::Stays { rule: 0 }));
    assert_eq!(
        classify(ClassifyOptions { dry_run: true, respect_manual_moves: false }).done,
        Done::WouldMove
    );
    assert!(Here::groups_of(pid).contains("/chosen"));
    let named = classify(ClassifyOptions::default());
    assert_eq!((named.done, named.program), (Done::Moved, here.path()));
    assert!(Here::groups_of(pid).contains(&format!("{}/root", here.group)));
    let all = classify(ClassifyOptions { respect_manual_moves: true, dry_run: true });
    assert_eq!(all.done, Done::There);
}

#[test]
fn every_process_of_this_machine_is_decided_on_and_none_is_moved() {
    let desired = layout::read_cgrules("cgrules.conf", "@root:sh * a\nnobody * b\n*:ssh* * c\n* * d\n")
        .desired
        .unwrap();
    let (rules, _) = Rules::compile(&desired.all_rules(), &Accounts::new());
    let mut reader = ProcessReader::new();
    let mut decided = 0;
    for pid in ProcessReader::all().unwrap() {
        let Ok(mut process) = reader.process(pid) else { continue };
        let Ok(explained) = rules.explain(&mut process) else { continue };
        let kernel_thread = explained.decision == Decision::KernelThread;
        assert_eq!(
            kernel_thread,
            Path::new(&format!("/proc/{pid}/exe")).read_link().is_err() && kernel_thread
        );
        decided += 1;
    }
    assert!(decided > 1);
}
