//! Programs that write what we write too.

use topology::facts::{Facts, WRITERS, Writer};
use units::hint::Command;

use super::{Area, Finding, Level};

pub(super) fn writers(facts: &Facts) -> Vec<Finding> {
    let one = |writer: &Writer| {
        let known = WRITERS.iter().find(|known| known.name == writer.name)?;
        let choice = writer.choice.as_ref().map(|choice| format!(" ({choice})")).unwrap_or_default();
        let stop = match (&writer.unit, writer.pid) {
            (Some(unit), _) => Command::new("systemctl disable --now").arg(unit).to_string(),
            (None, Some(pid)) => Command::new("kill").arg(pid.to_string()).to_string(),
            (None, None) => known.stop.to_owned(),
        };
        let finding = Finding::new(Area::Owners, Level::Note, format!("{}{choice} is in force", known.name));
        Some(finding.so(format!("it writes {}; configured in {}", known.writes, known.file)).hint(stop))
    };
    facts.writers.iter().filter_map(one).collect()
}
