//! A plan's steps as one block per group: what is added, changed and taken away, each thing once however many writes it
//! needs.

use std::{collections::BTreeMap, fmt::Write};

use ::plan::{Action, Outsider, Ownership, Place, Plan, SeenHierarchy, Step};
use apply::{Running, Target};
use kernel::Host;
use settings::{Controller, Facts, Version, knobs};
use units::{counted, group_path};

use super::words::{self, Files};
use crate::output::Paint;

/// What becomes of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Add,
    Change,
    Remove,
}

/// One thing: a group, a setting of it, its owners.
struct Row {
    what: What,
    /// The hierarchies that it is done in.
    at: Vec<usize>,
}

enum What {
    Group,
    Hierarchy {
        path: String,
        words: String,
    },
    Controllers {
        names: Vec<String>,
    },
    Setting(Written),
    Device {
        setting: String,
        rule: String,
    },
    Owners {
        words: String,
    },
    TasksOff {
        words: String,
    },
    /// The file that a unit's settings stand in.
    UnitFile {
        sign: Sign,
        words: String,
    },
    /// A knob of the machine, at one place or several.
    Knob {
        knob: String,
        words: String,
        count: usize,
    },
    /// Processes that follow their group into another hierarchy.
    Processes {
        count: usize,
    },
    /// A group that goes.
    Gone,
    /// A limit that goes with the group's directory, where the group stays in other hierarchies.
    Lifted {
        setting: String,
        words: String,
    },
    /// Controllers that no group below needs any more.
    Unneeded {
        names: Vec<String>,
    },
    /// What goes back to what it was before an earlier layout.
    Restored {
        what: &'static str,
        words: String,
    },
}

/// A setting's files, before and after all of its writes.
struct Written {
    setting: String,
    version: Version,
    hierarchy: usize,
    before: Files,
    /// Some file's text before is not known.
    from_nothing: bool,
    after: Files,
}

impl What {
    /// What makes a group, then its settings by name, then whose it is.
    fn order(&self) -> (u8, &str) {
        match self {
            What::Hierarchy { path, .. } => (0, path),
            What::Group => (1, ""),
            What::Controllers { .. } => (2, ""),
            What::Setting(written) => (3, &written.setting),
            What::Device { .. } => (4, ""),
            What::Owners { .. } => (5, ""),
            What::TasksOff { .. } | What::UnitFile { .. } => (6, ""),
            What::Knob { knob, .. } => (12, knob),
            What::Processes { .. } => (7, ""),
            What::Restored { what, .. } => (8, what),
            What::Lifted { setting, .. } => (9, setting),
            What::Unneeded { .. } => (10, ""),
            What::Gone => (11, ""),
        }
    }
}

struct Block {
    /// As users write the group; empty for the machine.
    group: String,
    rows: Vec<Row>,
}

/// The machine that a plan is for.
#[derive(Clone, Copy)]
pub struct Scene<'p> {
    pub hierarchies: &'p [SeenHierarchy],
    /// What a file of an existing group contains now.
    pub current: &'p dyn Fn(&Place, &str) -> Option<String>,
    pub facts: &'p dyn Facts,
}

/// A plan by group.
pub struct Blocks<'p> {
    blocks: Vec<Block>,
    scene: Scene<'p>,
}

impl<'p> Blocks<'p> {
    pub fn of(steps: &[Step], scene: Scene<'p>) -> Blocks<'p> {
        let mut blocks = Blocks { blocks: Vec::new(), scene };
        for step in steps {
            blocks.add(step);
            plan::steps_inside(step).iter().for_each(|step| blocks.add(step));
        }
        blocks.lifted(steps);
        // in one order whatever the kernel needs; that one is the steps'
        for block in &mut blocks.blocks {
            block.rows.sort_by(|one, other| one.what.order().cmp(&other.what.order()));
        }
        // parents first, as in `list`
        blocks.blocks.sort_by(|one, other| one.group.split('/').cmp(other.group.split('/')));
        blocks
    }

    fn add(&mut self, step: &Step) {
        // every kind of step is one of these: a new kind does not compile until it has words here
        let what = match &step.action {
            Action::Mount { controllers, name, path } => What::Hierarchy {
                path: path.display().to_string(),
                words: mounted(controllers, name.as_deref()),
            },
            Action::CreateGroup { .. } => What::Group,
            Action::EnableControllers { names, .. } => What::Controllers { names: names.clone() },
            Action::Write { place, file, text } => {
                return self.write(place, file, text, step.before.as_deref());
            }
            Action::WriteDropIn { path, text, .. } => {
                let sign = match (&step.before, text) {
                    (None, _) => Sign::Add,
                    (Some(_), Some(_)) => Sign::Change,
                    (Some(_), None) => Sign::Remove,
                };
                What::UnitFile { sign, words: path.display().to_string() }
            }
            Action::SetKnob { knob, text, .. } => {
                let before = step.before.as_deref().unwrap_or_default();
                return self.knob(&step.group.to_string(), knob, before, text);
            }
            Action::SetDevices { setting, rule, .. } => {
                What::Device { setting: setting.clone(), rule: rule.clone() }
            }
            Action::SetOwnership { access, .. } => What::Owners { words: owners(access) },
            Action::MoveTasksAway { cpus, to, .. } => {
                What::TasksOff { words: format!("off CPUs {cpus}, onto CPUs {to}") }
            }
            Action::MoveTasks { tasks, .. } => What::Processes { count: tasks.len() },
            Action::ReturnTasks { tasks, .. } => What::Restored { what: "tasks", words: places_of(tasks) },
            Action::RemoveGroup { .. } => What::Gone,
            Action::DisableControllers { names, .. } => What::Unneeded { names: names.clone() },
            Action::RestoreOwners { .. } => What::Restored { what: "owners", words: "as before".to_owned() },
            Action::RestoreDevices { rules, .. } => {
                let words = rules.as_ref().map_or("no rules of its own", |_| "as before").to_owned();
                What::Restored { what: "devices", words }
            }
            Action::RestoreAffinities { threads, .. } => {
                let words = format!("{} back on the CPUs they had", counted(threads.len(), "thread"));
                What::Restored { what: "tasks", words }
            }
            // only an undo has these
            Action::Unmount { .. } | Action::Refill { .. } | Action::InheritSet { .. } => {
                What::Restored { what: "settings", words: step.action.to_string() }
            }
        };
        let place = step.action.place();
        let group = place.map_or_else(String::new, |place| self.name(place));
        self.push(group, place.map(|place| place.hierarchy), what);
    }

    /// The same thing in another hierarchy is no new one.
    fn push(&mut self, group: String, hierarchy: Option<usize>, what: What) {
        let block = self.block(group);
        let same = |row: &&mut Row| match (&row.what, &what) {
            (What::Group, What::Group) | (What::Gone, What::Gone) => true,
            (What::Processes { count: one }, What::Processes { count: other }) => one == other,
            (
                What::Restored { what: one_thing, words: one },
                What::Restored { what: other_thing, words: other },
            ) => one_thing == other_thing && one == other,
            (What::Owners { words: one }, What::Owners { words: other })
            | (What::TasksOff { words: one }, What::TasksOff { words: other }) => one == other,
            _ => false,
        };
        match block.rows.iter_mut().find(same) {
            Some(row) => row.at.extend(hierarchy),
            None => block.rows.push(Row { what, at: hierarchy.into_iter().collect() }),
        }
    }

    /// All places of a row with the same values are one thing.
    fn knob(&mut self, group: &str, knob: &str, before: &str, text: &str) {
        let words = match knobs::find(knob) {
            // it is set again behind the partition
            Some(row) if row.same(before, text) => return,
            Some(row) => format!("{} → {}", knobs::shown_cpus(row, before), knobs::shown_cpus(row, text)),
            None => format!("{before} → {text}"),
        };
        let block = self.block(group.to_owned());
        let same = block.rows.iter_mut().find_map(|row| match &mut row.what {
            What::Knob { knob: of, words: other, count } if of == knob && *other == words => Some(count),
            _ => None,
        });
        match same {
            Some(count) => *count += 1,
            None => {
                let what = What::Knob { knob: knob.to_owned(), words, count: 1 };
                block.rows.push(Row { what, at: Vec::new() });
            }
        }
    }

    /// The limits of directories that go while their group stays in other hierarchies.
    fn lifted(&mut self, steps: &[Step]) {
        let gone = |step: &Step| match &step.action {
            Action::RemoveGroup { place } => Some(place.clone()),
            _ => None,
        };
        let gone: Vec<Place> = steps.iter().filter_map(gone).collect();
        for place in &gone {
            let name = self.name(place);
            if self.stays_elsewhere(&name, &gone) {
                let limits = self.limits(place);
                self.block(name).rows.extend(limits);
            }
        }
    }

    fn stays_elsewhere(&self, name: &str, gone: &[Place]) -> bool {
        let exists = |(hierarchy, at): (usize, &SeenHierarchy)| {
            let path = match name.strip_prefix('/') {
                Some(path) => path.to_owned(),
                None => group_path::join(&at.base, name),
            };
            let place = Place { hierarchy, path, version: at.version };
            !gone.contains(&place) && at.groups.contains_key(&place.path)
        };
        self.scene.hierarchies.iter().enumerate().any(exists)
    }

    fn limits(&self, place: &Place) -> Vec<Row> {
        let controllers = self.scene.hierarchies.get(place.hierarchy).map(|at| at.controllers.as_slice());
        let is_limit = |setting: &&settings::Setting| {
            setting.name.ends_with(".max") && controllers.is_some_and(|of| of.contains(&setting.controller))
        };
        let row = |setting: &settings::Setting| {
            let read = |file: &str| (self.scene.current)(place, file);
            let found = settings::lookup(setting.name)?;
            let value = found.decode(place.version, &read).ok()?;
            let limit =
                (!words::is_no_limit(&value)).then(|| words::shown(&found, &value, self.scene.facts))?;
            let what = What::Lifted { setting: setting.name.to_owned(), words: format!("{limit} → max") };
            Some(Row { what, at: vec![place.hierarchy] })
        };
        settings::all().filter(is_limit).filter_map(row).collect()
    }

    fn write(&mut self, place: &Place, file: &str, text: &str, before: Option<&str>) {
        let setting = words::setting_of(file);
        let text = &words::whole(file, text, before);
        let (name, beside) = (self.name(place), words::read_beside(file));
        let beside = beside.and_then(|other| Some((other.to_owned(), (self.scene.current)(place, other)?)));
        let block = self.block(name);
        let known = block.rows.iter_mut().find_map(|row| match &mut row.what {
            What::Setting(written) if written.setting == setting && written.hierarchy == place.hierarchy => {
                Some(written)
            }
            _ => None,
        });
        let written = match known {
            Some(written) => written,
            None => {
                let (version, hierarchy) = (place.version, place.hierarchy);
                let (before, after) = (Files::new(), Files::new());
                let what = What::Setting(Written {
                    setting,
                    version,
                    hierarchy,
                    before,
                    from_nothing: false,
                    after,
                });
                block.rows.push(Row { what, at: vec![hierarchy] });
                match block.rows.last_mut().map(|row| &mut row.what) {
                    Some(What::Setting(written)) => written,
                    _ => return,
                }
            }
        };
        if let Some((other, text)) = beside {
            written.before.entry(other.clone()).or_insert_with(|| text.clone());
            written.after.entry(other).or_insert(text);
        }
        let is_first = !written.after.contains_key(file);
        match (is_first, before) {
            (true, Some(before)) => drop(written.before.insert(file.to_owned(), before.to_owned())),
            (true, None) => written.from_nothing = true,
            (false, _) => {}
        }
        let lines = written.after.entry(file.to_owned()).or_default();
        if settings::is_by_key(file) && !lines.is_empty() {
            // a device a line, each in a write of its own
            let _ = write!(lines, "\n{}", text.trim_end());
        } else {
            text.trim_end().clone_into(lines);
        }
    }

    fn block(&mut self, group: String) -> &mut Block {
        let at = self.blocks.iter().position(|block| block.group == group).unwrap_or_else(|| {
            self.blocks.push(Block { group, rows: Vec::new() });
            self.blocks.len() - 1
        });
        &mut self.blocks[at]
    }

    /// As users write it: from where our groups live.
    fn name(&self, place: &Place) -> String {
        let base = self.scene.hierarchies.get(place.hierarchy).map_or("", |at| at.base.as_str());
        let below = match place.path.strip_prefix(base) {
            Some(below) if base.is_empty() || below.starts_with('/') => below.trim_start_matches('/'),
            _ => return format!("/{}", place.path),
        };
        if below.is_empty() { format!("/{base}") } else { below.to_owned() }
    }

    /// How many things are added, changed, taken away.
    pub fn counts(&self) -> (usize, usize, usize) {
        let signs = || self.blocks.iter().flat_map(|block| block.rows.iter().map(|row| sign(block, row)));
        let count = |wanted: Sign| signs().filter(|sign| *sign == wanted).count();
        (count(Sign::Add), count(Sign::Change), count(Sign::Remove))
    }

    pub fn shown(&self, paint: Paint) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            let name = if block.group.is_empty() { "(this machine)" } else { &block.group };
            let _ = writeln!(text, "{}", paint.strong(name)); // a String takes everything
            let rows: Vec<(Sign, String, String)> =
                block.rows.iter().map(|row| self.row(block, row)).collect();
            let width = rows.iter().map(|(_, what, _)| what.chars().count()).max().unwrap_or(0);
            for (sign, what, how) in rows {
                let line = format!("{} {what:width$}  {how}", sign.mark());
                let line = line.trim_end();
                let line = match sign {
                    Sign::Add => paint.good(line),
                    Sign::Change => paint.changed(line),
                    Sign::Remove => paint.bad(line),
                };
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }

    fn row(&self, block: &Block, row: &Row) -> (Sign, String, String) {
        let (what, how) = match &row.what {
            What::Group if self.scene.hierarchies.len() > 1 => {
                ("group".to_owned(), format!("in {}", self.places(&row.at)))
            }
            What::Group => ("group".to_owned(), String::new()),
            What::Hierarchy { path, words } => ("hierarchy".to_owned(), format!("{words} at {path}")),
            What::Controllers { names } => {
                ("controllers".to_owned(), format!("{} for the groups below", names.join(", ")))
            }
            What::Setting(written) => (written.setting.clone(), written.words(self.scene.facts)),
            What::Device { setting, rule } => (setting.clone(), rule.clone()),
            What::Owners { words } => ("owners".to_owned(), words.clone()),
            What::TasksOff { words } => ("tasks".to_owned(), words.clone()),
            What::UnitFile { words, .. } => ("unit file".to_owned(), words.clone()),
            What::Processes { count } => {
                ("tasks".to_owned(), format!("{} into {}", counted(*count, "process"), self.places(&row.at)))
            }
            What::Knob { knob, words, count: 1 } => (knob.clone(), words.clone()),
            What::Knob { knob, words, count } => (knob.clone(), format!("{words} at {count} places")),
            What::Gone if self.scene.hierarchies.len() > 1 => {
                ("group".to_owned(), format!("in {}", self.places(&row.at)))
            }
            What::Gone => ("group".to_owned(), String::new()),
            What::Lifted { setting, words } => (setting.clone(), words.clone()),
            What::Unneeded { names } => {
                ("controllers".to_owned(), format!("{} for the groups below", names.join(", ")))
            }
            What::Restored { what, words } => ((*what).to_owned(), words.clone()),
        };
        (sign(block, row), what, how)
    }

    fn places(&self, at: &[usize]) -> String {
        let names = at.iter().map(|at| {
            let seen = self.scene.hierarchies.get(*at);
            seen.map_or_else(|| "the new hierarchy".to_owned(), name_of)
        });
        names.collect::<Vec<String>>().join(", ")
    }
}

impl Sign {
    fn mark(self) -> char {
        match self {
            Sign::Add => '+',
            Sign::Change => '~',
            Sign::Remove => '-',
        }
    }
}

/// A directory that is new has nothing that could be changed; the group may have others.
fn sign(block: &Block, row: &Row) -> Sign {
    let made = block.rows.iter().find(|row| matches!(row.what, What::Group));
    let is_new = made.is_some_and(|made| row.at.iter().all(|at| made.at.contains(at)));
    match &row.what {
        What::Group | What::Hierarchy { .. } | What::Controllers { .. } | What::Device { .. } => Sign::Add,
        What::Setting(_) | What::Owners { .. } if is_new => Sign::Add,
        What::Setting(written) => written.sign(),
        What::UnitFile { sign, .. } => *sign,
        What::Owners { .. }
        | What::TasksOff { .. }
        | What::Knob { .. }
        | What::Processes { .. }
        | What::Restored { .. } => Sign::Change,
        What::Gone | What::Lifted { .. } | What::Unneeded { .. } => Sign::Remove,
    }
}

impl Written {
    /// What nobody had set is added; what goes back to that is removed.
    fn sign(&self) -> Sign {
        let unset = |files: &Files| match words::decoded(files, self.version) {
            Some((_, value)) => words::is_unset(&value),
            None => files.values().all(|text| text.trim().is_empty()),
        };
        match (self.from_nothing || unset(&self.before), unset(&self.after)) {
            (true, false) => Sign::Add,
            (false, true) => Sign::Remove,
            (true, true) if self.from_nothing => Sign::Remove,
            (true, true) | (false, false) => Sign::Change,
        }
    }

    /// `2G → 1G`.
    fn words(&self, facts: &dyn Facts) -> String {
        let only = words::decoded(&self.after, self.version).map(|(_, value)| value);
        let after = words::value(&self.after, self.version, None, facts);
        if self.from_nothing || self.before.is_empty() {
            return after;
        }
        let before = words::value(&self.before, self.version, only.as_ref(), facts);
        let before = if before.is_empty() { "(empty)".to_owned() } else { before };
        format!("{before} → {after}")
    }
}

fn mounted(controllers: &[Controller], name: Option<&str>) -> String {
    let controllers =
        controllers.iter().filter_map(|controller| controller.name(Version::V1)).map(str::to_owned);
    controllers.chain(name.map(|name| format!("name={name}"))).collect::<Vec<String>>().join(",")
}

fn owners(access: &Ownership) -> String {
    let user = |uid: Option<u32>, gid: Option<u32>, mode: Option<u32>, of: &str| {
        let parts = [
            uid.map(|uid| format!("user {uid}")),
            gid.map(|gid| format!("group {gid}")),
            mode.map(|mode| format!("mode {mode:o}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{of}: {}", parts.join(", ")))
    };
    let all = [
        user(access.tasks_uid, access.tasks_gid, access.tasks_mode, "tasks"),
        user(access.admin_uid, access.admin_gid, access.file_mode, "settings"),
        user(None, None, access.directory_mode, "directory"),
    ];
    all.into_iter().flatten().collect::<Vec<String>>().join("; ")
}

/// How many go to which groups: `2 processes to /, 1 process to /a`.
fn places_of(tasks: &[Outsider]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    tasks.iter().for_each(|task| *counts.entry(&task.from).or_default() += 1);
    let place = |(path, count): (&str, usize)| format!("{} to /{path}", counted(count, "process"));
    counts.into_iter().map(place).collect::<Vec<_>>().join(", ")
}

/// What a layout comes to that changes nothing; `outside`: processes that are not in their groups were warned of.
pub fn nothing_to_do(outside: bool) -> &'static str {
    match outside {
        true => {
            "nothing to do for the groups, but not all processes are where the layout wants them: see the warnings\n"
        }
        false => "nothing to do: the machine is as the layout says\n",
    }
}

/// [`shown`], on this machine.
pub fn on_this_machine(plan: &Plan, host: &Host, verbose: bool) -> String {
    let current = |place: &Place, file: &str| now(host, place, file);
    let scene = Scene { hierarchies: &seen(host), current: &current, facts: &system::Live };
    shown(plan, scene, verbose, Paint::stdout())
}

/// What a file contains now; `None` in a group that is yet to be made.
pub fn now(host: &Host, place: &Place, file: &str) -> Option<String> {
    let at = host.hierarchies().get(place.hierarchy)?;
    host.kernel().read(at, &place.path, file).ok()
}

/// The hierarchies that a plan for this machine counts.
pub fn seen(host: &Host) -> Vec<SeenHierarchy> {
    apply::hierarchies(Target { host, system: &Running::new() }).hierarchies
}

/// A block per group and a count; with `verbose` also every step in its order, with its reason.
pub fn shown(plan: &Plan, scene: Scene<'_>, verbose: bool, paint: Paint) -> String {
    if plan.steps.is_empty() {
        return nothing_to_do(false).to_owned();
    }
    let blocks = Blocks::of(&plan.steps, scene);
    let mut text = blocks.shown(paint);
    if verbose {
        text.push_str("\nSteps, in this order:\n");
        for (number, step) in (1..).zip(&plan.steps) {
            let place =
                if scene.hierarchies.len() > 1 { label(step, scene.hierarchies) } else { String::new() };
            // writing to a String never fails
            let _ = writeln!(text, "{number:4}. {step}{place}\n      {}", step.why);
        }
    }
    let (add, change, remove) = blocks.counts();
    let _ = writeln!(text, "\nPlan: {add} to add, {change} to change, {remove} to remove");
    text
}

/// ` [memory]` of a step that is the same in each hierarchy; a file's name says it by itself.
fn label(step: &Step, hierarchies: &[SeenHierarchy]) -> String {
    let file = matches!(step.action, ::plan::Action::Write { .. } | ::plan::Action::SetDevices { .. });
    let at = step.action.place().filter(|_| !file).and_then(|place| hierarchies.get(place.hierarchy));
    at.map_or_else(String::new, |at| format!(" [{}]", name_of(at)))
}

/// A hierarchy by its controllers, its name, or `v2`.
pub fn name_of(at: &SeenHierarchy) -> String {
    match (&at.name, at.version) {
        (Some(name), _) => format!("name={name}"),
        (None, Version::V2) => "v2".to_owned(),
        (None, version) => {
            let names = at.controllers.iter().filter_map(|controller| controller.name(version));
            names.collect::<Vec<_>>().join(",")
        }
    }
}
