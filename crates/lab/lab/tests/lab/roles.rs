//! Processes of a server in groups by their roles, compared with `/proc` while the experiment runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use layout::Role;

use crate::{
    experiments::{OPEN, Place, finish, head, leaves_nothing},
    real::{Test, Tested, check},
};

pub fn tests() -> Vec<(&'static str, Test)> {
    vec![("pgbench_has_its_servers_processes_in_groups_by_role", by_role)]
}

/// Looks in a row that see a process in a wrong group before that is a fault: more than a server takes to begin.
const LATE: usize = 60;

/// What has a group of its own; all other processes are in the server's.
const APART: [&str; 2] = ["postgresql.autovacuum", "postgresql.checkpointer"];

fn experiment() -> String {
    let head = head(1, "4s", &format!("order = \"as-written\"\n{OPEN}"));
    format!(
        r#"{head}
[group.server]
[group.maintenance]
[workload.database]
driver = "pgbench"
script = "tpcb-like"
clients = 2
scale = 1
partitions = 2
group = "server"
[workload.database.settings]
autovacuum_naptime = "1s"
autovacuum_vacuum_threshold = 1
autovacuum_vacuum_scale_factor = 0
[workload.database.roles]
postgresql.autovacuum = "maintenance"
postgresql.checkpointer = "maintenance"
[[condition]]
name = "together"
options.database.roles = {{}}
[[condition]]
name = "apart"
[[measure]]
name = "server"
is = "server.cpu"
[[measure]]
name = "maintenance"
is = "maintenance.cpu"
"#
    )
}

/// A process of the server, by its title and by the kernel's word on its group.
struct Seen {
    pid: u32,
    role: &'static str,
    group: String,
}

/// The processes below the experiment's group.
fn processes(parent: &str) -> Vec<Seen> {
    let of = |pid: u32| {
        let role = || {
            let executable = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            Role::of(executable.as_os_str().as_encoded_bytes(), &command).map(Role::name)
        };
        let before = role()?;
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let mut groups: Vec<&str> = text
            .lines()
            .filter_map(|line| Some(line.split_once(parent)?.1.trim_start_matches('/')))
            .collect();
        groups.sort_unstable();
        groups.dedup();
        // a title that changed meanwhile says nothing
        (role() == Some(before)).then(|| Seen { pid, role: before, group: groups.join(" and ") })
    };
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(of).filter(|seen| !seen.group.is_empty()).collect()
}

fn by_role() -> Tested {
    let place = Place::with(&experiment())?;
    let mut child = place.run(false)?.spawn()?;
    let (pid, run) = (child.id(), AtomicU32::new(0));
    let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let (apart, wrong, asked) = std::thread::scope(|threads| {
        let looks = threads.spawn(|| look(&format!("/rf-lab-{pid}/"), &run));
        for line in lines.map_while(Result::ok) {
            let number = line.strip_prefix("run ").and_then(|number| number.parse().ok());
            run.store(number.unwrap_or_else(|| run.load(Ordering::SeqCst)), Ordering::SeqCst);
        }
        run.store(OVER, Ordering::SeqCst);
        looks.join().unwrap_or_default()
    });
    finish(child)?;
    leaves_nothing(pid)?;
    check(wrong.is_empty(), || wrong.join("; "))?;
    check(apart == BTreeSet::from(APART), || format!("apart were {apart:?}"))?;
    // the setting, and the partitions
    check(asked == "1s 2", || format!("the server says '{asked}'"))?;
    let runs = place.runs()?;
    check(runs.len() == 2, || format!("{} runs", runs.len()))?;
    for run in runs {
        let used = run.figures["maintenance"];
        check((used > 0.0) == (run.condition == "apart"), || format!("{used} in '{}'", run.condition))?;
        check(run.figures["server"] > 0.0, || format!("{:?}", run.figures))?;
    }
    Ok(())
}

/// Instead of a run's number, at the end.
const OVER: u32 = u32::MAX;

/// Which roles were seen in the group of maintenance, which processes were in a wrong group for long, and what the server says.
fn look(parent: &str, run: &AtomicU32) -> (BTreeSet<&'static str>, Vec<String>, String) {
    let (mut apart, mut wrong, mut asked) = (BTreeSet::new(), Vec::new(), String::new());
    let mut looks: BTreeMap<u32, usize> = BTreeMap::new();
    loop {
        let before = run.load(Ordering::SeqCst);
        if before == OVER {
            return (apart, wrong, asked);
        }
        let seen = processes(parent);
        if run.load(Ordering::SeqCst) != before {
            continue;
        }
        let is_wrong = |seen: &Seen| {
            let in_own = before == 2 && APART.contains(&seen.role);
            seen.group != if in_own { "maintenance" } else { "server" }
        };
        looks.retain(|pid, _| seen.iter().any(|seen| seen.pid == *pid && is_wrong(seen)));
        for seen in &seen {
            if seen.group == "maintenance" {
                apart.insert(seen.role);
            }
            if is_wrong(seen) {
                let times = looks.entry(seen.pid).or_default();
                *times += 1;
                if *times > LATE {
                    wrong.push(format!("{} ({}) is in {}", seen.pid, seen.role, seen.group));
                }
            }
        }
        if before == 2 && asked.is_empty() {
            asked = asked_of(&seen).unwrap_or_default();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A setting of the server, and how many partitions there are.
fn asked_of(seen: &[Seen]) -> Option<String> {
    let first = seen.iter().find(|seen| seen.role == "postgresql.postmaster")?;
    // its working directory is the data, beside which its socket is
    let directory = fs::read_link(format!("/proc/{}/cwd", first.pid)).ok()?;
    let request = "select current_setting('autovacuum_naptime') || ' ' || count(*) from pg_inherits where inhparent = 'pgbench_accounts'::regclass";
    let mut client = std::process::Command::new("psql");
    client.arg("-h").arg(directory.parent()?).args([
        "-U",
        "ringfence",
        "-X",
        "-A",
        "-t",
        "-c",
        request,
        "postgres",
    ]);
    let said = client.output().ok().filter(|said| said.status.success())?;
    Some(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}
