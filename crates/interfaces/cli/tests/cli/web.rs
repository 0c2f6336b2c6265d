//! `ringfence web` as a browser, and as others who would like to be one, meet it: over TCP, on real groups.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    desk::Desk,
    world::{Need, World},
};

type Body = fn(&Arc<World>);

/// Without any group.
const ALWAYS: &[(&str, Body)] = &[
    ("a Host that only points here is refused", rebinding),
    ("a Host that begins like a loopback address is refused", like_loopback),
    ("another page's Origin is refused", foreign_origin),
    ("a form's POST is refused", form),
    ("without a cookie there is no data", no_cookie),
    ("a token opens one session", replayed_token),
    ("a body that is too large is refused", oversized),
    ("a request that does not go on ends, and delays nobody", half_open),
    ("another method is refused", wrong_method),
    ("a path leads nowhere else", path_tricks),
    ("another user's connection gets no word", another_user),
    ("no page of others has this one in a frame", framing),
    ("an address that others reach is refused", not_loopback),
    ("a session ends by itself, and when it is ended", session_over),
    ("Ctrl-C ends the server with status 0", ended),
    ("without --write nothing changes", read_only),
];

/// On groups of the test.
const ON_GROUPS: &[(&str, Body)] = &[
    ("the machine and its groups as they are", seen),
    ("a setting changes with its plan first, and a conflict changes nothing", settings),
    ("a layout is checked, planned, applied, undone unless confirmed, and undone", layout),
    ("a daemon that goes and comes back is seen", daemon_back),
    ("a log with a torn end is shown up to there", torn_log),
];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let trial = |(name, body): &(&'static str, Body)| {
        let (world, name, body) = (world.clone(), *name, *body);
        Trial::test(format!("web: {name}"), move || {
            body(&world);
            Ok(())
        })
    };
    let has_groups = world.has(Need::Groups)
        && [Need::V1("cpuset"), Need::V2("cpuset")].into_iter().any(|need| world.has(need))
        && [Need::V1("memory"), Need::V2("memory")].into_iter().any(|need| world.has(need));
    let on_groups = ON_GROUPS.iter().filter(|_| has_groups);
    ALWAYS.iter().chain(on_groups).map(trial).collect()
}

/// A server of a test, and a session with it.
struct Page {
    child: Child,
    address: SocketAddr,
    token: String,
    cookie: String,
    desk: Desk,
}

/// What came back.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.body))
    }

    fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }
}

impl Page {
    fn new(world: &Arc<World>, test: &str, options: &str) -> Page {
        let mut page = Page::without_session(world, test, options);
        let body = json!({ "token": page.token }).to_string();
        let reply = page.own("POST", "/api/session", &body);
        assert_eq!(reply.status, 204, "{}", reply.body);
        let cookie = reply.header("set-cookie").unwrap().to_owned();
        for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        page.cookie = cookie.split(';').next().unwrap().to_owned();
        page
    }

    fn without_session(world: &Arc<World>, test: &str, options: &str) -> Page {
        let desk = Desk::new(world, &format!("web{test}"));
        let line = desk.scene.fill(&format!(
            "web {{s}} --socket {{d}}/socket --directory {{d}}/log --results {{d}}/results {options}"
        ));
        let mut child = Command::new(desk.scene.program())
            .args(line.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let rest = url.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{url}"));
        let (address, token) = rest.split_once("/#token=").unwrap();
        Page {
            address: address.parse().unwrap(),
            token: token.to_owned(),
            cookie: String::new(),
            child,
            desk,
        }
    }

    /// The request as it stands.
    fn raw(&self, request: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        // a server that refuses early closes while we still write
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// With these headers, as any program can send them.
    fn with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {}\r\n\r\n{body}", body.len());
        self.raw(request.as_bytes())
    }

    /// As this server's page asks.
    fn own(&self, method: &str, path: &str, body: &str) -> Reply {
        let (host, origin) = (self.address.to_string(), format!("http://{}", self.address));
        let headers = [
            ("host", &*host),
            ("origin", &*origin),
            ("content-type", "application/json"),
            ("sec-fetch-site", "same-origin"),
            ("cookie", &*self.cookie),
        ];
        self.with(method, path, &headers, body)
    }

    fn get(&self, path: &str) -> Reply {
        self.own("GET", path, "")
    }

    fn post(&self, path: &str, body: &Value) -> Reply {
        self.own("POST", path, &body.to_string())
    }

    /// As [`Page::own`], with one header put in another's place.
    fn but(&self, method: &str, path: &str, other: (&str, &str), body: &str) -> Reply {
        let (host, origin) = (self.address.to_string(), format!("http://{}", self.address));
        let own = [
            ("host", &*host),
            ("origin", &*origin),
            ("content-type", "application/json"),
            ("cookie", &*self.cookie),
        ];
        let mut headers: Vec<(&str, &str)> = own.into_iter().filter(|(name, _)| *name != other.0).collect();
        headers.push(other);
        self.with(method, path, &headers, body)
    }

    fn stop(&mut self) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rebinding(world: &Arc<World>) {
    let page = Page::new(world, "rebind", "");
    for host in ["evil.com", "evil.com:80", "ringfence.evil.com:8080", "0.0.0.0:80", "192.168.0.1:80"] {
        assert_eq!(page.but("GET", "/api/machine", ("host", host), "").status, 421, "{host}");
        assert_eq!(page.but("GET", "/", ("host", host), "").status, 421, "{host}");
    }
    assert_eq!(page.get("/api/machine").status, 200);
}

fn like_loopback(world: &Arc<World>) {
    let page = Page::new(world, "like", "");
    for host in
        ["127.evil.com", "127.0.0.1.evil.com:80", "localhost.evil.com:80", "localhost.:80", "127.1:80"]
    {
        assert_eq!(page.but("GET", "/api/machine", ("host", host), "").status, 421, "{host}");
    }
    // the near end of ssh -L has another port
    let forwarded =
        [("host", "localhost:9999"), ("origin", "http://localhost:9999"), ("cookie", &*page.cookie)];
    assert_eq!(page.with("GET", "/api/machine", &forwarded, "").status, 200);
}

fn foreign_origin(world: &Arc<World>) {
    let page = Page::new(world, "origin", "--write");
    let body = r#"{"text":""}"#;
    for origin in ["http://evil.com", "null", "http://127.0.0.1:1", "https://localhost"] {
        assert_eq!(page.but("POST", "/api/check", ("origin", origin), body).status, 403, "{origin}");
    }
    let site = ("sec-fetch-site", "cross-site");
    assert_eq!(page.but("POST", "/api/check", site, body).status, 403);
    assert_eq!(page.but("GET", "/api/machine", site, "").status, 403);
    assert_eq!(page.own("POST", "/api/check", body).status, 200);
}

fn form(world: &Arc<World>) {
    let page = Page::new(world, "form", "--write");
    for content in ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"] {
        let sent = page.but(
            "POST",
            "/api/undo",
            ("content-type", content),
            r#"{"to":null,"expected_generation":0}"#,
        );
        assert_eq!(sent.status, 415, "{content}");
    }
}

fn no_cookie(world: &Arc<World>) {
    let page = Page::new(world, "cookie", "");
    for path in
        ["/api/machine", "/api/sample", "/api/groups", "/api/history", "/api/nowhere", "/api/openapi.json"]
    {
        for cookie in ["", "ringfence-1=0", "x=y", &page.cookie.replace('=', "=0")] {
            let reply = page.but("GET", path, ("cookie", cookie), "");
            assert_eq!(reply.status, 401, "{path} {cookie}: {}", reply.body);
            assert_eq!(reply.json()["kind"], "session_over");
        }
    }
    // the page itself has no data
    assert_eq!(page.but("GET", "/", ("cookie", ""), "").status, 200);
}

fn replayed_token(world: &Arc<World>) {
    let page = Page::new(world, "replay", "");
    let body = json!({ "token": page.token }).to_string();
    assert_eq!(page.own("POST", "/api/session", &body).status, 401, "used");
    for token in ["", "0", &"0".repeat(64), &"é".repeat(32)] {
        let body = json!({ "token": token }).to_string();
        assert_eq!(page.own("POST", "/api/session", &body).status, 401, "{token}");
    }
}

fn oversized(world: &Arc<World>) {
    let page = Page::new(world, "large", "");
    let layout = json!({ "text": "#".repeat(10 << 20) }).to_string();
    assert_eq!(page.own("POST", "/api/check", &layout).status, 413, "10 MB");
    let layout = json!({ "text": "#".repeat((4 << 20) + 1) }).to_string();
    assert_eq!(page.own("POST", "/api/check", &layout).status, 413, "above 4 MiB");
    let header = "x".repeat(64 << 10);
    let reply = page.but("GET", "/api/machine", ("x-large", &header), "");
    assert!(matches!(reply.status, 0 | 431), "{}", reply.status);
    assert_eq!(page.get("/api/session").status, 200);
}

fn half_open(world: &Arc<World>) {
    let page = Page::new(world, "half", "");
    let host = page.address;
    let half = [
        String::new(),
        "GET / HTTP/1.1\r\nhost: ".to_owned(),
        format!(
            "POST /api/check HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\ncontent-type: application/json\r\ncookie: {}\r\ncontent-length: 100\r\n\r\n{{",
            page.cookie
        ),
    ];
    let open: Vec<TcpStream> = half
        .iter()
        .map(|text| {
            let mut stream = TcpStream::connect(page.address).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            stream
        })
        .collect();
    assert_eq!(page.get("/api/session").status, 200, "others are served meanwhile");
    for (mut stream, text) in open.into_iter().zip(&half) {
        let mut answer = String::new();
        // a timeout of ours would be an error
        stream.read_to_string(&mut answer).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(answer.is_empty() || answer.contains(" 408 "), "{text}: {answer}");
    }
}

fn wrong_method(world: &Arc<World>) {
    let page = Page::new(world, "method", "--write");
    for (method, path) in [
        ("PUT", "/api/groups"),
        ("DELETE", "/api/history"),
        ("POST", "/api/machine"),
        ("GET", "/api/apply"),
        ("POST", "/"),
        ("TRACE", "/api/machine"),
        ("CONNECT", "/api/machine"),
    ] {
        let reply = page.own(method, path, "");
        assert!(matches!(reply.status, 400 | 405), "{method} {path}: {} {}", reply.status, reply.body);
    }
}

fn path_tricks(world: &Arc<World>) {
    let page = Page::new(world, "path", "");
    for path in [
        "/../etc/passwd",
        "/api/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/app.js/..",
        "/api/lab/..%2f..%2fetc/report",
        "/api/lab/%2e%2e/report",
        "/api/groups/..%2f..%2fx",
        "/api/groups/%00",
        "/api/groups/%ff",
        "/api/groups/cgroup.procs",
        "http://evil.com/api/machine",
        "/api/machine%2f",
    ] {
        let reply = page.get(path);
        assert!(matches!(reply.status, 400 | 404), "{path}: {} {}", reply.status, reply.body);
        assert!(!reply.body.contains("root:"), "{path}");
    }
}

/// Only root can be two users.
fn another_user(world: &Arc<World>) {
    let page = Page::new(world, "user", "");
    let get = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", page.address);
    assert_eq!(page.raw(get.as_bytes()).status, 200);
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let address = page.address;
    // the user of a thread alone: the kernel notes it of the socket
    let asked = |user: u32| {
        let get = get.clone();
        let client = std::thread::spawn(move || {
            let user = rustix::process::Uid::from_raw(user);
            rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let mut answer = Vec::new();
            // a server that closes at once resets what was sent
            let _ = stream.write_all(get.as_bytes());
            let _ = stream.read_to_end(&mut answer);
            String::from_utf8_lossy(&answer).into_owned()
        });
        client.join().unwrap()
    };
    assert!(asked(0).contains(" 200 "));
    assert_eq!(asked(1234), "");
}

fn framing(world: &Arc<World>) {
    let page = Page::new(world, "frame", "");
    for path in ["/", "/api/machine", "/app.js"] {
        let reply = page.get(path);
        let policy = reply.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert_eq!(reply.header("x-frame-options"), Some("DENY"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    let framed = |site| {
        let (host, dest) = (page.address.to_string(), "iframe");
        page.with("GET", "/", &[("host", &host), ("sec-fetch-site", site), ("sec-fetch-dest", dest)], "")
            .status
    };
    assert_eq!([framed("cross-site"), framed("same-site"), framed("same-origin")], [403; 3]);
}

fn not_loopback(world: &Arc<World>) {
    let desk = Desk::new(world, "webaddress");
    for address in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
        let (code, out, error) = desk.run(&format!("web --listen {address}"));
        assert_eq!((code, &*out), (2, ""), "{address}: {error}");
        assert!(error.contains("is not a loopback address") && error.contains("ssh -L"), "{error}");
    }
}

fn session_over(world: &Arc<World>) {
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

fn ended(world: &Arc<World>) {
    let mut page = Page::new(world, "ctrlc", "");
    assert_eq!(page.get("/api/session").status, 200);
    assert_eq!(page.stop(), Some(0));
    assert!(TcpStream::connect(page.address).is_err());
}

fn read_only(world: &Arc<World>) {
    let page = Page::new(world, "readonly", "");
    for (method, path, body) in [
        ("POST", "/api/apply", json!({ "text": "", "confirm_seconds": null, "expected_generation": 0 })),
        ("POST", "/api/undo", json!({ "to": null, "expected_generation": 0 })),
        ("POST", "/api/confirm", json!({ "generation": 1 })),
        ("PATCH", "/api/groups/db/settings", json!({ "set": { "pids.max": "1" } })),
    ] {
        let reply = page.own(method, path, &body.to_string());
        assert_eq!((reply.status, &reply.json()["kind"]), (403, &json!("read_only")), "{path}");
    }
    assert_eq!(page.get("/api/session").ok()["write"], false);
}

fn torn_log(world: &Arc<World>) {
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

fn seen(world: &Arc<World>) {
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
    assert_eq!(page.get("/api/groups/rf-test-nowhere").status, 404);
    desk.scene.ok("delete {g}/a");
    desk.scene.ok("delete {g}");
}

fn settings(world: &Arc<World>) {
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
    let change = json!({ "set": { "pids.max": "77" }, "expected": plan["before"] });
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

fn layout(world: &Arc<World>) {
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
    let asked = json!({ "text": text, "confirm_seconds": 3, "expected_generation": plan["generation"] });
    let done = page.post("/api/apply", &asked).ok();
    assert!(done["undone_at_ms"].is_u64() && is_there(), "{done}");
    let history = page.get("/api/history").ok();
    assert_eq!(history["pending"]["generation"], done["generation"], "{history}");
    // the countdown runs out
    page.desk.scene.until("the undo", || !is_there());
    page.desk
        .scene
        .until("its record", || page.get("/api/history").ok()["generations"][1]["state"] == "done");
    let history = page.get("/api/history").ok();
    assert!(history["pending"].is_null(), "{history}");
    let asked = json!({ "text": text, "confirm_seconds": 60, "expected_generation": history["newest"] });
    let done = page.post("/api/apply", &asked).ok();
    let kept = page.post("/api/confirm", &json!({ "generation": done["generation"] })).ok();
    assert_eq!(kept["generation"], done["generation"]);
    assert!(is_there() && page.get("/api/history").ok()["pending"].is_null());
    let undone = page.post("/api/undo", &json!({ "to": null, "expected_generation": done["generation"] }));
    assert!(undone.ok()["generation"].is_u64() && !is_there(), "{}", undone.body);
}

fn daemon_back(world: &Arc<World>) {
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
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(daemon("not_running"), "{}", page.get("/api/session").body);
    }
}
