//! The delegated unit that our groups live below on a systemd host, requested over D-Bus; and which unit a group
//! of systemd's belongs to. Never writes into systemd's tree and never changes anybody else's unit.
//!
//! The unit is a oneshot service that stays active after its program (`true`) has ended, so it needs no process:
//! there is none to be killed, none that a restart would have to put into a group that holds groups (the kernel
//! refuses that with EBUSY), and systemd removes nothing while the unit stays active. Seen with systemd 252 and
//! 257: groups, also empty ones, and their settings outlive daemon-reload, daemon-reexec and isolate.
//!
//! Sources: systemd's docs/CGROUP_DELEGATION.md, org.freedesktop.systemd1(5), systemd.resource-control(5).

use std::time::{Duration, Instant};

use settings::Version;
use zbus::{OwnedObjectPath, Variant};

use kernel::{Error, Host, UnitError};
use topology::facts::{Base, UNIT_NAME, UNIT_PATH, UNIT_SLICE};

use crate::bus::{ANSWER, Systemd, UNIT, not_understood, words};

const UNIT_SERVICE: &str = "org.freedesktop.systemd1.Service";
/// The object of [`UNIT_NAME`], escaped as systemd does it.
const UNIT_OBJECT: &str = "/org/freedesktop/systemd1/unit/ringfence_2eservice";

const POLL: Duration = Duration::from_millis(10);

/// Makes sure that systemd has made the delegated unit that [`Base::Unit`] means: nothing if it is active, else it
/// is started and waited for. Nothing at all where no hierarchy has [`Base::Unit`].
///
/// # Errors
/// [`UnitError`]; half-made units are systemd's to remove, and it does.
pub fn ensure_unit(host: &Host) -> Result<(), Error> {
    let of_unit = |version: Version| {
        host.hierarchies().iter().find(|at| at.version == version && host.base(at) == &Base::Unit)
    };
    if !host.needs_unit() {
        return Ok(());
    }
    zbus::block_on(async {
        Delegated(Systemd::connect().await?).ensure(of_unit(Version::V1).is_some()).await
    })?;
    match of_unit(Version::V2) {
        Some(at) if !host.kernel().exists(at, UNIT_PATH) => {
            Err(UnitError::NoGroup { path: at.path(UNIT_PATH) }.into())
        }
        _ => Ok(()),
    }
}

/// The unit, by a connection.
struct Delegated(Systemd);

impl Delegated {
    /// The unit active and with a control group of its own.
    async fn ensure(&self, on_v1: bool) -> Result<(), UnitError> {
        if self.property(UNIT, "ActiveState").await? != "active" {
            self.start(on_v1).await?;
            self.settle().await?;
        }
        // a service whose program has ended loses its empty group; whatever changes its resources brings it back
        if self.property(UNIT_SERVICE, "ControlGroup").await?.is_empty() {
            let body = (UNIT_NAME, true, vec![("TasksMax", Variant::from(u64::MAX))]);
            let made = self.0.call("SetUnitProperties", &body).await;
            made.map_err(|error| {
                self.0.refusal(format_args!("make a control group for {UNIT_NAME}"), &error)
            })?;
        }
        Ok(())
    }

    /// Starts the unit as it is known, or makes it known.
    async fn start(&self, on_v1: bool) -> Result<(), UnitError> {
        match self.property(UNIT, "LoadState").await?.as_str() {
            "masked" => Err(UnitError::Masked),
            // an administrator's own file, or ours from before somebody stopped it
            "loaded" => {
                let started = self.0.call("StartUnit", &(UNIT_NAME, "replace")).await;
                started.map(drop).map_err(|error| self.0.refusal(format_args!("start {UNIT_NAME}"), &error))
            }
            _ => self.start_transient(on_v1).await,
        }
    }

    /// Makes the unit known and starts it; in plainer words where systemd does not understand the better ones.
    async fn start_transient(&self, on_v1: bool) -> Result<(), UnitError> {
        let best = if on_v1 { Delegation::EveryV1Controller } else { Delegation::OwnStart };
        match self.transient(best).await {
            Err(error) if not_understood(&error) => match self.transient(Delegation::Plain).await {
                Err(error) if not_understood(&error) => Err(UnitError::TooOld { reason: words(&error) }),
                Err(error) => Err(self.0.refusal(format_args!("start {UNIT_NAME}"), &error)),
                Ok(()) => Ok(()),
            },
            Err(error) => Err(self.0.refusal(format_args!("start {UNIT_NAME}"), &error)),
            Ok(()) => Ok(()),
        }
    }

    async fn transient(&self, delegation: Delegation) -> Result<(), zbus::Error> {
        let no_units: Vec<(&str, Vec<(&str, Variant<'_>)>)> = Vec::new();
        let body = (UNIT_NAME, "replace", properties(delegation), no_units);
        self.0.call("StartTransientUnit", &body).await.map(drop)
    }

    /// Waits until the job is done and says how it went.
    async fn settle(&self) -> Result<(), UnitError> {
        let started = Instant::now();
        loop {
            let (job, _): (u32, OwnedObjectPath) = self.0.get(UNIT_OBJECT, UNIT, "Job").await?;
            // read after the job: without one this is where it stays
            let state = self.property(UNIT, "ActiveState").await?;
            match (state.as_str(), job) {
                ("active", _) => return Ok(()),
                ("failed", _) | (_, 0) => {
                    let result = self.property(UNIT_SERVICE, "Result").await?;
                    return Err(UnitError::Failed { state, result });
                }
                _ if started.elapsed() >= ANSWER => {
                    return Err(UnitError::Timeout { seconds: ANSWER.as_secs(), state });
                }
                // nothing else runs on this thread meanwhile
                _ => std::thread::sleep(POLL),
            }
        }
    }

    async fn property(&self, interface: &str, name: &'static str) -> Result<String, UnitError> {
        self.0.get(UNIT_OBJECT, interface, name).await
    }
}

/// How the unit's control group is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delegation {
    /// `Delegate=yes`.
    Plain,
    /// The program starts in a group of its own, so that a restart succeeds also above groups with processes.
    /// systemd 254; without it the program fails to start there, which is ignored until 255 starts it otherwise.
    OwnStart,
    /// `Delegate=yes` leaves out v1's blkio and devices, and a daemon-reload would remove our groups there.
    EveryV1Controller,
}

/// The unit's properties, as `systemctl cat ringfence.service` shows them.
fn properties(delegation: Delegation) -> Vec<(&'static str, Variant<'static>)> {
    // the program is a formality: that it is missing or fails is ignored (the last word of ExecStart)
    let command = vec![("/bin/true", vec!["/bin/true"], true)];
    let mut properties = vec![
        ("Description", Variant::from("Control groups of ringfence")),
        ("Slice", Variant::from(UNIT_SLICE)),
        ("Type", Variant::from("oneshot")),
        ("ExecStart", Variant::from(command)),
        ("RemainAfterExit", Variant::from(true)),
        // stopping it would take the limits off every group: no systemctl stop, no isolate, no stop by an
        // out-of-memory kill in one group; and if it is stopped after all, no process dies of it
        ("RefuseManualStop", Variant::from(true)),
        ("IgnoreOnIsolate", Variant::from(true)),
        ("OOMPolicy", Variant::from("continue")),
        ("KillMode", Variant::from("process")),
        // a service gets 15 % of the machine's tasks otherwise, all groups together
        ("TasksMax", Variant::from(u64::MAX)),
        ("CollectMode", Variant::from("inactive-or-failed")),
    ];
    properties.extend(match delegation {
        Delegation::Plain => vec![("Delegate", Variant::from(true))],
        Delegation::OwnStart => {
            vec![("Delegate", Variant::from(true)), ("DelegateSubgroup", Variant::from("unit-start"))]
        }
        Delegation::EveryV1Controller => {
            let all = vec!["cpu", "cpuacct", "cpuset", "io", "blkio", "memory", "devices", "pids"];
            vec![("DelegateControllers", Variant::from(all))]
        }
    });
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_delegated_whole_and_outlives_its_program() {
        let names = |delegation| {
            let properties = properties(delegation);
            properties.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        let plain = names(Delegation::Plain);
        for property in ["Delegate=true", "RemainAfterExit=true", "RefuseManualStop=true"] {
            assert!(plain.iter().any(|found| found == property), "{property} in {plain:?}");
        }
        assert!(
            names(Delegation::EveryV1Controller).iter().any(|p| p.contains("blkio") && p.contains("devices"))
        );
        assert!(names(Delegation::OwnStart).iter().any(|p| p.starts_with("DelegateSubgroup=")));
    }
}
