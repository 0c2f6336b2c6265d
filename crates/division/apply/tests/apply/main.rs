//! Applying, undoing and confirming whole plans: on the kernel in memory, with every change refused once, and on the
//! machine's own hierarchies, with the applying process refused and killed at every change. Needs no other file: the
//! binary can be copied into a virtual machine.

#![allow(clippy::unwrap_used, clippy::panic, clippy::exit, clippy::print_stdout, clippy::print_stderr)]

mod admin;
mod broken;
mod child;
mod devices;
mod faults;
mod faulty;
mod groups;
mod maker;
mod mounts;
mod pipeline;
mod real;
mod sampler;
mod scenarios;
mod speed;
mod stays;
mod swap;
mod world;

use fake::suite;
use libtest_mimic::{Arguments, Trial};
use settings::{Controller, Version};

fn trial(name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    suite::trial(name, None, test)
}

macro_rules! trials {
    ($($module:ident::$name:ident),* $(,)?) => { vec![$(trial(stringify!($name), $module::$name)),*] };
    (lacks $lacks:expr; $($module:ident::$name:ident),* $(,)?) => {
        vec![$(where_there(stringify!($name), $lacks, $module::$name)),*]
    };
}

/// A test in which something may be lacking.
fn where_there(name: &str, lacks: Option<&str>, test: impl FnOnce() + Send + 'static) -> Trial {
    let root = (!rustix::process::geteuid().is_root()).then_some("root");
    suite::trial(name, root.or(lacks).map(str::to_owned), test)
}

/// Which of these holds not: `[(is there, what it is)]`.
fn lacks(needs: &[(bool, &'static str)]) -> Option<&'static str> {
    needs.iter().find(|(is_there, _)| !is_there).map(|(_, what)| *what)
}

/// The tests of a machine's own kernel. What it lacks for one is reported.
fn of_this_machine() -> Vec<Trial> {
    let host = groups::machine();
    let version = |controller| host.hierarchy_of(controller).map(|at| at.version);
    let on = |controller, wanted| version(controller) == Some(wanted);
    let usual = [Controller::Cpu, Controller::Cpuset, Controller::Memory, Controller::Pids];
    let has_usual = usual.into_iter().all(|controller| version(controller).is_some());
    let usual = lacks(&[(has_usual, "cpu, cpuset, memory and pids"), (groups::cpus() > 1, "2 CPUs")]);
    let mut trials = broken::trials(&scenarios::SETS, usual);
    trials.extend(swap::trials(&host, usual));
    trials.extend(trials!(lacks usual;
        admin::an_admin_writes_no_file_that_reaches_beyond_his_group,
        real::undo_returns_to_every_earlier_generation_and_spares_tasks,
        real::a_group_that_somebody_made_again_is_theirs,
        real::a_group_that_somebody_removed_is_named_by_an_undo_to_its_generation,
        real::status_tells_what_somebody_changed,
        real::an_unconfirmed_apply_is_undone_although_its_process_was_killed,
    ));
    if usual.is_none() {
        trials.push(speed::trial());
    }
    // on v2 its short plans lack the steps that hand controllers down, which the planner makes
    trials.extend(trials!(lacks lacks(&[(on(Controller::Cpu, Version::V1), "cpu on v1")]);
        stays::what_an_undo_had_to_leave_on_this_machine_goes_with_a_later_one,
    ));
    let counted = [Controller::Pids, Controller::Memory].into_iter().all(|one| on(one, Version::V1));
    trials.extend(trials!(lacks lacks(&[(counted, "pids and memory on v1")]);
        real::what_forks_faster_than_it_is_moved_comes_along_or_is_named,
    ));
    let cpusets = (on(Controller::Cpuset, Version::V1), "cpuset on v1");
    trials.extend(trials!(lacks lacks(&[cpusets, (groups::cpus() > 1, "2 CPUs")]);
        real::tasks_leave_cpus_of_others_and_come_back_by_undo,
        real::tasks_that_came_since_get_the_cpus_back_that_their_makers_had,
    ));
    trials.extend(trials!(lacks lacks(&[(on(Controller::Devices, Version::V1), "devices on v1")]);
        stays::a_parents_device_rules_come_before_its_children_and_go_after_them,
    ));
    let devices = lacks(&[(version(Controller::Devices).is_some(), "devices")]);
    trials.extend(broken::trials(&scenarios::DEVICES, devices));
    trials.extend(trials!(lacks devices;
        devices::tasks_may_use_just_the_devices_of_the_layout_and_all_of_them_after_undo,
    ));
    let nothing_mounted = groups::is_ours_alone() && host.hierarchies().is_empty();
    let mounts = lacks(&[(nothing_mounted, "a machine of its own without any hierarchy")]);
    trials.extend(broken::trials(&scenarios::MOUNTS, mounts));
    trials.extend(trials!(lacks mounts;
        mounts::what_a_cgconfig_conf_mounts_is_there_until_undo,
        mounts::what_could_not_be_unmounted_is_open_until_it_is,
        mounts::what_a_roll_back_could_not_unmount_is_open_until_it_is,
    ));
    trials
}

fn main() {
    if let Ok(words) = std::env::var(groups::CHILD) {
        return child::run(&words);
    }
    let mut trials = trials!(
        faults::any_change_refused_leaves_v1_as_before,
        faults::any_change_refused_leaves_v2_as_before,
        faults::a_partition_that_no_step_writes_is_read_at_the_end,
        faults::a_partition_that_is_invalid_for_a_moment_is_made_again,
        faults::only_what_a_planner_needs_is_observed,
        faults::old_generations_go_but_for_those_that_undo_needs,
        faults::old_generations_of_set_settle,
        faults::a_roll_back_names_what_was_set_since,
        faults::a_group_made_again_is_left_however_many_generations_there_were,
        real::the_second_of_two_applies_waits_or_says_who_holds_the_lock,
        stays::what_an_undo_had_to_leave_goes_with_a_later_one,
        stays::groups_that_a_roll_back_had_to_leave_lose_their_limits,
    );
    trials.extend(of_this_machine());
    let mut arguments = Arguments::from_args();
    // they share what v2's root hands down
    arguments.test_threads = Some(1);
    suite::run(&arguments, trials).exit();
}
