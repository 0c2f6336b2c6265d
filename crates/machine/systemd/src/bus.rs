//! The connection to the system's service manager, and what its answers mean.

use std::{collections::HashMap, fmt::Display, time::Duration};

use kernel::UnitError;
use zbus::{Connection, OwnedVariant, connection::Builder, fdo};

const SERVICE: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const MANAGER_OBJECT: &str = "/org/freedesktop/systemd1";
const PROPERTIES: Option<&str> = Some("org.freedesktop.DBus.Properties");
/// D-Bus's system bus.
const SOCKET: &str = "/run/dbus/system_bus_socket";
/// What all units have.
pub(crate) const UNIT: &str = "org.freedesktop.systemd1.Unit";

/// How long an answer is waited for. systemd's own tools wait 25 s (`BUS_DEFAULT_TIMEOUT` of sd-bus), as D-Bus's library does.
pub const ANSWER: Duration = Duration::from_secs(30);
/// The same for a reload of the units' files, which generators are run for: systemd kills them after 90 s
/// (`DEFAULT_TIMEOUT_USEC`), and systemctl waits for twice that (`DAEMON_RELOAD_TIMEOUT_SEC`).
pub const RELOAD: Duration = Duration::from_secs(180);

/// A connection to the system's service manager.
pub(crate) struct Systemd {
    bus: Connection,
    /// How long it waits for an answer.
    patience: Duration,
}

impl Systemd {
    /// By the system bus. systemd's own socket would need no bus daemon, but names its sender in a way that the
    /// D-Bus library refuses.
    pub(crate) async fn connect() -> Result<Systemd, UnitError> {
        Systemd::with_patience(ANSWER).await
    }

    /// The same, for a call that takes long.
    pub(crate) async fn with_patience(patience: Duration) -> Result<Systemd, UnitError> {
        let bus = Builder::system().method_timeout(patience).build().await;
        bus.map(|bus| Systemd { bus, patience }).map_err(|error| UnitError::NoBus { reason: no_bus(&error) })
    }

    /// What an error instead of an answer means. `what` was requested: `load x.service`.
    pub(crate) fn refusal(&self, what: impl Display, error: &zbus::Error) -> UnitError {
        answer(what, error, self.patience)
    }

    /// A property of a unit's object.
    pub(crate) async fn get<T>(
        &self,
        object: &str,
        interface: &str,
        name: &'static str,
    ) -> Result<T, UnitError>
    where
        T: TryFrom<OwnedVariant>,
        T::Error: Display,
    {
        let reply = self.bus.call_method(Some(SERVICE), object, PROPERTIES, "Get", &(interface, name)).await;
        let value = reply.and_then(|reply| reply.body().deserialize::<OwnedVariant>());
        let value = value.map_err(|error| self.refusal("return the unit's state", &error))?;
        T::try_from(value).map_err(|error| UnitError::Answer {
            what: "return the unit's state as expected".to_owned(),
            reason: format!("{name}: {error}"),
        })
    }

    /// All properties of an object's interface, by name.
    pub(crate) async fn all(
        &self,
        object: &str,
        interface: &str,
    ) -> Result<HashMap<String, OwnedVariant>, UnitError> {
        let reply = self.bus.call_method(Some(SERVICE), object, PROPERTIES, "GetAll", &interface).await;
        let all = reply.and_then(|reply| reply.body().deserialize::<HashMap<String, OwnedVariant>>());
        all.map_err(|error| self.refusal("return the unit's properties", &error))
    }

    /// Calls the manager.
    pub(crate) async fn call<B>(&self, method: &str, body: &B) -> Result<zbus::Message, zbus::Error>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        self.bus.call_method(Some(SERVICE), MANAGER_OBJECT, Some(MANAGER), method, body).await
    }
}

/// Did systemd refuse a property that this version does not have, or not for a new unit?
pub(crate) fn not_understood(error: &zbus::Error) -> bool {
    matches!(error, zbus::Error::FDO(error) if matches!(
        **error,
        fdo::Error::PropertyReadOnly(_) | fdo::Error::UnknownProperty(_) | fdo::Error::InvalidArgs(_)
    ))
}

/// Why there is no connection: the socket is looked at, unless the caller names another bus.
fn no_bus(error: &zbus::Error) -> String {
    let is_named = std::env::var_os("DBUS_SYSTEM_BUS_ADDRESS").is_some();
    match std::fs::symlink_metadata(SOCKET) {
        Err(error) if !is_named && error.kind() == std::io::ErrorKind::NotFound => {
            format!("the system bus does not run: there is no {SOCKET}")
        }
        _ => format!("the system bus does not answer: {}", words(error)),
    }
}

fn answer(what: impl Display, error: &zbus::Error, patience: Duration) -> UnitError {
    let (what, reason) = (what.to_string(), words(error));
    match error {
        zbus::Error::FDO(error) => match **error {
            fdo::Error::AccessDenied(_)
            | fdo::Error::AuthFailed(_)
            | fdo::Error::InteractiveAuthorizationRequired(_) => UnitError::Denied { what, reason },
            fdo::Error::ServiceUnknown(_)
            | fdo::Error::NameHasNoOwner(_)
            | fdo::Error::NoReply(_)
            | fdo::Error::Disconnected(_) => UnitError::NoBus { reason },
            _ => UnitError::Answer { what, reason },
        },
        zbus::Error::InputOutput(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            UnitError::Answer { what, reason: format!("no answer within {} s", patience.as_secs()) }
        }
        _ => UnitError::Answer { what, reason },
    }
}

/// systemd's own words, without the error's name.
pub(crate) fn words(error: &zbus::Error) -> String {
    use zbus::DBusError;
    let text = match error {
        zbus::Error::FDO(error) => error.description().map(str::to_owned),
        zbus::Error::MethodError(_, detail, _) => detail.clone(),
        _ => None,
    };
    let text = text.unwrap_or_else(|| error.to_string());
    text.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemds_answers_are_told_by_what_mends_them() {
        let fdo = |error| zbus::Error::FDO(Box::new(error));
        let denied = fdo(fdo::Error::AccessDenied("Access denied".to_owned()));
        let unknown =
            fdo(fdo::Error::PropertyReadOnly("Cannot set property X, or unknown property.".to_owned()));
        let refused = UnitError::Denied { what: "x".to_owned(), reason: "Access denied".to_owned() };
        assert_eq!(answer("x", &denied, ANSWER), refused);
        assert!(not_understood(&unknown) && !not_understood(&denied));
        assert_eq!(words(&unknown), "Cannot set property X, or unknown property");
        let gone = fdo(fdo::Error::ServiceUnknown("The name is not activatable".to_owned()));
        assert!(matches!(answer("x", &gone, ANSWER), UnitError::NoBus { .. }));
        let late = zbus::Error::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        let said = answer("read its files again", &late, RELOAD).to_string();
        assert_eq!(said, "systemd did not read its files again: no answer within 180 s");
    }
}
