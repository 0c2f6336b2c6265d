//! The value that rolls back a request's change.

use std::collections::BTreeMap;

use settings::{DeviceClass, DeviceRule, Hundredths, NamedSetting, Value};
use units::Limit;

/// What to request so that everything `requested` named is as it was `before`; what it did not name is not touched. Of
/// `devices.allow` and `devices.deny`, `before` is the content of `devices.list`. Empty where nothing can put it back
/// (an action, such as reclaiming).
pub fn restoring(found: &NamedSetting, requested: &Value, before: &Value) -> Vec<(NamedSetting, Value)> {
    match (requested, before) {
        (Value::Rules(requested), Value::Rules(before)) => turned(found, requested, before),
        // an invalid partition is read with the reason behind it, which the kernel does not take back
        (Value::Word(_), Value::Word(before)) => {
            let word = before.split(' ').next().unwrap_or_default().to_owned();
            vec![(found.clone(), Value::Word(word))]
        }
        _ => restored(requested, before).map(|value| (found.clone(), value)).into_iter().collect(),
    }
}

fn restored(requested: &Value, before: &Value) -> Option<Value> {
    Some(match (requested, before) {
        (Value::PerDevice(requested), Value::PerDevice(before)) => Value::PerDevice(
            requested
                .iter()
                .map(|(device, keys)| {
                    let was = |key: &&'static str| {
                        before.get(device).and_then(|limits| limits.get(key)).copied().unwrap_or(Limit::Max)
                    };
                    (*device, keys.keys().map(|key| (*key, was(key))).collect())
                })
                .collect(),
        ),
        (Value::Weights { default, devices }, Value::Weights { default: was, devices: were }) => {
            Value::Weights {
                default: default.and(was.or(Some(Hundredths(100 * 100)))),
                devices: devices
                    .keys()
                    .map(|device| (*device, were.get(device).copied().flatten()))
                    .collect(),
            }
        }
        (Value::Keyed(requested), Value::Keyed(before)) => Value::Keyed(
            requested
                .iter()
                .map(|(name, keys)| {
                    let was = |key: &String| {
                        before
                            .get(name)
                            .and_then(|limits| limits.get(key))
                            .cloned()
                            .unwrap_or_else(|| "max".to_owned())
                    };
                    (name.clone(), keys.keys().map(|key| (key.clone(), was(key))).collect::<BTreeMap<_, _>>())
                })
                .collect(),
        ),
        (Value::Text(_), _) => return None,
        (_, before) => before.clone(),
    })
}

/// Rules for the opposite file: what was allowed already is not denied again, and what was denied is given back.
fn turned(
    found: &NamedSetting,
    requested: &[DeviceRule],
    before: &[DeviceRule],
) -> Vec<(NamedSetting, Value)> {
    let all = |rules: &[DeviceRule]| rules.iter().any(|rule| rule.class == DeviceClass::All);
    let (opposite, rules) = match found.setting.name {
        "devices.allow" if all(before) => return Vec::new(),
        "devices.allow" => {
            ("devices.deny", requested.iter().filter(|rule| !before.contains(rule)).copied().collect())
        }
        // allowing what is allowed changes nothing
        _ if all(before) => ("devices.allow", requested.to_vec()),
        _ => ("devices.allow", before.to_vec()),
    };
    settings::lookup(opposite).map(|found| (found, Value::Rules(rules))).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_value_is_restored_in_just_the_parts_it_named() {
        let found = settings::find("io.max").unwrap();
        let device = "8:16".parse().unwrap();
        let other = "8:32".parse().unwrap();
        let limits = |pairs: &[(settings::DeviceNumber, &'static str, Limit<u64>)]| {
            let mut map: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
            pairs.iter().for_each(|(device, key, limit)| {
                map.entry(*device).or_default().insert(*key, *limit);
            });
            Value::PerDevice(map)
        };
        let before = limits(&[(device, "rbps", Limit::At(5)), (other, "riops", Limit::At(7))]);
        let requested = limits(&[(device, "rbps", Limit::At(9)), (device, "riops", Limit::At(10))]);
        let expected = limits(&[(device, "rbps", Limit::At(5)), (device, "riops", Limit::Max)]);
        assert_eq!(restored(&requested, &before), Some(expected));
        assert!(restoring(&found, &Value::Text(String::new()), &before).is_empty());
    }

    #[test]
    fn an_invalid_partition_is_restored_without_the_reason_behind_it() {
        let found = settings::find("cpuset.cpus.partition").unwrap();
        let word = |text: &str| Value::Word(text.to_owned());
        let before = word("root invalid (Cpu list in cpuset.cpus not exclusive)");
        let restored: Vec<Value> =
            restoring(&found, &word("isolated"), &before).into_iter().map(|(_, value)| value).collect();
        assert_eq!(restored, [word("root")]);
    }
}
