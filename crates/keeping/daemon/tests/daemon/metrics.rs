//! What the daemon shows of itself and of groups, to whom asks over HTTP, to Prometheus and in a file.

use std::{
    fs,
    io::Write,
    net::TcpStream,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::Command,
};

use kernel::{GroupName, What};
use settings::{Controller, Version};

use crate::{
    Case,
    metrics_scene::{SCRAPE, address, get, text, until, value},
    prometheus::{Prometheus, check},
    world::{Daemon, Running, World, eventually},
};

pub fn trials() -> Vec<Case> {
    vec![
        ("metrics_are_had_in_the_format_that_is_wanted_and_nothing_else_is", formats),
        ("a_group_that_only_its_owner_may_list_has_metrics_for_root_alone", hidden),
        ("slow_and_many_clients_of_the_metrics_are_let_go_and_keep_no_process_from_its_group", hostile),
        ("a_value_changed_behind_its_back_is_in_the_metrics_until_it_is_put_back", drift),
        ("what_was_asked_is_beside_what_is_in_effect", requested),
        ("an_invalid_partition_has_the_kernels_reason", partition),
        ("misplaced_processes_are_counted_by_group_and_by_hand", misplaced),
        ("what_becomes_of_a_process_is_counted", counted),
        ("an_address_that_is_taken_is_told_and_served_once_it_is_free", taken),
        ("a_textfile_is_written_and_its_failure_told_once", textfile),
        ("nobody_who_does_not_ask_for_metrics_has_their_threads", unasked),
    ]
}

pub const WITH_PROMETHEUS: &[Case] = &[("debians_prometheus_scrapes_the_daemon", scraped)];

/// A group with a limit and a program that belongs there.
pub fn layout(world: &mut World, more: &str) -> (String, std::path::PathBuf) {
    let (group, program) = (world.group_name("db"), world.copy("sleep", "sleep"));
    let text = format!(
        "[groups.{group}]\npids.max = 500\n{more}match = [{{ process = \"{}\" }}]\n",
        program.display()
    );
    world.write("layout.toml", &text);
    (group, program)
}

const WORDS: [&str; 2] = ["metrics=127.0.0.1:0", "paces=0"];

fn started(world: &World) -> Daemon {
    world.daemon(&WORDS)
}

fn formats() {
    let mut world = World::new();
    let (group, _) = layout(&mut world, "");
    let daemon = started(&world);
    let at = address(&daemon);
    let requested = format!("ringfence_group_requested_pids{{group=\"{group}\"}} 500\n");
    let effective = format!("ringfence_group_pids_max{{group=\"{group}\"}} 500\n");
    let plain = get(at, "GET /metrics", "").unwrap();
    assert!(plain.head.contains("content-type: text/plain; version=0.0.4"), "{plain:?}");
    check(&plain.body);
    let accept =
        "accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n";
    let open = get(at, "GET /metrics", accept).unwrap();
    assert!(open.head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{open:?}");
    assert!(open.body.ends_with("\n# EOF\n") && !plain.body.contains("# EOF"));
    for body in [&plain.body, &open.body] {
        assert!(body.contains(&requested) && body.contains(&effective), "{body}");
        assert_eq!(value(body, &format!("ringfence_group_drifts{{group=\"{group}\"}}")), Some(0.0), "{body}");
        assert_eq!(value(body, "ringfence_rules"), Some(1.0));
    }
    let head = get(at, "HEAD /metrics", "").unwrap();
    assert!(head.status == 200 && head.body.is_empty() && head.head.contains("content-length: "), "{head:?}");
    let refused: Vec<(u16, bool)> = ["GET /", "GET /metrics/x", "POST /metrics", "DELETE /metrics"]
        .iter()
        .map(|request| get(at, request, "").unwrap())
        .map(|answer| (answer.status, answer.head.contains("allow: get, head")))
        .collect();
    assert_eq!(refused, [(404, false), (404, false), (405, true), (405, true)]);
    assert!(!daemon.log().contains("there is no password"), "loopback alone: {}", daemon.log());
    daemon.end();
}

fn hostile() {
    let mut world = World::new();
    let (group, program) = layout(&mut world, "");
    let mut daemon = started(&world);
    let at = address(&daemon);
    let long = format!("x: {}\r\n", "y".repeat(20 << 10));
    let too_large = get(at, "GET /metrics", &long).map(|answer| answer.status);
    assert!(matches!(too_large, None | Some(400 | 431)), "{too_large:?}");
    let many: String = (0..100).map(|n| format!("x{n}: y\r\n")).collect();
    let too_many = get(at, "GET /metrics", &many).map(|answer| answer.status);
    assert!(matches!(too_many, None | Some(400 | 431)), "{too_many:?}");
    // who says nothing holds a seat; the others are told
    let idle: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(at).unwrap();
            let _ = stream.write_all(b"GET /met");
            stream
        })
        .collect();
    let process = Running::start(&program, &["600"]);
    eventually("in its group", || world.place(process.pid()).as_deref() == Some(&group));
    // they are let go after their time, while they still wait
    eventually("a seat is free", || get(at, "GET /metrics", "").is_some_and(|answer| answer.status == 200));
    drop(idle);
    assert!(daemon.is_alive());
    daemon.end();
}

/// Attack finding 14: the socket withholds such a group, and loopback showed it to everybody.
fn hidden() {
    let mut world = World::new();
    let (shown, _) = layout(&mut world, "");
    let hidden = world.group("secret");
    let below = format!("{hidden}/below");
    let name = GroupName::new(&below).unwrap();
    world.host.create(&name, Some(&[Controller::Pids]), &kernel::Access::default()).unwrap();
    for seat in world.host.seats(&GroupName::new(&hidden).unwrap()) {
        fs::set_permissions(seat.directory(), fs::Permissions::from_mode(0o700)).unwrap();
    }
    let file = world.directory.join("metrics.prom");
    let daemon = world.daemon(&[WORDS[0], WORDS[1], &format!("textfile={}", file.display())]);
    let at = address(&daemon);
    let of = |group: &str| format!("group=\"{group}\"");
    let roots = text(at);
    assert!([&shown, &hidden, &below].iter().all(|group| roots.contains(&of(group))), "{roots}");
    let client = world.directory.join("client");
    fs::copy("/proc/self/exe", &client).unwrap();
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(client);
    command.arg(SCRAPE).arg(at.to_string()).uid(4_000_008).gid(4_000_008).current_dir("/");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let users = String::from_utf8(output.stdout).unwrap();
    eventually("the textfile", || fs::read_to_string(&file).is_ok_and(|text| text.contains(&of(&shown))));
    // anybody may read that file
    for text in [users, fs::read_to_string(&file).unwrap()] {
        assert!(text.contains(&of(&shown)) && !text.contains("secret"), "{text}");
    }
    daemon.end();
}

fn drift() {
    let mut world = World::new();
    let (group, _) = layout(&mut world, "");
    let daemon = started(&world);
    let at = address(&daemon);
    let drifts = format!("ringfence_group_drifts{{group=\"{group}\"}}");
    until(at, &drifts, Some(0.0));
    world.set_limit(&group, "77");
    until(at, &drifts, Some(1.0));
    let told = text(at);
    let of = |name: &str| value(&told, &format!("{name}{{group=\"{group}\"}}"));
    assert_eq!(
        [of("ringfence_group_requested_pids"), of("ringfence_group_pids_max")],
        [Some(500.0), Some(77.0)]
    );
    world.set_limit(&group, "500");
    until(at, &drifts, Some(0.0));
    daemon.end();
}

/// Where the kernel has these controllers.
fn requested() {
    let mut world = World::new();
    let has = |controller| world.host.hierarchy_of(controller).is_some();
    if !has(Controller::Cpu) || !has(Controller::Memory) {
        return;
    }
    let (group, _) = layout(&mut world, "cpu.max = \"50%\"\nmemory.max = \"64M\"\n");
    let daemon = started(&world);
    let at = address(&daemon);
    let of = |name: &str| value(&text(at), &format!("ringfence_group_{name}{{group=\"{group}\"}}"));
    let memory = f64::from(64 << 20);
    let all =
        || ["requested_cpus", "effective_cpus", "requested_memory_bytes", "effective_memory_bytes"].map(of);
    assert_eq!(all(), [Some(0.5), Some(0.5), Some(memory), Some(memory)]);
    let name = GroupName::new(&group).unwrap();
    let seat = world.host.seat(&name, Controller::Cpu).unwrap();
    let (file, quarter) = match seat.at.version {
        Version::V1 => ("cpu.cfs_quota_us", "25000"),
        Version::V2 => ("cpu.max", "25000 100000"),
    };
    world.host.write(&seat, &name, file, quarter).unwrap();
    assert_eq!(all(), [Some(0.5), Some(0.25), Some(memory), Some(memory)]);
    assert_eq!(of("drifts"), Some(1.0));
    daemon.end();
}

/// On v2 alone, and where nobody else needs the CPUs.
fn partition() {
    let mut world = World::new();
    let is_v2 = world.host.hierarchy_of(Controller::Cpuset).is_some_and(|at| at.version == Version::V2);
    if !is_v2 || !crate::is_vm() {
        return;
    }
    layout(&mut world, "");
    let [own, rival] = ["own", "rival"].map(|last| world.group_of(Controller::Cpuset, last));
    let write = |group: &str, file: &str, text: &str| {
        let name = GroupName::new(group).unwrap();
        let seat = world.host.seat(&name, Controller::Cpuset).unwrap();
        world.host.write(&seat, &name, file, text).unwrap();
        world.host.read(&seat, &name, file).unwrap()
    };
    write(&own, "cpuset.cpus", "1");
    let state = write(&own, "cpuset.cpus.partition", "root");
    let daemon = started(&world);
    let at = address(&daemon);
    let series = |reason: &str| {
        format!("ringfence_group_partition_valid{{group=\"{own}\",type=\"root\",reason=\"{reason}\"}}")
    };
    // below systemd's unit nothing above is a partition, and so this is none: the kernel says so at once
    let at_once = state.trim().strip_prefix("root invalid (").and_then(|rest| rest.strip_suffix(')'));
    if let Some(reason) = at_once {
        until(at, &series(reason), Some(0.0));
        assert_eq!(value(&text(at), &series("")), None);
        return daemon.end();
    }
    until(at, &series(""), Some(1.0));
    write(&rival, "cpuset.cpus", "1");
    until(at, &series("Cpu list in cpuset.cpus not exclusive"), Some(0.0));
    assert_eq!(value(&text(at), &series("")), None);
    daemon.end();
}

fn misplaced() {
    let mut world = World::new();
    let (group, program) = layout(&mut world, "");
    let other = world.group("other");
    let daemon = started(&world);
    let at = address(&daemon);
    let of =
        |by_hand: bool| format!("ringfence_misplaced_processes{{group=\"{group}\",by_hand=\"{by_hand}\"}}");
    until(at, &of(false), Some(0.0));
    let process = Running::start(&program, &["600"]);
    eventually("in its group", || world.place(process.pid()).as_deref() == Some(&group));
    assert_eq!(value(&text(at), &of(false)), Some(0.0));
    world.put(&other, process.pid());
    until(at, &of(true), Some(1.0));
    assert_eq!(value(&text(at), &of(false)), Some(0.0));
    // out of all groups of ours no hand put it anywhere
    let root = GroupName::new("/").unwrap();
    world.host.move_tasks(&root, &[process.pid()], What::Process).unwrap();
    until(at, &of(false), Some(1.0));
    world.put(&group, process.pid());
    until(at, &of(false), Some(0.0));
    assert_eq!(value(&text(at), &of(true)), None);
    daemon.end();
}

fn counted() {
    let mut world = World::new();
    let (group, program) = layout(&mut world, "");
    let daemon = started(&world);
    let at = address(&daemon);
    let moved = "ringfence_classified_processes_total{outcome=\"moved\"}";
    let (latency, decisions) = ("ringfence_move_latency_seconds_count", "ringfence_decisions_total");
    let before = text(at);
    assert_eq!((value(&before, moved), value(&before, latency)), (Some(0.0), Some(0.0)), "{before}");
    let processes: Vec<Running> = (0..3).map(|_| Running::start(&program, &["600"])).collect();
    for process in &processes {
        eventually("in its group", || world.place(process.pid()).as_deref() == Some(&group));
    }
    until(at, moved, Some(3.0));
    let after = text(at);
    assert_eq!(value(&after, latency), Some(3.0));
    assert_eq!(value(&after, "ringfence_move_latency_seconds_bucket{le=\"+Inf\"}"), Some(3.0));
    assert!(value(&after, "ringfence_move_latency_seconds_sum").unwrap() > 0.0);
    assert!(value(&after, decisions) >= value(&before, decisions).map(|count| count + 3.0), "{after}");
    daemon.end();
}

fn taken() {
    let mut world = World::new();
    let (group, program) = layout(&mut world, "");
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = holder.local_addr().unwrap();
    let mut daemon = world.daemon(&[&format!("metrics={at}"), "paces=20"]);
    daemon.wait_for_log("metrics are not served", 1);
    let process = Running::start(&program, &["600"]);
    eventually("in its group", || world.place(process.pid()).as_deref() == Some(&group));
    drop(holder);
    daemon.wait_for_log("metrics are served again", 1);
    eventually("an answer", || get(at, "GET /metrics", "").is_some_and(|answer| answer.status == 200));
    assert_eq!(daemon.log().matches("metrics are not served").count(), 1, "{}", daemon.log());
    assert!(daemon.is_alive());
    daemon.end();
}

fn textfile() {
    let mut world = World::new();
    let (group, _) = layout(&mut world, "");
    let directory = world.directory.join("collector");
    let file = directory.join("ringfence.prom");
    let mut daemon = world.daemon(&[&format!("textfile={}", file.display()), "paces=20"]);
    daemon.wait_for_log("the textfile is not written", 1);
    fs::create_dir(&directory).unwrap();
    daemon.wait_for_log("the textfile is written again", 1);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(
        value(&text, &format!("ringfence_group_requested_pids{{group=\"{group}\"}}")),
        Some(500.0),
        "{text}"
    );
    check(&text);
    assert!(daemon.is_alive() && daemon.log().matches("the textfile is not written").count() == 1);
    daemon.end();
    let left: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["ringfence.prom"]);
}

fn unasked() {
    let mut world = World::new();
    layout(&mut world, "");
    let threads = |daemon: &Daemon| -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap();
        let comm =
            |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap().trim().to_owned();
        let mut all: Vec<String> = tasks.map(|task| comm(task.unwrap())).collect();
        all.retain(|name| ["recorder", "metrics", "metrics-http"].contains(&name.as_str()));
        all.sort();
        all
    };
    let daemon = world.daemon(&[]);
    assert_eq!(threads(&daemon), [] as [&str; 0]);
    daemon.end();
    let log = format!("record={}", world.directory.join("samples").display());
    let daemon = world.daemon(&[WORDS[0], WORDS[1], &log]);
    eventually("its threads", || threads(&daemon) == ["metrics", "metrics-http", "recorder"]);
    // they go before nobody, as the loop does
    eventually("their nice values", || nice(&daemon).iter().all(|(name, nice)| name == "loop" || *nice >= 0));
    assert!(nice(&daemon).iter().any(|(name, _)| name == "loop"));
    daemon.end();
}

/// Of the loop and of the threads beside it.
fn nice(daemon: &Daemon) -> Vec<(String, i32)> {
    let of = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap();
        let (name, rest) = stat.rsplit_once(')').unwrap();
        let is_loop = task.file_name().to_str() == Some(&daemon.pid().to_string());
        let name = if is_loop { "loop" } else { name.split_once('(').unwrap().1 };
        (name.to_owned(), rest.split_whitespace().nth(16).unwrap().parse().unwrap())
    };
    fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap().map(|task| of(task.unwrap())).collect()
}

fn scraped() {
    let mut world = World::new();
    let (group, program) = layout(&mut world, "");
    let daemon = started(&world);
    let prometheus = Prometheus::start(&world.directory, address(&daemon));
    let only = |query: String, wanted: f64| {
        eventually(&format!("{query} is {wanted}"), || {
            let found = prometheus.query(&query);
            assert!(found.len() <= 1, "{found:?}");
            found.first().is_some_and(|(_, value)| *value == wanted)
        });
    };
    only("up{job=\"ringfence\"}".to_owned(), 1.0);
    only(format!("ringfence_group_requested_pids{{group=\"{group}\"}}"), 500.0);
    let process = Running::start(&program, &["600"]);
    eventually("in its group", || world.place(process.pid()).as_deref() == Some(&group));
    only(format!("ringfence_group_pids_current{{group=\"{group}\"}}"), 1.0);
    only("ringfence_classified_processes_total{outcome=\"moved\"}".to_owned(), 1.0);
    // from the histogram, as it is requested in practice
    let latency = "histogram_quantile(0.5, ringfence_move_latency_seconds_bucket) > 0";
    eventually("a latency", || prometheus.query(latency).len() == 1);
    world.set_limit(&group, "77");
    only(format!("ringfence_group_drifts{{group=\"{group}\"}}"), 1.0);
    only(
        format!(
            "ringfence_group_requested_pids{{group=\"{group}\"}} - ringfence_group_pids_max{{group=\"{group}\"}}"
        ),
        423.0,
    );
    let build = prometheus.query("ringfence_build_info");
    assert_eq!(build[0].0["version"], env!("CARGO_PKG_VERSION"), "{build:?}");
    // the older text format has no such type: it reads OpenMetrics
    assert_eq!(prometheus.kind("ringfence_build"), "info", "{}", prometheus.log());
    assert_eq!(prometheus.kind("ringfence_move_latency_seconds"), "histogram");
    let log = prometheus.log();
    assert!(!log.contains("Append failed") && !log.contains("Error on ingesting"), "{log}");
    daemon.end();
    only("up{job=\"ringfence\"}".to_owned(), 0.0);
}
