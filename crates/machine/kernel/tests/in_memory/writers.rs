//! Programs that write what we write too, as the probe sees them.

use fake::Fake;
use kernel::probe;
use topology::facts::{SCHED_EXT_STATE, Writer};

fn seen(kernel: &Fake) -> Vec<Writer> {
    probe::seen(kernel).writers
}

#[test]
fn a_bare_machine_has_none_and_a_users_process_of_such_a_name_is_none() {
    let kernel = Fake::v2(2, 1);
    kernel.set_outside(SCHED_EXT_STATE, "disabled\n");
    kernel.set_outside("/etc/tuned/active_profile", "balanced\n");
    assert_eq!(seen(&kernel), []);
    let pid = kernel.spawn(1).unwrap_or_default();
    kernel.set_process(pid, |process| process.comm = "tuned".to_owned());
    kernel.set_outside(format!("/proc/{pid}/status"), "Uid:\t1000\t1000\t1000\t1000\n");
    assert_eq!(seen(&kernel), []);
}

#[test]
fn a_daemon_is_seen_with_its_unit_and_what_it_has_chosen() {
    let kernel = Fake::v2(2, 1);
    let pid = kernel.spawn(1).unwrap_or_default();
    kernel.set_process(pid, |process| process.comm = "tuned".to_owned());
    kernel.set_outside(format!("/proc/{pid}/status"), "Uid:\t0\t0\t0\t0\n");
    kernel.set_outside(format!("/proc/{pid}/cgroup"), "0::/system.slice/tuned.service\n");
    kernel.set_outside("/etc/tuned/active_profile", "cpu-partitioning\n");
    kernel.set_outside(SCHED_EXT_STATE, "enabled\n");
    kernel.set_outside("/sys/kernel/sched_ext/root/ops", "lavd_1.0\n");
    kernel.set_outside("/run/tlp/last_pwr", "0\n");
    let one = |name: &str, pid, unit: Option<&str>, choice: Option<&str>| Writer {
        name: name.to_owned(),
        pid,
        unit: unit.map(str::to_owned),
        choice: choice.map(str::to_owned),
    };
    assert_eq!(
        seen(&kernel),
        [
            one("tuned", Some(pid), Some("tuned.service"), Some("cpu-partitioning")),
            one("TLP", None, None, None),
            one("a scheduler of sched_ext", None, None, Some("lavd_1.0")),
        ]
    );
}
