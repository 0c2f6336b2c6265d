//! The socket itself: its place and modes, its end, its sleep.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::Arc, time::Duration};

use answers::Problem;
use answers::{
    SettingJson,
    socket::{MovedProcesses, Verdict},
};
use daemon::socket::{
    Assignments, Live, ServeError,
    client::{Client, ClientError},
    serve,
};
use kernel::GroupName;

use crate::scene::{DEFECT, ROOT, STRANGER, Scene, descriptors, until};

pub const ROWS: &[(&str, fn())] = &[
    ("the socket has its modes, one daemon, and is gone after it", place),
    ("what is no socket of a daemon is not taken away", not_taken),
    ("a question that takes long keeps nobody else waiting", long),
    ("nobody asks and nothing wakes up", asleep),
    ("the client reads each answer as the type that the daemon wrote", small_client),
    ("a request that fails by a defect is answered with 500, and the others go on", defect),
];

/// Attack finding 30.
fn defect() {
    let scene = Scene::new();
    for _ in 0..20 {
        let path = format!("/v1/processes/{DEFECT}/classification");
        let (status, reply) = scene.request(ROOT, "GET", &path, "");
        assert_eq!(status, 500, "{reply}");
        assert!(reply["detail"].as_str().unwrap().contains("a defect of ringfenced"), "{reply}");
        scene.answers();
    }
}

fn place() {
    let mut scene = Scene::new();
    let path = scene.path();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(path.as_ref()), mode(Path::new(&path).parent().unwrap())), (0o666, 0o755));
    let another = || Arc::new(Live::new(scene.main.clone(), &scene.state()));
    let second = serve(path.as_ref(), another());
    assert!(matches!(second, Err(ServeError::Taken(_))), "{second:?}");
    scene.answers();
    let live = another();
    drop(scene.handle.take());
    assert!(!Path::new(&path).exists());
    // as after a crash: a socket that nobody listens on
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let again = serve(path.as_ref(), live).unwrap();
    scene.answers();
    // a file of somebody else in its place stays
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    drop(again);
    assert!(Path::new(&path).exists());
}

fn not_taken() {
    let scene = Scene::new();
    let live = || Arc::new(Live::new(scene.main.clone(), &scene.state()));
    let file = scene.directory.path().join("file");
    fs::write(&file, "kept").unwrap();
    assert!(matches!(serve(&file, live()), Err(ServeError::NotASocket(_))));
    let link = scene.directory.path().join("link");
    std::os::unix::fs::symlink(scene.path(), &link).unwrap();
    assert!(matches!(serve(&link, live()), Err(ServeError::NotASocket(_))));
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    let open = scene.directory.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = |place: &Path| matches!(serve(&place.join("sock"), live()), Err(ServeError::Untrusted(_)));
    assert!(refused(&open));
    if rustix::process::geteuid().is_root() {
        // the owner of a directory above can move it away
        let below = open.join("below");
        fs::create_dir(&below).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&open, Some(5), None).unwrap();
        assert!(refused(&open) && refused(&below));
    }
}

fn long() {
    let scene = Scene::new();
    *scene.main.0.held.0.lock().unwrap() = true;
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let (path, user) = (scene.path(), STRANGER);
            let arguments = crate::client::arguments(&path, "GET", "/v1/status", "");
            crate::scene::as_user(user, &arguments).stdout(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let taken =
        || scene.handle.as_ref().unwrap().counts().connections.load(std::sync::atomic::Ordering::Relaxed);
    until("the strangers are connected", || taken() == 4);
    scene.answers();
    let (status, _) = scene.request(ROOT, "PATCH", "/v1/groups/{g}/db/settings", r#"{"pids.max": 9}"#);
    assert_eq!(status, 200);
    *scene.main.0.held.0.lock().unwrap() = false;
    scene.main.0.held.1.notify_all();
    for child in waiting {
        let output = child.wait_with_output().unwrap();
        assert!(output.stdout.starts_with(b"200 "), "{output:?}");
    }
}

/// A thread of the socket's, not the test program's own.
fn is_ours(comm: &str) -> bool {
    matches!(comm, "socket\n" | "socket-work\n")
}

/// Times that the threads of the socket were woken.
fn wakes() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let of = |task: std::path::PathBuf| {
        let comm = fs::read_to_string(task.join("comm")).ok()?;
        let status = fs::read_to_string(task.join("status")).ok().filter(|_| is_ours(&comm))?;
        status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?
            .trim()
            .parse::<u64>()
            .ok()
    };
    tasks.filter_map(of).sum()
}

fn asleep() {
    let scene = Scene::new();
    scene.answers();
    let threads = || {
        let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path().join("comm"));
        tasks.filter(|comm| fs::read_to_string(comm).is_ok_and(|comm| is_ours(&comm))).count()
    };
    until("the threads that worked end", || threads() == 1);
    let before = wakes();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!((wakes() - before, threads()), (0, 1));
}

fn small_client() {
    let mut scene = Scene::new();
    let before = descriptors();
    let client = Client::at(scene.path());
    let group = scene.name("db");
    let one = Assignments(vec![("pids.max".to_owned(), "31".to_owned())]);
    let changed = client.set(&group, &one).unwrap();
    assert_eq!((changed.len(), &changed[0].group, &changed[0].setting), (1, &group.to_string(), &one.0[0].0));
    assert_eq!(
        (&changed[0].requested, &changed[0].actual),
        (&SettingJson::Amount(31), &Some(SettingJson::Amount(31)))
    );
    assert_eq!((changed[0].written[0].text.trim_end(), scene.pids_max("db").as_str()), ("31", "31"));
    let read = client.group(&group, &["pids.max"]).unwrap();
    assert_eq!((read.len(), &read[0].value, read[0].text.as_str()), (1, &SettingJson::Amount(31), "31"));
    assert!(client.group(&group, &[]).unwrap().iter().any(|read| read.setting == "pids.max"));
    let groups = client.groups().unwrap();
    assert!(groups.iter().any(|listed| listed.group == group.to_string() && !listed.hierarchies.is_empty()));
    match client.reload() {
        Err(ClientError::Refused(Problem { status: 409, message, hint, .. })) => {
            assert_eq!(
                (message.as_str(), hint.as_deref()),
                ("layout.toml:3: what is this?", Some("ringfence check"))
            );
        }
        other => panic!("{other:?}"),
    }
    let status = |result: Result<MovedProcesses, ClientError>| match result {
        Err(ClientError::Refused(problem)) => problem.status,
        other => panic!("{other:?}"),
    };
    let me = std::process::id();
    let named = |name: &str| GroupName::new(name).unwrap();
    assert_eq!(status(client.move_processes(&named("rf-test-socket-missing"), &[me])), 404);
    // the name is one whole part of the path, and one from a hierarchy's root is refused
    assert_eq!(status(client.move_processes(&named("a b/%2e%2e/x"), &[me])), 404);
    assert_eq!(status(client.move_processes(&named("/rf-test-socket"), &[me])), 403);
    let child = scene.process_of(ROOT);
    assert_eq!(client.move_processes(&group, &[child]).unwrap().moved, [child]);
    assert_eq!(client.classification(child).unwrap().would, Verdict::Leave);
    assert_eq!((client.status().unwrap().pid, client.counters().unwrap()["moved"]), (me, 3));
    until("no descriptor is left", || descriptors() <= before);
}
