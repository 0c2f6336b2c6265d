//! `set`, `move` and `reload` of users without write permission: the request goes to the daemon's socket, and its answer
//! is printed. The daemon's main loop is a stand-in; its socket and the kernel are real.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::{Child, Command, Output},
    sync::Arc,
};

use answers::{
    Problem,
    socket::{Classification, Counters, Reloaded, Status},
};
use apply::By;
use daemon::socket::{Control, Handle, Live, Rights, serve};
use fake::suite;
use kernel::{Access, GroupName, Host, Real, Who};
use libtest_mimic::Trial;
use settings::Controller;

use crate::world::{Need, World};

const ADMIN: u32 = 64001;
const TASKS: u32 = 64002;
const STRANGER: u32 = 64003;

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let (lacks, world) = (world.lacks(&[Need::Groups, Need::Plain, Need::On("pids")]), world.clone());
    let name = "a user without write permission is let by the daemon, or sees both refusals";
    vec![suite::trial(name, lacks, move || {
        let mut scene = Scene::new(&world);
        below_his_own(&scene);
        of_root(&scene);
        users(&scene);
        // without a daemon, the kernel's refusal is the whole answer
        drop(scene.handle.take());
        let (code, _, err) = scene.run(ADMIN, "set {g} pids.max=58");
        assert!(code == 1 && err.contains("EACCES") && !err.contains("daemon"), "{err}");
        by_what_it_is(&scene);
        let (code, _, err) = scene.run(0, "reload");
        assert!(code == 1 && err.contains("ringfenced is not running"), "{err}");
    })]
}

struct MadeUp(Arc<Rights>);

impl Control for MadeUp {
    fn rights(&self) -> Arc<Rights> {
        self.0.clone()
    }

    fn status(&self) -> Result<Status, Problem> {
        Ok(Status::default())
    }

    fn counters(&self) -> Result<Counters, Problem> {
        Ok(Counters::new())
    }

    fn reload(&self, _: By) -> Result<Reloaded, Problem> {
        Ok(Reloaded { groups: 3, rules: 4, warnings: vec!["line 7 is odd".to_owned()] })
    }

    fn classify(&self, pid: u32) -> Result<Classification, Problem> {
        Err(Problem::new(404, format!("there is no process {pid}")))
    }
}

struct Scene {
    directory: tempfile::TempDir,
    group: String,
    host: Host,
    handle: Option<Handle>,
    child: Child,
}

impl Scene {
    fn new(world: &World) -> Scene {
        let directory = tempfile::Builder::new().prefix("rf-test-permission").tempdir().unwrap();
        let at = directory.path().to_owned();
        fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).unwrap();
        // other users need not reach it where it was built
        fs::copy(&world.program, at.join("ringfence")).unwrap();
        let group = format!("rf-test-permission-{}", std::process::id());
        let layout =
            format!("[groups.{group}]\nadmin = {{ user = {ADMIN} }}\ntasks = {{ user = {TASKS} }}\n");
        let desired = layout::read_toml(&[layout::Source::new("layout.toml", &layout)]).desired.unwrap();
        let rights = Arc::new(Rights::of(&desired, &system::Accounts::new()));
        let host = Host::new(Box::new(Real::new())).unwrap();
        let handle = serve(&at.join("sock"), Arc::new(Live::new(MadeUp(rights), &at.join("state")))).unwrap();
        let child = Command::new("sleep").arg("600").uid(TASKS).gid(TASKS).spawn().unwrap();
        let name = GroupName::new(&group).unwrap();
        host.create(&name, Some(&[Controller::Pids]), &Default::default()).unwrap();
        Scene { directory, group, host, handle: Some(handle), child }
    }

    fn run(&self, user: u32, words: &str) -> (i32, String, String) {
        let words = words.replace("{g}", &self.group).replace("{p}", &self.child.id().to_string());
        let Output { status, stdout, stderr } = Command::new(self.directory.path().join("ringfence"))
            .args(words.split(' '))
            .env("RINGFENCE_SOCKET", self.directory.path().join("sock"))
            .uid(user)
            .gid(user)
            .current_dir("/")
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.host.delete(&GroupName::new(&self.group).unwrap(), true);
    }
}

/// The words of the hint's first command, without the program.
fn hinted(error: &str, program: &str) -> String {
    let hint = error.lines().find_map(|line| line.strip_prefix("hint: "));
    let words = hint.and_then(|hint| hint.strip_prefix(program));
    words.unwrap_or_else(|| panic!("no '{program}' in {error}")).to_owned()
}

/// What root is to do instead names the same processes.
fn by_what_it_is(scene: &Scene) {
    assert_eq!(scene.run(0, "move / {p}").0, 0);
    let (code, _, error) = scene.run(TASKS, &format!("move {{g}} --user {TASKS}"));
    assert_eq!(code, 1, "{error}");
    let words = hinted(&error, "sudo ringfence ");
    assert_eq!(words, format!("move {} --user {TASKS}", scene.group), "{error}");
    let (code, out, error) = scene.run(0, &words);
    assert!(code == 0 && out.contains(&format!("{} (", scene.child.id())), "{out}{error}");
    let groups = || fs::read_to_string(format!("/proc/{}/cgroup", scene.child.id())).unwrap();
    assert!(groups().contains(&scene.group), "{}", groups());
    // v2 asks for more than his right to the group: he moves it everywhere or nowhere
    assert_eq!(scene.run(0, &format!("create {{g}}-both --tasks {TASKS}")).0, 0);
    let (code, _, error) = scene.run(TASKS, "move {g}-both {p}");
    assert_eq!(code == 0, groups().contains("-both"), "{code} {error}\n{}", groups());
    assert!([0, 1].contains(&code), "{error}");
    assert_eq!(scene.run(0, "move / {p}").0, 0);
    assert_eq!(scene.run(0, "delete {g}-both").0, 0);
}

/// Who was given a group in some hierarchies makes others below it there.
fn below_his_own(scene: &Scene) {
    let own = GroupName::new(&format!("{}/own", scene.group)).unwrap();
    let admin = Who { uid: Some(ADMIN), gid: None };
    let access = Access { admin, tasks: admin, ..Access::default() };
    scene.host.create(&own, Some(&[Controller::Pids]), &access).unwrap();
    let (code, _, error) = scene.run(ADMIN, "create {g}/own/sub");
    assert_eq!(code, 1, "{error}");
    let words = hinted(&error, "ringfence ");
    assert_eq!(words, format!("create {own}/sub --controllers pids"), "{error}");
    assert!(error.ends_with(&format!("\nin all hierarchies: sudo ringfence create {own}/sub\n")), "{error}");
    let (code, _, error) = scene.run(ADMIN, &words);
    assert_eq!(code, 0, "{error}");
    assert_eq!(scene.host.seats(&GroupName::new(&format!("{own}/sub")).unwrap()).len(), 1);
}

/// What root is to do instead is all that was typed.
fn of_root(scene: &Scene) {
    // what is below his own goes, and that one is below root's
    let (code, _, error) = scene.run(ADMIN, "delete --recursive {g}/own");
    assert_eq!(code, 3, "{error}");
    let words = hinted(&error, "sudo ringfence ");
    assert_eq!(words, format!("delete --recursive {}/own", scene.group), "{error}");
    let (code, _, error) = scene.run(0, &words);
    assert_eq!(code, 0, "{error}");
    let (code, _, error) = scene.run(STRANGER, "create {g}/own -c pids --admin root --file-mode 0600");
    assert_eq!(code, 1, "{error}");
    let again = format!("create {}/own --controllers pids --admin root --file-mode 0600", scene.group);
    assert_eq!(hinted(&error, "sudo ringfence "), again, "{error}");
}

fn users(scene: &Scene) {
    let now = |scene: &Scene| scene.run(0, "get {g} pids.max --values").1;
    let (code, out, err) = scene.run(ADMIN, "set {g} pids.max=55");
    assert!(code == 0 && out.contains("pids.max <- 55") && out.contains("ringfenced"), "{code} {out} {err}");
    assert_eq!(now(scene), "55\n");
    let (code, out, _) = scene.run(ADMIN, "--json set {g} pids.max=56");
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &answer["by"], now(scene).as_str()), (0, &"ringfenced".into(), "56\n"));
    let (code, out, err) = scene.run(STRANGER, "set {g} pids.max=57");
    assert!(code == 1 && out.is_empty() && err.contains("EACCES"), "{code} {out} {err}");
    assert!(err.contains("the daemon refused: user 64003") && err.contains("\nhint: root gives it"), "{err}");
    assert_eq!(now(scene), "56\n");
    let in_group = |scene: &Scene| {
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", scene.child.id())).unwrap();
        groups.contains(&scene.group)
    };
    assert_eq!((scene.run(STRANGER, "move {g} {p}").0, in_group(scene)), (1, false));
    let (code, out, err) = scene.run(TASKS, "move {g} {p}");
    assert!(code == 0 && out.contains("ringfenced") && in_group(scene), "{code} {out} {err}");
    assert_eq!(scene.run(0, "reload"), (0, "3 groups, 4 rules\n".into(), "warning: line 7 is odd\n".into()));
    let (code, _, err) = scene.run(STRANGER, "reload");
    assert!(code == 1 && err.contains("only root"), "{err}");
}
