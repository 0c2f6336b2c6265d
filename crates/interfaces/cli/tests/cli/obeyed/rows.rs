//! On any machine.

use super::{Prints, ROW, Row, Shows};
use crate::world::Need;

const CPUS: &[Need] = &[Need::Cpus(2)];
const FREEZER: &[Need] = &[Need::V1("freezer"), Need::V1("pids")];
const ELASTIC: &str =
    "write l.toml [groups.\"{g}\"]\ncpus = { min = 1, max = 2, weight = 100 }\npids.max = 500\n";
const PIDS: &str = "write l.toml [groups.\"{g}\"]\npids.max = 50\n";
const TWO: &str = "write l.toml [groups.\"{g}/a\"]\npids.max = 9\n[groups.\"{g}/b\"]\npids.max = 9\n";
const BUSY: &str = "start {busy} sh -c 'while :; do :; done'";
const BUSIER: &str = "start {busier} sh -c 'while :; do :; done'";
const SLEEPS: &str = "start {pid} {sleep} 300";
const APPLY: &str = "ringfence apply {d}/l.toml";
/// In the background, and no longer than that.
const DAEMON: &str = "timeout 60 {} --no-socket --no-strict >{d}/log 2>&1 & echo $! >{d}/daemon";
const FOLLOWS: &str = "timeout 100 ringfence daemon --layout {d}/l.toml --no-socket --no-strict >{d}/log 2>&1 & echo $! >{d}/daemon; until grep 'resizing ' {d}/log; do sleep 0.2; done";
/// With a process that a second CPU would serve.
const MADE_AGAIN: &[&str] = &[
    "write l.toml [groups.\"{g}\"]\ncpus = { min = 1, max = 2, weight = 100 }\n",
    APPLY,
    FOLLOWS,
    "ringfence delete {g} && ringfence create {g} -c cpuset,cpu && ringfence set {g} cpuset.cpus=0 cpuset.mems=0",
    BUSY,
    BUSIER,
    "ringfence move {g} {busy}",
    "ringfence move {g} {busier}",
    "until grep 'made it again' {d}/log; do sleep 0.2; done",
];
/// Runs `$1` in a mount namespace where all hierarchies are read-only, and makes the group.
const READ_ONLY: &str = "echo 'for m in $(grep -w -e cgroup -e cgroup2 /proc/mounts | cut -d\" \" -f2); do mount -o remount,bind,ro $m; done; eval \"$1\"; ringfence create {g} -c pids' >{d}/all";
const END: &str = "kill $(cat {d}/daemon)";

pub const ROWS: &[Row] = &[
    Row {
        name: "resizing that status calls paused is resumed",
        needs: CPUS,
        before: &[ELASTIC, APPLY, "ringfence pause"],
        prints: "ringfence status",
        hint: "ringfence resume",
        ..ROW
    },
    Row {
        name: "resizing of the history that was named is resumed",
        needs: CPUS,
        before: &[
            ELASTIC,
            "ringfence apply {d}/l.toml --state {d}/other",
            "ringfence pause --state {d}/other",
        ],
        prints: "ringfence status --state {d}/other",
        hint: "ringfence resume --state",
        ..ROW
    },
    Row {
        name: "elastic groups that nobody resizes have a daemon of their layout",
        needs: CPUS,
        before: &[ELASTIC, APPLY],
        prints: "ringfence status",
        hint: "ringfence daemon --layout",
        with: DAEMON,
        after: &[END],
        ..ROW
    },
    Row {
        name: "why: resizing that is paused is resumed",
        needs: CPUS,
        before: &[
            ELASTIC,
            APPLY,
            BUSY,
            BUSIER,
            "ringfence move {g} {busy}",
            "ringfence move {g} {busier}",
            "ringfence pause",
        ],
        prints: "ringfence why {g} --for 1s",
        hint: "ringfence resume",
        ..ROW
    },
    Row {
        name: "why: groups that nobody resizes have a daemon of their layout",
        needs: CPUS,
        before: &[ELASTIC, APPLY, BUSY, BUSIER, "ringfence move {g} {busy}", "ringfence move {g} {busier}"],
        prints: "ringfence why {g} --for 1s",
        hint: "ringfence daemon --layout",
        with: DAEMON,
        after: &[END],
        ..ROW
    },
    Row {
        name: "status: a group that somebody made again is applied again",
        needs: CPUS,
        before: MADE_AGAIN,
        prints: "ringfence status",
        hint: "ringfence apply {d}/l.toml",
        after: &[END],
        ..ROW
    },
    Row {
        name: "why: a group that somebody made again is applied again",
        needs: CPUS,
        before: MADE_AGAIN,
        prints: "ringfence why {g} --for 1s",
        hint: "ringfence apply {d}/l.toml",
        after: &[END],
        ..ROW
    },
    Row {
        name: "the daemon's log: a group that somebody made again is applied again",
        needs: CPUS,
        before: MADE_AGAIN,
        prints: "cat {d}/log",
        hint: "ringfence apply {d}/l.toml",
        then: Prints("ringfence status | grep 'not resized' || echo all resized", "all resized"),
        after: &[END],
        ..ROW
    },
    Row {
        name: "why: resizing that has ended by refusals is resumed once nothing refuses it",
        needs: &[Need::V1("cpu"), Need::Cpus(2)],
        before: &[
            "write l.toml [groups.\"{g}/a\"]\ncpu.max = { min = \"10%\", max = \"50%\" }\n",
            APPLY,
            // the first step is to 12 %, which at this group's own limit would run out here and never there
            "ringfence set {g} cpu.max=11%",
            FOLLOWS,
            BUSY,
            "ringfence move {g}/a {busy}",
            "until grep 'has ended' {d}/log; do sleep 0.2; done",
        ],
        prints: "ringfence why {g}/a --for 1s",
        hint: "ringfence resume",
        with: "ringfence set {g} cpu.max=max && {}",
        after: &[END],
        ..ROW
    },
    Row {
        name: "a group of the layout that status calls frozen is thawed",
        needs: &[Need::AnyFreezer],
        before: &[PIDS, APPLY, "ringfence create {g} -c freezer,pids", "ringfence freeze {g}"],
        prints: "ringfence status",
        hint: "ringfence thaw {g}",
        ..ROW
    },
    Row {
        name: "a process that runs beside its frozen group is frozen too",
        needs: FREEZER,
        before: &[
            PIDS,
            APPLY,
            "ringfence create {g} -c freezer,pids",
            "ringfence freeze {g}",
            SLEEPS,
            "enter {g} pids {pid}",
        ],
        prints: "ringfence status",
        hint: "ringfence freeze {g}",
        ..ROW
    },
    Row {
        name: "a process that keeps a group after an undo is moved out",
        before: &[PIDS, APPLY, SLEEPS, "ringfence move {g} {pid}"],
        prints: "ringfence undo",
        hint: "ringfence move / {pid}",
        then: Prints("ringfence apply {d}/l.toml; ringfence undo; ringfence list {g} || echo gone", "gone"),
        ..ROW
    },
    Row {
        name: "many processes that keep a group after an undo are moved out",
        before: &[
            PIDS,
            APPLY,
            "start {pid} sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep 300 & done; wait'",
            "until [ $(wc -w </proc/{pid}/task/{pid}/children) = 9 ]; do sleep 0.1; done; ringfence move --tree {g} {pid}",
        ],
        prints: "ringfence undo",
        hint: "ringfence move / $(cat",
        then: Prints("ringfence apply {d}/l.toml; ringfence undo; ringfence list {g} || echo gone", "gone"),
        after: &["kill $(cat /proc/{pid}/task/{pid}/children)"],
        ..ROW
    },
    Row {
        name: "a change of the history that was named is confirmed",
        before: &[PIDS, "ringfence apply {d}/l.toml --confirm 600 --state {d}/other"],
        prints: "ringfence status --state {d}/other",
        hint: "ringfence confirm 1 --state",
        after: &["ringfence undo --state {d}/other"],
        ..ROW
    },
    Row {
        name: "a change that waits is confirmed as apply says",
        before: &[PIDS],
        prints: "ringfence apply {d}/l.toml --confirm 600 --state {d}/other",
        hint: "ringfence confirm 1 --state",
        then: Prints("ringfence status --state {d}/other | grep -q confirm || echo confirmed", "confirmed"),
        after: &["ringfence undo --state {d}/other"],
        ..ROW
    },
    Row {
        name: "what waits before another change is undone",
        before: &[
            PIDS,
            "ringfence apply {d}/l.toml --confirm 600 --state {d}/other",
            "write l.toml [groups.\"{g}\"]\npids.max = 60\n",
        ],
        prints: "ringfence apply {d}/l.toml --state {d}/other",
        hint: "ringfence undo --state",
        after: &["ringfence undo --state {d}/other"],
        ..ROW
    },
    Row {
        name: "a frozen process that keeps a group after an undo is thawed",
        needs: FREEZER,
        before: &[
            PIDS,
            APPLY,
            SLEEPS,
            "ringfence create {g} -c freezer,pids",
            "ringfence move {g} {pid}",
            "ringfence freeze {g}",
        ],
        prints: "ringfence undo",
        hint: "ringfence thaw {g}",
        then: Prints("ringfence get --values {g} freezer.state", "THAWED"),
        ..ROW
    },
    Row {
        name: "a group that was there before the layout is deleted",
        before: &[
            "ringfence create {g}/a -c pids",
            TWO,
            APPLY,
            "write l.toml [groups.\"{g}/b\"]\npids.max = 9\n",
        ],
        prints: APPLY,
        hint: "ringfence delete {g}/a",
        then: Prints("ringfence list {g} | grep {g}/a || echo gone", "gone"),
        ..ROW
    },
    Row {
        name: "a group that an undo does not make again is applied again",
        before: &[
            TWO,
            APPLY,
            "write m.toml [groups.\"{g}/a\"]\npids.max = 9\n[groups.\"{g}/b\"]\npids.max = 8\n",
            "ringfence apply {d}/m.toml",
            "ringfence delete {g}/a",
        ],
        prints: "ringfence undo",
        hint: "ringfence apply {d}/l.toml",
        then: Prints("ringfence get {g}/a pids.max", "pids.max  9"),
        ..ROW
    },
    Row {
        name: "a process that is in another group for an added controller is moved",
        needs: &[Need::V1("memory")],
        before: &[
            PIDS,
            APPLY,
            SLEEPS,
            "ringfence move {g} {pid}",
            "ringfence create {g}-rt -c memory",
            "enter {g}-rt memory {pid}",
            "write l.toml [groups.\"{g}\"]\npids.max = 50\nmemory.max = \"64M\"\n",
        ],
        prints: APPLY,
        hint: "ringfence move {g} {pid}",
        ..ROW
    },
    Row {
        name: "a process that is half in another group of the layout is moved there wholly",
        needs: &[Need::V1("memory")],
        before: &[
            "write l.toml [groups.\"{g}/a\"]\ncpus = \"0\"\nmemory.max = \"64M\"\n[groups.\"{g}/b\"]\nmemory.max = \"64M\"\n",
            APPLY,
            SLEEPS,
            "ringfence move {g}/a {pid}",
            "enter {g}/b memory {pid}",
        ],
        prints: APPLY,
        hint: "ringfence create {g}/b --controllers",
        ..ROW
    },
    // the hint rounded up, and was refused itself
    Row {
        name: "a quota below that the layout does not set is lowered to what the group gets",
        needs: &[Need::V1("cpu")],
        before: &[
            "ringfence create {g}/x -c cpu",
            "ringfence set {g}/x cpu.max=90%",
            "write l.toml [groups.\"{g}\"]\ncpu.max = \"66.666%\"\n",
        ],
        prints: "ringfence plan {d}/l.toml",
        hint: "ringfence set /{g}/x cpu.max=",
        ..ROW
    },
    Row {
        name: "CPUs of a group below that the layout does not name are what is left for it",
        needs: &[Need::V1("cpuset"), Need::Cpus(2)],
        before: &[
            "ringfence create {g}/x -c cpuset",
            "ringfence set {g} cpuset.cpus=0-1 cpuset.mems=0",
            "ringfence set {g}/x cpuset.cpus=0-1 cpuset.mems=0",
            "write l.toml [groups.\"{g}\"]\ncpus = \"0\"\n",
        ],
        prints: "ringfence plan {d}/l.toml",
        hint: "ringfence set /{g}/x cpuset.cpus=0",
        ..ROW
    },
    Row {
        name: "a real-time budget that leaves none for others is given back",
        needs: &[Need::V1("cpu"), Need::File("cpu.rt_runtime_us")],
        before: &[
            "ringfence create {g} -c cpu",
            "ringfence set {g} cpu.rt_runtime_us=$(($(cat /sys/fs/cgroup/cpu/cpu.rt_runtime_us) * 99 / 100))",
        ],
        prints: "ringfence doctor",
        hint: "ringfence set /{g} cpu.rt_runtime_us=50ms",
        ..ROW
    },
    Row {
        name: "a real-time program has a budget in a group without one",
        needs: &[Need::V1("cpu"), Need::File("cpu.rt_runtime_us"), Need::Realtime],
        before: &["ringfence create {g} -c cpu"],
        prints: "ringfence run {g} -- ringfence worker cyclic --time-ms 100",
        hint: "ringfence set {g} cpu.rt_runtime_us=",
        ..ROW
    },
    Row {
        name: "a program that writes the same settings is ended",
        needs: &[Need::Plain],
        before: &["cp {sleep} {d}/irqbalance", "start {pid} {d}/irqbalance 300"],
        prints: "ringfence doctor",
        hint: "kill {pid}",
        ..ROW
    },
    Row {
        name: "a group that only a rule names is made",
        before: &[
            "write l.toml [[rules]]\ncommand = \"300[.]21$\"\nto = \"{g}-rt\"\n",
            "start {pid} {sleep} 300.21",
        ],
        prints: "ringfence plan {d}/l.toml",
        hint: "ringfence create {g}-rt",
        then: Prints(
            "ringfence classify --rules {d}/l.toml {pid} >/dev/null 2>&1; cat /proc/{pid}/cgroup",
            "/{g}-rt\n",
        ),
        ..ROW
    },
    Row {
        name: "what looks like an option of run is a setting of the group",
        before: &["ringfence create {g} -c pids"],
        prints: "ringfence run {g} --pids 7 -- true",
        hint: "ringfence set {g} ",
        fill: ("SETTING=VALUE", "pids.max=7"),
        then: Prints("ringfence get {g} pids.max", "pids.max  7"),
        ..ROW
    },
    Row {
        name: "the program that looked like an option of run is run",
        before: &["ringfence create {g} -c pids"],
        prints: "ringfence run {g} --pids 7 -- true",
        hint: "ringfence run {g} --",
        fill: ("COMMAND", "cat /proc/self/cgroup"),
        then: Shows("/{g}\n"),
        ..ROW
    },
    Row {
        name: "a frozen group that gets a signal is thawed to take it",
        needs: &[Need::V1("freezer")],
        before: &[
            "ringfence create {g} -c freezer,pids",
            SLEEPS,
            "ringfence move {g} {pid}",
            "ringfence freeze {g}",
        ],
        prints: "ringfence kill --signal 15 {g}",
        hint: "ringfence thaw {g}",
        then: Prints("cat /proc/{pid}/status", "zombie"),
        ..ROW
    },
    Row {
        name: "a group below a frozen one is thawed with that",
        needs: &[Need::AnyFreezer],
        before: &["ringfence create {g}/a -c freezer,pids", "ringfence freeze {g}"],
        prints: "ringfence thaw {g}/a --timeout 1",
        hint: "ringfence thaw {g}",
        ..ROW
    },
    Row {
        name: "what is moved into a frozen group runs once that is thawed",
        needs: &[Need::V1("freezer")],
        before: &["ringfence create {g} -c freezer", "ringfence freeze {g}", SLEEPS],
        prints: "ringfence move {g} {pid}",
        hint: "ringfence thaw {g}",
        then: Prints("ringfence get --values {g} freezer.state", "THAWED"),
        ..ROW
    },
    // its own group alone is no way out below an empty one
    Row {
        name: "a new group below an empty cpuset takes tasks",
        needs: &[Need::V1("cpuset")],
        before: &["ringfence cgcreate -g cpuset:{g}", SLEEPS],
        prints: "ringfence create {g}/a -c cpuset; ringfence delete {g}/a >/dev/null; ringfence create {g}/a -c cpuset",
        hint: "ringfence set {g} cpuset.cpus=",
        then: Prints("ringfence move {g}/a {pid} 2>/dev/null; cat /proc/{pid}/cgroup", "/{g}/a\n"),
        ..ROW
    },
    Row {
        name: "memory that a moved process leaves behind is charged to the group of a new one",
        needs: &[Need::On("memory")],
        before: &[
            "ringfence create {g}-rt -c memory,pids",
            "ringfence create {g} -c memory,pids",
            "start {pid} sh -c 'until [ -e {d}/go ]; do sleep 0.1; done; x=$(head -c 20000000 /dev/zero | tr \"\\0\" x); while :; do sleep 1; done'",
            "ringfence move {g}-rt {pid}; touch {d}/go",
            "while [ $(grep VmRSS /proc/{pid}/status | tr -dc 0-9) -lt 19000 ]; do sleep 0.2; done",
        ],
        prints: "ringfence move {g} {pid}",
        hint: "ringfence run {g} --",
        fill: ("PROGRAM", "cat /proc/self/cgroup"),
        then: Shows("/{g}\n"),
        ..ROW
    },
    Row {
        name: "what the plan of a layout without groups undoes is undone",
        before: &[PIDS, APPLY, "write e.toml "],
        prints: "ringfence plan {d}/e.toml",
        hint: "ringfence apply --yes {d}/e.toml",
        then: Prints("ringfence list {g} || echo gone", "gone"),
        ..ROW
    },
    Row {
        name: "what a daemon does not undo by itself is undone",
        before: &[PIDS, APPLY, "write e.toml "],
        prints: "timeout 3 ringfence daemon --layout {d}/e.toml --no-socket --no-strict",
        hint: "ringfence apply --yes {d}/e.toml",
        then: Prints("ringfence list {g} || echo gone", "gone"),
        ..ROW
    },
    // the plan of this machine may have another answer
    Row {
        name: "a layout that can't be simulated is planned on the same machine",
        before: &[
            "write l.toml [groups]\na.cpus = { min = 3, max = 4 }\nb.cpus = { count = 2, pool = \"exclusive\" }\n",
            "write m.txt CPU(s): 4\nOn-line CPU(s) list: 0-3\nThread(s) per core: 1\nCore(s) per socket: 4\nSocket(s): 1\nNUMA node(s): 1\nNUMA node0 CPU(s): 0-3\n",
        ],
        prints: "ringfence simulate {d}/l.toml --machine {d}/m.txt",
        hint: "ringfence plan {d}/l.toml --machine",
        then: Shows("error"),
        ..ROW
    },
    Row {
        name: "a layout that others can write is made root's alone",
        before: &[PIDS, "chmod 666 {d}/l.toml"],
        prints: "ringfence plan {d}/l.toml",
        hint: "chmod go-w {d}/l.toml",
        ..ROW
    },
    Row {
        name: "a layout of another user is given to root",
        before: &[PIDS, "chown 65534 {d}/l.toml"],
        prints: "ringfence plan {d}/l.toml",
        hint: "chown root {d}/l.toml",
        ..ROW
    },
    Row {
        name: "a directory of a layout that others can write is made root's alone",
        before: &["write in/l.toml [groups.\"{g}\"]\npids.max = 5\n", "chmod 777 {d}/in"],
        prints: "ringfence plan {d}/in/l.toml",
        hint: "chmod go-w {d}/in",
        ..ROW
    },
    Row {
        name: "a directory of a layout of another user is given to root",
        before: &["write in/l.toml [groups.\"{g}\"]\npids.max = 5\n", "chown 65534 {d}/in"],
        prints: "ringfence plan {d}/in/l.toml",
        hint: "chown root {d}/in",
        ..ROW
    },
    Row {
        name: "what is no record is moved away",
        before: &[PIDS, APPLY, "f={d}/state/generations/0001.jsonl; mv $f {d}/aside && mkfifo $f"],
        prints: "ringfence status",
        hint: "mv {d}/state/generations/0001.jsonl",
        ..ROW
    },
    Row {
        name: "what is no segment of a log is removed",
        before: &[
            "ringfence record --directory {d}/log --count 2 --interval 100ms",
            "for f in {d}/log/*.rflog; do rm $f && mkfifo $f; done",
        ],
        prints: "ringfence dump --directory {d}/log",
        hint: "rm {d}/log/",
        ..ROW
    },
    Row {
        name: "a disk that a log filled is shown",
        before: &["mkdir {d}/disk && mount -t tmpfs -o size=1M rf-test {d}/disk"],
        prints: "ringfence record --directory {d}/disk/log --count 200 --interval 20ms & sleep 0.7; cat /dev/zero >{d}/disk/full; wait $!",
        hint: "df {d}/disk",
        then: Shows("100%"),
        after: &["umount {d}/disk"],
        ..ROW
    },
    Row {
        name: "doctor: a hierarchy that is mounted read-only is made writable",
        needs: &[Need::Plain, Need::Program("unshare")],
        before: &[
            "echo 'while read _ m t _; do case $t in cgroup*) break;; esac; done </proc/mounts; mount -o remount,bind,ro $m; eval \"$1\"; ringfence doctor | grep \", read-only\" || echo writable; ringfence doctor' >{d}/first",
        ],
        prints: "unshare -m sh {d}/first :",
        hint: "mount -o remount,bind,rw",
        with: "unshare -m sh {d}/first '{}'",
        then: Shows("writable"),
        ..ROW
    },
    Row {
        name: "a server's user reaches its directory",
        needs: &[Need::Program("pgbench"), Need::Program("postgres"), Need::Program("unshare")],
        before: &[
            "write pg.toml name = \"pg\"\ntitle = \"A server\"\nrepetitions = 1\nduration = \"300ms\"\nwarm-up = \"0s\"\n[group.{g}-rt]\n[workload.db]\ndriver = \"pgbench\"\ngroup = \"{g}-rt\"\nclients = 1\nscale = 1\n[[condition]]\nname = \"only\"\n[[measure]]\nname = \"rate\"\nis = \"db.tps\"\n",
            "mkdir -m 700 {d}/closed",
        ],
        prints: "unshare -m sh -c 'mount --bind {d}/closed /var/tmp; ringfence lab run {d}/pg.toml --directory {d}/out-$$ --foreign-cpu 100% --steal 1'",
        hint: "chmod o+x /var/tmp",
        with: "unshare -m sh -c 'mount --bind {d}/closed /var/tmp; {}'",
        ..ROW
    },
    Row {
        name: "a hierarchy that is mounted read-only is made writable",
        needs: &[Need::Plain, Need::Program("unshare")],
        before: &[READ_ONLY],
        prints: "unshare -m sh {d}/all :",
        hint: "mount -o remount,bind,rw",
        with: "unshare -m sh {d}/all '{}'",
        then: Prints("ringfence list", "{g}\n"),
        ..ROW
    },
];
