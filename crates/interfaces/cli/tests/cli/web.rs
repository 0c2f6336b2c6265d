//! `ringfence web` as a browser, and as others who would like to be one, meet it: over TCP, on real groups.

mod answers;
mod hostile;
mod page;

use std::sync::Arc;

use fake::suite;
use libtest_mimic::Trial;

use crate::world::{Need, World};

type Body = fn(&Arc<World>);

/// Without any group.
const ALWAYS: &[(&str, Body)] = &[
    ("a Host that only points here is refused", hostile::rebinding),
    ("a Host that begins like a loopback address is refused", hostile::like_loopback),
    ("another page's Origin is refused", hostile::foreign_origin),
    ("a form's POST is refused", hostile::form),
    ("without a cookie there is no data", hostile::no_cookie),
    ("a token opens one session", hostile::replayed_token),
    ("a body that is too large is refused", hostile::oversized),
    ("a request that does not go on ends, and delays nobody", hostile::half_open),
    ("a flood of half requests is turned away, and over soon", hostile::flood),
    ("a connection carries one request", hostile::one_request),
    ("another method is refused", hostile::wrong_method),
    ("a path leads nowhere else", hostile::path_tricks),
    ("another user's connection gets no word", hostile::another_user),
    ("no page of others has this one in a frame", hostile::framing),
    ("an address that others reach is refused", hostile::not_loopback),
    ("a session ends by itself, and when it is ended", answers::session_over),
    ("Ctrl-C ends the server with status 0", answers::ended),
    ("without --write nothing changes", hostile::read_only),
];

/// On groups of the test.
const ON_GROUPS: &[(&str, Body)] = &[
    ("the machine and its groups as they are", answers::seen),
    ("the first requests wait for the first sample", answers::first_requests),
    ("a setting changes with its plan first, and a conflict changes nothing", answers::settings),
    ("a layout is checked, planned, applied, undone unless confirmed, and undone", answers::layout),
    ("of two changes that were decided on after the same generation one is made", answers::race),
    ("requests that look for long hold up no other", answers::long_looks),
    ("a daemon that goes and comes back is seen", answers::daemon_back),
    ("a log with a torn end is shown up to there", answers::torn_log),
];

/// On CPUs that are nobody's.
const ON_CPUS: &[(&str, Body)] = &[("a CPU that goes and comes is seen", answers::hotplug)];

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    const GROUPS: &[Need] = &[Need::Groups, Need::On("cpuset"), Need::On("memory")];
    let on_cpus = [GROUPS, &[Need::OwnMachine, Need::Cpus(2)]].concat();
    let trials = |cases: &'static [(&'static str, Body)], needs: &[Need]| -> Vec<Trial> {
        let trial = |&(name, body): &(&'static str, Body)| {
            let (lacks, world) = (world.lacks(needs), world.clone());
            suite::trial(format!("web: {name}"), lacks, move || body(&world))
        };
        cases.iter().map(trial).collect()
    };
    let lists = [trials(ALWAYS, &[]), trials(ON_GROUPS, GROUPS), trials(ON_CPUS, &on_cpus)];
    lists.into_iter().flatten().collect()
}
