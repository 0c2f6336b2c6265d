//! A group's page: settings with what they mean, tasks, what slowed it down; and changes of its settings.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use answers::Problem;
use apply::{Resizes, Running, SettingValue, State, Target};
use exporters::view::{self, Ran, Trail};
use kernel::{GroupName, Host};
use monitor::{Descriptors, Task};
use settings::{Fidelity, NamedSetting, Setting, Version};
use system::Accounts;
use units::hint::Command;
use why::{KernelKills, Kills};

use crate::{
    api::groups::{
        Cause, Change, ChangePlan, Changed, ChangedBy, Group, Kill, LimitCount, Number, Resize, SettingInfo,
        Side, Why, WhyNote, Write,
    },
    history,
    live::hierarchies,
    program::Program,
};

/// Tasks that a page shows.
const TASKS: usize = 500;
/// Changes of an elastic group's CPUs.
const RESIZES: usize = 20;
/// Processes that were killed.
const KILLS: usize = 20;
/// Groups whose tasks are remembered, each until another one is looked at.
const LOOKED_AT: usize = 8;

/// What tasks did before, as their share of the time needs two looks; and what the kernel's log had.
#[derive(Debug, Default)]
pub struct Looks(Mutex<Vec<Look>>, Mutex<KernelKills>);

#[derive(Debug)]
struct Look {
    group: String,
    at: Instant,
    tasks: Vec<Task>,
    trail: Trail,
}

impl Looks {
    fn ran(&self, group: &str, tasks: Vec<Task>) -> Vec<Ran> {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = Instant::now();
        let before = looks.iter().position(|look| look.group == group).map(|place| looks.remove(place));
        let (mut ran, mut trail) = match before {
            Some(before) => (view::ran_between(&before.tasks, tasks.clone(), at - before.at), before.trail),
            None => (view::ran_between(&[], tasks.clone(), Duration::ZERO), Trail::default()),
        };
        trail.follow(&mut ran);
        if looks.len() >= LOOKED_AT {
            looks.remove(0);
        }
        looks.push(Look { group: group.to_owned(), at, tasks, trail });
        ran
    }
}

/// A group's page.
///
/// # Errors
/// There is no such group.
pub fn group(
    host: &Host,
    name: &GroupName,
    looks: &Looks,
    limits: Vec<LimitCount>,
    state: &State,
) -> Result<Group, Problem> {
    let tasks = monitor::tasks(host, name)?;
    let group = name.to_string();
    let ran = looks.ran(&group, tasks);
    let settings = apply::all(host, name, Setting::can_be_set);
    let mut resizes = Resizes::of(state).last(usize::MAX).unwrap_or_default();
    resizes.retain(|one| one.group == group);
    let resizes = resizes.split_off(resizes.len().saturating_sub(RESIZES));
    let accounts = Accounts::new();
    let mut kernel = looks.1.lock().unwrap_or_else(PoisonError::into_inner);
    let mut kills = Kills::of(host, state, name, &mut kernel).of_group;
    drop(kernel);
    let kills = kills.split_off(kills.len().saturating_sub(KILLS));
    let killed =
        |kill: &monitor::Kill| Kill { at_ms: kill.at, sentence: why::sentence(host, kill, &accounts) };
    Ok(Group {
        unit: group.strip_prefix('/').and_then(kernel::unit_of),
        hierarchies: hierarchies(host, &group)?,
        settings: settings.into_iter().map(|(found, reading)| info(&found, &reading)).collect(),
        limits,
        tasks_total: ran.len(),
        tasks: ran.into_iter().take(TASKS).map(task).collect(),
        resizes: resizes.iter().map(|one| Resize { at_ms: one.at, sentence: one.to_string() }).collect(),
        kills: kills.iter().map(killed).collect(),
        group,
    })
}

fn task(ran: Ran) -> crate::api::groups::Task {
    let process = ran.task.process;
    crate::api::groups::Task {
        tid: process.pid,
        pid: process.tgid,
        comm: units::printable(&process.comm).into_owned(),
        state: process.state.to_string(),
        policy: view::policy(process.policy),
        cpu: process.last_cpu as usize,
        cpus_before: ran.cpus_before.iter().map(|cpu| *cpu as usize).collect(),
        running: ran.running,
        waiting: ran.waiting,
        group: ran.task.group,
    }
}

fn info(found: &NamedSetting, reading: &apply::Reading) -> SettingInfo {
    let setting = found.setting;
    let own = setting.side(reading.place.version).binding();
    SettingInfo {
        name: found.name.clone(),
        value: shown(found, reading),
        controller: own
            .and_then(|own| own.controller.name(reading.place.version))
            .unwrap_or("core")
            .to_owned(),
        kind: kind(setting),
        help: setting.doc.to_owned(),
        example: setting.example.to_owned(),
        unit: unit(setting).map(str::to_owned),
        range: own.and_then(|own| settings::range(setting.kind, own)),
        choices: match setting.kind {
            settings::Kind::Word(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            _ => Vec::new(),
        },
        can_set: setting.can_be_set(),
        file: reading.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", "),
        v1: side(setting, Version::V1),
        v2: side(setting, Version::V2),
    }
}

fn shown(found: &NamedSetting, reading: &apply::Reading) -> String {
    found.show(&reading.value).trim_end().to_owned()
}

/// As JSON names it: `bytes`, `cpu_max`.
fn kind(setting: &Setting) -> String {
    match serde_json::to_value(setting.kind) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(serde_json::Value::Object(one)) => one.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

fn unit(setting: &Setting) -> Option<&'static str> {
    match setting.kind {
        settings::Kind::Bytes => Some("bytes"),
        settings::Kind::Micros => Some("microseconds"),
        settings::Kind::CpuTime => Some("nanoseconds"),
        settings::Kind::Percent => Some("percent"),
        _ => None,
    }
}

fn side(setting: &'static Setting, version: Version) -> Option<Side> {
    let binding = setting.side(version).binding()?;
    Some(Side {
        files: binding.names().iter().map(|file| (*file).to_owned()).collect(),
        range: settings::range(setting.kind, binding),
        default: (!binding.initial.is_empty()).then(|| binding.initial.join(" and ")),
        fidelity: match binding.fidelity {
            Fidelity::Approximate(how) => Some(how.to_owned()),
            Fidelity::Exact => None,
        },
    })
}

/// What slowed a group down in the time from now on.
///
/// # Errors
/// There is no such group.
pub fn why(host: &Host, name: &GroupName, state: &State, span: Duration) -> Result<Why, Problem> {
    let target = Target { host, system: &Running::new() };
    let facts = why::gather_recorded(target, Descriptors::new(), name, state, span)?;
    let answer = why::why(&facts);
    let number = |number: &why::Number| Number { name: number.name.to_owned(), text: number.written() };
    let cause = |cause: &why::Cause| Cause {
        kind: serde_json::to_value(cause.kind)
            .ok()
            .and_then(|kind| kind.as_str().map(str::to_owned))
            .unwrap_or_default(),
        at: cause.at.clone(),
        sentence: cause.sentence.clone(),
        share: cause.share,
        numbers: cause.numbers.iter().map(number).collect(),
        hint: cause.hint.clone(),
        choices: cause.choices.iter().map(|choice| choice.command.clone()).collect(),
    };
    Ok(Why {
        group: answer.group.clone(),
        seconds: answer.seconds,
        tasks: answer.tasks,
        used: answer.used.iter().map(number).collect(),
        causes: answer.causes.iter().map(cause).collect(),
        notes: answer
            .notes
            .iter()
            .map(|note| WhyNote { sentence: note.sentence.clone(), hint: note.hint.clone() })
            .collect(),
        text: answer.to_string(),
        command: Command::ringfence("why")
            .group(name)
            .args(["--for", &format!("{}s", span.as_secs_f64())])
            .to_string(),
    })
}

/// What a change would write.
///
/// # Errors
/// There is no such group, setting or value.
pub fn plan(
    host: &Host,
    name: &GroupName,
    change: &Change,
    program: &Program,
) -> Result<ChangePlan, Problem> {
    let generation = history::newest(program);
    let (mut requests, mut notes) = (Vec::new(), Vec::new());
    for (setting, text) in &change.set {
        let invalid = |error: apply::InvalidSetting| {
            let hint = match &error {
                apply::InvalidSetting::Unknown(error) => Some(error.hint()),
                apply::InvalidSetting::Value(error) => error.hint(),
            };
            Problem::invalid(error).maybe_hint(hint)
        };
        let (value, warned) = SettingValue::parse(setting, text, &system::Live).map_err(invalid)?;
        notes.extend(warned);
        notes.extend(
            plan::starving(&value.found, &value.value, name)
                .map(|(message, hint)| format!("{message} ({hint})")),
        );
        requests.push(value.request(host, name)?);
    }
    let writes = apply::preview(host, &requests)?;
    if apply::inverse(host, &requests).is_empty() {
        notes.push("this can't be undone".to_owned());
    }
    Ok(ChangePlan {
        group: name.to_string(),
        writes: writes
            .into_iter()
            .map(|write| Write {
                file: write.path.display().to_string(),
                text: write.text,
                why: write.why.map(str::to_owned),
            })
            .collect(),
        notes,
        before: values(host, name, change.set.keys())?,
        generation,
        command: command(name, change).to_string(),
    })
}

/// The values of some settings now.
fn values<'n>(
    host: &Host,
    name: &GroupName,
    settings: impl Iterator<Item = &'n String>,
) -> Result<BTreeMap<String, String>, Problem> {
    let one = |setting: &String| {
        let found = settings::find(setting).map_err(|error| {
            let hint = error.hint();
            Problem::invalid(error).hint(hint)
        })?;
        let reading = apply::get(host, name, &found)?;
        Ok((setting.clone(), shown(&found, &reading)))
    };
    settings.map(one).collect()
}

fn command(name: &GroupName, change: &Change) -> Command {
    let typed: Vec<String> = change.set.iter().map(|(setting, value)| format!("{setting}={value}")).collect();
    Command::ringfence("set").group(name).args(typed.iter().map(String::as_str))
}

/// Changes settings as `ringfence set` does.
///
/// # Errors
/// A value is not what the page showed any more; the command's refusal.
pub fn change(host: &Host, name: &GroupName, change: &Change, program: &Program) -> Result<Changed, Problem> {
    if change.set.is_empty() {
        return Err(Problem::invalid("no setting is named"));
    }
    change.expected_generation.map_or(Ok(()), |expected| history::expect(program, expected))?;
    let now = values(host, name, change.expected.keys())?;
    if now != change.expected {
        let other: Vec<&String> = now
            .iter()
            .filter(|(name, value)| change.expected.get(*name) != Some(value))
            .map(|(name, _)| name)
            .collect();
        let names = other.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        let problem = Problem::conflict(format!(
            "{names} of '{name}' has another value than this page shows; nothing was changed"
        ));
        return Err(Problem {
            current: now,
            ..problem.hint("look at the new value, and change it again if that is still meant")
        });
    }
    let typed = change.set.iter().map(|(setting, value)| format!("{setting}={value}").into());
    let mut args: Vec<std::ffi::OsString> = vec!["set".into(), "--json".into()];
    args.extend(program.state_option());
    args.extend(program.socket_option());
    args.extend(change.expected_generation.into_iter().flat_map(history::expectation));
    args.push("--".into());
    args.push(name.to_string().into());
    args.extend(typed);
    let newest = history::newest(program);
    let printed = program.run(args)?;
    let done: serde_json::Value = printed.json()?;
    let mut notes = printed.warnings();
    let mut writes = Vec::new();
    for one in done["changes"].as_array().into_iter().flatten() {
        let texts = |field: &str| {
            one[field]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|note| note.as_str())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        for field in ["warnings", "differences", "approximations"] {
            notes.extend(
                texts(field)
                    .into_iter()
                    .filter(|note| !notes.iter().any(|known| known.ends_with(note)))
                    .collect::<Vec<_>>(),
            );
        }
        writes.extend(one["written"].as_array().into_iter().flatten().map(|write| Write {
            file: write["path"].as_str().unwrap_or_default().to_owned(),
            text: write["text"].as_str().unwrap_or_default().trim_end().to_owned(),
            why: write["why"].as_str().map(str::to_owned),
        }));
    }
    Ok(Changed {
        group: name.to_string(),
        by: if done["by"] == "ringfenced" { ChangedBy::Ringfenced } else { ChangedBy::Ringfence },
        values: values(host, name, change.set.keys())?,
        writes,
        notes,
        generation: history::newest(program).filter(|now| newest.is_some_and(|newest| newest != *now)),
        command: command(name, change).to_string(),
    })
}
