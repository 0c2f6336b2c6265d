//! On cgroup v2.

use super::{Prints, ROW, Row, Shows};
use crate::world::Need;

const MEMORY: &[Need] = &[Need::V2("memory"), Need::V2("pids")];
/// Before a partition could have CPUs that its siblings name.
const OLD: &[Need] = &[Need::V2("cpuset"), Need::Plain, Need::Cpus(2), Need::Before(6, 7)];
const EATS: &str = "start {pid} sh -c 'until [ -e {d}/go ]; do sleep 0.1; done; x=$(head -c 20000000 /dev/zero | tr \"\\0\" x); while :; do sleep 1; done'";
const EATEN: &str = "ringfence move {g} {pid}; touch {d}/go; while [ $(cat {v2}/{g}/memory.current) -lt 19000000 ]; do sleep 0.2; done";
const OF_USER: &[Need] = &[Need::V2("memory"), Need::V2("pids"), Need::Plain, Need::OwnMachine];
/// To a user, with one controller.
const GIVEN: &str = "echo -memory >{v2}/cgroup.subtree_control; ringfence create {g} -c pids --tasks 65534:65534 --admin 65534:65534";
/// Runs a command line of ours as its own user, once it is in its group.
const OWN: &str = "mkdir -m 777 {d}/said && printf '#!/bin/sh\\nuntil [ -e {d}/go ]; do sleep 0.1; done\\n{program} \"$@\" >{d}/said/all 2>&1\\ntouch {d}/said/done\\nsleep 300\\n' >{d}/own && chmod 755 {d}/own";
const GO: &str = "touch {d}/go; until [ -e {d}/said/done ]; do sleep 0.2; done";
const PARTITION: &str = "ringfence set {g} cpuset.cpus=1 && ringfence set {g}-rt cpuset.cpus=0";

pub const ROWS: &[Row] = &[
    Row {
        name: "a group that uses more than its new limit is slowed down",
        needs: &[Need::V2("memory"), Need::Plain],
        before: &[
            "ringfence create {g} -c memory,pids; ringfence set {g} memory.swap.max=0",
            EATS,
            EATEN,
            "write l.toml [groups.\"{g}\"]\nmemory.max = \"4M\"\n",
        ],
        prints: "ringfence apply {d}/l.toml",
        hint: "ringfence set {g} memory.high=",
        then: Prints("ringfence get {g} memory.high", "4M"),
        ..ROW
    },
    Row {
        name: "memory that can't be reclaimed is shown",
        needs: MEMORY,
        before: &["ringfence create {g} -c memory,pids"],
        prints: "ringfence set {g} memory.reclaim=1G",
        hint: "ringfence stat {g}",
        then: Shows("memory.current"),
        ..ROW
    },
    Row {
        name: "a controller that a group lacks itself is enabled above it first",
        needs: OF_USER,
        before: &[GIVEN, OWN, "as-user {pid} {d}/own create x -c memory", "ringfence move {g} {pid}", GO],
        prints: "cat {d}/said/all",
        hint: "ringfence create x --controllers memory",
        then: Prints("cat {v2}/{g}/cgroup.controllers", "memory"),
        after: &["ringfence delete x"],
        ..ROW
    },
    Row {
        name: "a sibling gives up the CPUs of a partition",
        needs: OLD,
        before: &[
            "ringfence create {g} -c cpuset && ringfence create {g}-rt -c cpuset",
            "ringfence set {g} cpuset.cpus=1 && ringfence set {g}-rt cpuset.cpus=0-1",
        ],
        prints: "ringfence set {g} cpuset.cpus.partition=root",
        hint: "ringfence set {g}-rt cpuset.cpus=0",
        ..ROW
    },
    Row {
        name: "doctor: a partition that a sibling took out of force is in force again",
        needs: OLD,
        before: &[
            "ringfence create {g} -c cpuset && ringfence create {g}-rt -c cpuset",
            PARTITION,
            "ringfence set {g} cpuset.cpus.partition=root",
            "echo 0-1 >{v2}/{g}-rt/cpuset.cpus",
        ],
        prints: "ringfence doctor",
        hint: "ringfence set /{g}-rt cpuset.cpus=0",
        ..ROW
    },
    Row {
        name: "doctor: a user's own group has the controllers that it was not given",
        needs: OF_USER,
        before: &[GIVEN, OWN, "as-user {pid} {d}/own doctor", "ringfence move {g} {pid}", GO],
        prints: "cat {d}/said/all",
        hint: "ringfence create /{g} --controllers",
        then: Prints("cat {v2}/{g}/cgroup.controllers", "memory"),
        ..ROW
    },
];
