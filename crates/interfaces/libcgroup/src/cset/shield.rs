//! `shield`: two cpusets, one with CPUs of its own and one with the others, and the tasks in them.

use clap::{ArgMatches, Command, builder::PossibleValuesParser};

use crate::cset::{
    arguments::{all, command, flag, identity, names, option, text, verbose, words},
    cpus,
    failure::Failure,
    out::Out,
    proc::start,
    sets::{Set, Sets},
    tasks::{is_kernel_thread, is_pidspec, is_unbound, pidspec, table},
    transfer::put,
    write::{Change, create, delete, modify},
};

/// How wide a line of a table is, unless it is to be whole.
const WIDTH: usize = 76;

pub(crate) fn definition() -> Command {
    let [user, group] = identity();
    command("Give CPUs to the cpuset `user`, and move everything else to the cpuset `system`")
        .args([
            option("cpu", "cpu", "CPUSPEC", "Make the shield with these CPUs, or give it these").short('c'),
            flag("reset", "reset", "Remove the shield").short('r'),
            flag("exec", "exec", "Start a program in the shield").short('e'),
            user,
            group,
            flag("shield", "shield", "Move tasks into the shield, or show it").short('s'),
            flag("unshield", "unshield", "Move tasks out of the shield, or show what is outside").short('u'),
            option("pid", "pid", "PIDSPEC", "The tasks").short('p'),
            flag("threads", "threads", "Also all other threads of their processes"),
            option("kthread", "kthread", "on|off", "Keep threads of the kernel off that may run on all CPUs")
                .short('k')
                .value_parser(PossibleValuesParser::new(["on", "off"])),
            flag("force", "force", "Move tasks from wherever they are").short('f'),
            verbose(),
            option("sysset", "sysset", "CPUSET", "The cpuset outside of the shield [default: /system]"),
            option("userset", "userset", "CPUSET", "The cpuset that is the shield [default: /user]"),
            words("ARG", "A PIDSPEC, or a program with its arguments; its options stand behind --"),
        ])
        .after_help(
            "Examples:\n  cset shield -c 2-3 -k on\n  cset shield\n  cset shield -e -- pgbench -S\n  cset shield -s -p 4711\n  cset shield --reset",
        )
}

struct Shield<'s> {
    sets: &'s Sets,
    user: Set,
    system: Set,
    verbose: u8,
    out: Out,
}

pub(crate) fn run(matches: &ArgMatches, out: Out) -> Result<(), Failure> {
    let sets = Sets::new()?;
    let shield = Shield {
        sets: &sets,
        user: Set::at(text(matches, "userset").unwrap_or("/user"))?,
        system: Set::at(text(matches, "sysset").unwrap_or("/system"))?,
        verbose: matches.get_count("verbose"),
        out,
    };
    let is = |id: &str| matches.get_flag(id);
    let kthread = text(matches, "kthread");
    if is("reset") {
        return shield.reset();
    }
    if let Some(spec) = text(matches, "cpu") {
        return shield.make(spec, kthread == Some("on"));
    }
    if let Some(state) = kthread {
        return shield.kernel_threads(state == "on");
    }
    shield.exists()?;
    let given = all(matches);
    let first = names(&given).first().cloned();
    let spec = text(matches, "pid").map(str::to_owned);
    if is("exec") {
        return start(&sets, &shield.user, &given, matches, out);
    }
    let transfer = |spec: String, into: bool| shield.transfer(&spec, into, matches);
    match (is("shield"), is("unshield"), spec.or(first)) {
        (false, false, None) => {
            out.info("--> shielding system active with");
            shield.show(&shield.system);
            shield.show(&shield.user);
            Ok(())
        }
        (false, false, Some(spec)) if is_pidspec(&spec) => transfer(spec, true),
        (false, false, Some(_)) => start(&sets, &shield.user, &given, matches, out),
        (into, _, Some(spec)) => transfer(spec, into),
        (into, _, None) => {
            shield.show(if into { &shield.user } else { &shield.system });
            out.info("done");
            Ok(())
        }
    }
}

impl Shield<'_> {
    fn is_there(&self) -> bool {
        [&self.user, &self.system].iter().all(|set| self.sets.find(&set.path()).is_ok())
    }

    fn exists(&self) -> Result<(), Failure> {
        if self.is_there() { Ok(()) } else { Err(Failure::new("shielding not active on system")) }
    }

    fn show(&self, set: &Set) {
        let empty = self.sets.tasks(set).is_empty();
        let shown = match (self.verbose, empty) {
            (0, _) | (_, true) if self.out.machine => format!("proc_list_no_tasks-{}", set.name()),
            (0, _) | (_, true) => self.sets.summary(set),
            (verbose, _) => table(self.sets, set, self.out, "   ", (verbose == 1).then_some(WIDTH)),
        };
        self.out.info(&shown);
    }

    fn make(&self, spec: &str, kernel_threads: bool) -> Result<(), Failure> {
        let all = self.sets.cpus(&Set::root());
        let own = cpus::within("CPUSPEC", spec, &all)?;
        let others = all.difference(&own);
        if others.is_empty() {
            return Err(Failure::new(format!("CPUSPEC \"{spec}\" leaves no CPU for the system")));
        }
        let (own, others) = (own.to_string(), others.to_string());
        self.refuse_others()?;
        if self.is_there() {
            self.change(&own, &others)?;
            self.out.info("--> shielding modified with:");
        } else {
            self.create(&own, &others).map_err(|failure| {
                // neither was there before; the refusal is what the user reads
                let _ = delete(self.sets, &self.user);
                let _ = delete(self.sets, &self.system);
                // below a unit a set can't have CPUs of its own before Linux 6.7
                if self.sets.host.needs_unit() {
                    return failure.maybe_hint(Some(format!("ringfence shield {own}")));
                }
                self.out.info("--> failed to create shield, hint: do other cpusets exist?");
                failure
            })?;
            self.out.info("--> activating shielding:");
        }
        let tasks = self.of_root(|task| is_kernel_thread(self.sets, task) == Some(false));
        if !tasks.is_empty() {
            self.out.info(&format!("moving {} tasks from root into system cpuset...", tasks.len()));
        }
        put(self.sets, &self.system, &tasks, self.out)?;
        if kernel_threads {
            self.move_kernel_threads()?;
        }
        self.show(&self.system);
        self.show(&self.user);
        Ok(())
    }

    /// Sets of these names that are no shield are somebody's, with CPUs that they chose.
    fn refuse_others(&self) -> Result<(), Failure> {
        let there = |set: &Set| self.sets.find(&set.path()).is_ok();
        let refused = match (there(&self.user), there(&self.system)) {
            (false, false) => return Ok(()),
            (true, true) if self.sets.is_cpu_exclusive(&self.user) => return Ok(()),
            (true, true) => format!("cpuset \"{}\" has no CPUs of its own", self.user.path()),
            (user, _) => {
                let (one, other) = if user { (&self.user, &self.system) } else { (&self.system, &self.user) };
                format!("there is a cpuset \"{}\" and none \"{}\"", one.path(), other.path())
            }
        };
        let message = format!("{refused}: these are no shield's, and nothing was changed");
        Err(Failure::new(message).maybe_hint(Some("name others: --userset and --sysset".to_owned())))
    }

    /// On v2 the CPUs of `user` are its own, so that the rest of the machine keeps off them, wherever it is.
    fn create(&self, own: &str, others: &str) -> Result<(), Failure> {
        let of = |cpus| Change { cpus: Some(cpus), ..Change::default() };
        create(self.sets, &self.user, &of(own))?;
        create(self.sets, &self.system, &of(others))?;
        self.own_cpus(true)
    }

    fn change(&self, own: &str, others: &str) -> Result<(), Failure> {
        self.own_cpus(false)?;
        let of = |cpus| Change { cpus: Some(cpus), ..Change::default() };
        modify(self.sets, &self.user, &of(own))?;
        modify(self.sets, &self.system, &of(others))?;
        self.own_cpus(true)
    }

    /// A v2 root group needs CPUs for its own tasks: there the others are not the system set's alone.
    fn own_cpus(&self, own: bool) -> Result<(), Failure> {
        let change = Change { cpu_exclusive: Some(own), ..Change::default() };
        modify(self.sets, &self.user, &change)?;
        if self.sets.is_v1() { modify(self.sets, &self.system, &change) } else { Ok(()) }
    }

    fn of_root(&self, is: impl Fn(u32) -> bool) -> Vec<u32> {
        self.sets.tasks(&Set::root()).into_iter().filter(|task| is(*task)).collect()
    }

    fn move_kernel_threads(&self) -> Result<(), Failure> {
        let is_one = |task| is_kernel_thread(self.sets, task) == Some(true) && is_unbound(self.sets, task);
        let tasks = self.of_root(is_one);
        if !tasks.is_empty() {
            self.out.info(&format!(
                "kthread shield activated, moving {} tasks into system cpuset...",
                tasks.len()
            ));
        }
        put(self.sets, &self.system, &tasks, self.out)
    }

    fn kernel_threads(&self, on: bool) -> Result<(), Failure> {
        self.exists()?;
        if on {
            self.out.info("--> activating kthread shielding");
            self.move_kernel_threads()?;
        } else {
            self.out.info("--> deactivating kthread shielding");
            let mut tasks = self.sets.tasks(&self.system);
            tasks.retain(|task| is_kernel_thread(self.sets, *task) == Some(true));
            if !tasks.is_empty() {
                self.out.info(&format!("moving {} tasks into root cpuset...", tasks.len()));
            }
            put(self.sets, &Set::root(), &tasks, self.out)?;
        }
        self.out.info("done");
        Ok(())
    }

    fn transfer(&self, spec: &str, into: bool, matches: &ArgMatches) -> Result<(), Failure> {
        let (word, from, to) = match into {
            true => ("shielding", &self.system, &self.user),
            false => ("unshielding", &self.user, &self.system),
        };
        let (threads, force) = (matches.get_flag("threads"), matches.get_flag("force"));
        let with = if threads { "(with threads)" } else { "" };
        self.out.info(&format!("--> {word} following pidspec: {spec} {with}"));
        let tasks = pidspec(self.sets, spec, (!force).then_some(from), threads, self.out)?;
        if tasks.is_empty() && !force {
            self.out.info("--> hint: perhaps use --force if sure of command");
            return Err(Failure::new("tasks do not match all criteria, none moved"));
        }
        put(self.sets, to, &tasks, self.out)?;
        self.out.info("done");
        Ok(())
    }

    fn reset(&self) -> Result<(), Failure> {
        self.out.info("--> deactivating/reseting shielding");
        self.exists()?;
        for (set, noun) in [(&self.user, "user"), (&self.system, "system")] {
            let tasks = self.sets.tasks(set);
            self.out.info(&format!(
                "moving {} tasks from \"{}\" {noun} set to root set...",
                tasks.len(),
                set.path()
            ));
            put(self.sets, &Set::root(), &tasks, self.out)?;
        }
        self.out.info(&format!("deleting \"{}\" and \"{}\" sets", self.user.path(), self.system.path()));
        delete(self.sets, &self.user)?;
        delete(self.sets, &self.system)?;
        self.out.info("done");
        Ok(())
    }
}
