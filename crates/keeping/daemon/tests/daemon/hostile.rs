//! Clients that mean harm, or send anything: they are refused, and the daemon goes on as before.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    process::Stdio,
    sync::atomic::Ordering,
    time::Duration,
};

use daemon::socket::Limits;
use serde_json::json;

use crate::{
    client,
    scene::{ROOT, STRANGER, Scene, as_user, descriptors, resident, tell, until},
};

pub const ROWS: &[(&str, fn())] = &[
    ("forged names lead nowhere, however they are written", forged),
    ("garbage is no request", garbage),
    ("bodies are as large as they may be and no larger", bodies),
    ("clients that stop half way are left behind", slow),
    ("a thousand connections at once are refused but for some, and leave nothing behind", thousand),
    ("one user's connections leave room for root", one_user),
];

fn forged() {
    let mut scene = Scene::new();
    // a process of the test's own: whatever is let pass by mistake reaches nobody else's
    let own = scene.process_of(ROOT);
    let pids = json!({ "pids": [own] }).to_string();
    let groups = || {
        scene
            .host
            .list(&kernel::GroupName::base())
            .unwrap()
            .into_keys()
            .filter(|name| name.contains("socket"))
            .collect::<Vec<_>>()
    };
    let before = groups();
    let long = "a".repeat(300);
    let longer = "a/".repeat(4000);
    let longest = "a".repeat(60_000);
    for name in [
        "..",
        "../x",
        "a/../../b",
        "%2e%2e",
        "%2E%2E%2Fx",
        "{g}/%2e%2e/x",
        "{g}/db/../nobodys",
        "{g}/db/./x",
        "cgroup.procs",
        "{g}/db/cgroup.procs",
        "{g}/db/pids.max",
        "{g}/db/tasks",
        "{g}/db%00",
        "%00",
        "{g}/db%0a",
        "{g}/db%1b[2J",
        "%",
        "%zz",
        "%2",
        "%ff",
        "/{g}/db",
        "%2F{g}%2Fdb",
        "//",
        "{g}//db",
        "\u{fc}",
        "{g}/db\\..\\x",
        "{g}/db;x",
        "%25%32%65",
        &long,
        &longer,
        &longest,
    ] {
        for (method, end, body) in [
            ("GET", "", ""),
            ("PATCH", "/settings", r#"{"pids.max":1}"#),
            ("POST", "/processes", pids.as_str()),
        ] {
            let path = format!("/v1/groups/{name}{end}").replace("{g}", &scene.group);
            let (status, reply) = client::request(&scene.path(), method, &path, body);
            assert!((400..500).contains(&status), "{method} {path:.80}: {status} {reply}");
        }
    }
    for setting in
        ["../cgroup.procs", "cgroup.procs", "tasks", "/etc/passwd", "pids.max/../x", "pids.max\u{0}"]
    {
        let body = json!({ setting: "1" }).to_string();
        let (status, reply) = scene.request(ROOT, "PATCH", "/v1/groups/{g}/nobodys/settings", &body);
        assert!((400..500).contains(&status), "{setting}: {reply}");
    }
    assert_eq!(groups(), before);
    assert!(["db", "db/own", "db/below", "nobodys"].iter().all(|name| !scene.is_in(own, name)));
    assert!(scene.pids_max("nobodys") != "1");
    scene.answers();
}

fn garbage() {
    let scene = Scene::new();
    let mut noise = vec![0u8; 100_000];
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut noise).unwrap();
    let many = format!("GET /v1/status HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5000));
    let wide = format!("GET /v1/status HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(200_000));
    let two = "PATCH /v1/groups/x/settings HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 90\r\n\r\n{}";
    let both =
        "PATCH /v1/groups/x/settings HTTP/1.1\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}";
    let chunk =
        "PATCH /v1/groups/x/settings HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{}";
    for bytes in [
        &noise[..],
        b"\0\0\0\0",
        b"\r\n\r\n\r\n\r\n",
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET http://other/v1/status HTTP/1.1\r\nhost x\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
        b"GET /v1/status\0 HTTP/1.1\r\n\r\n",
        b"PATCH /v1/groups/x/settings HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"PATCH /v1/groups/x/settings HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        two.as_bytes(),
        both.as_bytes(),
        chunk.as_bytes(),
        many.as_bytes(),
        wide.as_bytes(),
    ] {
        let mut stream = UnixStream::connect(scene.path()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let (status, body) = client::answer(&mut stream);
        assert!(status == 0 || (400..600).contains(&status), "{:?}: {status} {body}", bytes.get(..40));
        scene.answers();
    }
    // deep nesting takes no stack
    let deep = "[".repeat(60_000);
    assert_eq!(scene.request(ROOT, "PATCH", "/v1/groups/{g}/db/settings", &deep).0, 400);
    scene.answers();
}

fn bodies() {
    let scene = Scene::new();
    let body = |length: usize| format!("{{\"pids.max\":\"7\"{}}}", " ".repeat(length - 16));
    assert_eq!(body(100).len(), 100);
    let set = "/v1/groups/{g}/db/settings";
    assert_eq!(scene.request(ROOT, "PATCH", set, &body(64 << 10)).0, 200);
    assert_eq!(scene.request(ROOT, "PATCH", set, &body((64 << 10) + 1)).0, 413);
    assert_eq!(scene.request(ROOT, "PATCH", set, &body(1 << 20)).0, 413);
    // without a length that is told
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let head =
        format!("PATCH {} HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", set.replace("{g}", &scene.group));
    let (status, _) = client::raw(&scene.path(), format!("{head}{}", chunk.repeat(16)).as_bytes());
    assert_eq!(status, 413);
    scene.answers();
}

fn slow() {
    let limits =
        Limits { head: Duration::from_millis(300), whole: Duration::from_millis(900), ..Limits::default() };
    let scene = Scene::within(limits);
    scene.answers();
    let before = descriptors();
    let starts: [&[u8]; 5] = [
        b"",
        b"GET /v1/sta",
        b"GET /v1/status HTTP/1.1\r\nx: ",
        b"PATCH /v1/groups/x/settings HTTP/1.1\r\ncontent-length: 100\r\n\r\n{",
        b"PATCH /v1/groups/x/settings HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
    ];
    let mut clients: Vec<UnixStream> = (0..20)
        .map(|index| {
            let mut stream = UnixStream::connect(scene.path()).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            stream.write_all(starts[index % starts.len()]).unwrap();
            stream
        })
        .collect();
    scene.answers();
    // a byte now and then buys no time
    let mut dripping = UnixStream::connect(scene.path()).unwrap();
    let mut bytes = b"GET /v1/status HTTP/1.1\r\nx: ".iter().chain(std::iter::repeat(&b'a'));
    let dripped = (0..6000).find(|_| {
        std::thread::sleep(Duration::from_millis(10));
        dripping.write_all(&[*bytes.next().unwrap()]).is_err()
    });
    assert!(dripped.is_some());
    for client in &mut clients {
        // the daemon ends each by itself: the read comes to its end
        let (status, body) = client::answer(client);
        assert!(matches!(status, 0 | 400 | 408), "{status} {body}");
    }
    drop((clients, dripping));
    until("no descriptor is left", || descriptors() <= before);
    // who asks and does not read
    let mut deaf = UnixStream::connect(scene.path()).unwrap();
    deaf.write_all(b"GET /v1/openapi.json HTTP/1.1\r\n\r\n").unwrap();
    scene.answers();
    drop(deaf);
    until("no descriptor is left", || descriptors() <= before);
}

fn thousand() {
    let scene = Scene::new();
    // some of everything first, so that what is kept for good is there
    for _ in 0..3 {
        scene.answers();
    }
    let (before, memory) = (descriptors(), resident());
    // root's own limit of descriptors is the test's business
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let wanted = rustix::process::Rlimit { current: limit.maximum, ..limit };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, wanted);
    let mut most = 0;
    let counts = scene.handle.as_ref().unwrap().counts();
    let taken = || counts.connections.load(Ordering::Relaxed) + counts.rejected.load(Ordering::Relaxed);
    for _ in 0..3 {
        let earlier = taken();
        let clients: Vec<UnixStream> =
            (0..1000).map(|_| UnixStream::connect(scene.path()).unwrap()).collect();
        until("all are looked at", || taken() >= earlier + 1000);
        // what `before` counted may have been an answered connection that the daemon had not closed yet
        let held = descriptors().saturating_sub(before + 1000);
        assert!(held <= 130, "{held} of 1000 are held");
        most = most.max(resident());
        let mut last = &clients[999];
        let mut answer = [0; 12];
        last.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 503");
        drop(clients);
        until("no descriptor is left", || descriptors() <= before);
        scene.answers();
    }
    let rejected = counts.rejected.load(Ordering::Relaxed);
    assert!(rejected >= 3 * (1000 - 128), "{rejected}");
    tell(&format!(
        "descriptors {before} before, {} after; resident {memory} KiB before, {most} at most, {} after",
        descriptors(),
        resident()
    ));
    assert!(most < memory + 16 * 1024 && resident() < memory + 16 * 1024);
}

fn one_user() {
    let scene = Scene::new();
    let mut child = as_user(STRANGER, &client::holding(&scene.path(), 40))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut refused = [0; 2];
    child.stdout.as_mut().unwrap().read_exact(&mut refused).unwrap();
    assert_eq!(&refused, b"24", "16 of 40 are held");
    scene.answers();
    assert_eq!(scene.request(crate::scene::ADMIN, "GET", "/v1/status", "").0, 200);
    drop(child.stdin.take());
    child.wait().unwrap();
    until("the user has room again", || scene.request(STRANGER, "GET", "/v1/status", "").0 == 200);
}
