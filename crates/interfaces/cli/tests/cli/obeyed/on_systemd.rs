//! With units of systemd.

use super::{Gone, Prints, ROW, Row, Shows};
use crate::world::Need;

const NEEDS: &[Need] = &[Need::Systemd, Need::V2("memory"), Need::Cpus(2), Need::OwnMachine];
const PINNED: &[Need] =
    &[Need::Systemd, Need::V2("memory"), Need::Cpus(2), Need::OwnMachine, Need::Before(6, 2)];
const SERVICE: &str = "printf '[Service]\\nExecStart=/bin/sleep 1000\\n' >/run/systemd/system/{g}.service && systemctl daemon-reload";
const STARTED: &str = "systemctl start {g}.service";
const BOUND: &str = "write l.toml [groups.{g}]\nunit = \"{g}.service\"\npids.max = 77\n";
const PATTERN: &str = "write l.toml [groups.{g}]\nunit = \"{g}@?.service\"\npids.max = 77\n";
const TEMPLATE: &str = "printf '[Service]\\nExecStart=/bin/sleep 1000\\n' >/run/systemd/system/{g}@.service && systemctl daemon-reload";
const APPLY: &str = "ringfence apply {d}/l.toml";
const PLAN: &str = "ringfence plan {d}/l.toml";
const UNDONE: &str = "ringfence undo 0";
const STOPPED: &str = "systemctl stop '{g}*'; rm -rf /etc/systemd/system/{g}* /run/systemd/system/{g}* /usr/local/lib/systemd/system/{g}*; systemctl daemon-reload";
/// Nothing has CPUs of its own yet.
const NO_CPUSET: &str = "for f in /sys/fs/cgroup/*/*/cgroup.subtree_control /sys/fs/cgroup/*/cgroup.subtree_control /sys/fs/cgroup/cgroup.subtree_control; do echo -cpuset >$f; done; ! grep cpuset /sys/fs/cgroup/cgroup.subtree_control";
/// Another file has the unit, which a mask is before.
const MASKABLE: &str = "mkdir -p /usr/local/lib/systemd/system && printf '[Service]\\nExecStart=/bin/sleep 1000\\n' >/usr/local/lib/systemd/system/{g}.service && systemctl daemon-reload";

pub const ROWS: &[Row] = &[
    // later kernels keep what a process asked for
    Row {
        name: "a pinned unit whose CPUs a layout took is restarted",
        needs: PINNED,
        before: &[
            "printf '[Service]\\nExecStart=/bin/sleep 1000\\nCPUAffinity=1\\n' >/run/systemd/system/{g}-pinned.service",
            SERVICE,
            "systemctl start {g}-pinned.service {g}.service",
            // systemd may turn it on as it starts a unit
            NO_CPUSET,
            "write l.toml [groups.{g}]\nunit = \"{g}.service\"\ncpus = \"0-1\"\n",
        ],
        prints: APPLY,
        hint: "systemctl restart {g}-pinned.service",
        then: Prints(
            "grep Cpus_allowed_list /proc/$(systemctl show -p MainPID --value {g}-pinned.service)/status",
            "\t1\n",
        ),
        after: &[UNDONE, STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "elastic groups of the machine's layout have the machine's daemon",
        before: &[
            "mkdir -p /etc/ringfence && printf '[groups.\"{g}\"]\\ncpus = { min = 1, max = 2, weight = 100 }\\n' >/etc/ringfence/layout.toml",
            "printf '[Service]\\nExecStart={program} daemon --no-strict\\n' >/run/systemd/system/ringfenced.service && systemctl daemon-reload",
            "env -u RINGFENCE_STATE ringfence apply",
        ],
        prints: "env -u RINGFENCE_STATE ringfence status",
        hint: "systemctl start ringfenced",
        after: &[
            "systemctl stop ringfenced; rm /run/systemd/system/ringfenced.service; systemctl daemon-reload",
            "env -u RINGFENCE_STATE ringfence undo 0",
            "rm -r /etc/ringfence /var/lib/ringfence",
        ],
        ..SYSTEMD
    },
    Row {
        name: "the instances of a template are listed",
        before: &[
            TEMPLATE,
            "systemctl start {g}@1.service",
            "write l.toml [groups.{g}]\nunit = \"{g}@.service\"\npids.max = 77\n",
        ],
        prints: "ringfence check {d}/l.toml",
        hint: "systemctl list-units",
        then: Shows("{g}@1.service"),
        after: &[STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "units that fit a pattern later are listed",
        before: &[TEMPLATE, PATTERN],
        prints: PLAN,
        hint: "systemctl list-units --all",
        with: "systemctl start {g}@1.service && {}",
        then: Shows("{g}@1.service"),
        after: &[STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "a unit that came after the apply is bound",
        before: &[TEMPLATE, PATTERN, "systemctl start {g}@1.service", APPLY, "systemctl start {g}@2.service"],
        prints: "ringfence status",
        hint: "ringfence apply {d}/l.toml",
        after: &[UNDONE, STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "a service whose processes a rule can't take is limited itself",
        before: &[
            SERVICE,
            STARTED,
            "write l.toml [groups.{g}]\nmatch = [{ unit = \"{g}.service\", process = \"sleep\" }]\nmemory.max = \"64M\"\n",
        ],
        prints: PLAN,
        hint: "systemctl set-property {g}.service",
        fill: ("AllowedCPUs=… MemoryMax=…", "MemoryMax=64M"),
        then: Prints("systemctl show -p MemoryMax {g}.service", "67108864"),
        after: &["systemctl revert {g}.service", STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "a unit that can't be loaded shows why",
        before: &[
            "printf '[Service]\\nRestart=always\\n' >/run/systemd/system/{g}.service && systemctl daemon-reload",
            BOUND,
        ],
        prints: PLAN,
        hint: "systemctl status {g}.service",
        then: Shows("bad-setting"),
        after: &[STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "a masked unit is unmasked",
        before: &[MASKABLE, "systemctl mask {g}.service", BOUND],
        prints: PLAN,
        hint: "systemctl unmask {g}.service",
        after: &[STOPPED],
        ..SYSTEMD
    },
    // unmask alone leaves what is masked until a reboot
    Row {
        name: "a unit that is masked until a reboot is unmasked",
        before: &[MASKABLE, "systemctl mask --runtime {g}.service", BOUND],
        prints: PLAN,
        hint: "systemctl unmask",
        after: &[STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "a unit that was masked since the apply is unmasked",
        before: &[
            MASKABLE,
            STARTED,
            BOUND,
            APPLY,
            "systemctl stop {g}.service && systemctl mask --runtime {g}.service",
        ],
        prints: "ringfence status",
        hint: "systemctl unmask",
        after: &[UNDONE, STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "lines of somebody's in our drop-in file go on in their own",
        before: &[
            SERVICE,
            STARTED,
            BOUND,
            APPLY,
            "echo MemoryMax=1G >>/etc/systemd/system/{g}.service.d/90-ringfence.conf",
        ],
        prints: APPLY,
        hint: "mv -n /etc/systemd/system/{g}.service.d/90-ringfence.conf",
        after: &[UNDONE, STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "what a drop-in file says removes it",
        before: &[SERVICE, STARTED, BOUND, APPLY],
        prints: "cat /etc/systemd/system/{g}.service.d/90-ringfence.conf",
        hint: "ringfence undo",
        after: &[STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "what is no file in the place of our drop-in file is moved away",
        before: &[SERVICE, STARTED, BOUND, "mkdir -p /etc/systemd/system/{g}.service.d/90-ringfence.conf"],
        prints: APPLY,
        hint: "mv /etc/systemd/system/{g}.service.d/90-ringfence.conf",
        after: &[UNDONE, STOPPED, "rmdir /root/90-ringfence.conf"],
        ..SYSTEMD
    },
    Row {
        name: "a slice that is to have CPUs of its own is started",
        before: &[
            "printf '[Slice]\\n' >/run/systemd/system/rfobeyed.slice && systemctl daemon-reload",
            "write l.toml [groups.{g}]\nunit = \"rfobeyed.slice\"\ncpus = 1\nexclusive = true\n",
        ],
        prints: PLAN,
        hint: "systemctl start rfobeyed.slice",
        after: &[
            "systemctl stop rfobeyed.slice; rm /run/systemd/system/rfobeyed.slice; systemctl daemon-reload",
        ],
        ..SYSTEMD
    },
    Row {
        name: "a unit that no layout has is read",
        prints: "ringfence status systemd-journald.service",
        hint: "ringfence get systemd-journald.service",
        then: Shows("pids.max"),
        ..SYSTEMD
    },
    Row {
        name: "a group that would have a unit's name has one of its own",
        before: &[SERVICE, STARTED],
        prints: "ringfence create {g}.service",
        hint: "ringfence create db",
        then: Prints("ringfence list", "db\n"),
        after: &["ringfence delete db", STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "a frozen unit is thawed",
        before: &[SERVICE, STARTED, "systemctl freeze {g}.service"],
        prints: "ringfence why {g}.service --for 100ms",
        hint: "systemctl thaw {g}.service",
        after: &["systemctl thaw {g}.service", STOPPED],
        ..SYSTEMD
    },
    Row {
        name: "a service that writes the same settings is ended, for good",
        before: &[
            "cp {sleep} {d}/irqbalance",
            "printf '[Service]\\nExecStart={d}/irqbalance 1000\\n' >/run/systemd/system/irqbalance.service && systemctl daemon-reload",
            "systemctl start irqbalance.service",
        ],
        prints: "ringfence doctor",
        hint: "systemctl disable --now irqbalance.service",
        after: &[
            "systemctl stop irqbalance; rm /run/systemd/system/irqbalance.service; systemctl daemon-reload",
        ],
        ..SYSTEMD
    },
];

const SYSTEMD: Row = Row { needs: NEEDS, then: Gone, ..ROW };
