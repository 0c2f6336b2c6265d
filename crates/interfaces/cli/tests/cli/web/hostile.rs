//! Requests that no page of the server sends, and limits.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::json;

use super::page::Page;
use crate::{desk::Desk, world::World};

pub fn rebinding(world: &Arc<World>) {
    let page = Page::new(world, "rebind", "");
    for host in ["evil.com", "evil.com:80", "ringfence.evil.com:8080", "0.0.0.0:80", "192.168.0.1:80"] {
        assert_eq!(page.but("GET", "/api/machine", ("host", host), "").status, 421, "{host}");
        assert_eq!(page.but("GET", "/", ("host", host), "").status, 421, "{host}");
    }
    assert_eq!(page.get("/api/machine").status, 200);
}

pub fn like_loopback(world: &Arc<World>) {
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

pub fn foreign_origin(world: &Arc<World>) {
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

pub fn form(world: &Arc<World>) {
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

pub fn no_cookie(world: &Arc<World>) {
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

pub fn replayed_token(world: &Arc<World>) {
    let page = Page::new(world, "replay", "");
    let body = json!({ "token": page.token }).to_string();
    assert_eq!(page.own("POST", "/api/session", &body).status, 401, "used");
    for token in ["", "0", &"0".repeat(64), &"é".repeat(32)] {
        let body = json!({ "token": token }).to_string();
        assert_eq!(page.own("POST", "/api/session", &body).status, 401, "{token}");
    }
}

pub fn oversized(world: &Arc<World>) {
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

pub fn half_open(world: &Arc<World>) {
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

/// Connections, each with a request that does not go on, until another one is turned away. Where CPUs are slow, the first of them
/// are over before many are open: more follow.
pub fn flood(world: &Arc<World>) {
    let page = Page::new(world, "flood", "");
    let is_served = || {
        let reply = page.get("/api/session");
        match reply.status {
            200 => true,
            503 => {
                assert!(reply.body.contains("too many connections"), "{}", reply.body);
                false
            }
            other => {
                assert_eq!(other, 0, "{}", reply.body);
                false
            }
        }
    };
    let half = |_| {
        let mut stream = TcpStream::connect(page.address).ok()?;
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost: ");
        Some(stream)
    };
    let (began, mut open) = (Instant::now(), Vec::new());
    while is_served() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "all were served beside {} connections",
            open.len()
        );
        open.extend((0..100).filter_map(half));
    }
    let turned_away = Instant::now();
    while !is_served() {
        assert!(turned_away.elapsed() < Duration::from_secs(60), "nobody else is served");
        sleep(Duration::from_millis(50));
    }
    drop(open);
}

/// What follows the first request, or hides in its body, is none.
pub fn one_request(world: &Arc<World>) {
    let page = Page::new(world, "one", "--write");
    let host = page.address;
    let head = format!("host: {host}\r\norigin: http://{host}\r\ncookie: {}\r\n", page.cookie);
    let second = format!("GET /api/machine HTTP/1.1\r\n{head}\r\n");
    let json = "content-type: application/json\r\n";
    for first in [
        format!("GET /api/session HTTP/1.1\r\n{head}\r\n"),
        format!("GET /api/session HTTP/1.0\r\n{head}connection: keep-alive\r\n\r\n"),
        format!("POST /api/check HTTP/1.1\r\n{head}{json}content-length: 11\r\n\r\n{{\"text\":\"\"}}"),
        format!(
            "POST /api/check HTTP/1.1\r\n{head}{json}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
    ] {
        let reply = page.raw(format!("{first}{second}").as_bytes());
        let whole = format!("{}{}", reply.head, reply.body);
        assert_eq!(whole.matches("HTTP/1.").count(), 1, "{first}: {whole}");
        assert!(!whole.contains("\"cpus\":["), "{first}: {whole}");
    }
    let without_host =
        page.raw(format!("GET /api/session HTTP/1.0\r\ncookie: {}\r\n\r\n", page.cookie).as_bytes());
    assert_eq!(without_host.status, 421);
    let twice = page.raw(
        format!("POST /api/check HTTP/1.1\r\n{head}{json}content-length: 1\r\ncontent-length: 2\r\n\r\n{{}}")
            .as_bytes(),
    );
    assert_eq!(twice.status, 400, "{}", twice.head);
}

pub fn wrong_method(world: &Arc<World>) {
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

pub fn path_tricks(world: &Arc<World>) {
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
        "/api/%6dachine",
        "/api/./machine",
        "/%61pp.js",
        "/.%2e/app.js",
        "/app.js%00",
        "/app.js;/../api/machine",
        "/api/lab/%2fetc/report",
        "/api/groups/%2e%2e%2f%2e%2e%2fetc",
        "/api/groups/a%2f%2e%2e%2f%2e%2e%2f%2e%2e%2fetc/settings",
    ] {
        let reply = page.get(path);
        assert!(matches!(reply.status, 400 | 404), "{path}: {} {}", reply.status, reply.body);
        assert!(!reply.body.contains("root:"), "{path}");
    }
}

/// Only root can be two users.
pub fn another_user(world: &Arc<World>) {
    let page = Page::new(world, "user", "");
    let get = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", page.address);
    assert_eq!(page.raw(get.as_bytes()).status, 200);
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let address = page.address;
    // the user of a thread alone: the kernel notes it of the socket
    let answer_to = |user: u32| {
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
    assert!(answer_to(0).contains(" 200 "));
    assert_eq!(answer_to(1234), "");
}

pub fn framing(world: &Arc<World>) {
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

pub fn not_loopback(world: &Arc<World>) {
    let desk = Desk::new(world, "webaddress");
    for address in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
        let (code, out, error) = desk.run(&format!("web --listen {address}"));
        assert_eq!((code, &*out), (2, ""), "{address}: {error}");
        assert!(error.contains("is not a loopback address") && error.contains("ssh -L"), "{error}");
    }
}

pub fn read_only(world: &Arc<World>) {
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
