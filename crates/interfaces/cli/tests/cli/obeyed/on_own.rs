//! On a machine that nobody else uses.

use super::{Prints, ROW, Row, Shows};
use crate::world::Need;

const OWN: &[Need] = &[Need::OwnMachine, Need::Plain];
const PIDS: &str = "write l.toml [groups.\"{g}\"]\npids.max = 50\n";
const BUSY: &str = "start {busy} sh -c 'while :; do :; done'";
const APPLY: &str = "ringfence apply {d}/l.toml";
const ISOLATED: &str = "write l.toml [groups.{g}]\ncpus = \"1\"\nexclusive = true\nisolate = \"full\"\n[isolate]\nstat-interval = 10\n";

pub const ROWS: &[Row] = &[
    Row {
        name: "an unused hierarchy of v1 is free of groups",
        needs: &[Need::V2("pids"), Need::NotMounted("net_cls"), Need::OwnMachine, Need::Plain],
        before: &["ringfence mount net_cls", "ringfence create {g} -c net_cls"],
        prints: "ringfence umount net_cls",
        hint: "ringfence delete --recursive /{g}",
        ..ROW
    },
    Row {
        name: "a hierarchy is mounted by root",
        needs: &[Need::V2("pids"), Need::NotMounted("net_cls"), Need::OwnMachine, Need::Plain],
        before: &[
            "mkdir -m 777 {d}/said",
            "as-user {pid} sh -c '{program} mount net_cls >{d}/said/all 2>&1; touch {d}/said/done; sleep 300'",
            "until [ -e {d}/said/done ]; do sleep 0.2; done",
        ],
        prints: "cat {d}/said/all",
        hint: "sudo ringfence mount net_cls",
        then: Prints("cat /proc/mounts", "net_cls"),
        after: &["ringfence umount net_cls"],
        ..ROW
    },
    Row {
        name: "a named hierarchy that is not there is mounted",
        needs: &[Need::V2("pids"), Need::OwnMachine, Need::Plain],
        before: &["mkdir {d}/named"],
        prints: "ringfence create {g} -c name=rf-test-named",
        hint: "mount -t cgroup -o none,name=rf-test-named",
        fill: ("DIRECTORY", "{d}/named"),
        after: &["rmdir {d}/named/{g}; umount {d}/named"],
        ..ROW
    },
    Row {
        name: "a machine's layout with errors is checked",
        needs: OWN,
        before: &["mkdir -p /etc/ringfence", "echo nothing >/etc/ringfence/layout.toml"],
        prints: "env -u RINGFENCE_STATE ringfence status",
        hint: "ringfence check",
        then: Shows("/etc/ringfence/layout.toml:1:"),
        after: &["rm -r /etc/ringfence"],
        ..ROW
    },
    Row {
        name: "a machine's layout that a reboot took is applied",
        needs: OWN,
        before: &[
            PIDS,
            "mkdir -p /etc/ringfence && cp {d}/l.toml /etc/ringfence/layout.toml",
            "echo 00000000-0000-0000-0000-000000000000 >{d}/boot",
            "mount --bind {d}/boot /proc/sys/kernel/random/boot_id",
            "env -u RINGFENCE_STATE ringfence apply",
            "umount /proc/sys/kernel/random/boot_id && ringfence delete {g}",
        ],
        prints: "env -u RINGFENCE_STATE ringfence status",
        hint: "ringfence apply",
        with: "env -u RINGFENCE_STATE {}",
        after: &["env -u RINGFENCE_STATE ringfence undo 0", "rm -r /etc/ringfence /var/lib/ringfence"],
        ..ROW
    },
    Row {
        name: "doctor: what interrupts isolated CPUs is counted",
        needs: &[Need::OwnMachine, Need::Plain, Need::Cpus(2)],
        before: &[ISOLATED, APPLY],
        prints: "ringfence doctor",
        hint: "ringfence isolate check {g}",
        then: Shows("interrupt"),
        after: &["ringfence undo 0"],
        ..ROW
    },
    Row {
        name: "doctor: what was changed of isolated CPUs is shown",
        needs: &[Need::OwnMachine, Need::Plain, Need::Cpus(2)],
        before: &[ISOLATED, APPLY, "sysctl -w vm.stat_interval=77"],
        prints: "ringfence doctor",
        hint: "ringfence status -v",
        then: Shows("77"),
        after: &["ringfence undo 0"],
        ..ROW
    },
    Row {
        name: "why: what interrupted isolated CPUs is counted",
        needs: &[Need::OwnMachine, Need::Plain, Need::Cpus(2)],
        before: &[ISOLATED, APPLY, BUSY, "ringfence move {g} {busy}"],
        prints: "ringfence why {g} --for 1s",
        hint: "ringfence isolate check {g}",
        then: Shows("interrupt"),
        after: &["ringfence undo 0"],
        ..ROW
    },
];
