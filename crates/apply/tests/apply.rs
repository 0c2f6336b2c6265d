//! Applying, undoing and confirming whole plans: on the kernel in memory, with every change refused once, and on this
//! host's own v1 hierarchies, with the applying process killed at every change.

#![allow(clippy::unwrap_used, clippy::panic, clippy::exit, clippy::print_stdout, clippy::print_stderr)]

#[path = "apply/faults.rs"]
mod faults;
#[path = "apply/real.rs"]
mod real;
#[path = "apply/speed.rs"]
mod speed;
#[path = "apply/world.rs"]
mod world;

use libtest_mimic::{Arguments, Trial};

/// A test on the real kernel: without root or v1 it can't run, and says so instead of passing.
fn real(name: &str, test: fn()) -> Trial {
    let v1 = ["cpu", "memory", "cpuset", "pids"];
    let there =
        v1.iter().all(|name| std::path::Path::new("/sys/fs/cgroup").join(name).join("tasks").exists());
    let root = rustix::process::geteuid().is_root();
    plain(name, test).with_ignored_flag(!(there && root)).with_kind("needs root and cgroup v1")
}

fn plain(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

macro_rules! trials {
    ($kind:ident: $($module:ident::$name:ident),* $(,)?) => { vec![$($kind(stringify!($name), $module::$name)),*] };
}

fn main() {
    if let Ok(words) = std::env::var("RF_APPLY_CHILD") {
        return real::child(&words);
    }
    let mut trials = trials!(plain:
        faults::any_change_refused_leaves_v1_as_before,
        faults::any_change_refused_leaves_v2_as_before,
        faults::only_what_a_planner_needs_is_observed,
    );
    trials.extend(trials!(real:
        real::an_apply_killed_at_any_change_is_put_back_at_the_next_start,
        real::undo_returns_to_every_earlier_generation_and_spares_tasks,
        real::status_tells_what_somebody_changed,
        real::tasks_leave_cpus_of_others_and_come_back_by_undo,
        real::the_second_of_two_applies_waits_or_says_who_holds_the_lock,
        real::an_unconfirmed_apply_is_undone_although_its_process_was_killed,
    ));
    trials.push(speed::trial());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
