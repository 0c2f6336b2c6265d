//! Drop-in files of units outlive a boot, may have lines of others, and may be refused: what Ringfence says of them is what they are.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use apply::{
    Failure, Outcome, Recovered, Recovery, State, Target, confirm, execute, history, pending, recover,
    status, undo,
};
use fake::Fake;
use layout::schedule;
use tempfile::TempDir;

use crate::{
    machine::{Affinities, Clocks, Fault, Faults, Killed, Sim},
    run::{LAYOUT, machine, meta, planned_text},
    systemd::{UNITS, Units},
    world::CPUS,
};

const ONE: &str = "[groups.one]\nunit = \"one.service\"\n\"pids.max\" = 77\n";
const LESS: &str = "[groups.one]\nunit = \"one.service\"\n\"pids.max\" = 66\n";
const PLAIN: &str = "[groups.g]\n\"pids.max\" = 5\n";
const BOTH: &str = "[groups.one]\nunit = \"one.service\"\n\"pids.max\" = 77\n[groups.g]\n\"pids.max\" = 5\n";

/// A machine with systemd, which may be booted.
struct Desk {
    fake: Fake,
    units: Units,
    clocks: Clocks,
    directory: TempDir,
    /// How many generations can be undone one by one.
    undoable: usize,
}

impl Desk {
    fn new() -> Desk {
        let fake = Fake::v2(CPUS, 1);
        let units = Units::new(&fake);
        let clocks = Clocks { wall: 1_700_000_000, since_boot: 1000, boot: 1 };
        Desk { fake, units, clocks, directory: tempfile::tempdir().unwrap(), undoable: 100 }
    }

    fn boot(&mut self) {
        self.fake = Fake::v2(CPUS, 1);
        self.units = self.units.booted(&self.fake);
        self.clocks = Clocks { since_boot: 20, boot: self.clocks.boot + 1, ..self.clocks };
    }

    fn command<T>(&self, at: Vec<(usize, Fault)>, act: impl FnOnce(&State, Target<'_>) -> T) -> Option<T> {
        let faults = Faults::at(at);
        let (host, mut sim) = Sim::new(&self.fake, &faults, self.clocks, &Affinities::default(), CPUS);
        sim.units = Some(self.units.with(&faults));
        let state = State::open(self.directory.path().join("state")).unwrap().undoable(self.undoable);
        let act = || act(&state, Target { host: &host, system: &sim });
        match catch_unwind(AssertUnwindSafe(act)) {
            Ok(done) => Some(done),
            Err(payload) if payload.is::<Killed>() => None,
            Err(payload) => std::panic::resume_unwind(payload),
        }
    }

    fn try_apply(&self, text: &str, within: Option<u64>) -> Result<Outcome, String> {
        let done = self.command(Vec::new(), |state, target| {
            let lock = state.lock(Duration::ZERO).unwrap();
            recover(&lock, target).unwrap();
            let plan = planned_text(state, target, &machine(), text)?;
            execute(&lock, target, &plan, &meta(LAYOUT, within)).map_err(|failure| failure.to_string())
        });
        done.unwrap()
    }

    fn apply(&self, text: &str) -> Outcome {
        self.try_apply(text, None).unwrap()
    }

    fn undo(&self, to: Option<u32>) -> Result<Outcome, Failure> {
        let undo = |state: &State, target: Target<'_>| {
            let lock = state.lock(Duration::ZERO).unwrap();
            undo(&lock, target, to, &meta("undo", None))
        };
        self.command(Vec::new(), undo).unwrap()
    }

    /// What a daemon does at its start, and each command that changes something before anything else.
    fn recover(&self) -> Vec<Recovered> {
        let all = |state: &State, target: Target<'_>| {
            recover(&state.lock(Duration::ZERO).unwrap(), target).unwrap()
        };
        self.command(Vec::new(), all).unwrap()
    }

    /// Groups, each with its drift.
    fn status(&self) -> Vec<(String, Vec<String>)> {
        let groups = self.command(Vec::new(), |state, target| status(state, target).unwrap()).unwrap();
        let of =
            |group: apply::GroupStatus| (group.group, group.drift.iter().map(ToString::to_string).collect());
        groups.into_iter().map(of).collect()
    }

    /// How many generations were done, as their records say.
    fn done(&self) -> usize {
        let all = self.command(Vec::new(), |state, _| history(state).unwrap()).unwrap();
        all.iter().filter(|record| record.is_done()).count()
    }

    fn drift(&self) -> String {
        self.status().into_iter().flat_map(|(_, drift)| drift).collect::<Vec<_>>().join("; ")
    }
}

fn as_applied(group: &str) -> Vec<(String, Vec<String>)> {
    vec![(group.to_owned(), Vec::new())]
}

#[test]
fn after_a_boot_a_units_file_is_in_effect_and_an_undo_takes_it_back() {
    let mut desk = Desk::new();
    desk.apply(BOTH);
    assert_eq!(desk.units.limit("one.service"), "77");
    desk.boot();
    assert_eq!(desk.units.limit("one.service"), "77");
    assert_eq!(desk.status(), as_applied("one"), "the group of its own went with the boot");
    assert_eq!(desk.undo(Some(0)).unwrap().left, [""; 0]);
    assert_eq!((desk.units.limit("one.service").as_str(), desk.units.file("one.service")), ("max", None));
    assert_eq!(desk.status(), []);
    assert!(matches!(desk.undo(Some(0)), Ok(Outcome { steps: 0, .. })));
    desk.boot();
    assert_eq!((desk.status(), desk.units.limit("one.service")), (Vec::new(), "max".to_owned()));
}

/// A daemon that binds each unit that comes makes a generation each time.
#[test]
fn a_history_of_many_layouts_with_units_stays_small_and_is_undone_wholly() {
    const UNDOABLE: usize = 10;
    let mut desk = Desk::new();
    desk.undoable = UNDOABLE;
    let before = desk.fake.snapshot();
    let both = BOTH.replace("[groups.g]", "[groups.two]\nunit = \"two.service\"");
    let more = BOTH.replace("77", "88");
    let layouts = [ONE, &both, LESS, &more, PLAIN, BOTH];
    let picture = |desk: &Desk| (desk.fake.snapshot(), UNITS.map(|unit| desk.units.file(unit)));
    let mut pictures = Vec::new();
    let mut most = 0;
    for number in 0..12 * UNDOABLE {
        // an apply that does nothing would be no generation
        let text = layouts[number % layouts.len()].replace("= 5", &format!("= {}", 5 + number));
        desk.apply(&text);
        pictures.push(picture(&desk));
        let files = std::fs::read_dir(desk.directory.path().join("state/generations")).unwrap();
        most = most.max(files.count());
    }
    assert!(most <= 2 * UNDOABLE, "{most} files");
    for earlier in pictures.iter().rev().skip(1).take(UNDOABLE) {
        desk.undo(None).unwrap();
        assert_eq!(&picture(&desk), earlier);
    }
    assert_eq!(desk.undo(Some(0)).unwrap().left, [""; 0]);
    assert_eq!(picture(&desk), (before, [None, None]));
}

#[test]
fn a_layout_of_a_later_boot_goes_on_from_what_the_earlier_one_left() {
    let mut desk = Desk::new();
    desk.apply(ONE);
    desk.boot();
    // the same once more: nothing of the unit is to be done
    desk.apply(BOTH);
    assert!(desk.status().iter().all(|(_, drift)| drift.is_empty()), "{:?}", desk.status());
    desk.undo(None).unwrap();
    assert_eq!((desk.units.limit("one.service").as_str(), desk.status()), ("77", as_applied("one")));
    desk.boot();
    desk.apply(LESS);
    assert_eq!(desk.units.limit("one.service"), "66");
    desk.boot();
    assert_eq!(desk.status(), as_applied("one"));
    desk.undo(None).unwrap();
    assert_eq!((desk.units.limit("one.service").as_str(), desk.status()), ("77", as_applied("one")));
    desk.apply(PLAIN);
    assert_eq!((desk.units.limit("one.service").as_str(), desk.units.file("one.service")), ("max", None));
    desk.undo(Some(0)).unwrap();
    assert_eq!((desk.units.file("one.service"), desk.status()), (None, Vec::new()));
}

#[test]
fn a_change_that_nobody_confirmed_before_a_boot_goes_back_after_it() {
    for (first, second, limit) in [(PLAIN, ONE, "max"), (ONE, LESS, "77"), (ONE, PLAIN, "77")] {
        let mut desk = Desk::new();
        desk.apply(first);
        let before = desk.units.file("one.service");
        desk.try_apply(second, Some(60)).unwrap();
        desk.boot();
        assert_eq!(desk.units.limit("one.service"), limit, "{second}: no unit starts with it");
        let waits = |state: &State, target: Target<'_>| pending(state, target).unwrap();
        let waiting = desk.command(Vec::new(), waits).unwrap().unwrap();
        assert!(waiting.overdue && waiting.to_string().contains("no unit was started with it"), "{waiting}");
        let too_late = |state: &State, target: Target<'_>| {
            confirm(&state.lock(Duration::ZERO).unwrap(), target, Some(2))
                .map(|_| ())
                .unwrap_err()
                .to_string()
        };
        desk.command(Vec::new(), too_late).unwrap();
        let recovered = desk.recover();
        assert!(recovered.iter().all(|one| one.how == Recovery::Unconfirmed), "{recovered:?}");
        assert_eq!(
            (desk.units.limit("one.service").as_str(), desk.units.file("one.service")),
            (limit, before)
        );
        assert_eq!(desk.recover(), []);
        assert_eq!(apply::UnitFiles::kept_out(&desk.units), [""; 0]);
        let expected = if first == ONE { as_applied("one") } else { Vec::new() };
        assert_eq!(desk.status(), expected, "{second}");
    }
    // of one without a unit nothing is left
    let mut desk = Desk::new();
    desk.try_apply(PLAIN, Some(60)).unwrap();
    desk.boot();
    let late = |state: &State, target: Target<'_>| {
        confirm(&state.lock(Duration::ZERO).unwrap(), target, None).unwrap_err().to_string()
    };
    let late = desk.command(Vec::new(), late).unwrap();
    assert!(late.contains("the machine was booted since, and nothing of it is left"), "{late}");
    // one that was confirmed stays
    let mut desk = Desk::new();
    desk.try_apply(ONE, Some(60)).unwrap();
    let yes = |state: &State, target: Target<'_>| {
        confirm(&state.lock(Duration::ZERO).unwrap(), target, Some(1)).map(|_| ()).unwrap();
    };
    desk.command(Vec::new(), yes).unwrap();
    desk.boot();
    assert_eq!(desk.units.limit("one.service"), "77");
    assert_eq!(desk.recover(), []);
    assert_eq!((desk.units.limit("one.service").as_str(), desk.status()), ("77", as_applied("one")));
}

#[test]
fn a_power_cut_in_the_undo_of_an_unconfirmed_change_puts_nothing_of_it_into_force() {
    let mut killed = 0;
    for (at, fault) in (0..40).flat_map(|at| [(at, Fault::KillBefore), (at, Fault::KillAfter)]) {
        let mut desk = Desk::new();
        desk.apply(LESS);
        let before = desk.units.file("one.service");
        desk.try_apply(ONE, Some(60)).unwrap();
        let undone = desk.command(vec![(at, fault)], |state, target| {
            let lock = state.lock(Duration::ZERO).unwrap();
            undo(&lock, target, None, &meta("undo", None)).unwrap();
        });
        killed += usize::from(undone.is_none());
        desk.boot();
        assert_eq!(desk.units.limit("one.service"), "66", "{fault:?} at change {at}");
        desk.recover();
        let now = (desk.units.file("one.service"), desk.units.limit("one.service"));
        assert_eq!(now, (before, "66".to_owned()), "{fault:?} at change {at}");
        assert_eq!(desk.status(), as_applied("one"), "{fault:?} at change {at}");
    }
    assert!(killed > 3, "{killed}");
}

/// Its process ended between the last line of its record and the units' files.
#[test]
fn a_change_that_was_done_and_not_settled_before_a_boot_comes_into_force_with_the_next_command() {
    let mut settled_late = 0;
    for at in 0..40 {
        let mut desk = Desk::new();
        let done = desk.command(vec![(at, Fault::KillBefore)], |state, target| {
            let lock = state.lock(Duration::ZERO).unwrap();
            let plan = planned_text(state, target, &machine(), ONE).unwrap();
            execute(&lock, target, &plan, &meta(LAYOUT, None)).unwrap();
        });
        if done.is_some() {
            break;
        }
        if desk.done() == 0 {
            continue;
        }
        settled_late += 1;
        desk.boot();
        assert_eq!(desk.units.limit("one.service"), "max");
        desk.recover();
        assert_eq!((desk.units.limit("one.service").as_str(), desk.status()), ("77", as_applied("one")));
        desk.boot();
        assert_eq!((desk.units.limit("one.service").as_str(), desk.status()), ("77", as_applied("one")));
    }
    assert_eq!(settled_late, 1);
}

/// The process dies at each change, and the power goes before anybody recovers.
#[test]
fn an_apply_that_a_power_cut_ended_leaves_nothing() {
    for first in [None, Some(LESS)] {
        let mut killed = 0;
        for at in 0..40 {
            let mut desk = Desk::new();
            first.map(|text| desk.apply(text));
            let before = (desk.units.file("one.service"), desk.units.limit("one.service"));
            let fault = vec![(at, if at % 2 == 0 { Fault::KillBefore } else { Fault::KillAfter })];
            let done = desk.command(fault, |state, target| {
                let lock = state.lock(Duration::ZERO).unwrap();
                let text = format!("{ONE}[groups.g]\n\"pids.max\" = 5\n[groups.\"g/h\"]\n\"pids.max\" = 3\n");
                let plan = planned_text(state, target, &machine(), &text).unwrap();
                execute(&lock, target, &plan, &meta(LAYOUT, None)).unwrap();
            });
            if done.is_some() {
                break;
            }
            if desk.done() > usize::from(first.is_some()) {
                continue; // it was done, and its record says so
            }
            killed += 1;
            desk.boot();
            assert_eq!(
                desk.units.limit("one.service"),
                before.1,
                "killed at change {at}: no unit starts with it"
            );
            let recovered = desk.recover();
            let now = (desk.units.file("one.service"), desk.units.limit("one.service"));
            assert_eq!(now, before, "killed at change {at}: {recovered:?}");
            assert_eq!(desk.status().len(), usize::from(first.is_some()), "killed at change {at}");
        }
        assert!(killed > 3, "{killed}");
    }
}

#[test]
fn a_file_of_somebodys_under_the_name_of_ours_is_refused_and_stays() {
    let desk = Desk::new();
    let theirs = "[Service]\nMemoryMax=1G\n";
    desk.units.edit("one.service", Some(theirs));
    let refused = desk.try_apply(ONE, None).unwrap_err();
    assert!(
        refused.contains("Ringfence did not write it") && refused.contains("mv -n /etc/systemd/system/"),
        "{refused}"
    );
    // a layout without the unit has nothing to do with it
    desk.apply(PLAIN);
    desk.undo(Some(0)).unwrap();
    assert_eq!(desk.units.file("one.service").as_deref(), Some(theirs));
    assert_eq!(desk.units.limit("one.service"), "max");
}

#[test]
fn lines_that_somebody_added_to_our_file_are_never_lost() {
    let desk = Desk::new();
    desk.apply(ONE);
    let ours = desk.units.file("one.service").unwrap();
    let edited = format!("{ours}MemoryMax=1G\n");
    desk.units.edit("one.service", Some(&edited));
    for text in [ONE, LESS, PLAIN] {
        let refused = desk.try_apply(text, None).unwrap_err();
        assert!(refused.contains("was changed since it was applied"), "{refused}");
        assert!(refused.contains("mv -n"), "{refused}");
        assert_eq!(desk.units.file("one.service").as_deref(), Some(edited.as_str()));
    }
    assert!(desk.drift().contains("was changed since it was applied"), "{}", desk.drift());
    // an undo does all else, names the file, and goes on with it once that is the administrator's no more
    for _ in 0..2 {
        let left = desk.undo(Some(0)).unwrap().left.join("; ");
        assert!(left.contains("90-ringfence.conf has lines that are not Ringfence's"), "{left}");
        assert!(left.contains("mv -n"), "{left}");
        assert_eq!(desk.units.file("one.service").as_deref(), Some(edited.as_str()));
        assert!(desk.drift().contains("90-ringfence.conf of generation 1"), "{}", desk.drift());
    }
    desk.units.edit("one.service", Some(&ours));
    assert_eq!(desk.undo(Some(0)).unwrap().left, [""; 0]);
    assert_eq!((desk.units.file("one.service"), desk.units.limit("one.service").as_str()), (None, "max"));
    assert_eq!(desk.status(), []);
}

#[test]
fn a_roll_back_leaves_lines_that_somebody_added_meanwhile() {
    let killed = |at: usize| {
        let desk = Desk::new();
        desk.command(vec![(at, Fault::KillAfter)], |state, target| {
            let lock = state.lock(Duration::ZERO).unwrap();
            let plan = planned_text(state, target, &machine(), BOTH).unwrap();
            execute(&lock, target, &plan, &meta(LAYOUT, None)).unwrap();
        });
        desk
    };
    let desk = (0..20).map(killed).find(|desk| desk.units.file("one.service").is_some()).unwrap();
    let ours = desk.units.file("one.service").unwrap();
    desk.units.edit("one.service", Some(&format!("{ours}MemoryMax=1G\n")));
    let left: Vec<String> = desk.recover().into_iter().flat_map(|one| one.left).collect();
    assert!(left.join("; ").contains("has lines that are not Ringfence's"), "{left:?}");
    assert!(desk.units.file("one.service").unwrap().ends_with("MemoryMax=1G\n"));
}

#[test]
fn a_reload_that_failed_stays_open_until_it_was_seen_done() {
    let mut desk = Desk::new();
    desk.apply(ONE);
    desk.units.refuse_reloads(true);
    for _ in 0..2 {
        let left = desk.undo(Some(0)).unwrap().left.join("; ");
        assert!(
            left.contains("systemd did not read what changed in /etc/systemd/system/one.service.d"),
            "{left}"
        );
        assert!(desk.drift().contains("its settings return when one.service starts"), "{}", desk.drift());
        assert_eq!(desk.units.file("one.service"), None);
    }
    desk.units.refuse_reloads(false);
    // the next command that changes something tries again
    let reloads = desk.units.reloads();
    assert_eq!(desk.undo(None).unwrap().steps, 0);
    assert!(matches!(desk.undo(None), Err(Failure::NothingToUndo)));
    assert_eq!(desk.units.reloads(), reloads + 1);
    assert_eq!((desk.status(), desk.units.limit("one.service")), (Vec::new(), "max".to_owned()));
    // an administrator's reload is as good, and so is a boot
    for is_boot in [false, true] {
        desk.apply(ONE);
        desk.units.refuse_reloads(true);
        desk.undo(Some(0)).unwrap();
        desk.units.refuse_reloads(false);
        if is_boot {
            desk.boot();
        } else {
            apply::UnitFiles::reload(&desk.units, &[]).unwrap();
        }
        assert_eq!((desk.status(), desk.units.limit("one.service")), (Vec::new(), "max".to_owned()));
    }
}

#[test]
fn a_file_that_could_not_be_removed_stays_open_over_a_boot() {
    let mut desk = Desk::new();
    desk.apply(ONE);
    desk.units.make_read_only(true);
    for is_boot in [false, true] {
        if is_boot {
            desk.boot();
        }
        let left = desk.undo(Some(0)).unwrap().left.join("; ");
        assert!(left.contains("cannot write /etc/systemd/system/one.service.d"), "{left}");
        assert!(desk.drift().contains("is in force for one.service"), "{}", desk.drift());
    }
    desk.units.make_read_only(false);
    assert_eq!(desk.undo(None).unwrap().left, [""; 0]);
    assert_eq!((desk.units.file("one.service"), desk.status()), (None, Vec::new()));
}

#[test]
fn an_apply_that_systemd_did_not_read_is_rolled_back_and_open_until_it_knows() {
    let desk = Desk::new();
    desk.units.refuse_reloads(true);
    let refused = desk.try_apply(ONE, None).unwrap_err();
    assert!(refused.contains("does not read its files again"), "{refused}");
    assert_eq!((desk.units.file("one.service"), desk.units.limit("one.service").as_str()), (None, "max"));
    desk.units.refuse_reloads(false);
    desk.apply(ONE);
    assert_eq!((desk.units.limit("one.service").as_str(), desk.status()), ("77", as_applied("one")));
}

/// Killed and refused at each change of an apply and of an undo, in the same boot: all as before or all done, and systemd knows.
#[test]
fn a_kill_or_a_refusal_at_any_change_leaves_no_file_and_no_limit() {
    let faults = [Fault::KillBefore, Fault::KillAfter, Fault::Refuse(rustix::io::Errno::IO)];
    for (fault, is_undo) in faults.into_iter().flat_map(|fault| [(fault, false), (fault, true)]) {
        let mut count = 0;
        for at in 0..40 {
            let desk = Desk::new();
            if is_undo {
                desk.apply(BOTH);
            }
            let faults = Faults::at(vec![(at, fault)]);
            let (host, mut sim) = Sim::new(&desk.fake, &faults, desk.clocks, &Affinities::default(), CPUS);
            sim.units = Some(desk.units.with(&faults));
            let target = Target { host: &host, system: &sim };
            let state = State::open(desk.directory.path().join("state")).unwrap();
            let act = || {
                let lock = state.lock(Duration::ZERO).unwrap();
                if is_undo {
                    let _ = undo(&lock, target, Some(0), &meta("undo", None));
                } else {
                    let plan = planned_text(&state, target, &machine(), BOTH).unwrap();
                    let _ = execute(&lock, target, &plan, &meta(LAYOUT, None));
                }
            };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(act)) {
                assert!(payload.is::<Killed>());
            }
            if !faults.hit() {
                break;
            }
            count += 1;
            // the next command brings it to its end, and an undo takes back what is in effect
            desk.recover();
            let when = format!("{fault:?} at change {at}, undo: {is_undo}");
            if !desk.status().is_empty() {
                assert_eq!(desk.undo(Some(0)).unwrap().left, [""; 0], "{when}");
            }
            assert_eq!(desk.status(), [], "{when}");
            assert_eq!(desk.units.file("one.service"), None, "{when}");
            assert_eq!(desk.units.limit("one.service"), "max", "{when}");
            assert!(apply::UnitFiles::is_read(&desk.units, "one.service"), "{when}");
        }
        assert!(count > 2, "{fault:?} {count}");
    }
}

#[test]
fn what_a_schedule_has_in_force_outlives_a_boot_whatever_is_changed_after_it() {
    let mut desk = Desk::new();
    desk.apply(PLAIN);
    let layout = std::path::Path::new("/l.toml");
    let one = schedule::InForce {
        name: "night".to_owned(),
        since: jiff::Timestamp::UNIX_EPOCH,
        generation: Some(1),
        with_layout: false,
    };
    let boot = desk.clocks.boot_id();
    let memory =
        schedule::Memory { layout: layout.to_owned(), boot, in_force: vec![one], ..Default::default() };
    let remember = |state: &State, _: Target<'_>| apply::record_schedules(state, &memory).unwrap();
    let in_force = |state: &State, _: Target<'_>| apply::in_force(state, layout).unwrap().len();
    desk.command(Vec::new(), remember).unwrap();
    assert_eq!(desk.command(Vec::new(), in_force), Some(1));
    desk.boot();
    desk.apply(BOTH);
    assert_eq!(desk.command(Vec::new(), in_force), Some(1), "nobody undid it");
    // in its own boot it ends with an undo
    let desk = Desk::new();
    desk.apply(PLAIN);
    desk.command(Vec::new(), remember).unwrap();
    desk.undo(None).unwrap();
    assert_eq!(desk.command(Vec::new(), in_force), Some(0));
}
