//! The commands that only read: cgget, cgxget, lscgroup, lssubsys, cgsnapshot.

use super::row::{Out, Row, Step, better, differing, refuses, same};

const ABSENT: &str = "a group that is not there is an error, not a header without values";
const NOT_IN_2: &str = "a flag of libcgroup 3, which 2.0.2 does not have";
const LISTED: &str = "a list of controllers is a list here, too";
const NO_TOOL: &str = "Debian's release has no such command";
const UNMOUNTED: &str = "an unmounted controller does not hide the mounted ones";
const SETS_NOTHING: &str = "what can't be set again is left out: cgconfigparser would fail on it";

/// Statistics and counters that the reference's cgsnapshot takes for settings.
const DENIED: Step = Step::File(
    "deny",
    "# not settings\npids.current\npids.events\npids.peak\nmemory.shown_ram_in_bytes\nmemory.force_empty\n\
     memory.memsw.failcnt\nmemory.kmem.tcp.max_usage_in_bytes\nmemory.max_usage_in_bytes\nmemory.oom_control\n\
     memory.memsw.max_usage_in_bytes\nmemory.kmem.failcnt\nmemory.kmem.max_usage_in_bytes\nmemory.failcnt\n\
     memory.kmem.tcp.failcnt\nfreezer.self_freezing\nfreezer.parent_freezing\n",
);
const SETS: &[Step] =
    &[Step::Write("cpuset:{g}/a/cpuset.cpus", "0"), Step::Write("cpuset:{g}/a/cpuset.mems", "0"), DENIED];

pub const ROWS: &[Row] = &[
    // cgget -r
    same("cgget -r cpu.shares {g}"),
    same("cgget -r cpu.shares -r cpu.cfs_quota_us {g} {g}/a"),
    same("cgget -r memory.limit_in_bytes -r cpu.shares -r memory.swappiness {g}"),
    same("cgget -n -r cpu.shares {g} {g}/a"),
    same("cgget -v -r cpu.shares {g} {g}/a"),
    same("cgget -nv -r cpu.shares -r pids.max {g} {g}/a"),
    same("cgget --variable cpu.shares {g}"),
    same("cgget --values-only --variable cpu.shares {g}"),
    same("cgget {g} -r cpu.shares"),
    same("cgget -r cpu.shares {g} {g}"),
    same("cgget -r cpu.shares /{g}"),
    same("cgget -r cpu.shares {g}/"),
    same("cgget -r cpu.shares /"),
    same("cgget -r cpu.shares ''"),
    same("cgget -r cpuset.cpus {g} {g}/a"),
    same("cgget -r cpu.stat -r cpu.shares {g}"),
    same("cgget -v -r cpu.stat {g}"),
    same("cgget -nv -r memory.stat {g}"),
    same("cgget -r memory.oom_control {g}"),
    same("cgget -r memory.force_empty {g}"),
    same("cgget -r memory.kmem.slabinfo {g}"),
    same("cgget -r devices.allow {g}"),
    same("cgget -r devices.list {g}/a").after(&[
        Step::Write("devices:{g}/a/devices.deny", "a"),
        Step::Write("devices:{g}/a/devices.allow", "c 1:3 rwm"),
        Step::Write("devices:{g}/a/devices.allow", "b 8:* r"),
    ]),
    same("cgget -r freezer.state {g}"),
    same("cgget -r pids.current -r pids.events {g}"),
    same("cgget -r cpu.shares {g}").after(&[Step::Write("cpu:{g}/cpu.shares", "300")]),
    same("cgget -r cpu.nosuch {g}"),
    same("cgget -r nosuch.x {g}"),
    same("cgget -r nosuch {g}"),
    same("cgget -r tasks {g}"),
    same("cgget -r cpu.shares -r cpu.nosuch {g}"),
    same("cgget -r cpu.shares {g}-absent"),
    same("cgget -r cpu.shares {g}-absent {g}"),
    same("cgget -r cpu.shares {g} {g}-absent"),
    same("cgget -r pids.max {g}/b"),
    refuses("cgget -r cpu.shares ../{g}/..", "a path never leaves the hierarchy", 91),
    better(
        "cgget -r cpu.max {g}",
        "a name that only the other cgroup version has is converted",
        Out::Is("{g}:\ncpu.max: max 100000\n\n"),
    ),
    better(
        "cgget -nv -r cpu.weight -r memory.max -r cpuset.cpus.effective {g}",
        "a name that only the other cgroup version has is converted",
        Out::Is("100\nmax\n0\n"),
    ),
    better(
        "cgget -r cpu.shares -r cpu.shares {g}",
        "a setting that is named twice is shown once, instead of nothing with status 90",
        Out::Is("{g}:\ncpu.shares: 1024\n\n"),
    ),
    // cgget -g, -a
    same("cgget -g cpu {g}"),
    same("cgget -g cpu:{g}"),
    same("cgget -g cpu:/{g}"),
    same("cgget -g cpu:{g} -g pids:{g}/a"),
    same("cgget -g cpu -g pids {g} {g}/a"),
    same("cgget -g cpu,pids:{g}"),
    same("cgget -g pids,memory:{g}/a"),
    same("cgget -g freezer:{g}"),
    same("cgget -g devices:{g}"),
    same("cgget -g cpuset:{g}"),
    same("cgget -n -g pids:{g} -g pids:{g}/a"),
    same("cgget -v -g pids:{g} -g cpuset:{g}/a"),
    same("cgget -g cpu {g} -g pids"),
    same("cgget -g cpu:/"),
    same("cgget {g}/b"),
    same("cgget -a {g}/a"),
    same("cgget --all -nv {g}/b"),
    same("cgget -a -g cpu {g}/b"),
    same("cgget -g pids:{g} -a"),
    better("cgget -g cpu,pids {g}/a", LISTED, Out::Has("pids.max: max\n")),
    better("cgget -g '*' {g}/a", "`*` is every controller", Out::Has("pids.max: max\n")),
    better(
        "cgget -g :{g}",
        "without a controller it is v2, whose own files are shown",
        Out::Has("cgroup.type: domain\n"),
    )
    .after(&[Step::Make("unified:{g}")]),
    refuses("cgget -g cpu {g}-absent", ABSENT, 82),
    refuses("cgget -g cpu:{g}-absent", ABSENT, 82),
    refuses("cgget -a {g}-absent", ABSENT, 82),
    refuses("cgget -g pids:{g}/b", ABSENT, 82),
    refuses("cgget -g nosuch {g}", "a controller that is nowhere is an error", 84),
    refuses("cgget -g cpu,nosuch:{g}", "a controller that is nowhere is an error", 84),
    better("cgget -m", NOT_IN_2, Out::Has("Cgroup v1")),
    better("cgget -c", NOT_IN_2, Out::Has("cpuset     \t1\n")),
    better("cgget -b -r cpu.shares {g}", NOT_IN_2, Out::Is("{g}:\ncpu.shares: 1024\n\n")),
    // cgxget
    better("cgxget -r cpu.shares {g}", NO_TOOL, Out::Is("{g}:\ncpu.shares: 1024\n\n")),
    better("cgxget -1 -r cpu.shares {g}", NO_TOOL, Out::Is("{g}:\ncpu.shares: 1024\n\n")),
    better("cgxget -2 -r cpu.weight {g}", NO_TOOL, Out::Is("{g}:\ncpu.weight: 200\n\n"))
        .after(&[Step::Write("cpu:{g}/cpu.shares", "2048")]),
    better("cgxget -2 -nv -r pids.max -r memory.max {g}", NO_TOOL, Out::Is("17\n67108864\n")).after(&[
        Step::Write("pids:{g}/pids.max", "17"),
        Step::Write("memory:{g}/memory.limit_in_bytes", "64M"),
    ]),
    better("cgxget -2 -r cpu.max {g}", NO_TOOL, Out::Is("{g}:\ncpu.max: 20000 50000\n\n")).after(&[
        Step::Write("cpu:{g}/cpu.cfs_quota_us", "20000"),
        Step::Write("cpu:{g}/cpu.cfs_period_us", "50000"),
    ]),
    better("cgxget -2 -g pids:{g}", NO_TOOL, Out::Has("pids.max: max\n")),
    differing("cgxget -2 -r cpu.shares {g}", NO_TOOL, 111, Out::Is(""), true),
    better("cgxget -2 -i -r cpu.shares -r cpu.weight {g}", NO_TOOL, Out::Is("{g}:\ncpu.weight: 100\n\n")),
    // lscgroup
    same("lscgroup cpu:{g}"),
    same("lscgroup -g cpu:{g}"),
    same("lscgroup --group cpu:{g}"),
    same("lscgroup cpu:/{g}"),
    same("lscgroup cpu:{g}/"),
    same("lscgroup cpu:/{g}/a"),
    same("lscgroup pids:{g} -g cpu:{g}"),
    same("lscgroup -g cpu:{g} pids:{g}"),
    same("lscgroup cpu:{g} cpu:{g}"),
    same("lscgroup cpu:{g} cpu:{g}-more").after(&[
        Step::Make("cpu:{g}-more"),
        Step::Make("cpu:{g}/b/c"),
        Step::Make("cpu:{g}/b/c/d"),
    ]),
    same("lscgroup cpu:{g}-absent"),
    same("lscgroup cpu:{g}-absent cpu:{g}"),
    same("lscgroup nosuch:{g}"),
    same("lscgroup cpu:{g} nosuch:{g} pids:{g}"),
    same("lscgroup cpu:/"),
    same("lscgroup"),
    better(
        "lscgroup cpu,pids:{g}",
        "all hierarchies that are named are listed",
        Out::Is("cpu:/{g}/\ncpu:/{g}/a\ncpu:/{g}/b\npids:/{g}/\npids:/{g}/a\n"),
    ),
    better("lscgroup '*:{g}'", "`*` is every controller", Out::Has("freezer:/{g}/\nfreezer:/{g}/a\n")),
    better("lscgroup -b pids:{g}", NOT_IN_2, Out::Is("pids:/{g}/\npids:/{g}/a\n")),
    refuses("lscgroup cpu:{g}/../", "a path never leaves the hierarchy", 91),
    // lssubsys
    same("lssubsys").mounted(),
    same("lssubsys -a").mounted(),
    same("lssubsys -i").mounted(),
    same("lssubsys -m").mounted(),
    same("lssubsys -M").mounted(),
    same("lssubsys -am").mounted(),
    same("lssubsys -aim").mounted(),
    same("lssubsys --all --hierarchies").mounted(),
    same("lssubsys --all-mount-points cpu").mounted(),
    same("lssubsys -m net_cls net_prio").mounted(),
    same("lssubsys memory cpu").mounted(),
    same("lssubsys cpu nosuch").mounted(),
    same("lssubsys -a cpu").mounted(),
    same("lssubsys nosuch"),
    better("lssubsys cpu", UNMOUNTED, Out::Is("cpu\n")),
    better("lssubsys -a", UNMOUNTED, Out::Has("\ncpu\n")),
    better("lssubsys memory cpu", UNMOUNTED, Out::Is("cpu\nmemory\n")),
    // cgsnapshot
    same("cgsnapshot -b {dir}/deny -s cpuset").after(SETS),
    same("cgsnapshot -b {dir}/deny cpu").after(SETS),
    same("cgsnapshot -b {dir}/deny -s cpu pids").after(SETS),
    same("cgsnapshot -b {dir}/deny -s freezer memory").after(SETS),
    better(
        "cgsnapshot --blacklist={dir}/deny --silent devices",
        "all devices are what a new group has: there is nothing to set, and it could not be set above other groups",
        Out::Has(
            "group {g} {\n\tdevices {\n\t}\n}\n\ngroup {g}/a {\n\tdevices {\n\t\tdevices.deny=\"a *:* rwm\";\n\
             \t\tdevices.allow=\"c 1:3 rwm\nc 1:5 rwm\";\n\t}\n}\n",
        ),
    )
    .after(&[
        DENIED,
        Step::Write("devices:{g}/a/devices.deny", "a"),
        Step::Write("devices:{g}/a/devices.allow", "c 1:3 rwm"),
        Step::Write("devices:{g}/a/devices.allow", "c 1:5 rwm"),
    ]),
    same("cgsnapshot -b {dir}/deny -s pids").after(&[DENIED, Step::Own("pids:{g}/tasks", 1, 1)]),
    same("cgsnapshot -b {dir}/deny -t -w {dir}/allow cpu pids")
        .after(&[DENIED, Step::File("allow", "cpu.shares\n# more\n pids.max x\n")]),
    same("cgsnapshot -b {dir}/deny -w {dir}/allow pids").after(&[DENIED, Step::File("allow", "pids.max\n")]),
    same("cgsnapshot -b {dir}/deny nosuch").after(SETS),
    same("cgsnapshot -b {dir}/absent cpu"),
    same("cgsnapshot -b {dir}/deny -w {dir}/absent cpu").after(SETS),
    same("cgsnapshot -b {dir}/deny -f {dir}/absent/x cpu").after(SETS),
    same("cgsnapshot -b {dir}/deny -s -f {dir}/out pids").after(SETS),
    better(
        "cgsnapshot -s pids",
        "no list is needed where there is none",
        Out::Has("group {g} {\n\tpids {\n\t\tpids.max=\"max\";\n\t}\n}\n\n"),
    ),
    better(
        "cgsnapshot -b {dir}/none -s pids",
        SETS_NOTHING,
        Out::Has("group {g} {\n\tpids {\n\t\tpids.max=\"max\";\n\t}\n}\n\n"),
    )
    .after(&[Step::File("none", "")]),
    better(
        "cgsnapshot -b {dir}/none -s freezer",
        SETS_NOTHING,
        Out::Has("group {g} {\n\tfreezer {\n\t\tfreezer.state=\"THAWED\";\n\t}\n}\n\n"),
    )
    .after(&[Step::File("none", "")]),
];
