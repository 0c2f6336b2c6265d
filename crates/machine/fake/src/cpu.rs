//! CPU shares, weights, quotas and bursts, on v1 and v2. A v1 quota must fit into the parent's; a v2 quota is
//! taken whatever the parent has.

use rustix::io::Errno;
use settings::{
    Controller::{Core, Cpu, Cpuacct},
    Version,
};

use crate::{
    files, numbers,
    state::{File, Place, State, file},
};

const SHARES: [u64; 2] = [2, 262_144];
const WEIGHTS: [u64; 2] = [1, 10_000];
/// Microseconds that a quota and a period may be.
const MIN_QUOTA: u64 = 1_000;
const MAX_QUOTA: u64 = (1 << 44) - 1;
const PERIODS: [u64; 2] = [1_000, 1_000_000];
/// What an idle group's weight is, in shares.
const IDLE_SHARES: &str = "3";

/// `sched_prio_to_weight`: the shares of nice -20 to 19.
const NICE_SHARES: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121,
    2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29,
    23, 18, 15,
];

const V1_STAT: &str = "nr_periods 0\nnr_throttled 0\nthrottled_time 0\nnr_bursts 0\nburst_time 0";
const V2_STAT: &str = "usage_usec 0\nuser_usec 0\nsystem_usec 0";
const V2_LIMIT_STAT: &str = "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\nburst_usec 0";

pub(super) const V1_FILES: &[File] = &[
    file("cpu.shares", Cpu, "1024").everywhere().writes(set_shares),
    file("cpu.idle", Cpu, "0").everywhere().writes(set_idle),
    file("cpu.cfs_quota_us", Cpu, "-1").everywhere().writes(|state, place, _, text| {
        let quota = numbers::signed(text)?;
        set_bandwidth(state, place, Change { quota: Some(u64::try_from(quota).ok()), ..Change::default() })
    }),
    file("cpu.cfs_period_us", Cpu, "100000").everywhere().writes(|state, place, _, text| {
        set_bandwidth(state, place, Change { period: Some(numbers::unsigned(text)?), ..Change::default() })
    }),
    file("cpu.cfs_burst_us", Cpu, "0").everywhere().writes(set_burst),
    file("cpu.stat", Cpu, V1_STAT).everywhere(),
    file("cpuacct.usage", Cpuacct, "0").everywhere().writes(|_, _, _, text| match numbers::unsigned(text)? {
        0 => Ok(()),
        _ => Err(Errno::INVAL),
    }),
    file("cpuacct.stat", Cpuacct, "user 0\nsystem 0").everywhere(),
    file("cpuacct.usage_percpu", Cpuacct, "")
        .everywhere()
        .reads(|state, _, _| Ok("0 ".repeat(state.cpus) + "\n")),
];

pub(super) const V2_FILES: &[File] = &[
    file("cpu.weight", Cpu, "1024").reads(show_weight).writes(set_weight),
    file("cpu.weight.nice", Cpu, "0").reads(show_nice).writes(set_nice),
    file("cpu.idle", Cpu, "0").writes(set_idle),
    file("cpu.max", Cpu, "-1").reads(show_max).writes(set_max),
    file("cpu.max.burst", Cpu, "0").writes(set_burst),
    file("cpu.stat", Core, V2_STAT)
        .everywhere()
        .reads(|state, place, file| {
            let stat = state.value(place, file.name);
            let limited = place.is_root() || files::has_controller(state, place, Cpu);
            Ok(if limited && stat == V2_STAT {
                format!("{stat}\n{V2_LIMIT_STAT}\n")
            } else {
                format!("{stat}\n")
            })
        })
        .counted(),
];

/// The file that holds a group's shares; v2's weight is stored as shares, too, as in the kernel.
fn shares_file(state: &State, place: &Place) -> &'static str {
    match state.version(place) {
        Version::V1 => "cpu.shares",
        Version::V2 => "cpu.weight",
    }
}

fn set_shares(state: &mut State, place: &Place, _: &'static File, text: &str) -> Result<(), Errno> {
    let shares = numbers::unsigned(text)?.clamp(SHARES[0], SHARES[1]);
    store_shares(state, place, shares)
}

fn store_shares(state: &mut State, place: &Place, shares: u64) -> Result<(), Errno> {
    if place.is_root() || state.flag(place, "cpu.idle") {
        return Err(Errno::INVAL);
    }
    state.set(place, shares_file(state, place), shares.to_string());
    Ok(())
}

fn set_weight(state: &mut State, place: &Place, _: &'static File, text: &str) -> Result<(), Errno> {
    let weight = numbers::unsigned(text)?;
    if !(WEIGHTS[0]..=WEIGHTS[1]).contains(&weight) {
        return Err(Errno::RANGE);
    }
    store_shares(state, place, (weight * 1024 + 50) / 100)
}

fn shares(state: &State, place: &Place) -> u64 {
    state.value(place, "cpu.weight").parse().unwrap_or(1024)
}

fn show_weight(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    // an idle group's 3 shares round to nothing, which newer kernels show as the least weight
    let least = u64::from(state.exclusive);
    Ok(format!("{}\n", ((shares(state, place) * 100 + 512) / 1024).max(least)))
}

fn set_nice(state: &mut State, place: &Place, _: &'static File, text: &str) -> Result<(), Errno> {
    let nice = numbers::signed(text)?;
    let index = usize::try_from(nice + 20).map_err(|_| Errno::RANGE)?;
    store_shares(state, place, *NICE_SHARES.get(index).ok_or(Errno::RANGE)?)
}

/// The first nice level whose shares are nearest.
fn show_nice(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    let own = if state.flag(place, "cpu.idle") { return Err(Errno::OPNOTSUPP) } else { shares(state, place) };
    let nearest = NICE_SHARES.iter().enumerate().min_by_key(|(_, shares)| shares.abs_diff(own));
    Ok(format!("{}\n", nearest.map_or(0, |(index, _)| index as i64 - 20)))
}

fn set_idle(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let idle = numbers::signed(text)?;
    if place.is_root() || !matches!(idle, 0 | 1) {
        return Err(Errno::INVAL);
    }
    let (was, now) = (state.flag(place, file.name), idle == 1);
    if was != now {
        state.set(place, shares_file(state, place), if now { IDLE_SHARES } else { "1024" });
        state.set(place, file.name, if now { "1" } else { "0" });
    }
    Ok(())
}

/// A group's quota, in microseconds of CPU time per period; `None` is no limit.
#[derive(Clone, Copy)]
struct Bandwidth {
    quota: Option<u64>,
    period: u64,
}

/// What a write changes of it.
#[derive(Default)]
struct Change {
    quota: Option<Option<u64>>,
    period: Option<u64>,
}

fn quota_file(state: &State, place: &Place) -> [&'static str; 3] {
    match state.version(place) {
        Version::V1 => ["cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us"],
        Version::V2 => ["cpu.max", PERIOD, "cpu.max.burst"],
    }
}

/// v2 keeps the period in the same file as the quota.
const PERIOD: &str = "cpu.period";

fn bandwidth(state: &State, place: &Place) -> Bandwidth {
    let [quota, period, _] = quota_file(state, place);
    Bandwidth {
        quota: state.value(place, quota).parse().ok(),
        period: state.value(place, period).parse().unwrap_or(100_000),
    }
}

fn burst(state: &State, place: &Place) -> u64 {
    let [.., burst] = quota_file(state, place);
    state.value(place, burst).parse().unwrap_or(0)
}

fn set_bandwidth(state: &mut State, place: &Place, change: Change) -> Result<(), Errno> {
    let now = bandwidth(state, place);
    let new =
        Bandwidth { quota: change.quota.unwrap_or(now.quota), period: change.period.unwrap_or(now.period) };
    let quota_fits = new.quota.is_none_or(|quota| (MIN_QUOTA..=MAX_QUOTA).contains(&quota));
    if place.is_root() || !quota_fits || !(PERIODS[0]..=PERIODS[1]).contains(&new.period) {
        return Err(Errno::INVAL);
    }
    burst_fits(burst(state, place), new)?;
    if state.version(place) == Version::V1 {
        let root = Place::new(place.tree, "");
        shares_fit(state, &root, None, (place, new))?;
    }
    let [quota, period, _] = quota_file(state, place);
    state.set(place, quota, new.quota.map_or("-1".to_owned(), |quota| quota.to_string()));
    state.set(place, period, new.period.to_string());
    Ok(())
}

/// Walks down with the share of the nearest limited ancestor: none below may have more.
fn shares_fit(state: &State, at: &Place, above: Option<u128>, new: (&Place, Bandwidth)) -> Result<(), Errno> {
    let own = if at == new.0 { new.1 } else { bandwidth(state, at) };
    let share = own.quota.map(|quota| (u128::from(quota) << 20) / u128::from(own.period));
    if share.zip(above).is_some_and(|(share, above)| share > above) {
        return Err(Errno::INVAL);
    }
    let children = state.children(at);
    children.iter().try_for_each(|child| shares_fit(state, child, share.or(above), new))
}

fn burst_fits(burst: u64, within: Bandwidth) -> Result<(), Errno> {
    if within.quota.is_some_and(|quota| burst > quota) { Err(Errno::INVAL) } else { Ok(()) }
}

fn set_burst(state: &mut State, place: &Place, file: &'static File, text: &str) -> Result<(), Errno> {
    let burst = numbers::unsigned(text)?;
    if place.is_root() {
        return Err(Errno::OPNOTSUPP);
    }
    burst_fits(burst, bandwidth(state, place))?;
    state.set(place, file.name, burst.to_string());
    Ok(())
}

fn show_max(state: &State, place: &Place, _: &'static File) -> Result<String, Errno> {
    let Bandwidth { quota, period } = bandwidth(state, place);
    let quota = quota.map_or("max".to_owned(), |quota| quota.to_string());
    Ok(format!("{quota} {period}\n"))
}

/// `QUOTA [PERIOD]`, read with sscanf(3): what does not look like a period leaves it as it is.
fn set_max(state: &mut State, place: &Place, _: &'static File, text: &str) -> Result<(), Errno> {
    let mut words = text.split_ascii_whitespace();
    let quota = match words.next().ok_or(Errno::INVAL)? {
        "max" => None,
        word => Some(numbers::leading(word).ok_or(Errno::INVAL)?),
    };
    let period = words.next().and_then(numbers::leading);
    set_bandwidth(state, place, Change { quota: Some(quota), period })
}

#[cfg(test)]
mod tests {
    use super::NICE_SHARES;

    #[test]
    fn the_weights_of_nice_levels_are_those_that_a_kernel_showed() {
        let weight = |nice: i64| (NICE_SHARES[(nice + 20) as usize] * 100 + 512) / 1024;
        for (nice, shown) in
            [(-20, 8668), (-10, 932), (-1, 125), (0, 100), (1, 80), (8, 17), (14, 4), (15, 4), (19, 1)]
        {
            assert_eq!(weight(nice), shown, "nice {nice}");
        }
    }
}
