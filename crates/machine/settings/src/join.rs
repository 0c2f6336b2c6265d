//! Values of one setting that are given apart, as v1 has a file for quota and period and one for each direction of I/O:
//! joined to one value, so that a version with one file for all gets one write.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use crate::names::NamedSetting;
use crate::value::Value;

/// The value of one setting that one or more requests make up.
#[derive(Debug, Clone)]
pub struct Joined {
    /// The setting, by the name of the first request.
    pub found: NamedSetting,
    /// What all of them request together.
    pub value: Value,
    /// The requests' indexes, ascending.
    pub of: Vec<usize>,
}

/// Two requests give the same part of a setting different values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clash {
    /// The index of the earlier one.
    pub first: usize,
    /// The index of the later one, which is left out.
    pub second: usize,
}

/// Joins the values of the same setting (and huge page size) at the same `K`, in the order of the first request of each.
pub fn join<'v, K: Hash + Eq>(
    requests: impl IntoIterator<Item = (usize, K, &'v NamedSetting, &'v Value)>,
) -> (Vec<Joined>, Vec<Clash>) {
    let (mut all, mut clashes): (Vec<Joined>, Vec<Clash>) = (Vec::new(), Vec::new());
    let mut known: HashMap<(K, &str, Option<&str>), usize> = HashMap::new();
    let mut values: HashMap<usize, &Value> = HashMap::new();
    for (index, at, found, value) in requests {
        let next = all.len();
        let slot = *known.entry((at, found.setting.name, found.size.as_deref())).or_insert(next);
        let Some(joined) = all.get_mut(slot) else {
            all.push(Joined { found: found.clone(), value: value.clone(), of: vec![index] });
            values.insert(index, value);
            continue;
        };
        if joined.value.add(value) {
            joined.of.push(index);
            values.insert(index, value);
        } else {
            let differs = |of: &&usize| values.get(of).is_some_and(|of| !(*of).clone().add(value));
            let first = joined.of.iter().find(differs).or(joined.of.first()).copied().unwrap_or(index);
            clashes.push(Clash { first, second: index });
        }
    }
    (all, clashes)
}

impl Value {
    /// Takes over what `more` names; false, and unchanged, if both name something and differ in it.
    fn add(&mut self, more: &Value) -> bool {
        match (self, more) {
            (Value::CpuMax(one), Value::CpuMax(more)) => {
                let fits = both_fit(one.quota, more.quota) && both_fit(one.period, more.period);
                if fits {
                    *one = one.or(*more);
                }
                fits
            }
            (Value::PerDevice(one), Value::PerDevice(more)) => add_keys(one, more),
            (Value::Keyed(one), Value::Keyed(more)) => add_keys(one, more),
            (
                Value::Weights { default, devices },
                Value::Weights { default: more_default, devices: more_devices },
            ) => {
                let fits = both_fit(*default, *more_default) && have_no_other(devices, more_devices);
                if fits {
                    *default = default.or(*more_default);
                    devices.extend(more_devices);
                }
                fits
            }
            // each rule is one more
            (Value::Rules(one), Value::Rules(more)) => {
                let new: Vec<_> = more.iter().filter(|rule| !one.contains(rule)).cloned().collect();
                one.extend(new);
                true
            }
            (one, more) => one == more,
        }
    }
}

fn both_fit<T: PartialEq>(one: Option<T>, more: Option<T>) -> bool {
    match (one, more) {
        (Some(one), Some(more)) => one == more,
        _ => true,
    }
}

/// Does no key that both have differ?
fn have_no_other<K: Ord, V: PartialEq>(one: &BTreeMap<K, V>, more: &BTreeMap<K, V>) -> bool {
    more.iter().all(|(key, value)| one.get(key).is_none_or(|known| known == value))
}

fn add_keys<N: Ord + Clone, K: Ord + Clone, V: PartialEq + Clone>(
    one: &mut BTreeMap<N, BTreeMap<K, V>>,
    more: &BTreeMap<N, BTreeMap<K, V>>,
) -> bool {
    let fits = more.iter().all(|(name, keys)| one.get(name).is_none_or(|known| have_no_other(known, keys)));
    if fits {
        for (name, keys) in more {
            one.entry(name.clone()).or_default().extend(keys.iter().map(|(k, v)| (k.clone(), v.clone())));
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoMachine, find};

    fn joined(requests: &[(&str, &str)]) -> (Vec<String>, Vec<Clash>) {
        let read: Vec<(NamedSetting, Value)> = requests
            .iter()
            .map(|(name, text)| {
                let found = find(name).unwrap();
                let value = found.parse(text, &NoMachine).unwrap();
                (found, value)
            })
            .collect();
        let each = read.iter().enumerate().map(|(index, (found, value))| (index, (), found, value));
        let (joined, clashes) = join(each);
        (joined.iter().map(|one| format!("{}={}", one.found.setting.name, one.value)).collect(), clashes)
    }

    #[test]
    fn what_is_given_apart_becomes_one_value_in_every_order() {
        for (requests, value) in [
            (&[("cpu.cfs_period_us", "50000"), ("cpu.cfs_quota_us", "15000")][..], "cpu.max=15000 50000"),
            (&[("cpu.cfs_quota_us", "-1"), ("cpu.max", "max/50ms")], "cpu.max=max 50000"),
            (
                &[
                    ("blkio.throttle.write_iops_device", "8:0 7"),
                    ("blkio.throttle.read_bps_device", "8:0 1024"),
                    ("io.max", "8:16 wbps=2048"),
                ],
                "io.max=8:0 rbps=1024 wiops=7; 8:16 wbps=2048",
            ),
            (&[("blkio.weight_device", "8:0 250"), ("blkio.weight", "500")], "io.weight=100; 8:0 50"),
            (
                &[("rdma.max", "a hca_handle=1"), ("rdma.max", "a hca_object=2")],
                "rdma.max=a hca_handle=1 hca_object=2",
            ),
        ] {
            let mut reversed = requests.to_vec();
            reversed.reverse();
            for requests in [requests.to_vec(), reversed] {
                assert_eq!(joined(&requests), (vec![value.to_owned()], Vec::new()), "{requests:?}");
            }
        }
    }

    #[test]
    fn two_values_of_one_part_clash_and_the_first_stays() {
        for (requests, value) in [
            (&[("pids.max", "5"), ("pids.max", "6")][..], "pids.max=5"),
            (&[("cpu.max", "10ms/50ms"), ("cpu.cfs_period_us", "100000")], "cpu.max=10000 50000"),
            (
                &[("io.max", "8:0 rbps=1024"), ("blkio.throttle.read_bps_device", "8:0 1025")],
                "io.max=8:0 rbps=1024",
            ),
        ] {
            let clash = Clash { first: 0, second: 1 };
            assert_eq!(joined(requests), (vec![value.to_owned()], vec![clash]), "{requests:?}");
        }
    }
}
