//! Every place of the sources that makes a command of a hint, with the trial that runs what it makes, or the reason why none does. A
//! new one has to come here.

use std::{collections::BTreeSet, fs, path::Path};

use fake::suite;
use libtest_mimic::Trial;

use crate::architecture::crate_directories;

/// What stands for a command that a hint offers.
#[derive(Clone, Copy)]
enum Covered {
    /// It is run in this trial, and its effect compared.
    Run(&'static str),
    /// It is not, for this reason.
    Words(&'static str),
}
use Covered::{Run, Words};

/// By file and first words.
#[rustfmt::skip]
const SOURCES: &[(&str, &str, Covered)] = &[
    ("division/apply/src/again.rs", "ringfence apply", Run("a group that an undo does not make again is applied again")),
    ("division/apply/src/again.rs", "ringfence confirm", Run("a change of the history that was named is confirmed")),
    ("division/apply/src/again.rs", "ringfence undo", Run("what waits before another change is undone")),
    ("division/apply/src/occupied.rs", "cat", Run("many processes that keep a group after an undo are moved out")),
    ("division/apply/src/again.rs", "ringfence daemon", Run("elastic groups that nobody resizes have a daemon of their layout")),
    ("division/apply/src/again.rs", "ringfence resume", Run("resizing that status calls paused is resumed")),
    ("division/apply/src/again.rs", "systemctl start ringfenced", Run("elastic groups of the machine's layout have the machine's daemon")),
    ("division/apply/src/error.rs", "ringfence set", Run("a group that uses more than its new limit is slowed down")),
    ("division/apply/src/leftovers/steps.rs", "ringfence delete", Run("a group that was there before the layout is deleted")),
    ("division/apply/src/occupied.rs", "ringfence move /", Run("a process that keeps a group after an undo is moved out")),
    ("division/apply/src/occupied.rs", "ringfence thaw", Run("a frozen process that keeps a group after an undo is thawed")),
    ("division/apply/src/partitions.rs", "ringfence set", Run("a sibling gives up the CPUs of a partition")),
    ("division/apply/src/perform.rs", "fuser -vm", Words("it only names processes, with a tool that this machine may lack")),
    ("division/apply/src/planned.rs", "ringfence create", Run("a process that is half in another group of the layout is moved there wholly")),
    ("division/apply/src/planned.rs", "ringfence move", Run("a process that is in another group for an added controller is moved")),
    ("division/apply/src/state.rs", "mv", Run("what is no record is moved away")),
    ("division/apply/src/unit_files.rs", "mv", Run("what is no file in the place of our drop-in file is moved away")),
    ("division/layout/src/unit_name.rs", "systemctl list-units", Run("the instances of a template are listed")),
    ("division/plan/src/budgets.rs", "ringfence set", Run("a quota below that the layout does not set is lowered to what the group gets")),
    ("division/plan/src/cpusets/obstacles.rs", "ringfence import", Words("it is about systemd before Linux 6.7 alone; its text is compared in the tests of its crate")),
    ("division/plan/src/cpusets/obstacles.rs", "ringfence set", Run("CPUs of a group below that the layout does not name are what is left for it")),
    ("division/plan/src/doctor/controllers.rs", "mount -o remount,bind,rw", Run("doctor: a hierarchy that is mounted read-only is made writable")),
    ("division/plan/src/doctor/controllers.rs", "ringfence create", Run("doctor: a user's own group has the controllers that it was not given")),
    ("division/plan/src/doctor/cpus.rs", "ringfence set", Run("doctor: a partition that a sibling took out of force is in force again")),
    ("division/plan/src/doctor/realtime.rs", "ringfence set", Run("a real-time budget that leaves none for others is given back")),
    ("division/plan/src/doctor/writers.rs", "kill", Run("a program that writes the same settings is ended")),
    ("division/plan/src/doctor/writers.rs", "systemctl disable --now", Run("a service that writes the same settings is ended, for good")),
    ("division/plan/src/drop_ins.rs", "mv -n", Run("lines of somebody's in our drop-in file go on in their own")),
    ("division/plan/src/drop_ins.rs", "ringfence undo", Run("what a drop-in file says removes it")),
    ("division/plan/src/drop_ins.rs", "systemctl edit", Words("it opens an editor, for lines that only the reader knows")),
    ("division/plan/src/drop_ins.rs", "systemctl restart", Run("a pinned unit whose CPUs a layout took is restarted")),
    ("division/plan/src/drop_ins.rs", "systemctl start", Run("a slice that is to have CPUs of its own is started")),
    ("division/plan/src/expand.rs", "systemctl list-units --all", Run("units that fit a pattern later are listed")),
    ("division/plan/src/lints/rules.rs", "ringfence create", Run("a group that only a rule names is made")),
    ("division/plan/src/lints/rules.rs", "systemctl set-property", Run("a service whose processes a rule can't take is limited itself")),
    ("division/plan/src/lints/tasks.rs", "ringfence move", Run("a user without write permission is let by the daemon, or sees both refusals")),
    ("division/plan/src/unit_place.rs", "systemctl status", Run("a unit that can't be loaded shows why")),
    ("division/system/src/files.rs", "chmod go-w", Run("a layout that others can write is made root's alone")),
    ("division/system/src/files.rs", "chown root", Run("a layout of another user is given to root")),
    ("division/system/src/files/trusted.rs", "chmod go-w", Run("a directory of a layout that others can write is made root's alone")),
    ("division/system/src/files/trusted.rs", "chown root", Run("a directory of a layout of another user is given to root")),
    ("interfaces/cli/src/args/mistakes.rs", "ringfence run", Run("the program that looked like an option of run is run")),
    ("interfaces/cli/src/args/mistakes.rs", "ringfence set", Run("what looks like an option of run is a setting of the group")),
    ("interfaces/cli/src/commands/classify.rs", "ringfence classify --rules", Run("a rule is checked without naming its layout")),
    ("interfaces/cli/src/commands/control.rs", "ringfence thaw", Run("a frozen group that gets a signal is thawed to take it")),
    ("interfaces/cli/src/commands/groups.rs", "ringfence create", Run("a user without write permission is let by the daemon, or sees both refusals")),
    ("interfaces/cli/src/commands/groups.rs", "ringfence delete", Run("a user without write permission is let by the daemon, or sees both refusals")),
    ("interfaces/cli/src/commands/groups.rs", "ringfence move", Run("a group that is made in one more hierarchy has all of its processes there")),
    ("interfaces/cli/src/commands/groups.rs", "ringfence set", Run("a new group below an empty cpuset takes tasks")),
    ("interfaces/cli/src/commands/lab/mod.rs", "ringfence lab report", Run("Ctrl-C keeps the finished runs, and --resume makes the others")),
    ("interfaces/cli/src/commands/lab/mod.rs", "ringfence lab run --resume", Run("Ctrl-C keeps the finished runs, and --resume makes the others")),
    ("interfaces/cli/src/commands/lab/text.rs", "ringfence lab run --resume", Run("what gates look at is said, and they can be given on the command line")),
    ("interfaces/cli/src/commands/layouts/check.rs", "ringfence import", Words("it reads files of libcgroup in /etc, which a test machine lacks")),
    ("interfaces/cli/src/commands/layouts/isolation.rs", "ringfence isolate check", Run("doctor: what interrupts isolated CPUs is counted")),
    ("interfaces/cli/src/commands/layouts/isolation.rs", "ringfence status", Run("doctor: what was changed of isolated CPUs is shown")),
    ("interfaces/cli/src/commands/layouts/machines_layout.rs", "ringfence apply", Run("a machine's layout that a reboot took is applied")),
    ("interfaces/cli/src/commands/layouts/machines_layout.rs", "ringfence check", Run("a machine's layout with errors is checked")),
    ("interfaces/cli/src/commands/layouts/plan.rs", "ringfence apply --yes", Run("what the plan of a layout without groups undoes is undone")),
    ("interfaces/cli/src/commands/layouts/rules.rs", "ringfence classify --rules", Run("a layout in a directory is followed by the command that plan, apply and status print")),
    ("interfaces/cli/src/commands/layouts/status.rs", "ringfence why", Run("a kill that ringfenced recorded is shown after the kernel's log has lost it")),
    ("interfaces/cli/src/commands/layouts/status.rs", "ringfence move", Run("a process whose first thread alone came in is drift")),
    ("interfaces/cli/src/commands/layouts/status.rs", "ringfence plan", Words("its text is compared in the trial of rules that changed, and a plan changes nothing")),
    ("interfaces/cli/src/commands/layouts/status.rs", "ringfence apply", Run("a unit that came after the apply is bound")),
    ("interfaces/cli/src/commands/layouts/status.rs", "ringfence freeze", Run("a process that runs beside its frozen group is frozen too")),
    ("interfaces/cli/src/commands/layouts/status.rs", "ringfence get", Run("a unit that no layout has is read")),
    ("interfaces/cli/src/commands/layouts/status.rs", "ringfence thaw", Run("a group of the layout that status calls frozen is thawed")),
    ("interfaces/cli/src/commands/machine.rs", "ringfence mount", Run("a hierarchy is mounted by root")),
    ("interfaces/cli/src/commands/mod.rs", "ringfence create", Run("a group that does not exist leads to a new one only where that helps")),
    ("interfaces/cli/src/commands/simulate/mod.rs", "ringfence plan", Run("a layout that can't be simulated is planned on the same machine")),
    ("interfaces/cli/src/commands/moving.rs", "ringfence create", Run("a process that is moved and stays under the old limit is named")),
    ("interfaces/cli/src/commands/moving.rs", "ringfence move", Run("a user without write permission is let by the daemon, or sees both refusals")),
    ("interfaces/cli/src/commands/moving.rs", "ringfence run", Run("memory that a moved process leaves behind is charged to the group of a new one")),
    ("interfaces/cli/src/commands/moving.rs", "ringfence thaw", Run("what is moved into a frozen group runs once that is thawed")),
    ("interfaces/cli/src/commands/tasks.rs", "ringfence create", Run("a process that is moved and stays under the old limit is named")),
    ("interfaces/cli/src/commands/values.rs", "ringfence set", Run("a refused setting is offered as it was typed")),
    ("interfaces/cli/src/commands/values.rs", "set", Words("it is the name of a change in the history")),
    ("interfaces/cli/src/commands/watching/record.rs", "df", Run("a disk that a log filled is shown")),
    ("interfaces/web/src/group.rs", "ringfence set", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/group.rs", "ringfence why", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/lab.rs", "ringfence simulate", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/layouts.rs", "ringfence apply", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/layouts.rs", "ringfence confirm", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/layouts.rs", "ringfence plan", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/layouts.rs", "ringfence undo", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("keeping/daemon/src/division.rs", "ringfence apply --yes", Run("what a daemon does not undo by itself is undone")),
    ("lab/lab/src/own_directory.rs", "chmod go-w", Run("root neither reads nor writes what belongs to another user")),
    ("lab/lab/src/own_directory.rs", "chown -hR root:", Run("root neither reads nor writes what belongs to another user")),
    ("lab/lab/src/run/clean.rs", "rm", Run("a damaged journal is reported, and no other one is left because of it")),
    ("lab/lab/src/run/store.rs", "ringfence lab run --resume", Run("Ctrl-C keeps the finished runs, and --resume makes the others")),
    ("lab/report/src/html/verdicts.rs", "ringfence lab run --resume", Run("Ctrl-C keeps the finished runs, and --resume makes the others")),
    ("lab/workloads/src/cyclic/realtime.rs", "ringfence set", Run("a real-time program has a budget in a group without one")),
    ("lab/workloads/src/drivers/postgresql.rs", "chmod o+x", Run("a server's user reaches its directory")),
    ("machine/kernel/src/control.rs", "ringfence thaw", Run("a group below a frozen one is thawed with that")),
    ("machine/kernel/src/error.rs", "mount -t cgroup -o", Run("a named hierarchy that is not there is mounted")),
    ("machine/kernel/src/error.rs", "ringfence create", Run("a setting of a controller that the group lacks names the controller")),
    ("machine/kernel/src/error.rs", "ringfence kill", Run("another user kills no process of root")),
    ("machine/kernel/src/error.rs", "ringfence move", Run("a freeze that would not reach a process says where it is")),
    ("machine/kernel/src/error.rs", "ringfence thaw", Run("a program is not run in a frozen group")),
    ("machine/kernel/src/error.rs", "systemctl start", Run("a group of a layout that is a unit is that unit for every command")),
    ("machine/kernel/src/explain.rs", "mount -o remount,bind,rw", Run("a hierarchy that is mounted read-only is made writable")),
    ("machine/kernel/src/explain.rs", "ringfence create", Run("another user makes no group")),
    ("machine/kernel/src/explain.rs", "ringfence delete --recursive", Run("a group with groups below is not deleted without --recursive")),
    ("machine/kernel/src/explain.rs", "ringfence kill", Run("a group with tasks is not deleted")),
    ("machine/kernel/src/explain.rs", "ringfence move", Run("another user moves nothing into a group of root")),
    ("machine/kernel/src/explain.rs", "ringfence set", Run("a cpuset below empty ones needs values from the top on")),
    ("machine/kernel/src/explain_write.rs", "ringfence create", Run("a controller that a group lacks itself is enabled above it first")),
    ("machine/kernel/src/explain_write.rs", "ringfence create --controllers core", Run("a v2 group that holds processes gives no controllers to groups below it")),
    ("machine/kernel/src/explain_write.rs", "ringfence delete", Words("set and cgset refuse that word before the kernel does: only the kernel crate's own tests meet it")),
    ("machine/kernel/src/explain_write.rs", "ringfence get", Run("a device that the parent denies is not allowed below it")),
    ("machine/kernel/src/explain_write.rs", "ringfence list", Run("a real-time budget is not set below what groups below hold")),
    ("machine/kernel/src/explain_write.rs", "ringfence list --tree", Words("what a group below uses is never switched off: only the kernel crate's own tests meet it")),
    ("machine/kernel/src/explain_write.rs", "ringfence move", Run("a v2 group that holds processes gives no controllers to groups below it")),
    ("machine/kernel/src/explain_write.rs", "ringfence set", Words("which CPUs a group beside gives up is the reader's choice")),
    ("machine/kernel/src/explain_write.rs", "ringfence stat", Run("memory that can't be reclaimed is shown")),
    ("machine/kernel/src/mount.rs", "ringfence delete --recursive", Run("an unused hierarchy of v1 is free of groups")),
    ("machine/kernel/src/mount.rs", "systemd-run", Words("it starts a program, and is no hint")),
    ("machine/kernel/src/owners.rs", "ringfence create", Run("a group that would have a unit's name has one of its own")),
    ("machine/kernel/src/owners.rs", "ringfence set", Run("why: a quota is the first cause")),
    ("machine/kernel/src/owners.rs", "ringfence thaw", Run("why: a frozen group is the first cause")),
    ("machine/kernel/src/owners.rs", "systemctl", Run("what a refusal offers succeeds when it is pasted")),
    ("machine/kernel/src/unit.rs", "systemctl set-property", Run("what why advises of a unit gives it more, in a layout and without one")),
    ("machine/kernel/src/owners.rs", "systemctl thaw", Run("a frozen unit is thawed")),
    ("machine/kernel/src/owners.rs", "systemd-run --scope", Run("what a refusal offers succeeds when it is pasted")),
    ("machine/kernel/src/scene.rs", "ringfence set", Run("a v1 quota is not set above the parent's")),
    ("machine/units/src/hint.rs", "ringfence apply", Run("what why advises of a unit gives it more, in a layout and without one")),
    ("machine/units/src/hint.rs", "systemctl cat", Words("it shows a unit's files, and its text is compared in the trial of such a file")),
    ("machine/units/src/hint.rs", "systemctl unmask", Run("a masked unit is unmasked")),
    ("machine/units/src/hint.rs", "systemctl unmask --runtime", Run("a unit that is masked until a reboot is unmasked")),
    ("watching/monitor/src/log/mod.rs", "rm", Run("what is no segment of a log is removed")),
    ("watching/monitor/src/members.rs", "ringfence create --controllers cpuacct", Run("a group without cpuacct has the reason in its column, and the command in why")),
    ("watching/why/src/cpu.rs", "ringfence isolate check", Run("why: what interrupted isolated CPUs is counted")),
];

pub fn trials() -> Vec<Trial> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let paths = crate_directories(&crates);
    // in a VM there is no source
    if paths.is_empty() {
        return Vec::new();
    }
    vec![suite::fallible(
        "hints: each place that makes a command is run by a trial, or says why not",
        None,
        move || {
            let (mut found, mut trials) = (BTreeSet::new(), String::new());
            for path in &paths {
                each_file(&path.join("src"), &mut |file, text| {
                    let name = file.strip_prefix(&crates).unwrap().display().to_string();
                    found.extend(made(text).map(|words| (name.clone(), words)));
                });
                each_file(&path.join("tests"), &mut |_, text| trials.push_str(text));
            }
            let known: BTreeSet<(String, String)> =
                SOURCES.iter().map(|(file, words, _)| ((*file).to_owned(), (*words).to_owned())).collect();
            let new: Vec<_> = found.difference(&known).collect();
            let gone: Vec<_> = known.difference(&found).collect();
            assert!(
                new.is_empty() && gone.is_empty(),
                "not in the table: {new:?}; not in the sources: {gone:?}"
            );
            let mut run = 0;
            for (file, words, covered) in SOURCES {
                match covered {
                    Run(trial) => {
                        run += 1;
                        assert!(trials.contains(trial), "{file}, {words}: there is no trial '{trial}'");
                    }
                    Words(reason) => assert!(!reason.is_empty()),
                }
            }
            assert!(run >= 108, "{run} of {} are run", SOURCES.len());
            Ok(())
        },
    )]
}

/// The fixed words of the commands that a source makes.
fn made(text: &str) -> impl Iterator<Item = String> {
    let code = text.split("mod tests {").next().unwrap_or_default().lines();
    let code: Vec<&str> = code.filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let ways = [
        ("Command::ringfence(", "ringfence ", true),
        ("Command::new(", "", code.contains("hint::") || code.contains("pub struct Command")),
        (".command(", "ringfence ", true),
        (".command_at(", "ringfence ", true),
    ];
    let mut words = Vec::new();
    for (call, program, _) in ways.iter().filter(|way| way.2) {
        for (at, _) in code.match_indices(call) {
            let is_other = code[..at].ends_with("process::") || code[..at].ends_with("clap::");
            let rest = code[at + call.len()..].trim_start();
            let word = rest.strip_prefix('"').and_then(|rest| rest.split('"').next());
            words.extend(word.filter(|_| !is_other).map(|word| format!("{program}{word}")));
        }
    }
    words.into_iter()
}

fn each_file(directory: &Path, seen: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_file(&path, seen);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            seen(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}
