//! Every place of the sources that makes a command of a hint, with the trial that runs what it makes, or the reason why none does. A
//! new one has to come here.

use std::{collections::BTreeSet, fs, path::Path};

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
    ("division/apply/src/drift.rs", "systemctl unmask", Words("it changes the machine, or an administrator's file")),
    ("division/apply/src/error.rs", "ringfence set", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/apply/src/leftovers/steps.rs", "ringfence delete", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/apply/src/occupied.rs", "ringfence move /", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/apply/src/occupied.rs", "ringfence thaw", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/apply/src/partitions.rs", "ringfence set", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/apply/src/perform.rs", "fuser -vm", Words("it only names processes, with a tool that this machine may lack")),
    ("division/apply/src/planned.rs", "ringfence create", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/apply/src/planned.rs", "ringfence move", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/apply/src/resizes.rs", "ringfence apply", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/apply/src/resizes.rs", "ringfence resume", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/apply/src/resizes.rs", "systemctl start ringfenced", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/apply/src/state.rs", "mv", Words("it changes the machine, or an administrator's file")),
    ("division/apply/src/undo/groups.rs", "ringfence apply", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/apply/src/unit_files.rs", "mv", Words("it changes the machine, or an administrator's file")),
    ("division/files/src/lib.rs", "chmod go-w", Words("it changes the machine, or an administrator's file")),
    ("division/files/src/lib.rs", "chown root", Words("it changes the machine, or an administrator's file")),
    ("division/files/src/trusted.rs", "chmod go-w", Words("it changes the machine, or an administrator's file")),
    ("division/files/src/trusted.rs", "chown root", Words("it changes the machine, or an administrator's file")),
    ("division/layout/src/unit_name.rs", "systemctl list-units", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/budgets.rs", "ringfence set", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/cpusets/obstacles.rs", "ringfence set", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/doctor/controllers.rs", "ringfence create", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/doctor/cpus.rs", "ringfence set", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/doctor/realtime.rs", "ringfence set", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/doctor/writers.rs", "kill", Words("it changes the machine, or an administrator's file")),
    ("division/plan/src/doctor/writers.rs", "systemctl disable --now", Words("it changes the machine, or an administrator's file")),
    ("division/plan/src/drop_ins.rs", "mv -n", Words("it changes the machine, or an administrator's file")),
    ("division/plan/src/drop_ins.rs", "ringfence undo", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/drop_ins.rs", "systemctl edit", Words("it changes the machine, or an administrator's file")),
    ("division/plan/src/drop_ins.rs", "systemctl restart", Words("it changes the machine, or an administrator's file")),
    ("division/plan/src/drop_ins.rs", "systemctl start", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/expand.rs", "systemctl list-units --all", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/lints/rules.rs", "ringfence create", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/lints/rules.rs", "systemctl set-property", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/unit_place.rs", "systemctl status", Words("its text is compared in the tests of its crate, and not run yet")),
    ("division/plan/src/unit_place.rs", "systemctl unmask", Words("it changes the machine, or an administrator's file")),
    ("interfaces/cli/src/args/mistakes.rs", "ringfence run", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/args/mistakes.rs", "ringfence set", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/control.rs", "ringfence thaw", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/groups.rs", "ringfence move", Run("a group that is made in one more hierarchy has all of its processes there")),
    ("interfaces/cli/src/commands/groups.rs", "ringfence set", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/lab/text.rs", "ringfence lab run --resume", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/lab/mod.rs", "ringfence lab report", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/lab/mod.rs", "ringfence lab run --resume", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/layouts/isolation.rs", "ringfence isolate check", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/layouts/isolation.rs", "ringfence status", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/layouts/machines_layout.rs", "ringfence apply", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/layouts/machines_layout.rs", "ringfence check", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/layouts/plan.rs", "ringfence apply --yes", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/layouts/rules.rs", "ringfence classify --rules", Run("a layout in a directory is followed by the command that plan, apply and status print")),
    ("interfaces/cli/src/commands/layouts/status.rs", "ringfence apply", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/layouts/status.rs", "ringfence freeze", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/layouts/status.rs", "ringfence get", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/layouts/status.rs", "ringfence thaw", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/machine.rs", "ringfence mount", Words("it changes the machine, or an administrator's file")),
    ("interfaces/cli/src/commands/mod.rs", "ringfence create", Run("a group that does not exist leads to a new one only where that helps")),
    ("interfaces/cli/src/commands/simulate/mod.rs", "ringfence plan", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/tasks.rs", "ringfence create", Run("a process that is moved and stays under the old limit is named")),
    ("interfaces/cli/src/commands/tasks.rs", "ringfence run", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/tasks.rs", "ringfence thaw", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/cli/src/commands/values.rs", "ringfence set", Run("a refused setting is offered as it was typed")),
    ("interfaces/cli/src/commands/values.rs", "set", Words("it is the name of a change in the history")),
    ("interfaces/cli/src/commands/watching/record.rs", "df", Words("its text is compared in the tests of its crate, and not run yet")),
    ("interfaces/web/src/group.rs", "ringfence set", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/group.rs", "ringfence why", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/lab.rs", "ringfence simulate", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/layouts.rs", "ringfence apply", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/layouts.rs", "ringfence confirm", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/layouts.rs", "ringfence plan", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("interfaces/web/src/layouts.rs", "ringfence undo", Words("the page runs it itself where it is clicked, tested in crates/interfaces/web")),
    ("keeping/daemon/src/division.rs", "ringfence apply --yes", Words("its text is compared in the tests of its crate, and not run yet")),
    ("keeping/daemon/src/elastic/mod.rs", "ringfence apply", Words("its text is compared in the tests of its crate, and not run yet")),
    ("lab/report/src/html/verdicts.rs", "ringfence lab run --resume", Words("its text is compared in the tests of its crate, and not run yet")),
    ("lab/bench/src/resizing.rs", "setpriv", Words("it starts a program, and is no hint")),
    ("lab/drivers/src/postgresql.rs", "chmod o+x", Words("it changes the machine, or an administrator's file")),
    ("lab/lab/src/own_directory.rs", "chmod go-w", Words("it changes the machine, or an administrator's file")),
    ("lab/lab/src/own_directory.rs", "chown -hR root:", Words("it changes the machine, or an administrator's file")),
    ("lab/lab/src/run/clean.rs", "rm", Words("it changes the machine, or an administrator's file")),
    ("lab/lab/src/run/store.rs", "ringfence lab run --resume", Words("its text is compared in the tests of its crate, and not run yet")),
    ("lab/workloads/src/cyclic/realtime.rs", "ringfence set", Words("its text is compared in the tests of its crate, and not run yet")),
    ("machine/kernel/src/control.rs", "ringfence thaw", Words("its text is compared in the tests of its crate, and not run yet")),
    ("machine/kernel/src/error.rs", "mount -t cgroup -o", Words("it changes the machine, or an administrator's file")),
    ("machine/kernel/src/error.rs", "ringfence create", Run("a setting of a controller that the group lacks names the controller")),
    ("machine/kernel/src/error.rs", "ringfence kill", Run("another user kills no process of root")),
    ("machine/kernel/src/error.rs", "ringfence move", Run("a freeze that would not reach a process says where it is")),
    ("machine/kernel/src/error.rs", "ringfence thaw", Run("a program is not run in a frozen group")),
    ("machine/kernel/src/error.rs", "systemctl start", Run("a group of a layout that is a unit is that unit for every command")),
    ("machine/kernel/src/explain.rs", "mount -o remount,rw", Words("it changes the machine, or an administrator's file")),
    ("machine/kernel/src/explain.rs", "ringfence create", Run("another user makes no group")),
    ("machine/kernel/src/explain.rs", "ringfence delete --recursive", Run("a group with groups below is not deleted without --recursive")),
    ("machine/kernel/src/explain.rs", "ringfence kill", Run("a group with tasks is not deleted")),
    ("machine/kernel/src/explain.rs", "ringfence move", Run("another user moves nothing into a group of root")),
    ("machine/kernel/src/explain.rs", "ringfence set", Run("a cpuset below empty ones needs values from the top on")),
    ("machine/kernel/src/explain_write.rs", "ringfence create", Words("its text is compared in the tests of its crate, and not run yet")),
    ("machine/kernel/src/explain_write.rs", "ringfence create --controllers core", Run("a v2 group that holds processes gives no controllers to groups below it")),
    ("machine/kernel/src/explain_write.rs", "ringfence delete", Words("its text is compared in the tests of its crate, and not run yet")),
    ("machine/kernel/src/explain_write.rs", "ringfence get", Run("a device that the parent denies is not allowed below it")),
    ("machine/kernel/src/explain_write.rs", "ringfence list", Run("a real-time budget is not set below what groups below hold")),
    ("machine/kernel/src/explain_write.rs", "ringfence list --tree", Words("its text is compared in the tests of its crate, and not run yet")),
    ("machine/kernel/src/explain_write.rs", "ringfence move", Run("a v2 group that holds processes gives no controllers to groups below it")),
    ("machine/kernel/src/explain_write.rs", "ringfence set", Words("which CPUs a group beside gives up is the reader's choice")),
    ("machine/kernel/src/explain_write.rs", "ringfence stat", Words("its text is compared in the tests of its crate, and not run yet")),
    ("machine/kernel/src/mount.rs", "ringfence delete --recursive", Words("its text is compared in the tests of its crate, and not run yet")),
    ("machine/kernel/src/mount.rs", "systemd-run", Words("it starts a program, and is no hint")),
    ("machine/kernel/src/owners.rs", "ringfence create", Words("its text is compared in the tests of its crate, and not run yet")),
    ("machine/kernel/src/owners.rs", "ringfence set", Run("why: a quota is the first cause")),
    ("machine/kernel/src/owners.rs", "ringfence thaw", Run("why: a frozen group is the first cause")),
    ("machine/kernel/src/owners.rs", "systemctl", Run("what a refusal offers succeeds when it is pasted")),
    ("machine/kernel/src/owners.rs", "systemctl thaw", Words("its text is compared in the tests of its crate, and not run yet")),
    ("machine/kernel/src/owners.rs", "systemd-run --scope", Run("what a refusal offers succeeds when it is pasted")),
    ("machine/kernel/src/scene.rs", "ringfence set", Run("a v1 quota is not set above the parent's")),
    ("machine/kernel/src/unit.rs", "systemctl set-property", Run("eight steps of a newcomer on a host with systemd")),
    ("watching/monitor/src/log/mod.rs", "rm", Words("it changes the machine, or an administrator's file")),
    ("watching/monitor/src/members.rs", "ringfence create --controllers cpuacct", Run("a group without cpuacct has the reason in its column, and the command in why")),
    ("watching/why/src/by_load.rs", "ringfence apply", Words("its text is compared in the tests of its crate, and not run yet")),
    ("watching/why/src/by_load.rs", "ringfence resume", Words("its text is compared in the tests of its crate, and not run yet")),
    ("watching/why/src/cpu.rs", "ringfence isolate check", Words("its text is compared in the tests of its crate, and not run yet")),
    ("watching/why/src/records.rs", "ringfence resume", Words("its text is compared in the tests of its crate, and not run yet")),
    ("watching/why/src/records.rs", "systemctl start ringfenced", Words("its text is compared in the tests of its crate, and not run yet")),
];

pub fn trials() -> Vec<Trial> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let paths = crate_directories(&crates);
    // in a VM there is no source
    if paths.is_empty() {
        return Vec::new();
    }
    vec![Trial::test(
        "hints: each place that makes a command is run by a trial, or says why not",
        move || {
            let (mut found, mut trials) = (BTreeSet::new(), String::new());
            for path in &paths {
                each_file(&path.join("src"), &mut |file, text| {
                    let name = file.strip_prefix(&crates).unwrap().display().to_string();
                    if name != "machine/units/src/hint.rs" {
                        found.extend(made(text).map(|words| (name.clone(), words)));
                    }
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
            assert!(run >= 24, "{run} of {} are run", SOURCES.len());
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
        ("Command::new(", "", code.contains("hint::")),
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
