//! What changes between the look and the write: groups that go and come, processes that end.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::json;

use crate::{
    client,
    scene::{ROOT, Scene, TASKS, descriptors, until},
};

pub const ROWS: &[(&str, fn())] = &[
    ("a group that goes and comes while it is written is written or missing", groups_go),
    ("processes that end while they are moved are gone, and no other is moved", processes_end),
];

/// In a VM of tests/vm, where a request may take half a second, a few must do.
fn rounds(many: usize) -> usize {
    if std::path::Path::new("/rf-vm").is_dir() { many / 10 } else { many }
}

/// Ends the other thread also when this one fails.
struct End<'o>(&'o AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn groups_go() {
    let scene = Scene::new();
    scene.answers();
    let before = descriptors();
    let over = AtomicBool::new(false);
    let mut seen = [0; 2];
    std::thread::scope(|threads| {
        let (group, over) = (scene.name("db/below"), &over);
        threads.spawn(move || {
            let host = kernel::Host::new(Box::new(kernel::Real::new())).unwrap();
            while !over.load(Ordering::Relaxed) {
                let _ = host.delete(&group, true);
                let _ = host.create(&group, Some(&[settings::Controller::Pids]), &Default::default());
            }
        });
        let _end = End(over);
        // until the group was there once, too
        while seen[0] == 0 || seen[0] + seen[1] < rounds(400) {
            let (status, reply) =
                scene.request(ROOT, "PATCH", "/v1/groups/{g}/db/below/settings", r#"{"pids.max": 5}"#);
            // missing at the look, or gone at the write or at the reading back
            assert!(matches!(status, 200 | 404 | 409), "{status} {reply}");
            seen[usize::from(status != 200)] += 1;
            assert!(seen[1] < 10_000, "it is never there");
        }
    });
    assert_ne!((scene.pids_max("db").as_str(), scene.pids_max("nobodys").as_str()), ("5", "5"));
    until("no descriptor is left", || descriptors() <= before + 1);
}

fn processes_end() {
    let mut scene = Scene::new();
    let bystander = scene.process_of(ROOT);
    for _ in 0..rounds(100) {
        let mut command = Command::new("sleep");
        std::os::unix::process::CommandExt::uid(&mut command, TASKS.0);
        let mut child = command.arg("0.002").spawn().unwrap();
        let body = json!({ "pids": [child.id()] }).to_string();
        let path = format!("/v1/groups/{}/db/processes", scene.group);
        let (status, reply) = client::request(&scene.path(), "POST", &path, &body);
        assert!(matches!(status, 200 | 404), "{status} {reply}");
        child.wait().unwrap();
        let (status, reply) = client::request(&scene.path(), "POST", &path, &body);
        assert_eq!(status, 404, "{reply}");
    }
    assert!(!scene.is_in(bystander, "db"));
    let seats = scene.host.seats(&scene.name("db"));
    assert!(seats.iter().all(|seat| scene.host.tasks_in(seat).is_empty()));
}
