//! What systemd knows of units, and the request to read their files again.

use std::{collections::BTreeSet, time::Duration};

use kernel::UnitError;
use zbus::{OwnedObjectPath, OwnedVariant, Variant};

use crate::bus::{Systemd, UNIT};

/// A unit as systemd knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unit {
    /// `LoadState`: `loaded`, `not-found`, `masked`, `error`…
    pub load: String,
    /// The name that its group has; another where it was named by an alias.
    pub id: String,
    /// Its control group, with a leading slash; empty while it does not run.
    pub control_group: String,
    /// The slice that it is in; empty for one that has none.
    pub slice: String,
    /// `RootDirectory=` or `RootImage=`, which the commands before its start run in; empty for the machine's own root.
    pub root: String,
    /// `Delegate=`: may it divide its control group?
    pub delegates: bool,
    /// `Type=` of a service; empty for others.
    pub kind: String,
    /// `KillMode=`; empty where there is none.
    pub kill_mode: String,
    /// Was it made on the fly (systemd-run)?
    pub is_transient: bool,
    /// The names of all properties that this systemd has for such units.
    pub properties: BTreeSet<String>,
}

/// What systemd knows of these units, in this order; it loads those that were not needed so far.
///
/// # Errors
/// [`UnitError`]: no bus, or systemd does not answer.
pub fn units(names: &[&str]) -> Result<Vec<Unit>, UnitError> {
    zbus::block_on(async {
        let systemd = Systemd::connect().await?;
        let mut units = Vec::with_capacity(names.len());
        for name in names {
            units.push(unit(&systemd, name).await?);
        }
        Ok(units)
    })
}

async fn unit(systemd: &Systemd, name: &str) -> Result<Unit, UnitError> {
    let object = systemd.call("LoadUnit", &name).await;
    let object = object.and_then(|reply| reply.body().deserialize::<OwnedObjectPath>());
    let object = object.map_err(|error| systemd.refusal(format_args!("load {name}"), &error))?;
    let of_all = systemd.all(object.as_str(), UNIT).await?;
    let own = systemd.all(object.as_str(), &interface(name)).await?;
    let text = |value: Option<&OwnedVariant>| value.and_then(|value| String::try_from(value.clone()).ok());
    let flag = |value: Option<&OwnedVariant>| value.and_then(|value| bool::try_from(value.clone()).ok());
    let mut roots = ["RootDirectory", "RootImage"].into_iter().filter_map(|name| text(own.get(name)));
    let root = match flag(own.get("RootDirectoryStartOnly")) {
        Some(true) => None,
        _ => roots.find(|root| !root.is_empty() && root != "/"),
    };
    Ok(Unit {
        load: text(of_all.get("LoadState")).unwrap_or_default(),
        id: text(of_all.get("Id")).unwrap_or_default(),
        control_group: text(own.get("ControlGroup")).unwrap_or_default(),
        slice: text(own.get("Slice")).unwrap_or_default(),
        root: root.unwrap_or_default(),
        kind: text(own.get("Type")).unwrap_or_default(),
        kill_mode: text(own.get("KillMode")).unwrap_or_default(),
        delegates: flag(own.get("Delegate")).unwrap_or_default(),
        is_transient: flag(of_all.get("Transient")).unwrap_or_default(),
        properties: own.into_keys().collect(),
    })
}

/// The names of the loaded units that fit one of these patterns (`systemctl list-units --all --state=loaded`).
///
/// # Errors
/// As [`units`].
pub fn fitting(patterns: &[&str]) -> Result<Vec<String>, UnitError> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    zbus::block_on(async {
        let systemd = Systemd::connect().await?;
        let listed = systemd.call("ListUnitsByPatterns", &(&["loaded"][..], patterns)).await;
        let listed = listed.and_then(|reply| reply.body().deserialize::<Vec<Listed>>());
        let listed = listed.map_err(|error| systemd.refusal("list the units", &error))?;
        Ok(listed.into_iter().map(|unit| unit.0).collect())
    })
}

/// Which of these units are active, in this order: all but those that are `inactive` or `failed`. A oneshot service is while
/// it starts.
///
/// # Errors
/// As [`units`].
pub fn active(names: &[&str]) -> Result<Vec<bool>, UnitError> {
    zbus::block_on(async {
        let systemd = Systemd::connect().await?;
        let mut active = Vec::with_capacity(names.len());
        for name in names {
            let object = systemd.call("LoadUnit", name).await;
            let object = object.and_then(|reply| reply.body().deserialize::<OwnedObjectPath>());
            let object = object.map_err(|error| systemd.refusal(format_args!("load {name}"), &error))?;
            let state: String = systemd.get(object.as_str(), UNIT, "ActiveState").await?;
            active.push(!matches!(state.as_str(), "inactive" | "failed"));
        }
        Ok(active)
    })
}

/// The interface of a unit of that kind.
fn interface(name: &str) -> String {
    let kind = name.rsplit('.').next().unwrap_or_default();
    let mut letters = kind.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    format!("org.freedesktop.systemd1.{}{}", first.map(String::from).unwrap_or_default(), letters.as_str())
}

/// Names that are near to one that systemd does not know: of units that run, and of files of units.
///
/// # Errors
/// As [`units`].
pub fn near(name: &str) -> Result<Vec<String>, UnitError> {
    zbus::block_on(async {
        let systemd = Systemd::connect().await?;
        let files = systemd.call("ListUnitFiles", &()).await;
        let files = files.and_then(|reply| reply.body().deserialize::<Vec<(String, String)>>());
        let files = files.map_err(|error| systemd.refusal("list the units' files", &error))?;
        let mut names = running(&systemd).await?;
        let file = |(path, _): (String, String)| path.rsplit('/').next().map(str::to_owned);
        names.extend(files.into_iter().filter_map(file));
        let near = units::nearest(name, names.iter().map(String::as_str));
        Ok(near.into_iter().map(str::to_owned).collect())
    })
}

type Listed = (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

async fn running(systemd: &Systemd) -> Result<BTreeSet<String>, UnitError> {
    let listed = systemd.call("ListUnits", &()).await;
    let listed = listed.and_then(|reply| reply.body().deserialize::<Vec<Listed>>());
    let listed = listed.map_err(|error| systemd.refusal("list the units", &error))?;
    Ok(listed.into_iter().filter(|unit| unit.3 == "active").map(|unit| unit.0).collect())
}

/// Services that run with a `CPUAffinity=` of their own.
///
/// # Errors
/// As [`units`].
pub fn pinned() -> Result<Vec<String>, UnitError> {
    zbus::block_on(async {
        let systemd = Systemd::connect().await?;
        let mut pinned = Vec::new();
        for name in running(&systemd).await?.into_iter().filter(|name| name.ends_with(".service")) {
            let object = systemd.call("GetUnit", &name.as_str()).await;
            // one that ended meanwhile is none
            let Ok(object) = object.and_then(|reply| reply.body().deserialize::<OwnedObjectPath>()) else {
                continue;
            };
            let cpus = systemd.get::<Vec<u8>>(object.as_str(), &interface(&name), "CPUAffinity").await;
            if cpus.is_ok_and(|cpus| cpus.iter().any(|byte| *byte != 0)) {
                pinned.push(name);
            }
        }
        Ok(pinned)
    })
}

/// Lets systemd read its files again (`systemctl daemon-reload`), and set what they say of these units.
///
/// systemd 257 sets it only when something of the unit changes: the flag [`FLAG`] is set to what it is, of those that run.
///
/// Each answer is waited for as long as `patience`: [`RELOAD`](crate::RELOAD), but less where that would be too long for the caller.
///
/// # Errors
/// As [`units`].
pub fn reload(names: &[&str], patience: Duration) -> Result<(), UnitError> {
    zbus::block_on(async {
        let systemd = Systemd::with_patience(patience).await?;
        let reloaded = systemd.call("Reload", &()).await;
        reloaded.map_err(|error| systemd.refusal("read its files again", &error))?;
        for name in names {
            let object = systemd.call("GetUnit", name).await;
            // one that is not loaded has no group
            let Ok(object) = object.and_then(|reply| reply.body().deserialize::<OwnedObjectPath>()) else {
                continue;
            };
            let group = systemd.get::<String>(object.as_str(), &interface(name), "ControlGroup").await;
            if group.as_ref().is_ok_and(String::is_empty)
                || group.is_err() && systemd.call("GetUnit", name).await.is_err()
            {
                continue;
            }
            group?;
            let flag: bool = systemd.get(object.as_str(), &interface(name), FLAG).await?;
            let set =
                systemd.call("SetUnitProperties", &(name, true, vec![(FLAG, Variant::from(flag))])).await;
            if let Err(error) = set {
                // one that ended meanwhile has no group any more
                if systemd.call("GetUnit", name).await.is_err() {
                    continue;
                }
                return Err(systemd.refusal("set what the unit's files say", &error));
            }
            // the groups are changed before the next call is taken (manager_loop())
            let changed = systemd.get::<String>(object.as_str(), UNIT, "ActiveState").await;
            if changed.is_err() && systemd.call("GetUnit", name).await.is_ok() {
                changed?;
            }
        }
        Ok(())
    })
}

/// Were files of the unit changed since systemd read them (`NeedDaemonReload=`)? Not of one that is not loaded.
///
/// # Errors
/// As [`units`].
pub fn needs_reload(name: &str) -> Result<bool, UnitError> {
    zbus::block_on(async {
        let systemd = Systemd::connect().await?;
        let object = systemd.call("GetUnit", &name).await;
        match object.and_then(|reply| reply.body().deserialize::<OwnedObjectPath>()) {
            Ok(object) => systemd.get(object.as_str(), UNIT, "NeedDaemonReload").await,
            Err(_) => Ok(false),
        }
    })
}

/// A flag of units with a control group that systemd has switched on by itself, and that limits nothing.
pub const FLAG: &str = "TasksAccounting";
