//! The built-in OLTP: its clients' log counted a second time, its processes where they belong, nothing left.

use std::{collections::BTreeMap, fs, time::Duration};

use ::workloads::{Outcome, Program, Span};
use experiment::file::{self, Driver as Named};
use libtest_mimic::Failed;

use crate::{
    division::Cgroupfs,
    drivers::{Trial, counted, name_of, reading},
    real::{Group, Test, Tested, check, wait_for},
};

pub fn tests() -> Vec<(&'static str, Test)> {
    vec![
        (
            "oltp_transfers_balance_and_are_counted_as_logged",
            oltp_transfers_balance_and_are_counted_as_logged,
        ),
        ("oltp_selects_are_told_per_cpu_second", oltp_selects_are_told_per_cpu_second),
        ("oltp_with_a_rate_tells_how_late_it_was", oltp_with_a_rate_tells_how_late_it_was),
        ("oltp_holds_the_memory_that_was_asked_for", oltp_holds_the_memory_that_was_asked_for),
        ("nothing_is_left_of_an_oltp_that_is_dropped", nothing_is_left_of_an_oltp_that_is_dropped),
    ]
}

fn oltp(change: impl FnOnce(&mut file::Oltp)) -> Named {
    let mut options = file::Oltp { clients: 3, workers: Some(2), rows: 500, ..file::Oltp::default() };
    change(&mut options);
    Named::Oltp(options)
}

fn of(outcome: &Outcome, part: &str) -> Result<String, Failed> {
    let path = outcome.files.iter().find(|path| path.display().to_string().contains(part));
    Ok(fs::read_to_string(path.ok_or_else(|| format!("no {part} in {:?}", outcome.files))?)?)
}

fn oltp_transfers_balance_and_are_counted_as_logged() -> Tested {
    let groups = [Group::new("oltp-server", "cpu", &[])?, Group::new("oltp-clients", "cpu", &[])?];
    let mut trial = Trial::new(&oltp(|options| options.script = "tpcb".to_owned()))?;
    trial.groups = groups.each_ref().map(|group| Some(group.0.clone()));
    trial.begin(crate::drivers::TIMING)?;
    for (group, name) in groups.iter().zip(["rf-oltp-server", "rf-oltp-clients"]) {
        let names: Vec<String> = group.processes().into_iter().map(name_of).collect();
        check(names == [name], || format!("{names:?}"))?;
    }
    let from = std::time::Instant::now();
    let before = trial.driver.done().ok_or("it says what it has done")?;
    wait_for("a hundred transfers", || trial.driver.done().is_some_and(|done| done > before + 100.0))?;
    // every balance was added up by the server, and compared by the driver
    let outcome = trial.driver.stop(Span { from, to: std::time::Instant::now() })?;
    let server: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(of(&outcome, "oltp-server.out")?.lines().last().unwrap_or_default())?;
    let logs: Vec<_> =
        outcome.files.iter().filter(|path| path.display().to_string().contains("oltp_log.")).collect();
    check(logs.len() == 3, || format!("a log for each client: {logs:?}"))?;
    let all = counted(&logs, "0", "9e15")?;
    check(server["history"].as_u64() == Some(all) && server["balanced"] == true, || {
        format!("{all} {server:?}")
    })?;
    let bounds = of(&outcome, "oltp.span")?;
    let [from, to] = bounds.lines().collect::<Vec<_>>()[..] else { return Err(bounds.into()) };
    let again = counted(&logs, from, to)?;
    check(again > 0 && again as f64 == reading(&outcome, "transactions")?, || {
        format!("{again}: {outcome:?}")
    })?;
    check(groups.iter().all(|group| group.processes().is_empty()), || "something runs on".to_owned())?;

    // again on the same database: the balances stay, and still are equal
    trial.with(|driver, site| driver.start(site, crate::drivers::TIMING).and_then(|()| driver.wait()))?;
    let now = std::time::Instant::now();
    trial.driver.stop(Span { from: now, to: now + Duration::from_millis(1) })?;
    trial.driver.clean_up();
    trial.nothing_is_left()
}

fn oltp_selects_are_told_per_cpu_second() -> Tested {
    let group = Group::new("oltp-cpu", "cpu", &[])?;
    let mut trial = Trial::new(&oltp(|options| {
        (options.clients, options.rows) = (8, 20_000);
    }))?;
    trial.groups[0] = Some(group.0.clone());
    let (outcome, _) = trial.second()?;
    let server: serde_json::Value =
        serde_json::from_str(of(&outcome, "oltp-server.out")?.lines().last().unwrap_or_default())?;
    let (done, cpu_ns) = (server["done"].as_f64(), server["process_cpu_ns"].as_f64());
    let per_cpu_second = done.zip(cpu_ns).map(|(done, cpu_ns)| done * 1e9 / cpu_ns).ok_or("no figures")?;
    check(reading(&outcome, "failed")? == 0.0 && per_cpu_second > 0.0, || format!("{outcome:?} {server}"))?;
    println!(
        "{per_cpu_second:.0} point selects per CPU-second of the server, {:.0}/s",
        reading(&outcome, "tps")?
    );
    check(!Cgroupfs::directories(&group.0).is_empty(), || "its group is gone".to_owned())?;
    trial.driver.clean_up();
    trial.nothing_is_left()
}

fn oltp_with_a_rate_tells_how_late_it_was() -> Tested {
    let mut trial = Trial::new(&oltp(|options| options.rate = Some(200.0)))?;
    let (outcome, _) = trial.second()?;
    let (latency, lag) = (&outcome.latencies["latency"], &outcome.latencies["lag"]);
    check(latency.count == lag.count && latency.count > 0, || format!("{latency:?} {lag:?}"))?;
    check(latency.mean > lag.mean && latency.max >= lag.max, || format!("{latency:?} {lag:?}"))?;
    // its mean is 200: three times that has no chance, and a closed loop would do thousands
    check(reading(&outcome, "tps")? < 600.0, || format!("{:?}", outcome.readings))?;
    trial.driver.clean_up();
    trial.nothing_is_left()
}

fn oltp_holds_the_memory_that_was_asked_for() -> Tested {
    let group = Group::new("oltp-memory", "cpu", &[])?;
    let mut trial = Trial::new(&oltp(|options| options.memory = "64M".to_owned()))?;
    trial.groups[0] = Some(group.0.clone());
    trial.begin(crate::drivers::TIMING)?;
    let server = group.processes();
    let status = fs::read_to_string(format!("/proc/{}/status", server.first().ok_or("no server")?))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).ok_or("no size")?;
    let resident: u64 = resident.trim().trim_end_matches(" kB").parse()?;
    check(resident >= 64 << 10, || format!("{resident} KB"))?;
    trial.driver.clean_up();
    trial.nothing_is_left()
}

fn nothing_is_left_of_an_oltp_that_is_dropped() -> Tested {
    let mut trial = Trial::new(&oltp(|_| {}))?;
    trial.begin(crate::drivers::TIMING)?;
    check(trial.processes().len() == 2, || "it does not run".to_owned())?;
    trial.driver = workloads::drivers::new(&oltp(|_| {}), &Program::this("worker"))?;
    trial.nothing_is_left()
}
