//! Requests of the daemon's socket, which every user may send: a first line (`PATCH /v1/groups/db/settings`) and a body.

use std::sync::{Arc, Mutex, PoisonError};

use answers::{
    Problem,
    socket::{
        Classification, Counters, GroupSummary, MovedProcesses, Reloaded, SettingChange, SettingReading,
        Status,
    },
};
use daemon::socket::{Peer, Request, Rights, Service, answer};
use kernel::GroupName;
use layout::{Source, read_toml};
use settings::NamedSetting;
use system::Accounts;

use crate::with_text;

const LAYOUT: &str = "[groups.db]\nadmin = { user = 1001 }\ntasks = { user = 1002 }\nmemory.max = \"1G\"\n";

/// Asks as root, as a group's admin, as who may put his processes there, and as anybody else.
pub fn request(data: &[u8]) {
    let line = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let body = data.get(line.len() + 1..).unwrap_or_default();
    with_text(line, |line| {
        let (method, path) = line.split_once(' ').unwrap_or((line, ""));
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let request = match Request::parse(method, path, query) {
            Ok(request) => request,
            Err(refused) => {
                assert!(matches!(refused.status, 400..=499), "{refused:?}");
                return;
            }
        };
        let desired = read_toml(&[Source::new("f", LAYOUT)]).desired;
        let desired = desired.unwrap_or_else(|| unreachable!("it is a layout"));
        let rights = Arc::new(Rights::of(&desired, &Accounts::new()));
        for (uid, may) in [(0, "set move reload"), (1001, "set"), (1002, "move"), (65534, "")] {
            let peer = Peer { uid, gid: uid, pid: 1, groups: Vec::new() };
            let asker = Requested { rights: Arc::clone(&rights), uid, done: Mutex::default() };
            let said = answer(&asker, &peer, &request, body);
            assert!(matches!(said.status, 200 | 400..=499), "{said:?}");
            let json: serde_json::Value =
                serde_json::from_slice(&said.body).unwrap_or_else(|error| panic!("{error}: {said:?}"));
            assert!(said.status == 200 || json["status"] == said.status, "{said:?}");
            let done = asker.done.into_inner().unwrap_or_else(PoisonError::into_inner);
            assert!(done.iter().all(|done| may.contains(done)), "{done:?} as user {uid}");
        }
    });
}

/// Does nothing, and notes what it should have changed.
struct Requested {
    rights: Arc<Rights>,
    uid: u32,
    done: Mutex<Vec<&'static str>>,
}

impl Requested {
    fn note(&self, what: &'static str) {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Only groups of ours, and of these only those that the user has a right to.
    fn reaches(&self, group: &GroupName) {
        let path = group.path();
        let steps = path.split('/').all(|step| !matches!(step, "" | "." | ".."));
        assert!(steps && !group.is_from_root() && !path.contains(char::is_control), "{path:?}");
        assert!(self.uid == 0 || path == "db" || path.starts_with("db/"), "{path:?} as user {}", self.uid);
    }
}

impl Service for Requested {
    fn rights(&self) -> Arc<Rights> {
        Arc::clone(&self.rights)
    }
    fn status(&self) -> Result<Status, Problem> {
        Ok(Status::default())
    }
    fn counters(&self) -> Result<Counters, Problem> {
        Ok(Counters::new())
    }
    fn groups(&self, _: &Peer) -> Result<Vec<GroupSummary>, Problem> {
        Ok(Vec::new())
    }
    fn get(&self, group: &GroupName, _: &[NamedSetting], _: &Peer) -> Result<Vec<SettingReading>, Problem> {
        assert!(!group.is_from_root(), "{group}");
        Ok(Vec::new())
    }
    fn set(
        &self,
        group: &GroupName,
        values: Vec<(NamedSetting, String)>,
        _: &Peer,
    ) -> Result<Vec<SettingChange>, Problem> {
        self.note("set");
        self.reaches(group);
        assert!(!values.is_empty());
        for (found, value) in values {
            found.parse(&value, &settings::NoMachine)?;
        }
        Ok(Vec::new())
    }
    fn move_processes(&self, group: &GroupName, pids: &[u32], _: &Peer) -> Result<MovedProcesses, Problem> {
        self.note("move");
        self.reaches(group);
        assert!((1..=1024).contains(&pids.len()), "{} processes", pids.len());
        Ok(MovedProcesses { moved: pids.to_vec(), gone: Vec::new(), directories: Vec::new() })
    }
    fn reload(&self, _: &Peer) -> Result<Reloaded, Problem> {
        self.note("reload");
        Ok(Reloaded::default())
    }
    fn classify(&self, _: u32, _: &Peer) -> Result<Classification, Problem> {
        Err(Problem::new(404, "there is no such process"))
    }
}
