//! What the page does for its user.

use std::{
    fs,
    net::TcpStream,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::page::Page;
use crate::{desk::Desk, world::World};

pub fn session_over(world: &Arc<World>) {
    let page = Page::new(world, "over", "--session 1s");
    let began = Instant::now();
    let ends = |page: &Page| page.get("/api/session").status == 401;
    while !ends(&page) {
        assert!(began.elapsed() < Duration::from_secs(60), "the session did not end");
        sleep(Duration::from_millis(50));
    }
    let page = Page::new(world, "ended", "");
    assert_eq!(page.own("DELETE", "/api/session", "").status, 204);
    assert!(ends(&page));
}

/// A page's first requests come at the same time: each waits for the first sample.
pub fn first_requests(world: &Arc<World>) {
    let page = Page::new(world, "first", "");
    std::thread::scope(|threads| {
        let page = &page;
        let one = |path| threads.spawn(move || page.get(path).status);
        let all = ["/api/sample", "/api/groups", "/api/owners"].repeat(4).into_iter().map(one);
        for status in all.collect::<Vec<_>>() {
            assert_eq!(status.join().unwrap(), 200);
        }
    });
}

pub fn long_looks(world: &Arc<World>) {
    let desk = Desk::new(world, "weblooks");
    let group = desk.scene.group.clone();
    desk.scene.ok("create {g} --controllers cpu,memory");
    let page = Page::new(world, "long", &group);
    assert_eq!(page.get("/api/groups").status, 200);
    let ended = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for _ in 0..12 {
            threads.spawn(|| {
                page.get(&format!("/api/groups/{group}/why?for=2.5")).ok();
                ended.fetch_add(1, Ordering::SeqCst);
            });
        }
        sleep(Duration::from_secs(1)); // all of them have come
        assert_eq!(page.get("/api/history").status, 200);
        assert_eq!(ended.load(Ordering::SeqCst), 0, "the history came behind a look");
    });
    assert_eq!(ended.load(Ordering::SeqCst), 12);
}

pub fn ended(world: &Arc<World>) {
    let mut page = Page::new(world, "ctrlc", "");
    assert_eq!(page.get("/api/session").status, 200);
    assert_eq!(page.stop(), Some(0));
    assert!(TcpStream::connect(page.address).is_err());
}

pub fn torn_log(world: &Arc<World>) {
    let page = Page::new(world, "torn", "");
    assert!(page.get("/api/log").ok()["problem"].is_string(), "there is none yet");
    assert_eq!(page.get("/api/sample?at_ms=1").status, 503);
    page.desk.scene.ok("record --directory {d}/log --interval 20ms --count 40");
    let whole = page.get("/api/log").ok();
    assert!(whole["problem"].is_null(), "{whole}");
    let segment = fs::read_dir(page.desk.path("log")).unwrap().map(|entry| entry.unwrap().path());
    let segment =
        segment.into_iter().find(|path| path.extension().is_some_and(|end| end == "rflog")).unwrap();
    let size = fs::metadata(&segment).unwrap().len();
    fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(size - 5).unwrap();
    let torn = page.get("/api/log").ok();
    assert!(torn["problem"].is_string() && torn["ends_ms"].as_u64() < whole["ends_ms"].as_u64(), "{torn}");
    let sample = page.get(&format!("/api/sample?at_ms={}", torn["ends_ms"])).ok();
    assert_eq!((&sample["source"], &sample["at_ms"]), (&json!("log"), &torn["ends_ms"]));
    let series = page.get(&format!(
        "/api/series?figures=load,memory.available&from_ms={}&to_ms={}&points=10",
        torn["begins_ms"], torn["ends_ms"]
    ));
    let series = series.ok();
    let times = series["at_ms"].as_array().unwrap().len();
    assert!((2..=10).contains(&times), "{series}");
    assert_eq!(series["values"]["machine.load"].as_array().unwrap().len(), times);
    assert!(series["problem"].is_string());
}

pub fn seen(world: &Arc<World>) {
    let desk = Desk::new(world, "webgroup");
    let group = desk.scene.group.clone();
    desk.scene.ok("create {g}/a --controllers cpu,cpuset,memory,pids");
    desk.scene.ok("set {g}/a cpuset.cpus=0");
    let page = Page::new(world, "look", &group);
    let machine = page.get("/api/machine");
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let cpus = machine.ok()["cpus"].as_array().unwrap().len();
    assert_eq!(cpus > 1, online.trim() != "0");
    let tag = machine.header("etag").unwrap().to_owned();
    assert_eq!(page.but("GET", "/api/machine", ("if-none-match", &tag), "").status, 304);
    let groups = page.get("/api/groups").ok();
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().map(|one| one["group"].as_str().unwrap()).collect();
    let below = format!("{group}/a");
    assert_eq!(names, [&*group, &*below]);
    let owners = page.get("/api/owners").ok();
    if cpus > 1 {
        assert_eq!(owners["owners"][0]["group"], json!(below), "{owners}");
        assert_eq!((&owners["cpus"][0]["owners"], &owners["cpus"][1]["owners"]), (&json!([0]), &json!([])));
    }
    let sample = page.get("/api/sample").ok();
    assert_eq!(sample["rows"][1]["group"], json!(below));
    assert_eq!(sample["machine"]["cpus"].as_array().unwrap().len(), cpus);
    let one = page.get(&format!("/api/groups/{}", below.replace('/', "%2F"))).ok();
    let set =
        one["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == "cpuset.cpus").unwrap();
    assert_eq!(set["value"], "0");
    assert!(set["help"].as_str().unwrap().len() > 10 && set["kind"] == "cpus", "{set}");
    let why = page.get(&format!("/api/groups/{below}/why?for=0.2")).ok();
    assert_eq!(why["group"], json!(below));
    let words: Vec<&str> = why["text"].as_str().unwrap().split_whitespace().collect();
    let (words, used) = (words.join(" "), why["used"].as_array().unwrap());
    let number = |one: &serde_json::Value| format!("{} {}", one["name"], one["text"]).replace('"', "");
    assert!(!used.is_empty() && used.iter().all(|one| words.contains(&number(one))), "{why}");
    assert_eq!(page.get("/api/groups/rf-test-nowhere").status, 404);
    let (code, _, error) = desk.run("web rf-test-nowhere {s}");
    assert!(code == 1 && error.contains("'rf-test-nowhere' does not exist"), "{code} {error}");
    desk.scene.ok("delete {g}/a");
    desk.scene.ok("delete {g}");
}

pub fn settings(world: &Arc<World>) {
    let desk = Desk::new(world, "webset");
    desk.scene.ok("create {g} --controllers pids,memory");
    let page = Page::new(world, "change", "--write");
    let path = format!("/api/groups/{}/settings", desk.scene.group);
    let value = || desk.scene.ok("get {g} pids.max --values").trim().to_owned();
    let change = json!({ "set": { "pids.max": "77" } });
    let plan = page.post(&format!("{path}/plan"), &change).ok();
    assert_eq!(
        (&plan["before"]["pids.max"], &plan["writes"][0]["text"]),
        (&json!("max"), &json!("77")),
        "{plan}"
    );
    assert_eq!(value(), "max", "a plan writes nothing");
    // somebody applied something since the plan
    let stale = json!({ "set": { "pids.max": "77" }, "expected": plan["before"], "expected_generation": 9 });
    let refused = page.own("PATCH", &path, &stale.to_string());
    assert_eq!((refused.status, &refused.json()["current"]["generation"]), (409, &json!("0")));
    assert_eq!(value(), "max");
    let change = json!({
        "set": { "pids.max": "77" }, "expected": plan["before"], "expected_generation": plan["generation"]
    });
    let done = page.own("PATCH", &path, &change.to_string()).ok();
    assert_eq!((&done["values"]["pids.max"], &*value()), (&json!("77"), "77"), "{done}");
    // another browser still shows what was there before
    let other = json!({ "set": { "pids.max": "5" }, "expected": { "pids.max": "max" } });
    let refused = page.own("PATCH", &path, &other.to_string());
    assert_eq!((refused.status, &refused.json()["current"]["pids.max"]), (409, &json!("77")));
    assert_eq!(value(), "77");
    for wrong in [json!({ "pids.max": "x" }), json!({ "no.such": "1" }), json!({})] {
        let refused = page.own("PATCH", &path, &json!({ "set": wrong }).to_string());
        assert!(matches!(refused.status, 400 | 422), "{wrong}: {} {}", refused.status, refused.body);
    }
    // what looks like an option is a value
    let refused = page.own("PATCH", "/api/groups/--help/settings", r#"{"set":{"pids.max":"1"}}"#);
    assert!(refused.status == 422 && refused.body.contains("does not exist"), "{}", refused.body);
    assert_eq!(value(), "77");
    desk.scene.ok("delete {g}");
}

pub fn layout(world: &Arc<World>) {
    let page = Page::new(world, "layout", "--write");
    let group = page.desk.scene.group.clone();
    let wrong = page.post("/api/check", &json!({ "text": "[groups.x]\ncpuz = 1\n" })).ok();
    assert_eq!(
        (&wrong["errors"], &wrong["diagnostics"][0]["origin"]["line"]),
        (&json!(1), &json!(2)),
        "{wrong}"
    );
    assert_eq!(wrong["diagnostics"][0]["origin"]["file"], "layout.toml");
    let text = format!("[groups.{group}]\ncpus = \"0\"\nmems = \"local\"\nmemory.max = \"64M\"\n");
    let checked = page.post("/api/check", &json!({ "text": text })).ok();
    assert_eq!((&checked["errors"], &checked["groups"]), (&json!(0), &json!(1)), "{checked}");
    let planned = page.post("/api/plan", &json!({ "text": text })).ok();
    let plan = &planned["plan"];
    assert!(plan["steps"].as_array().unwrap().len() > 2, "{planned}");
    assert!(plan["text"].as_str().unwrap().contains("memory.max"), "{planned}");
    let is_there = || page.desk.run("get {g} memory.max").0 == 0;
    assert!(!is_there(), "a plan makes nothing");
    let stale = json!({ "text": text, "confirm_seconds": 3, "expected_generation": 9 });
    assert_eq!(page.post("/api/apply", &stale).status, 409);
    assert!(!is_there());
    let request = json!({ "text": text, "confirm_seconds": 3, "expected_generation": plan["generation"] });
    let done = page.post("/api/apply", &request).ok();
    assert!(done["undone_at_ms"].is_u64() && is_there(), "{done}");
    // the plan begins with what is in effect
    assert_eq!(page.get("/api/layout").ok()["text"], text);
    let history = page.get("/api/history").ok();
    assert_eq!(history["pending"]["generation"], done["generation"], "{history}");
    // the countdown runs out
    page.desk.scene.until("the undo", || !is_there());
    page.desk
        .scene
        .until("its record", || page.get("/api/history").ok()["generations"][1]["state"] == "done");
    let history = page.get("/api/history").ok();
    assert!(history["pending"].is_null(), "{history}");
    let request = json!({ "text": text, "confirm_seconds": 60, "expected_generation": history["newest"] });
    let done = page.post("/api/apply", &request).ok();
    let confirmed = page.post("/api/confirm", &json!({ "generation": done["generation"] })).ok();
    assert_eq!(confirmed["generation"], done["generation"]);
    assert!(is_there() && page.get("/api/history").ok()["pending"].is_null());
    let undone = page.post("/api/undo", &json!({ "to": null, "expected_generation": done["generation"] }));
    assert!(undone.ok()["generation"].is_u64() && !is_there(), "{}", undone.body);
}

pub fn daemon_back(world: &Arc<World>) {
    let page = Page::new(world, "daemon", "");
    page.desk.write("empty.toml", "");
    let daemon = |is: &str| page.get("/api/session").ok()["daemon"] == json!(is);
    assert!(daemon("not_running"));
    let start = || {
        let line = page
            .desk
            .scene
            .fill("daemon --no-apply --no-strict {s} --socket {d}/socket --layout {d}/empty.toml");
        let mut command = Command::new(page.desk.scene.program());
        command
            .args(line.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    };
    for _ in 0..2 {
        let mut child = start();
        page.desk.scene.until("the daemon", || daemon("running"));
        let process = Pid::from_child(&child);
        kill_process(process, Signal::STOP).unwrap();
        let hangs = page.get("/api/session").ok();
        assert_eq!(hangs["daemon"], json!("unreachable"));
        assert!(hangs["daemon_problem"].to_string().contains("no whole answer came within 3 s"), "{hangs}");
        kill_process(process, Signal::CONT).unwrap();
        page.desk.scene.until("the daemon again", || daemon("running"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(daemon("not_running"), "{}", page.get("/api/session").body);
    }
}

/// The page asks for the machine again with each new version of the owners.
pub fn hotplug(world: &Arc<World>) {
    const SWITCH: &str = "/sys/devices/system/cpu/cpu1/online";
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = fs::write(SWITCH, "1"); // the test has failed already
        }
    }
    let page = Page::new(world, "hotplug", "");
    let seen = || {
        let version = page.get("/api/sample").ok()["owners_version"].as_u64().unwrap();
        let machine = page.get("/api/machine").ok();
        let cpu = machine["cpus"].as_array().unwrap().iter().find(|cpu| cpu["id"] == 1).cloned();
        (version, cpu.unwrap()["online"].as_bool().unwrap())
    };
    let (before, is_online) = seen();
    assert!(is_online);
    let _back = Back;
    for (state, goes) in [("0", false), ("1", true)] {
        fs::write(SWITCH, state).unwrap();
        page.desk.scene.until("the machine is read again", || seen().1 == goes);
    }
    assert!(seen().0 >= before + 2);
}

/// Two pages of two servers, or a page and the command line: only the lock for changes knows who was first.
pub fn race(world: &Arc<World>) {
    let desk = Desk::new(world, "webrace");
    let started = ["one", "two"].map(|name| {
        desk.write(&format!("{name}.toml"), "[groups.{g}]\nmemory.max = \"64M\"\npids.max = 50\n");
        desk.spawn(&format!("apply {{d}}/{name}.toml {{s}} --expect-generation 0"))
    });
    let ended = started.map(|child| child.wait_with_output().unwrap());
    let mut codes = ended.each_ref().map(|output| output.status.code().unwrap());
    let said = ended.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).concat();
    codes.sort_unstable();
    assert_eq!(codes, [0, 1], "{said}");
    assert!(said.contains("the newest generation is 1 by now, not 0; nothing was changed"), "{said}");
    assert_eq!(desk.generations(), 1);
    let before = desk.ends("get {g} memory.max", 0);
    for line in ["undo {s}", "set {g} memory.max=32M {s}", "set {g} memory.max=32M pids.max=9 {s}"] {
        let (code, _, error) = desk.run(&format!("{line} --expect-generation 0"));
        assert!(code == 1 && error.contains("nothing was changed"), "{line}: {code} {error}");
    }
    let refused = desk.json("undo {s} --json --expect-generation 0", 1);
    assert_eq!(refused["error"]["newest"], 1, "what makes it a conflict for a page: {refused}");
    assert_eq!(desk.ends("get {g} memory.max", 0), before);
    desk.ends("set {g} memory.max=32M {s} --expect-generation 1", 0);
    assert_ne!(desk.ends("get {g} memory.max", 0), before);
    desk.ends("undo {s} --expect-generation 1", 0);
}
