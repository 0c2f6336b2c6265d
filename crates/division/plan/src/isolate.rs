//! Isolated CPUs: which knobs of the machine are set for them, and the steps that do it.

use layout::{Desired, Isolate, Origin, Spanned};
use settings::{
    GroupName,
    knobs::{self, Budget, Isolation, Knob, Per, ReadOnly, Request, Want},
};
use topology::Machine;
use units::CpuSet;

use crate::{Action, Lint, LintKind, Observed, Problem, Step, resolve::Resolved, tree::Tree};

/// A group that is to be isolated, with its CPUs.
struct Isolated<'d> {
    group: &'d GroupName,
    isolate: &'d Spanned<Isolate>,
    cpus: CpuSet,
}

/// The steps before those of the groups, and those behind.
#[derive(Default)]
pub(crate) struct IsolateSteps {
    /// Of threads: an undo restores them when the partitions have ended, which resets threads' CPUs.
    pub before: Vec<Step>,
    pub behind: Vec<Step>,
}

/// The rows that a layout requests, for the code that looks at them.
pub fn knobs_of(desired: &Desired) -> Vec<&'static Knob> {
    let groups = desired.groups.iter().filter_map(|group| group.demands.isolate.as_ref());
    let names: Vec<&str> =
        groups.chain(&desired.isolate).flat_map(|isolate| isolate.value.rows.keys().copied()).collect();
    knobs::KNOBS.iter().filter(|knob| names.contains(&knob.name)).collect()
}

/// What is requested of the machine's knobs; `None` if no group is isolated.
pub(crate) fn isolation(
    desired: &Desired,
    tree: &Tree<'_>,
    resolved: &Resolved,
    machine: &Machine,
    problems: &mut Vec<Problem>,
) -> Option<Isolation> {
    let groups = isolated(desired, tree, resolved);
    let first = groups.first()?;
    let all = groups.iter().fold(CpuSet::new(), |all, one| all.union(&one.cpus));
    let online = machine.online();
    let housekeeping = online.difference(&all);
    if housekeeping.is_empty() {
        problems.push(Problem::Unsatisfied {
            message: format!(
                "group '{}' is to be isolated, and no CPU is left for interrupts and the kernel: CPUs {online} are online, {all} isolated",
                first.group
            ),
            origin: first.isolate.origin.clone(),
            against: Vec::new(),
            missing: 1,
            hint: "leave at least one CPU to the rest of the system: reserve = { cpus = 1 }".to_owned(),
        });
        return None;
    }
    problems.extend(contradictions(&groups));
    let mut requests: Vec<Request> = Vec::new();
    for Isolated { group, isolate, cpus } in &groups {
        for (name, value) in &isolate.value.rows {
            let same = |known: &&mut Request| known.knob == *name && known.value == *value;
            match requests.iter_mut().find(same) {
                Some(known) => known.cpus = known.cpus.union(cpus),
                None => requests.push(request(name, group, cpus, value)),
            }
        }
    }
    let of_machine = desired.isolate.iter().flat_map(|isolate| &isolate.value.rows);
    requests.extend(of_machine.map(|(name, value)| request(name, first.group, &all, value)));
    // in the table's order
    requests.sort_by_key(|request| knobs::KNOBS.iter().position(|knob| knob.name == request.knob));
    let budgets = groups.iter().map(|one| (one.group.to_string(), one.isolate.value.budget));
    let budgets = budgets.filter(|(_, budget)| *budget != Budget::default()).collect();
    Some(Isolation { requests, housekeeping, budgets })
}

/// Groups that request different values of a row for CPUs that both have.
fn contradictions(groups: &[Isolated<'_>]) -> Vec<Problem> {
    let pairs =
        groups.iter().enumerate().flat_map(|(at, one)| groups[..at].iter().map(move |first| (first, one)));
    let pairs = pairs.filter(|(first, one)| !first.cpus.is_disjoint(&one.cpus));
    let of_pair = |(first, one): (&Isolated<'_>, &Isolated<'_>)| {
        let differing = one.isolate.value.rows.iter().filter_map(|(name, value)| {
            let knob = knobs::find(name)?;
            let [theirs, ours] = [first.isolate.value.rows.get(name)?, value].map(|value| knob.value(value.as_deref()));
            (theirs != ours).then(|| Problem::Contradiction {
                message: format!(
                    "groups '{}' and '{}' both have CPUs {} and request different values of {name}: {} and {}",
                    first.group,
                    one.group,
                    first.cpus.intersection(&one.cpus),
                    theirs.unwrap_or_default(),
                    ours.unwrap_or_default()
                ),
                origin: one.isolate.origin.clone(),
                other: first.isolate.origin.clone(),
                hint: Some(format!("give both one value, or leave it out of one: {name} = false")),
            })
        });
        differing.collect::<Vec<Problem>>()
    };
    pairs.flat_map(of_pair).collect()
}

fn request(name: &str, group: &GroupName, cpus: &CpuSet, value: &Option<String>) -> Request {
    Request { knob: name.to_owned(), group: group.to_string(), cpus: cpus.clone(), value: value.clone() }
}

fn isolated<'d>(desired: &'d Desired, tree: &Tree<'_>, resolved: &Resolved) -> Vec<Isolated<'d>> {
    let cpus = |name: &GroupName| {
        let mut known = tree.branches.iter().zip(&resolved.sets).filter(|(branch, _)| branch.name == *name);
        known.find_map(|(_, sets)| sets.cpus.clone()).filter(|cpus| !cpus.is_empty())
    };
    let of_group = |group: &'d layout::Group| {
        let isolate = group.demands.isolate.as_ref()?;
        Some(Isolated { group: &group.name, isolate, cpus: cpus(&group.name)? })
    };
    desired.groups.iter().filter_map(of_group).collect()
}

/// The steps, as the machine is not so yet.
pub(crate) fn steps(
    isolation: &Isolation,
    desired: &Desired,
    (observed, machine): (&Observed, &Machine),
    problems: &mut Vec<Problem>,
    lints: &mut Vec<Lint>,
) -> IsolateSteps {
    let mut steps = IsolateSteps::default();
    let origin = |request: &Request| origin(desired, request);
    let Some(seen) = &observed.knobs else {
        let message =
            "which interrupts, queues and threads are moved is seen on the machine itself".to_owned();
        lints.push(Lint::new(LintKind::Unchecked, None, message));
        return steps;
    };
    let wants = isolation.wants(seen);
    let first = isolation.requests.first();
    lints.extend(first.and_then(|first| Some(shared_cores(isolation, machine)?.at(&origin(first)))));
    steps.behind.extend(set_files(&wants, origin, problems));
    move_threads(isolation, &wants, &mut steps);
    for knob in isolation.knobs() {
        let stay: Vec<&Want<'_>> =
            wants.iter().filter(|want| want.knob == knob && want.seen.fixed && !want.is_so()).collect();
        if let Some(first) = stay.first() {
            lints.push(staying(knob, &stay).at(&origin(first.request)));
        }
    }
    for request in &isolation.requests {
        let lint = without_effect(request).filter(|_| !wants.iter().any(|want| want.request == request));
        lints.extend(lint.map(|lint| lint.at(&origin(request))));
    }
    let line = observed.command_line.as_deref();
    lints.extend(first.and_then(|first| Some(boot_only(isolation, line?)?.at(&origin(first)))));
    steps
}

/// Where it is requested.
fn origin(desired: &Desired, request: &Request) -> Origin {
    let of_group = desired.groups.iter().find(|group| group.name.to_string() == request.group);
    let own = of_group.and_then(|group| group.demands.isolate.as_ref());
    let of_machine =
        desired.isolate.as_ref().filter(|isolate| isolate.value.rows.contains_key(&*request.knob));
    let place = of_machine.or(own).map(|isolate| isolate.origin.clone());
    place.unwrap_or_else(|| Origin::outside_files("<isolate>"))
}

/// The files of knobs that are not so yet.
fn set_files(
    wants: &[Want<'_>],
    origin: impl Fn(&Request) -> Origin,
    problems: &mut Vec<Problem>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut read_only: Vec<(&ReadOnly, Vec<&Want<'_>>)> = Vec::new();
    for want in wants.iter().filter(|want| want.knob.per != Per::Thread && !want.is_so() && !want.seen.fixed)
    {
        if let Some(mount) = &want.seen.read_only {
            match read_only.iter_mut().find(|(known, _)| *known == mount) {
                Some((_, places)) => places.push(want),
                None => read_only.push((mount, vec![want])),
            }
            continue;
        }
        if let Some((_, why)) = want.knob.never_from.filter(|(from, _)| want.knob.same(from, &want.seen.text))
        {
            problems.push(Problem::Value {
                group: want.request.group.clone(),
                message: format!("{} can't be set: {why}", want.instance()),
                origin: origin(want.request),
                hint: Some(format!("leave it out: {} = false", want.knob.name)),
            });
            continue;
        }
        steps.push(step(want, &want.seen.text));
    }
    problems.extend(read_only.iter().filter_map(|(mount, places)| unwritable(mount, places, &origin)));
    steps
}

/// Threads of the kernel, if one may run on an isolated CPU.
fn move_threads(isolation: &Isolation, wants: &[Want<'_>], steps: &mut IsolateSteps) {
    let threads = wants.iter().filter(|want| want.knob.per == Per::Thread);
    if threads.clone().all(is_off) {
        return;
    }
    let threads: Vec<&Want<'_>> =
        threads.filter(|want| !is_off(want) || want.seen.before.is_none()).collect();
    // those that stay as they are, too: an undo restores them after the end of the partition
    steps.before.extend(threads.iter().map(|want| step(want, &want.seen.text)));
    // those with fewer CPUs than all, which a partition does not respect
    let narrow = threads.iter().filter(|want| !all_but(isolation, want));
    steps.behind.extend(narrow.map(|want| step(want, &want.text)));
}

/// What this machine lacks, if it was requested by name.
fn without_effect(request: &Request) -> Option<Lint> {
    let knob = knobs::find(&request.knob)?;
    let message = format!("{} has no effect: this machine has no {}", knob.name, knob.path);
    let is_named = request.value.is_some() || knob.is_of_machine();
    is_named.then(|| Lint::new(LintKind::NotIsolated, None, message))
}

/// What the command line of the kernel lacks.
fn boot_only(isolation: &Isolation, line: &str) -> Option<Lint> {
    let isolated = isolated_cpus(isolation);
    let missing = knobs::missing_at_boot(line, &isolated);
    let message =
        format!("only the boot can do more for CPUs {isolated}: {}", knobs::line_of_missing(&missing));
    let hint = "add what the work needs to the kernel's command line, and restart; docs/isolation.md says what each does";
    (!missing.is_empty()).then(|| Lint::new(LintKind::BootOnly, None, message).hint(hint))
}

fn isolated_cpus(isolation: &Isolation) -> CpuSet {
    isolation.requests.iter().fold(CpuSet::new(), |all, request| all.union(&request.cpus))
}

/// Isolated CPUs that share a core with one that is not.
fn shared_cores(isolation: &Isolation, machine: &Machine) -> Option<Lint> {
    let isolated = isolated_cpus(isolation);
    let siblings = machine.cpus.iter().filter(|cpu| isolated.contains(cpu.id)).filter_map(|cpu| {
        let others = cpu.siblings.as_ref()?.intersection(&machine.online()).difference(&isolated);
        (!others.is_empty()).then(|| format!("CPU {} with CPU {others}", cpu.id))
    });
    let siblings: Vec<String> = siblings.collect();
    let message = format!(
        "isolated CPUs share cores with others, and whatever runs there slows them down: {}",
        siblings.join(", ")
    );
    let lint = Lint::new(LintKind::NotIsolated, None, message);
    let hint = "name both CPUs of the core, or cpus = { count = 2, smt = \"whole-cores\" }; nosmt at boot leaves one of each";
    (!siblings.is_empty()).then(|| lint.hint(hint))
}

/// May the thread run on no isolated CPU? A partition moves threads itself.
fn is_off(want: &Want<'_>) -> bool {
    want.seen.text.parse().is_ok_and(|now: CpuSet| now.is_disjoint(&want.request.cpus))
}

/// Is it to have all CPUs but the isolated ones?
fn all_but(isolation: &Isolation, want: &Want<'_>) -> bool {
    want.text.parse().is_ok_and(|to: CpuSet| isolation.housekeeping.is_subset(&to))
}

fn step(want: &Want<'_>, before: &str) -> Step {
    let group = GroupName::new(&want.request.group).unwrap_or_else(|_| GroupName::base());
    let why = match want.knob.encoding.is_cpus() {
        true => format!("keeps {} off CPUs {}", want.knob.name, want.request.cpus),
        false => format!("{} for the isolated CPUs {}", want.knob.name, want.request.cpus),
    };
    let action = Action::SetKnob {
        knob: want.knob.name.to_owned(),
        instance: want.instance().clone(),
        text: want.text.clone(),
    };
    Step::new(group, action, why).was(Some(before.to_owned()))
}

/// The first few by name.
fn named<T>(places: &[T], name: impl Fn(&T) -> String) -> String {
    const NAMED: usize = 3;
    let some: Vec<String> = places.iter().take(NAMED).map(name).collect();
    let more = places.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    some.join(", ") + &more
}

/// One mount, though many places are in it.
fn unwritable(
    mount: &ReadOnly,
    places: &[&Want<'_>],
    origin: impl Fn(&Request) -> Origin,
) -> Option<Problem> {
    let first = places.first()?.request;
    let some = named(places, |want| format!("{} to {}", want.instance(), want.text));
    let count = units::counted(places.len(), "place");
    let message = format!("{} is mounted read-only, with {count} to be set: {some}", mount.mount);
    let mut rows: Vec<String> = places.iter().map(|want| format!("{} = false", want.knob.name)).collect();
    rows.dedup();
    let remount = match &mount.remount {
        Some(command) => format!("{command} makes it writable"),
        None => {
            "call it on the host, or in a container of Docker or Podman that was started with --privileged"
                .to_owned()
        }
    };
    Some(Problem::Value {
        group: first.group.clone(),
        message,
        origin: origin(first),
        hint: Some(format!("{remount}; or leave out what needs it: {}", rows.join(", "))),
    })
}

/// What can't be moved.
fn staying(knob: &Knob, stay: &[&Want<'_>]) -> Lint {
    let some = named(stay, |want| want.instance().to_string());
    let means =
        knob.refusals.iter().find(|refusal| refusal.stays).map_or("the kernel refuses", |one| one.means);
    let message = format!("{}: {some} stay as they are: {means}", knob.name);
    Lint::new(LintKind::NotIsolated, None, message)
}
