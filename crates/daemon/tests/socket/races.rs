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
        for _ in 0..400 {
            let (status, told) =
                scene.ask(ROOT, "PATCH", "/v1/groups/{g}/db/below/settings", r#"{"pids.max": 5}"#);
            // missing at the look, or gone at the write or at the reading back
            assert!(matches!(status, 200 | 404 | 409), "{status} {told}");
            seen[usize::from(status != 200)] += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(seen[0] > 0, "{seen:?}");
    assert_ne!((scene.pids_max("db").as_str(), scene.pids_max("nobodys").as_str()), ("5", "5"));
    until("no descriptor is left", || descriptors() <= before + 1);
}

fn processes_end() {
    let mut scene = Scene::new();
    let bystander = scene.process_of(ROOT);
    for _ in 0..100 {
        let mut command = Command::new("sleep");
        std::os::unix::process::CommandExt::uid(&mut command, TASKS.0);
        let mut child = command.arg("0.002").spawn().unwrap();
        let body = json!({ "pids": [child.id()] }).to_string();
        let path = format!("/v1/groups/{}/db/processes", scene.group);
        let (status, told) = client::ask(&scene.path(), "POST", &path, &body);
        assert!(matches!(status, 200 | 404), "{status} {told}");
        child.wait().unwrap();
        let (status, told) = client::ask(&scene.path(), "POST", &path, &body);
        assert_eq!(status, 404, "{told}");
    }
    assert!(!scene.is_in(bystander, "db"));
    let seats = scene.host.seats(&scene.name("db"));
    assert!(seats.iter().all(|seat| scene.host.tasks_in(seat).is_empty()));
}
