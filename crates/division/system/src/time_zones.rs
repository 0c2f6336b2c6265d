//! The machine's own time zone, and those in `/usr/share/zoneinfo`.

use jiff::tz::{TimeZone, db};
use layout::schedule::Zones;

/// Reads them as they are needed; the files are read again after some minutes.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeZones;

impl Zones for TimeZones {
    fn zone(&self, name: Option<&str>) -> Option<TimeZone> {
        match name {
            // a machine without a setting has UTC, for every program
            None => Some(TimeZone::try_system().unwrap_or(TimeZone::UTC)),
            Some(name) if name.eq_ignore_ascii_case("utc") => Some(TimeZone::UTC),
            Some(name) => TimeZone::get(name).ok(),
        }
    }
}

impl TimeZones {
    /// How to go on where no zone has this name.
    pub fn hint(self, name: &str) -> String {
        let known: Vec<String> = db().available().map(|zone| zone.as_str().to_owned()).collect();
        if known.is_empty() {
            return "/usr/share/zoneinfo is missing: install tzdata, or use UTC".to_owned();
        }
        // a city without its continent
        let ends =
            |zone: &&String| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name));
        if let Some(zone) = known.iter().find(ends) {
            return format!("did you mean {zone}?");
        }
        match units::nearest(name, known.iter().map(String::as_str)).as_slice() {
            [] => "timedatectl list-timezones shows them, such as Europe/Berlin".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        }
    }
}
