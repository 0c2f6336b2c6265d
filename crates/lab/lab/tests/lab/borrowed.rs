//! What is the user's and only lent to an experiment: a running server, which comes back to its groups and never is
//! restarted, and a block device, which is only read.

use std::{
    fs,
    io::{BufRead, BufReader},
    time::Duration,
};

use ::workloads::Timing;
use experiment::Results;
use libtest_mimic::Failed;

use crate::{
    drivers::{Trial, loop_device, name_of, pgbench},
    experiments::{OPEN, Place, finish, head, leaves_nothing},
    real::{Test, Tested, check, wait_for},
};

pub fn tests() -> Vec<(&'static str, Test)> {
    vec![
        ("a_running_server_comes_back_to_its_groups", a_running_server_comes_back),
        ("a_running_server_comes_back_after_a_kill", a_running_server_comes_back_after_a_kill),
        ("a_given_device_is_only_read", a_given_device_is_only_read),
    ]
}

const BRIEF: Timing = Timing {
    warm_up: Duration::from_millis(500),
    steady_within: Duration::from_millis(500),
    duration: Duration::from_secs(1),
};

/// A server of somebody who goes on working with it.
struct Theirs {
    trial: Trial,
    postmaster: u32,
}

impl Theirs {
    fn begin() -> Result<Theirs, Failed> {
        let mut trial = Trial::new(&pgbench(|options| options.rate = Some(20.0)))?;
        trial.begin(BRIEF)?;
        let state = trial.directory.path().join("postgresql/data/postmaster.pid");
        let postmaster = fs::read_to_string(state)?.lines().next().ok_or("no number")?.parse()?;
        Ok(Theirs { trial, postmaster })
    }

    /// The groups of the server and of everything it started.
    fn groups(&self) -> Result<Vec<(u32, String)>, Failed> {
        let path = format!("/proc/{0}/task/{0}/children", self.postmaster);
        let children = fs::read_to_string(path)?;
        let family = children.split_whitespace().map(str::parse).collect::<Result<Vec<u32>, _>>()?;
        let family = std::iter::once(self.postmaster).chain(family);
        let groups = family.map(|pid| {
            let read = |name: &str| match fs::read_to_string(format!("/proc/{pid}/{name}")) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                read => read.map(Some),
            };
            let groups = read("cgroup")?;
            // one that ended meanwhile is in the root group, and has no command line, until its parent has waited for it
            let is_there = read("cmdline")?.is_some_and(|command| !command.is_empty());
            Ok::<_, Failed>(groups.filter(|_| is_there).map(|groups| (pid, groups)))
        });
        groups.filter_map(Result::transpose).collect()
    }

    fn experiment(&self, duration: &str) -> String {
        let (postmaster, directory) = (self.postmaster, self.trial.directory.path().display());
        head(1, duration, OPEN)
            + &format!(
                r#"
[group.server]
[workload.load]
driver = "pgbench"
clients = 2
threads = 1
dsn = "host={directory}/postgresql user=ringfence dbname=postgres"
pid = {postmaster}
group = "server"
[[condition]]
name = "as it comes"
[[condition]]
name = "half a CPU"
settings.server."cpu.max" = "50%"
[[measure]]
name = "transactions"
is = "load.tps"
[[measure]]
name = "CPUs"
is = "server.cpu"
"#
            )
    }

    /// It is the same server, and nobody of it is in a group of the lab.
    fn is_as_before(&self, before: &[(u32, String)]) -> Tested {
        check(name_of(self.postmaster) == "postgres", || "the server is gone".to_owned())?;
        let mut now = Vec::new();
        wait_for("all are back", || {
            now = self.groups().unwrap_or_default();
            !now.is_empty() && now.iter().all(|(_, groups)| !groups.contains("rf-lab-"))
        })?;
        for (pid, groups) in before {
            let found = now.iter().find(|(other, _)| other == pid);
            check(found.is_some_and(|(_, now)| now == groups), || format!("{pid}: {groups}, now {found:?}"))?;
        }
        Ok(())
    }
}

fn a_running_server_comes_back() -> Tested {
    let mut theirs = Theirs::begin()?;
    let before = theirs.groups()?;
    let place = Place::with(&theirs.experiment("1s"))?;
    let child = place.run(false)?.spawn()?;
    let pid = child.id();
    finish(child)?;
    theirs.is_as_before(&before)?;
    leaves_nothing(pid)?;
    let results: Results = serde_json::from_str(&fs::read_to_string(place.results().join("results.json"))?)?;
    check(results.runs.len() == 2, || format!("{:?}", results.runs))?;
    for run in &results.runs {
        // their own clients' work on it and ours are both in the group
        check(run.figures["transactions"] > 0.0 && run.figures["CPUs"] > 0.0, || format!("{run:?}"))?;
        let moved = run.tasks.iter().any(|task| task.group == "server" && task.tid == theirs.postmaster);
        check(moved, || format!("{:?}", run.tasks))?;
    }
    theirs.trial.driver.clean_up();
    theirs.trial.nothing_is_left()
}

fn a_running_server_comes_back_after_a_kill() -> Tested {
    let mut theirs = Theirs::begin()?;
    let before = theirs.groups()?;
    let place = Place::with(&theirs.experiment("30s"))?;
    let mut child = place.run(false)?.spawn()?;
    let pid = child.id();
    let output = child.stdout.take().ok_or("no output")?;
    let first = BufReader::new(output).lines().map_while(Result::ok).find(|line| line == "run 1");
    let in_it = theirs.groups()?.iter().all(|(_, groups)| groups.contains(&format!("rf-lab-{pid}/server")));
    child.kill()?;
    child.wait()?;
    check(first.is_some() && in_it, || format!("{first:?} {:?}", theirs.groups()))?;
    let cleaned = place.command("clean")?.output()?;
    check(cleaned.status.success(), || String::from_utf8_lossy(&cleaned.stderr).into_owned())?;
    theirs.is_as_before(&before)?;
    leaves_nothing(pid)?;
    theirs.trial.driver.clean_up();
    theirs.trial.nothing_is_left()
}

fn a_given_device_is_only_read() -> Tested {
    let directory = tempfile::tempdir_in("/var/tmp")?;
    let device = loop_device(directory.path())?;
    let text = |driver: &str| {
        head(1, "500ms", OPEN)
            + &format!(
                r#"
[device.disk]
kind = "loop"
size = "4M"
[group.reader]
[workload.reads]
driver = "{driver}"
device = "disk"
{}
group = "reader"
[[condition]]
name = "free"
[[condition]]
name = "limited"
settings.reader."io.max" = "{{disk}} riops=50"
[[measure]]
name = "reads"
is = "reads.iops"
"#,
                if driver == "fio" { "rw = \"randwrite\"" } else { "" },
            )
    };
    let place = Place::with(&text("read"))?;
    let run = |place: &Place| Ok::<_, Failed>(place.run(false)?.arg(device.path()).spawn()?);
    finish(run(&place)?)?;
    let results: Results = serde_json::from_str(&fs::read_to_string(place.results().join("results.json"))?)?;
    let written = &results.runs[1].settings[0].written;
    let number = format!("7:{} 50", device.number());
    let number_v2 = format!("7:{} riops=50", device.number());
    check(written.iter().any(|line| line.contains(&number) || line.contains(&number_v2)), || {
        format!("{written:?}")
    })?;
    let refused = finish(run(&Place::with(&text("fio"))?)?).err().ok_or("it was written to")?;
    let said = refused.message().unwrap_or_default();
    check(said.contains(&device.path().display().to_string()), || said.to_owned())
}
