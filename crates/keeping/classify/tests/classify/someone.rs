//! Made-up processes, users and rules.

use classify::{KnownProcess, Names, Relative, Rules};
use layout::{Desired, Source};
use system::Status;

/// oracle 1001 and dba 2001, peter 1002, ann 1003; peter is listed in dba and wheel (2002), ann in wheel.
pub struct Town;

const USERS: [(&str, u32); 4] = [("root", 0), ("oracle", 1001), ("peter", 1002), ("ann", 1003)];
const GROUPS: [(&str, u32, &[u32]); 3] =
    [("root", 0, &[]), ("dba", 2001, &[1002]), ("wheel", 2002, &[1003, 1002])];

impl Names for Town {
    fn user(&self, name: &str) -> Result<u32, String> {
        let found = USERS.iter().find(|(user, _)| *user == name);
        found.map(|(_, number)| *number).ok_or_else(|| format!("there is no user '{name}'"))
    }

    fn group(&self, name: &str) -> Result<u32, String> {
        let found = GROUPS.iter().find(|(group, ..)| *group == name);
        found.map(|(_, number, _)| *number).ok_or_else(|| format!("there is no group '{name}'"))
    }

    fn members(&self, group: &str) -> Vec<u32> {
        let found = GROUPS.iter().find(|(name, number, _)| *name == group || number.to_string() == group);
        found.map(|(_, _, members)| members.to_vec()).unwrap_or_default()
    }

    fn user_name(&self, number: u32) -> Option<String> {
        USERS.iter().find(|(_, uid)| *uid == number).map(|(name, _)| (*name).to_owned())
    }

    fn group_name(&self, number: u32) -> Option<String> {
        GROUPS.iter().find(|(_, gid, _)| *gid == number).map(|(name, ..)| (*name).to_owned())
    }
}

/// A process of a user and group that runs a program.
pub fn someone(uid: u32, gid: u32, program: &str) -> KnownProcess {
    KnownProcess {
        pid: 4711,
        status: Status { uid, gid, process: 4711, parent: 300, kernel_thread: false },
        groups: Vec::new(),
        program: program.as_bytes().to_vec(),
        claimed: None,
        realtime: false,
        command: format!("{program}\0-D\0/data\0").into_bytes(),
        environment: Some(b"HOME=/home/o\0ORACLE_SID=prod1\0ORACLE_SID=test\0".to_vec()),
        control_groups: b"4:cpu:/batch/night\n1:name=systemd:/system.slice/pg@15-main.service\n0::/\n"
            .to_vec(),
        session: 200,
        relatives: vec![
            (300, Relative { program: b"/usr/bin/make".to_vec(), claimed: None, parent: 200 }),
            (200, Relative { program: b"/bin/bash".to_vec(), claimed: None, parent: 100 }),
            (100, Relative { program: b"/usr/sbin/sshd".to_vec(), claimed: None, parent: 1 }),
        ],
    }
}

pub fn read(name: &str, text: &str) -> Desired {
    let sources = [Source::new(name, text)];
    let reading = layout::read(&sources);
    reading.desired.unwrap_or_else(|| panic!("{}", layout::render(&reading.diagnostics, &sources)))
}

/// Rules all of whose accounts are known.
pub fn rules(name: &str, text: &str) -> Rules {
    let (rules, unknown) = Rules::compile(&read(name, text).all_rules(), &Town);
    assert_eq!(unknown, []);
    rules
}

pub fn cgrules(text: &str) -> Rules {
    rules("cgrules.conf", text)
}
