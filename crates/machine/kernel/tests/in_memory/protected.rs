//! The daemon and its gate are never frozen or moved.

use std::time::Duration;

use fake::Fake;
use kernel::{Access, GroupName, Host, PROTECTED, State, What, set_frozen};
use settings::Controller;

/// A host with the groups db and db/oltp, and a process that is registered with this start time, but started at 77.
fn host(fake: &Fake, since: u64) -> (Host, u32) {
    let host = Host::new(Box::new(fake.clone())).unwrap();
    let below = GroupName::new("db/oltp").unwrap();
    host.create(&below, Some(&[Controller::Freezer]), &Access::default()).unwrap();
    let pid = fake.spawn(1).unwrap();
    host.move_tasks(&below, &[pid], What::Process).unwrap();
    fake.set_outside(PROTECTED, "");
    fake.set_outside(format!("{PROTECTED}/{pid}"), &format!("{since} the exec gate\n"));
    let stat = format!("{pid} (a) b) S 1{} 77 0 0\n", " 0".repeat(17));
    fake.set_outside(format!("/proc/{pid}/stat"), &stat);
    (host, pid)
}

/// Attack finding 3: nothing freezes a group with the daemon or its gate, itself or below it.
#[test]
fn a_group_with_the_exec_gate_below_it_is_not_frozen() {
    for fake in [Fake::v1(2, 1), Fake::v2(2, 1), Fake::hybrid(2, 1)] {
        let (host, pid) = host(&fake, 77);
        for name in ["db", "db/oltp"] {
            let group = GroupName::new(name).unwrap();
            let refused = set_frozen(&host, &group, true, Duration::ZERO).unwrap_err();
            let text = format!("{refused} {}", refused.hint().unwrap());
            assert!(text.contains(&format!("contains the exec gate (process {pid})")), "{text}");
            let seat = host.seat(&group, Controller::Freezer).unwrap();
            let (file, frozen) = if seat.at.version == settings::Version::V1 {
                ("freezer.state", "FROZEN")
            } else {
                ("cgroup.freeze", "1\n")
            };
            assert!(host.write(&seat, &group, file, frozen).is_err(), "as a setting");
            assert_eq!(set_frozen(&host, &group, false, Duration::ZERO), Ok(State::Thawed));
        }
        let moved = host.move_tasks(&GroupName::new("db").unwrap(), &[pid], What::Process);
        assert!(moved.unwrap_err().to_string().contains("never moves"));
    }
}

#[test]
fn a_number_that_was_used_again_protects_nobody() {
    for fake in [Fake::v1(2, 1), Fake::v2(2, 1)] {
        let (host, _) = host(&fake, 76);
        let group = GroupName::new("db").unwrap();
        assert_eq!(set_frozen(&host, &group, true, Duration::from_secs(1)), Ok(State::Frozen));
    }
}
