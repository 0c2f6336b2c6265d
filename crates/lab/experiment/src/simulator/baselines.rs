//! Others' rules on the same machine, with the same bounds and the same choice of CPUs: what differs is how many a group gets
//! and when. Each is the rule for sizes alone, read in its source; what the project does beside it (work stealing of a
//! scheduler, quotas, idle states) is not here.

use std::time::Duration;

use policy::{
    Claim, Dealer, Decision, Division, Elastic, Error, GroupState, Parameters, Policy, Pool, Reason, Sizes,
    Units, divide, static_sizes,
};

use units::CpuSet;

use crate::simulator::{Load, STEP};

/// A rule that can be simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Our policy.
    Policy,
    /// Each group's `min` and weighted share, for ever.
    Static,
    /// koordinator's suppression of best-effort pods.
    Koordinator,
    /// scx_layered's sizes of layers.
    Layered,
    /// intel-lpmd's low-power mode.
    Lpmd,
    /// Who knows the load in advance.
    Clairvoyant,
}

impl Rule {
    /// All, ours first.
    pub const ALL: [Rule; 6] =
        [Rule::Policy, Rule::Static, Rule::Koordinator, Rule::Layered, Rule::Lpmd, Rule::Clairvoyant];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Policy => "ringfence",
            Rule::Static => "static",
            Rule::Koordinator => "koordinator",
            Rule::Layered => "scx_layered",
            Rule::Lpmd => "lpmd",
            Rule::Clairvoyant => "clairvoyant",
        }
    }

    /// The rule at the start of a load; all start with the static division.
    ///
    /// # Errors
    /// The groups do not fit the machine.
    pub fn start(self, groups: &[Elastic], units: &Units, load: &Load) -> Result<Box<dyn Dealer>, Error> {
        let policy = Policy::new(groups, units.clone(), Parameters::default())?;
        let sizes = groups.iter().map(|group| group.sizes(units)).collect::<Result<Vec<_>, _>>()?;
        let size: Box<dyn Size> = match self {
            Rule::Policy => return Ok(Box::new(policy)),
            Rule::Static => Box::new(Static),
            Rule::Koordinator => Box::new(Koordinator { ticks: 0 }),
            Rule::Layered => Box::new(Layered { utils: vec![0.0; groups.len()] }),
            Rule::Lpmd => Box::new(Lpmd { ticks: 0, low: false }),
            Rule::Clairvoyant => Box::new(Clairvoyant { load: load.clone(), step: 0 }),
        };
        let names = groups.iter().map(|group| group.name.clone()).collect();
        Ok(Box::new(Baseline { names, sizes, pool: policy.pool().clone(), size }))
    }
}

/// How many units each group is to have.
trait Size {
    fn sizes(&mut self, groups: &[Sizes], states: &[GroupState], pool: &Pool) -> Vec<usize>;
}

/// A rule for sizes with its CPUs.
struct Baseline {
    names: Vec<String>,
    sizes: Vec<Sizes>,
    pool: Pool,
    size: Box<dyn Size>,
}

impl Division for Baseline {
    /// All shrink, then all grow, in one step: none of these rules waits in between.
    fn tick(&mut self, _: Duration, states: &[GroupState]) -> Vec<Decision> {
        let targets = self.size.sizes(&self.sizes, states, &self.pool);
        let before: Vec<usize> = (0..targets.len()).map(|group| self.pool.size(group)).collect();
        let from: Vec<_> = (0..targets.len()).map(|group| self.pool.cpus(group)).collect();
        for (group, target) in targets.iter().enumerate() {
            self.pool.shrink(group, before[group].saturating_sub(*target));
        }
        self.pool.settle();
        for (group, target) in targets.iter().enumerate() {
            self.pool.grow(group, target.saturating_sub(before[group]));
        }
        let changed =
            from.into_iter().enumerate().filter(|(group, _)| self.pool.size(*group) != before[*group]);
        changed
            .map(|(group, from)| Decision::of(&self.pool, group, &self.names[group], from, Reason::Rule))
            .collect()
    }

    fn cpus(&self, group: usize) -> CpuSet {
        self.pool.cpus(group)
    }
}

impl Dealer for Baseline {
    fn pool(&self) -> &Pool {
        &self.pool
    }
}

/// CPUs in units, rounded up.
fn units(cpus: f64, pool: &Pool) -> usize {
    (cpus / pool.units().width() as f64 - 1e-9).ceil().max(0.0) as usize
}

fn present(pool: &Pool) -> Vec<usize> {
    (0..pool.groups()).map(|group| pool.size(group)).collect()
}

struct Static;

impl Size for Static {
    fn sizes(&mut self, _: &[Sizes], _: &[GroupState], pool: &Pool) -> Vec<usize> {
        present(pool)
    }
}

/// scx_layered 1.1.2 (sched-ext/scx 7a58a3a1, `scheds/rust/scx_layered/src/main.rs`): utilisation with a half-life of 100 ms
/// (`USAGE_HALF_LIFE`), every 0.1 s (`--interval`); a size between use / 0.9 and use / 0.8 stays (`util_range` of the example
/// configuration; `calc_target_nr_cpus`), half of the gap is given up at once (`refresh_cpumasks`), and where all can't have what they
/// want the weights decide (`alloc.rs`). Our `min` and `max` are its `cpus_range`.
struct Layered {
    utils: Vec<f64>,
}

impl Size for Layered {
    fn sizes(&mut self, groups: &[Sizes], states: &[GroupState], pool: &Pool) -> Vec<usize> {
        let mut claims = Vec::new();
        let decay = 0.5_f64.powf(STEP / 0.1);
        for (group, (size, state)) in groups.iter().zip(states).enumerate() {
            let util = &mut self.utils[group];
            *util = *util * decay + state.used * (1.0 - decay);
            let util = if *util < 0.01 { 0.0 } else { *util };
            let low = units(util / 0.9, pool);
            let high = ((util / 0.8 / pool.units().width() as f64).floor() as usize).max(low);
            let now = pool.size(group);
            let target = now.clamp(low, high).clamp(size.min, size.max);
            let want = if target < now { (now - (now - target).div_ceil(2)).max(size.min) } else { target };
            claims.push(Claim { min: size.min, want, weight: size.weight });
        }
        divide(pool.units().len(), &claims)
    }
}

/// koordinator (koordinator-sh/koordinator a7a1b76b, `pkg/koordlet/qosmanager/plugins/cpusuppress/cpu_suppress.go`): every second
/// the best-effort pods' set is 65 % of the machine less what the others use (`CPUSuppressThresholdPercent`), at least 2 CPUs
/// (`beMinCPUSetCores`), growing by at most a tenth of the machine (`beMaxIncreaseCPUPercent`). The best-effort group here is
/// the one with the least weight, the last of these; the others share what is left by their weights.
struct Koordinator {
    ticks: usize,
}

impl Size for Koordinator {
    fn sizes(&mut self, groups: &[Sizes], states: &[GroupState], pool: &Pool) -> Vec<usize> {
        self.ticks += 1;
        let last = (0..groups.len()).rev().min_by_key(|group| groups[*group].weight);
        let Some(last) = last.filter(|_| self.ticks.is_multiple_of((1.0 / STEP) as usize)) else {
            return present(pool);
        };
        let (all, width) = (pool.units().len(), pool.units().width());
        let others: f64 =
            states.iter().enumerate().filter(|(group, _)| *group != last).map(|(_, one)| one.used).sum();
        let size = units((all * width) as f64 * 0.65 - others, pool).max(units(2.0, pool));
        let size = size.min(pool.size(last) + (all as f64 * 0.1).ceil() as usize);
        let reserved: usize =
            groups.iter().enumerate().filter(|(group, _)| *group != last).map(|(_, one)| one.min).sum();
        let size = size.clamp(groups[last].min, groups[last].max.min(all - reserved).max(groups[last].min));
        let claim = |(group, one): (usize, &Sizes)| match group == last {
            true => Claim { min: size, want: size, weight: one.weight },
            false => Claim { min: one.min, want: one.max, weight: one.weight },
        };
        divide(all, &groups.iter().enumerate().map(claim).collect::<Vec<_>>())
    }
}

/// intel-lpmd (intel/intel-lpmd 40d18a6c, `data/intel_lpmd_config.xml`, `src/lpmd_state_machine.c`): looks every second; in
/// low-power mode once the machine is at most 10 % busy (`util_entry_threshold`), out of it once a CPU is more than 95 % busy
/// (`util_exit_threshold`). In that mode each group has its `min`, else its static share.
struct Lpmd {
    ticks: usize,
    low: bool,
}

impl Size for Lpmd {
    fn sizes(&mut self, groups: &[Sizes], states: &[GroupState], pool: &Pool) -> Vec<usize> {
        self.ticks += 1;
        if !self.ticks.is_multiple_of((1.0 / STEP) as usize) {
            return present(pool);
        }
        let width = pool.units().width() as f64;
        let used: f64 = states.iter().map(|state| state.used).sum();
        let full = |(group, state): (usize, &GroupState)| state.used > pool.size(group) as f64 * width * 0.95;
        self.low = match self.low {
            true => !states.iter().enumerate().any(full),
            false => used <= pool.units().len() as f64 * width * 0.1,
        };
        if self.low {
            groups.iter().map(|one| one.min).collect()
        } else {
            static_sizes(groups, pool.units().len())
        }
    }
}

/// What the next step requests, exactly.
struct Clairvoyant {
    load: Load,
    step: usize,
}

impl Size for Clairvoyant {
    fn sizes(&mut self, groups: &[Sizes], states: &[GroupState], pool: &Pool) -> Vec<usize> {
        self.step += 1;
        let claim = |(group, one): (usize, &Sizes)| {
            let waits = if states[group].waiting > 0.0 { 1 } else { 0 };
            let want = units(self.load.demand(group, self.step), pool) + waits;
            Claim { min: one.min, want: want.clamp(one.min, one.max), weight: one.weight }
        };
        divide(pool.units().len(), &groups.iter().enumerate().map(claim).collect::<Vec<_>>())
    }
}
