//! The commands that change groups and where processes are.

use super::row::{Out, Row, Step, better, differing, refuses, same};

const NO_TOOL: &str = "Debian's release has no such command";
const NOT_IN_2: &str = "a flag of libcgroup 3, which 2.0.2 does not have";
const CONVERTED: &str = "a name that only the other cgroup version has is converted";
const ALL_OR_NOTHING: &str = "all settings of a command are changed, or none";
const MOVERS: &str = "who may move threads into a group (tasks) may move processes into it (cgroup.procs)";
const CHECKED: &str =
    "a file is read as a whole first: whatever is wrong in it is an error of the configuration";
const TOLD: &str = "errors are told on standard error, all of them";

const CONF: Step = Step::File(
    "conf",
    "group {g}-new {\n\tcpu { cpu.shares = 300; }\n\tpids { \"pids.max\" = \"5\"; }\n}\n\
     group {g}-new/below { cpu { } }\n",
);

/// What a snapshot is taken of.
pub const HELD: &[Step] = &[
    Step::Write("cpu:{g}/cpu.shares", "300"),
    Step::Write("cpu:{g}/a/cpu.cfs_quota_us", "20000"),
    Step::Write("cpuset:{g}/a/cpuset.cpus", "0"),
    Step::Write("cpuset:{g}/a/cpuset.mems", "0"),
    Step::Write("memory:{g}/memory.limit_in_bytes", "64M"),
    Step::Write("memory:{g}/a/memory.oom_control", "1"),
    Step::Write("pids:{g}/a/pids.max", "7"),
    Step::Write("devices:{g}/a/devices.deny", "a"),
    Step::Write("devices:{g}/a/devices.allow", "c 1:3 rwm"),
    Step::Write("devices:{g}/a/devices.allow", "b 8:* r"),
    Step::Write("freezer:{g}/a/freezer.state", "FROZEN"),
];

pub const ROWS: &[Row] = &[
    // cgcreate
    same("cgcreate -g cpu:{g}-new"),
    same("cgcreate -g cpu,pids:{g}-new"),
    same("cgcreate -g cpu:/{g}-new/x/y"),
    same("cgcreate -g cpu:{g}-new -g pids:{g}-other"),
    same("cgcreate -g cpu:{g}"),
    better("cgcreate -a games:games -g cpu,pids:{g}-new", MOVERS, Out::Is("")).leaves(
        &[
            "cpu:{g}-new 5:60 755",
            "cpu:{g}-new/cpu.shares=1024 5:60 644",
            "cpu:{g}-new/tasks=",
            "pids:{g}-new/pids.max=max 5:60 644",
        ],
        &["cgroup.procs= 5"],
    ),
    better("cgcreate -a games -d 750 -f 640 -g cpu:{g}-new", MOVERS, Out::Is("")).leaves(
        &["cpu:{g}-new 5:0 750", "cpu:{g}-new/cpu.shares=1024 5:0 640", "cpu:{g}-new/cpu.stat= 5:0 440"],
        &["cgroup.procs= 5"],
    ),
    same("cgcreate -d 711 -g cpu:{g}-new"),
    better("cgcreate -g '*:{g}-new'", "`*` is every controller, also v2's", Out::Is(""))
        .leaves(&["cpu:{g}-new", "devices:{g}-new", "unified:{g}-new"], &[]),
    better("cgcreate -t games:games -g cpu,pids:{g}-new", MOVERS, Out::Is("")).leaves(
        &["cpu:{g}-new", "cpu:{g}-new/tasks= 5:60 644", "pids:{g}-new/cgroup.procs= 5:60 644"],
        &["pids.max=max 5:60"],
    ),
    better("cgcreate -a games:games -t games:games -d 750 -f 640 -s 600 -g cpu:{g}-new", MOVERS, Out::Is(""))
        .leaves(
            &[
                "cpu:{g}-new 5:60 750",
                "cpu:{g}-new/cpu.shares=1024 5:60 640",
                "cpu:{g}-new/cpu.stat= 5:60 440",
                "cpu:{g}-new/cgroup.procs= 5:60 600",
                "cpu:{g}-new/tasks= 5:60 600",
            ],
            &[],
        ),
    better("cgcreate -a 5:60 -g cpu:{g}-new", "users and groups may be given by number", Out::Is(""))
        .leaves(&["cpu:{g}-new 5:60 755"], &[]),
    better("cgcreate -b -g cpu:{g}-new", NOT_IN_2, Out::Is("")).leaves(&["cpu:{g}-new"], &[]),
    refuses("cgcreate -t {g}:games -g cpu:{g}-new", "an unknown user is an error, not only a message", 129)
        .leaves(&[], &["{g}-new"]),
    refuses("cgcreate -g cpu:../{g}-new", "a path never leaves the hierarchy", 91).leaves(&[], &["{g}-new"]),
    same("cgcreate -g nosuch:{g}-new"),
    same("cgcreate -g cpu,nosuch:{g}-new"),
    // cgdelete
    same("cgdelete cpu:{g}/b"),
    same("cgdelete -g cpu:{g}/b"),
    same("cgdelete cpu:{g}"),
    same("cgdelete -g cpu:{g} -r"),
    same("cgdelete --recursive pids:{g}"),
    same("cgdelete cpu:{g}-absent"),
    same("cgdelete nosuch:{g}"),
    same("cgdelete cpu:{g}/a cpu:{g}/b"),
    same("cgdelete"),
    same("cgdelete cpu:/"),
    better("cgdelete -g cpu,memory:{g}/a", "fault 2: the reference leaves memory's group", Out::Is(""))
        .leaves(&["pids:{g}/a"], &["cpu:{g}/a", "memory:{g}/a"]),
    better("cgdelete '*:{g}/a'", "`*` is every controller, as it is for cgcreate", Out::Is(""))
        .leaves(&["cpu:{g}/b"], &["{g}/a"]),
    same("cgdelete pids:{g}/a").after(&[Step::Start, Step::Move("pids:{g}/a")]),
    // cgset
    same("cgset -r cpu.shares=512 {g}"),
    same("cgset -r cpu.shares=512 -r pids.max=10 {g} {g}/a"),
    same("cgset -r cpuset.cpus=0-1 -r cpuset.mems=0 {g}"),
    same("cgset -r cpuset.cpus=0 -r cpuset.mems=0 {g}/a"),
    same("cgset -r memory.limit_in_bytes=64M {g}"),
    same("cgset -r memory.limit_in_bytes=8589934592 {g}"),
    same("cgset -r memory.limit_in_bytes=-1 {g}"),
    same("cgset -r cpu.shares=0x100 {g}"),
    same("cgset -r memory.limit_in_bytes=0x4000000 {g}"),
    same("cgset -r pids.max=0x10 {g}"),
    same("cgset -r cpu.cfs_quota_us=0xc350 {g}"),
    same("cgset -r cpuset.cpus=0-1, -r cpuset.mems=0, {g}"),
    same("cgset -r cpuset.cpu_exclusive=2 {g}"),
    same("cgset -r cpuset.memory_migrate=5 {g}"),
    same("cgset -r memory.oom_control=2 {g}"),
    same("cgset -r pids.max=max {g}"),
    same("cgset -r freezer.state=FROZEN {g}"),
    same("cgset -r freezer.state=THAWED {g}").after(&[Step::Write("freezer:{g}/freezer.state", "FROZEN")]),
    same("cgset -r cpu.cfs_quota_us=20000 -r cpu.cfs_period_us=50000 {g}"),
    same("cgset -r cpu.cfs_quota_us=-1 {g}").after(&[Step::Write("cpu:{g}/cpu.cfs_quota_us", "5000")]),
    same("cgset -r 'devices.deny=c 1:3 rwm' {g}"),
    same("cgset -r cpu.shares=abc {g}"),
    same("cgset -r cpuset.cpus=99 {g}"),
    same("cgset -r cpu.nosuch=1 {g}"),
    same("cgset -r nosuch.x=1 {g}"),
    same("cgset --copy-from {g} {g}/a").after(&[Step::Write("cpu:{g}/cpu.shares", "300")]),
    same("cgset -r cpu.shares=1 {g}"),
    // the kernel decides, as it does for the reference
    same("cgset -r cpu.shares=-5 {g}"),
    same("cgset -r cpu.cfs_quota_us=1 {g}"),
    same("cgset -r cpu.cfs_quota_us=-7 {g}"),
    same("cgset -r cpu.cfs_period_us=5 {g}"),
    same("cgset -r pids.max=4194304 {g}"),
    same("cgset -r pids.max=99999999 {g}"),
    same("cgset -r memory.swappiness=300 {g}"),
    same("cgset -r cpu.shares=99999999999 {g}"),
    refuses("cgset -r cpu.shares=512 -r pids.max=99999999 {g}", ALL_OR_NOTHING, 96)
        .leaves(&["cpu:{g}/cpu.shares=1024"], &[]),
    same("cgset -r cpu.shares=1000000 {g}"),
    same("cgset -r cpu.shares=5 {g}-absent"),
    refuses("cgset -r cpu.shares=512 -r pids.max=many {g}", ALL_OR_NOTHING, 96)
        .leaves(&["cpu:{g}/cpu.shares=1024"], &[]),
    refuses("cgset -r cpu.shares=512 -r cpuset.cpus=99 {g}", ALL_OR_NOTHING, 96)
        .leaves(&["cpu:{g}/cpu.shares=1024"], &[]),
    refuses("cgset -r nosuch=1 {g}", "fault 7: what is not done is no success", 84),
    refuses("cgset --copy-from {g}-absent {g}", "fault 7: what is not done is no success", 82),
    refuses("cgset -r cpu.shares= {g}", "a wrong option ends with 129, as in later releases", 129),
    better("cgset -R -r cpu.shares=77 {g}", NOT_IN_2, Out::Is(""))
        .leaves(&["cpu:{g}/cpu.shares=77", "cpu:{g}/a/cpu.shares=77", "cpu:{g}/b/cpu.shares=77"], &[]),
    better("cgset -r memory.max=64M -r cpu.max=20000 {g}", CONVERTED, Out::Is(""))
        .leaves(&["memory:{g}/memory.limit_in_bytes=67108864", "cpu:{g}/cpu.cfs_quota_us=20000"], &[]),
    // cgexec
    same("cgexec -g cpu:{g} true"),
    same("cgexec -g cpu:{g} sh -c 'exit 7'"),
    same("cgexec -g cpu,pids:{g} grep -E ':(cpu|pids):' /proc/self/cgroup"),
    same("cgexec -g cpu:{g} -g pids:{g}/a grep -E ':(cpu|pids):' /proc/self/cgroup"),
    same("cgexec -g cpuset:{g} grep :cpuset: /proc/self/cgroup"),
    same("cgexec --sticky -g cpu:/{g}/b grep :cpu: /proc/self/cgroup"),
    same("cgexec -g cpu:{g} echo -g x"),
    same("cgexec -g cpu:{g}-absent true"),
    same("cgexec -g nosuch:{g} true"),
    same("cgexec -g cpuset:{g}/a true"),
    same("cgexec -g cpu:{g} {dir}/absent"),
    same("cgexec -g cpu:{g} {dir}/plain").after(&[Step::File("plain", "x")]),
    better("cgexec -g '*:{g}' grep -c {g} /proc/self/cgroup", "`*` is every controller", Out::Is("6\n")),
    // cgclassify
    same("cgclassify -g cpu:{g}"),
    same("cgclassify -g cpu:{g} {pid}").after(&[Step::Start]),
    same("cgclassify -g cpu,pids:{g}/a {pid}").after(&[Step::Start]),
    same("cgclassify -g cpu:{g} -g pids:{g}/a {pid}").after(&[Step::Start]),
    same("cgclassify -g cpuset:{g} {pid}").after(&[Step::Start]),
    same("cgclassify --sticky -g cpu:{g} {pid}").after(&[Step::Start]),
    same("cgclassify -g cpu:/ {pid}").after(&[Step::Start, Step::Move("cpu:{g}")]),
    same("cgclassify -g cpuset:{g}/a {pid}").after(&[Step::Start]),
    same("cgclassify -g cpu:{g}-absent {pid}").after(&[Step::Start]),
    same("cgclassify -g nosuch:{g} {pid}").after(&[Step::Start]),
    same("cgclassify -g cpu:{g} 99999999"),
    same("cgclassify -g cpu:{g} {pid} 99999999").after(&[Step::Start]),
    // cgconfigparser and cgclear
    same("cgconfigparser -l {dir}/conf").after(&[CONF]),
    same("cgconfigparser --load {dir}/conf").after(&[CONF]),
    same("cgconfigparser -L {dir}/d").after(&[
        Step::File("d/1.conf", "group {g}-new { cpu { cpu.shares = 300; } }\n"),
        Step::File("d/2.conf", "group {g}/b { cpu { cpu.shares = 400; } }\n"),
    ]),
    same("cgconfigparser -l {dir}/conf -l {dir}/more")
        .after(&[CONF, Step::File("more", "group {g}/b { cpu { cpu.shares = 400; } }\n")]),
    same("cgconfigparser -l {dir}/conf -l {dir}/more").after(&[
        CONF,
        Step::File("more", "group {g}-new { cpu { cpu.cfs_quota_us = 20000; } pids { pids.max = 6; } }\n"),
    ]),
    same("cgconfigparser -l {dir}/twice").after(&[Step::File(
        "twice",
        "group {g}-new { cpu { cpu.shares = 300; } }\ngroup {g}-new { pids { pids.max = 7; } }\n",
    )]),
    same("cgconfigparser -l {dir}/quoted").after(&[Step::File(
        "quoted",
        "# reports\ngroup \"{g}-new\" { \"cpu\" { \"cpu.shares\" = \"300\"; }\n}\n",
    )]),
    same("cgconfigparser -l {dir}/root").after(&[Step::File("root", "group . { cpu { } }\n")]),
    better("cgconfigparser -l {dir}/default", MOVERS, Out::Is(""))
        .after(&[Step::File(
            "default",
            "default { perm { task { uid = games; gid = games; } admin { uid = games; gid = root; fperm = 660; } } }\n\
             group {g}-new { cpu { cpu.shares = 300; } }\n",
        )])
        .leaves(
            &[
                "cpu:{g}-new 5:0 755",
                "cpu:{g}-new/tasks= 5:60 644",
                "cpu:{g}-new/cpu.shares=300 5:0 660",
                "cpu:{g}-new/cpu.stat= 5:0 440",
            ],
            &[],
        ),
    same("cgconfigparser -d 750 -l {dir}/conf").after(&[CONF]),
    same("cgconfigparser -l {dir}/empty").after(&[Step::File("empty", "")]),
    same("cgconfigparser -l {dir}/template")
        .after(&[Step::File("template", "template {g}-new { cpu { cpu.shares = 100; } }\n")]),
    better("cgconfigparser -l {dir}/tail", "a comment may follow on the same line", Out::Is(""))
        .after(&[Step::File("tail", "group {g}/b { cpu { cpu.shares = 400; } } # reports\n")])
        .leaves(&["cpu:{g}/b/cpu.shares=400"], &[]),
    better("cgconfigparser -l {dir}/perm", MOVERS, Out::Is(""))
        .after(&[Step::File(
            "perm",
            "group {g}-new {\n perm {\n  task { uid = games; gid = games; }\n\
             admin { uid = root; gid = games; dperm = 750; fperm = 640; }\n }\n cpu { }\n}\n",
        )])
        .leaves(
            &[
                "cpu:{g}-new 0:60 750",
                "cpu:{g}-new/tasks= 5:60 644",
                "cpu:{g}-new/cpu.shares=1024 0:60 640",
                "cpu:{g}-new/cpu.stat= 0:60 440",
            ],
            &[],
        ),
    better(
        "cgconfigparser -a games:games -t games:games -d 750 -f 640 -s 600 -l {dir}/conf",
        MOVERS,
        Out::Is(""),
    )
    .after(&[CONF])
    .leaves(
        &[
            "cpu:{g}-new 5:60 750",
            "cpu:{g}-new/cpu.shares=300 5:60 640",
            "cpu:{g}-new/cpu.stat= 5:60 440",
            "cpu:{g}-new/tasks= 5:60 600",
            "pids:{g}-new/pids.max=5 5:60 640",
        ],
        &[],
    ),
    same("cgconfigparser -L {dir}/d").after(&[
        Step::File("d/1.conf", "group {g}-new { cpu { cpu.shares = 300; cpu.cfs_quota_us = 20000; } }\n"),
        Step::File("d/2.conf", "group {g}-new { cpu { cpu.shares = 400; } pids { } }\n"),
    ]),
    refuses("cgconfigparser -l {dir}/wrong-name", CHECKED, 104)
        .after(&[Step::File("wrong-name", "group {g}-new { cpu { cpu.nosuch = 3; } }\n")])
        .leaves(&[], &["{g}-new"]),
    refuses("cgconfigparser -l {dir}/wrong-controller", CHECKED, 104)
        .after(&[Step::File("wrong-controller", "group {g}-new { nosuch { } }\n")])
        .leaves(&[], &["{g}-new"]),
    same("cgconfigparser -l {dir}/wrong-value")
        .after(&[Step::File("wrong-value", "group {g}-new { cpu { cpu.shares = abc; } }\n")]),
    refuses(
        "cgconfigparser -l {dir}/half",
        "fault 1: the reference deletes live groups that were there before",
        96,
    )
    .after(&[Step::File(
        "half",
        "group {g}/b { cpu { cpu.shares = 300; } }\ngroup {g}-new { cpu { cpu.shares = abc; } }\n",
    )])
    .leaves(&["cpu:{g}/b", "cpu:{g}/b/cpu.shares=1024"], &["{g}-new"]),
    refuses(
        "cgconfigparser -l {dir}/late",
        "fault 1: the reference deletes live groups that were there before",
        96,
    )
    .after(&[Step::File(
        "late",
        "group {g}/b { cpu { cpu.shares = 300; } }\ngroup {g}-new { cpuset { cpuset.cpus = 99; } }\n",
    )])
    .leaves(&["cpu:{g}/b", "cpu:{g}/b/cpu.shares=1024"], &["{g}-new"]),
    refuses("cgconfigparser -l {dir}/open", TOLD, 104)
        .after(&[Step::File("open", "group {g}-new { cpu { cpu.shares = 3 }\n")])
        .leaves(&[], &["{g}-new"]),
    refuses("cgconfigparser -l {dir}/absent", TOLD, 96),
    differing("cgconfigparser -L {dir}/absent", TOLD, 96, Out::Is(""), true),
    same("cgclear -l {dir}/conf").after(&[
        CONF,
        Step::Make("cpu:{g}-new"),
        Step::Make("cpu:{g}-new/below"),
        Step::Make("pids:{g}-new"),
    ]),
    same("cgclear -L {dir}/d").after(&[
        Step::File("d/1.conf", "group {g}-new { cpu { } }\n"),
        Step::File("d/2.conf", "group {g}-new/below { pids { } }\n"),
        Step::Make("cpu:{g}-new"),
        Step::Make("pids:{g}-new"),
        Step::Make("pids:{g}-new/below"),
    ]),
    same("cgclear -l {dir}/one")
        .after(&[Step::File("one", "group {g}-new { cpu { } }\n"), Step::Make("cpu:{g}-new"), Step::Start, Step::Move("cpu:{g}-new")]),
    same("cgclear -e -l {dir}/one")
        .after(&[Step::File("one", "group {g}-new { cpu { } }\n"), Step::Make("cpu:{g}-new")]),
    same("cgclear -l {dir}/empty").after(&[Step::File("empty", "")]),
    refuses("cgclear -l {dir}/absent", TOLD, 3),
    // cgxset
    better("cgxset -1 -r cpu.shares=512 {g}", NO_TOOL, Out::Is("")).leaves(&["cpu:{g}/cpu.shares=512"], &[]),
    better("cgxset -2 -r cpu.weight=50 -r pids.max=9 {g}", NO_TOOL, Out::Is(""))
        .leaves(&["cpu:{g}/cpu.shares=512", "pids:{g}/pids.max=9"], &[]),
    better("cgxset -2 -r memory.max=64M {g}", NO_TOOL, Out::Is(""))
        .leaves(&["memory:{g}/memory.limit_in_bytes=67108864"], &[]),
];
