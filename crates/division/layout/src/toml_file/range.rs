//! `{ min, max }` in the place of a setting's value: it follows the group's load between the two.

use settings::{CpuMax, NamedSetting, Value as Amount};
use units::{Limit, Micros};

use crate::assigned::{PROTECTED, QUOTA};
use crate::collect::Collector;
use crate::diagnostic::Diagnostic;
use crate::names::AnyMachine;
use crate::reader::{Name, Reader, Value};

/// The settings that take one.
const FOLLOWING: [&str; 2] = [QUOTA, PROTECTED];

/// The kernel's period of a quota.
const PERIOD: Micros = Micros(100_000);

/// Is it a bound of a setting's range?
pub(super) fn is_bound(name: &str) -> bool {
    matches!(name, "min" | "max")
}

impl Reader<'_> {
    /// Takes the two bounds of a setting, in any order.
    pub(super) fn range(
        &mut self,
        found: NamedSetting,
        key: &Name<'_>,
        bounds: &[(&Name<'_>, &Value<'_>)],
        value: &Value<'_>,
        into: &mut Collector,
    ) {
        if !FOLLOWING.contains(&found.name.as_str()) {
            let message = format!("'{}' takes no min and max", found.name);
            let hint = format!("give one value; {} can follow the group's load", FOLLOWING.join(" and "));
            self.error(Diagnostic::error(message).at(self.origin(key)).hint(hint));
            return;
        }
        let bound =
            |name: &str| bounds.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| *value);
        let (Some(min), Some(max)) = (bound("min"), bound("max")) else {
            let hint = format!("such as {} = {{ {} }}", found.name, example(&found));
            self.wrong(value, format!("'{}' needs both min and max, or one value", found.name), &hint);
            return;
        };
        let before = self.report.errors();
        let texts = [min, max].map(|bound| self.bound(&found, bound));
        if self.report.errors() > before {
            into.say(&found, &found.name, &self.origin(key), self.report);
            return;
        }
        let [Some((min_text, least)), Some((max_text, most))] = texts else { return };
        match out_of_order((&min_text, &least), (&max_text, &most)) {
            Some((message, hint)) => self.wrong(value, format!("{}: {message}", found.name), hint),
            None => {
                let (name, at) = (self.origin(key), self.origin(value));
                into.assign_range(found, (&min_text, &max_text), name, at, self.report);
            }
        }
    }

    /// The text of one bound with what it says.
    fn bound(&mut self, found: &NamedSetting, value: &Value<'_>) -> Option<(String, Amount)> {
        let text = self.scalar(value)?;
        match found.parse(&text, &AnyMachine) {
            Ok(amount) => Some((text, amount)),
            Err(error) => {
                let error = Diagnostic::error(error.to_string()).maybe_hint(error.hint());
                self.error(error.at(self.origin(value)));
                None
            }
        }
    }
}

fn example(found: &NamedSetting) -> &'static str {
    match found.name.as_str() {
        QUOTA => "min = \"0.5cpu\", max = \"2cpu\"",
        _ => "min = \"1G\", max = \"4G\"",
    }
}

/// Why no value is between the two.
fn out_of_order(
    (min_text, min): (&str, &Amount),
    (max_text, max): (&str, &Amount),
) -> Option<(String, &'static str)> {
    let above = || (format!("min {min_text} is above max {max_text}"), "");
    let unlimited =
        || ("min and max are amounts, not max".to_owned(), "without a limit nothing follows the load");
    match (min, max) {
        (Amount::CpuMax(min), Amount::CpuMax(max)) => {
            let period = |of: &CpuMax| of.period.unwrap_or(PERIOD);
            let (Some(Limit::At(least)), Some(Limit::At(most))) = (min.quota, max.quota) else {
                return Some(unlimited());
            };
            if period(min) != period(max) {
                let message = format!("min has the period {} and max {}", period(min), period(max));
                return Some((message, "give both the same, such as \"50ms/100ms\" and \"200ms/100ms\""));
            }
            (least > most).then(above)
        }
        (Amount::Bytes(Limit::At(min)), Amount::Bytes(Limit::At(max))) => (min > max).then(above),
        _ => Some(unlimited()),
    }
}
