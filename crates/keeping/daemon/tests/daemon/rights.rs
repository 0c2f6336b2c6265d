//! Who may what, each right given and refused.

use std::{fs, os::unix::process::CommandExt, process::Command};

use serde_json::json;

use crate::scene::{ADMIN, ADMINS, ROOT, STRANGER, Scene, TASKS, User};

pub const ROWS: &[(&str, fn())] = &[
    ("each user gets what the layout gives him and nothing else", each_user),
    ("an admin's change is made and written down with who asked", written_down),
    ("settings change all or none", all_or_none),
    ("a supplementary group of the client's process gives its right", by_group),
    ("what the kernel keeps for root stays root's", kept_for_root),
    ("a tasks user moves his own processes only", own_processes),
    ("a program that runs with another's rights is not taken along", other_rights),
    ("others see groups as far as the files' modes let them", modes),
    ("others have only their own processes explained", explained),
    ("paths of others are not looked up for an admin", looked_up),
];

const SET: &str = r#"{"pids.max": 77}"#;
/// A process of the test's own: a right that is given by mistake must not reach anybody else's.
const MOVE: &str = r#"{"pids":[{pid}]}"#;

fn each_user() {
    let mut scene = Scene::new();
    let pid = scene.process_of(ROOT).to_string();
    let rows: &[(User, &str, &str, &str, u16)] = &[
        (ROOT, "GET", "/v1/status", "", 200),
        (ROOT, "GET", "/v1/groups", "", 200),
        (ROOT, "PATCH", "/v1/groups/{g}/nobodys/settings", SET, 200),
        (ROOT, "PATCH", "/v1/groups/{g}/db/own/settings", SET, 200),
        (ROOT, "POST", "/v1/reload", "", 409),
        (ADMIN, "PATCH", "/v1/groups/{g}/db/settings", SET, 200),
        (ADMIN, "PATCH", "/v1/groups/{g}/db/below/settings", SET, 200),
        (ADMIN, "PATCH", "/v1/groups/{g}/db/own/settings", SET, 403),
        (ADMIN, "PATCH", "/v1/groups/{g}/nobodys/settings", SET, 403),
        (ADMIN, "PATCH", "/v1/groups/{g}/settings", SET, 403),
        (ADMIN, "PATCH", "/v1/groups/elsewhere/settings", SET, 403),
        (ADMIN, "POST", "/v1/groups/{g}/db/processes", MOVE, 403),
        (ADMIN, "POST", "/v1/reload", "", 403),
        (ADMINS, "PATCH", "/v1/groups/{g}/db/settings", SET, 200),
        (TASKS, "PATCH", "/v1/groups/{g}/db/settings", SET, 403),
        (TASKS, "POST", "/v1/groups/{g}/nobodys/processes", MOVE, 403),
        (STRANGER, "PATCH", "/v1/groups/{g}/db/own/settings", SET, 200),
        (STRANGER, "PATCH", "/v1/groups/{g}/db/settings", SET, 403),
        (STRANGER, "POST", "/v1/groups/{g}/db/processes", MOVE, 403),
        (STRANGER, "POST", "/v1/reload", "", 403),
        (STRANGER, "GET", "/v1/status", "", 200),
        (STRANGER, "GET", "/v1/counters", "", 200),
        (STRANGER, "GET", "/v1/groups/{g}/db?settings=pids.max", "", 200),
        (STRANGER, "GET", "/v1/groups/{g}/missing", "", 404),
    ];
    for (user, method, path, body, expected) in rows {
        let (status, reply) = scene.request(*user, method, path, &body.replace("{pid}", &pid));
        assert_eq!(status, *expected, "{user:?} {method} {path}: {reply}");
        if *expected >= 400 {
            assert!(reply["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{reply}");
            assert_eq!(reply["status"], *expected);
        }
    }
    let reloads = scene.main.0.reloads.lock().unwrap();
    assert!(reloads.len() == 1 && reloads[0].uid == 0 && reloads[0].pid == std::process::id());
    assert_eq!(
        scene.handle.as_ref().unwrap().counts().forbidden.load(std::sync::atomic::Ordering::Relaxed),
        11
    );
}

fn written_down() {
    let scene = Scene::new();
    let (status, reply) =
        scene.request(ADMIN, "PATCH", "/v1/groups/{g}/db/settings", r#"{"pids.max": "123"}"#);
    assert_eq!((status, reply[0]["setting"].clone()), (200, json!("pids.max")), "{reply}");
    assert_eq!(scene.pids_max("db"), "123");
    scene.request(STRANGER, "PATCH", "/v1/groups/{g}/db/settings", SET);
    let (status, _) = scene.request(ADMIN, "PATCH", "/v1/groups/{g}/db/settings", r#"{"pids.max": "many"}"#);
    assert_eq!((status, scene.pids_max("db").as_str()), (400, "123"));
    let changes = scene.changes();
    assert_eq!(changes.len(), 1, "what the kernel was not asked for is not written: {changes:?}");
    assert_eq!(
        (&changes[0]["by"]["uid"], &changes[0]["requested"]),
        (&json!(ADMIN.0), &json!({"pids.max": "123"}))
    );
    assert_eq!(changes[0]["group"], json!(format!("{}/db", scene.group)));
    assert!(changes[0]["by"]["command"].as_str().unwrap().contains("--ask-the-socket"), "{changes:?}");
    assert!(changes[0]["at"].as_str().unwrap().ends_with('Z') && changes[0]["done"].is_array());
    let held = fs::metadata(scene.state().join(format!("changes-{}.jsonl", ADMIN.0))).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&held.permissions()) & 0o777, 0o600);
}

fn by_group() {
    let scene = Scene::new();
    let path = format!("/v1/groups/{}/db/settings", scene.group);
    let request = |groups: &[u32]| {
        let arguments = crate::client::arguments(&scene.path(), "PATCH", &path, SET);
        let client = crate::scene::as_user(STRANGER, &arguments);
        let groups: Vec<String> = groups.iter().map(u32::to_string).collect();
        let mut command = Command::new("setpriv");
        let (uid, gid) = (STRANGER.0.to_string(), STRANGER.1.to_string());
        command.args(["--reuid", &uid, "--regid", &gid, "--groups", &groups.join(",")]);
        let output =
            command.arg(client.get_program()).args(client.get_args()).current_dir("/").output().unwrap();
        String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().parse::<u16>().unwrap()
    };
    assert_eq!((request(&[STRANGER.1]), request(&[7, ADMINS.1, 9])), (403, 200));
    // more than are requested at first
    let many: Vec<u32> = (3_000_000..3_000_500).chain([ADMINS.1]).collect();
    assert_eq!(request(&many), 200);
}

fn all_or_none() {
    let scene = Scene::new();
    scene.request(ROOT, "PATCH", "/v1/groups/{g}/db/settings", r#"{"pids.max": 40}"#);
    for body in [
        r#"{"pids.max": 41, "pids.nonsense": 1}"#,
        r#"{"pids.max": 41, "memory.max": "nothing"}"#,
        // the group has no directory where another controller lives, or the kernel refuses
        r#"{"pids.max": 41, "cpuset.cpus": "4095"}"#,
        r#"{"pids.max": 41, "pids.max": 42}"#,
        r#"{"pids.max": 41, "pids.current": 1}"#,
        r#"{}"#,
        "[]",
        "",
        "{",
    ] {
        let (status, reply) = scene.request(ADMIN, "PATCH", "/v1/groups/{g}/db/settings", body);
        assert!((400..500).contains(&status), "{body}: {status} {reply}");
        assert_eq!(scene.pids_max("db"), "40", "{body}");
    }
}

fn kept_for_root() {
    let scene = Scene::new();
    for setting in ["devices.allow", "devices.deny", "release_agent", "cgroup.kill", "notify_on_release"] {
        let body = json!({ setting: "a" }).to_string();
        let (status, reply) = scene.request(ADMIN, "PATCH", "/v1/groups/{g}/db/settings", &body);
        assert_eq!(status, 403, "{setting}: {reply}");
        assert!(reply["detail"].as_str().unwrap().contains("root only"), "{reply}");
    }
    assert_eq!(scene.changes().len(), 0);
}

fn own_processes() {
    let mut scene = Scene::new();
    let (own, roots, others) = (scene.process_of(TASKS), scene.process_of(ROOT), scene.process_of(STRANGER));
    let request = |scene: &Scene, pids: &[u32]| {
        let body = json!({ "pids": pids }).to_string();
        scene.request(TASKS, "POST", "/v1/groups/{g}/db/processes", &body)
    };
    for pids in [&[roots][..], &[others], &[own, roots]] {
        let (status, reply) = request(&scene, pids);
        assert_eq!(status, 403, "{pids:?}: {reply}");
        assert!(!scene.is_in(roots, "db") && !scene.is_in(others, "db") && !scene.is_in(own, "db"));
    }
    for body in [r#"{"pids":[]}"#, r#"{"pids":["1"]}"#, r#"{"pids":[-1]}"#, r#"{"pids":[0]}"#, r#"{"x":1}"#] {
        let (status, reply) = scene.request(TASKS, "POST", "/v1/groups/{g}/db/processes", body);
        assert!(matches!(status, 400 | 404), "{body}: {status} {reply}");
    }
    let (status, reply) = request(&scene, &[own]);
    assert_eq!((status, reply["moved"].clone()), (200, json!([own])), "{reply}");
    assert!(scene.is_in(own, "db"));
    let last = scene.changes().pop().unwrap();
    assert_eq!(
        (&last["by"]["uid"], &last["what"], &last["requested"]),
        (&json!(TASKS.0), &json!("move"), &json!([own]))
    );
    let (status, _) = scene.request(
        ROOT,
        "POST",
        "/v1/groups/{g}/nobodys/processes",
        &json!({"pids": [roots, others]}).to_string(),
    );
    assert!(status == 200 && scene.is_in(roots, "nobodys") && scene.is_in(others, "nobodys"));
}

fn other_rights() {
    let mut scene = Scene::new();
    let mut command = Command::new("setpriv");
    command.args(["--ruid", &TASKS.0.to_string(), "--euid", "0", "--clear-groups", "sleep", "600"]);
    let mixed = scene.keep(command);
    let mut other = Command::new("setpriv");
    other.args(["--ruid", "0", "--euid", &TASKS.0.to_string(), "--clear-groups", "sleep", "600"]).gid(0);
    let effective = scene.keep(other);
    crate::scene::until("setpriv becomes sleep", || {
        [mixed, effective]
            .iter()
            .all(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n"))
    });
    for pid in [mixed, effective] {
        let body = json!({ "pids": [pid] }).to_string();
        let (status, reply) = scene.request(TASKS, "POST", "/v1/groups/{g}/db/processes", &body);
        assert_eq!(status, 403, "{reply}");
        assert!(!scene.is_in(pid, "db"));
    }
}

fn modes() {
    let scene = Scene::new();
    scene.create("nobodys/below");
    let seen = |user| {
        let (_, reply) = scene.request(user, "GET", "/v1/groups", "");
        let mut listed = reply.as_array().unwrap().iter();
        let listed = listed.any(|group| group["group"] == json!(format!("{}/nobodys", scene.group)));
        (listed, scene.request(user, "GET", "/v1/groups/{g}/nobodys?settings=pids.max", "").0)
    };
    assert_eq!((seen(STRANGER), seen(ROOT)), ((true, 200), (true, 200)));
    for seat in scene.host.seats(&scene.name("nobodys")) {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(seat.directory(), mode).unwrap();
    }
    assert_eq!((seen(STRANGER), seen(ROOT)), ((false, 404), (true, 200)));
    // attack finding 27: nothing tells a group that may not be seen from one that is not there
    let refusal = |name: &str| {
        let (status, reply) = scene.request(STRANGER, "GET", &format!("/v1/groups/{{g}}/nobodys/{name}"), "");
        (status, reply.to_string().replace(name, "NAME"))
    };
    assert_eq!(refusal("below"), refusal("nonesuch"));
    for seat in scene.host.seats(&scene.name("db")) {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(seat.directory().join("pids.max"), mode).unwrap();
    }
    assert_eq!(scene.request(STRANGER, "GET", "/v1/groups/{g}/db?settings=pids.max", "").0, 403);
    let (status, all) = scene.request(STRANGER, "GET", "/v1/groups/{g}/db", "");
    assert!(status == 200 && !all.to_string().contains("pids.max"), "{all}");
}

fn explained() {
    let mut scene = Scene::new();
    let (own, roots) = (scene.process_of(STRANGER), scene.process_of(ROOT));
    let request =
        |user, pid: u32| scene.request(user, "GET", &format!("/v1/processes/{pid}/classification"), "").0;
    assert_eq!((request(STRANGER, own), request(STRANGER, roots), request(ROOT, own)), (200, 403, 200));
    assert_eq!((request(STRANGER, 1), request(STRANGER, 4_000_000)), (403, 403));
}

fn looked_up() {
    let scene = Scene::new();
    let request = |path: &str| {
        let body = json!({ "io.max": format!("{path} riops=10") }).to_string();
        scene.request(ADMIN, "PATCH", "/v1/groups/{g}/db/settings", &body)
    };
    let (there, missing) = (request("/root/.profile"), request("/root/rf-test-missing"));
    assert_eq!((there.0, missing.0), (400, 400));
    let without =
        |reply: (u16, serde_json::Value), path: &str| reply.1["detail"].as_str().unwrap().replace(path, "");
    assert_eq!(without(there, "/root/.profile"), without(missing, "/root/rf-test-missing"));
}
