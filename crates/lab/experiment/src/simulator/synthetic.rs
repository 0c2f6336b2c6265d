//! Loads by formula. Each group's peak is half more than its static share, at most nine tenths of its `max`; every other
//! group is in the opposite phase. All are lowered alike so that the sum never is above four fifths of the machine: what is
//! lost then is lost by the division.

use crate::statistics::SplitMix64;

use crate::simulator::{Load, STEP};

/// The kinds of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The same all the time, give or take 2 %.
    Constant,
    /// Slowly up and down again.
    Ramp,
    /// Low and high in turns of 2 s.
    SquareShort,
    /// Low and high in turns of 10 s.
    SquareMiddle,
    /// Low and high in turns of 60 s.
    SquareLong,
    /// Bursts whose lengths follow a Pareto distribution.
    Pareto,
    /// A day within ten minutes.
    Diurnal,
}

/// Of the peak, between bursts.
const LOW: f64 = 0.1;
/// Of the machine, at most requested by all together.
const MOST: f64 = 0.8;

impl Kind {
    /// All, in the order in which they are shown.
    pub const ALL: [Kind; 7] = [
        Kind::Constant,
        Kind::Ramp,
        Kind::SquareShort,
        Kind::SquareMiddle,
        Kind::SquareLong,
        Kind::Pareto,
        Kind::Diurnal,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Constant => "constant",
            Kind::Ramp => "ramp",
            Kind::SquareShort => "square-4s",
            Kind::SquareMiddle => "square-20s",
            Kind::SquareLong => "square-120s",
            Kind::Pareto => "pareto",
            Kind::Diurnal => "diurnal",
        }
    }

    fn seconds(self) -> f64 {
        match self {
            Kind::Constant | Kind::SquareShort => 120.0,
            Kind::SquareMiddle | Kind::Ramp => 240.0,
            Kind::SquareLong | Kind::Pareto | Kind::Diurnal => 600.0,
        }
    }

    /// For groups with these static shares and limits, in CPUs.
    pub fn load(self, groups: &[(f64, f64)], cpus: f64, seed: u64) -> Load {
        let steps = (self.seconds() / STEP) as usize;
        let mut random = SplitMix64::new(seed);
        let one = |(index, (share, max)): (usize, &(f64, f64))| -> Vec<f64> {
            let peak = match self {
                Kind::Constant => share * 0.6,
                _ => (share * 1.5).min(max * 0.9),
            };
            self.shape(index % 2 == 1, steps, &mut random).into_iter().map(|part| part * peak).collect()
        };
        let mut demands: Vec<Vec<f64>> = groups.iter().enumerate().map(one).collect();
        let sum = |step: usize| demands.iter().map(|demand| demand[step]).sum::<f64>();
        let most = (0..steps).map(sum).fold(0.0, f64::max);
        let lowered = (cpus * MOST / most.max(1e-9)).min(1.0);
        demands.iter_mut().flatten().for_each(|demand| *demand *= lowered);
        Load { name: self.name().to_owned(), demands }
    }

    /// Of the peak in each step.
    fn shape(self, opposite: bool, steps: usize, random: &mut SplitMix64) -> Vec<f64> {
        let turn = |part: f64| if opposite { 1.0 - part } else { part };
        let between = |part: f64| LOW + (1.0 - LOW) * turn(part);
        let whole = steps as f64;
        let square = |period: f64| {
            let high = move |step: usize| (step as f64 * STEP).rem_euclid(period) >= period / 2.0;
            (0..steps).map(|step| between(f64::from(u8::from(high(step))))).collect()
        };
        match self {
            Kind::Constant => (0..steps).map(|_| 1.0 + 0.04 * (uniform(random) - 0.5)).collect(),
            Kind::Ramp => {
                let up = |step: usize| 1.0 - (step as f64 / whole * 2.0 - 1.0).abs();
                (0..steps).map(|step| between(up(step))).collect()
            }
            Kind::SquareShort => square(4.0),
            Kind::SquareMiddle => square(20.0),
            Kind::SquareLong => square(120.0),
            Kind::Pareto => bursts(steps, random),
            Kind::Diurnal => {
                let day = |step: usize| 0.5 - 0.5 * (step as f64 / whole * std::f64::consts::TAU).cos();
                (0..steps).map(|step| between(day(step)) * (1.0 + 0.1 * (uniform(random) - 0.5))).collect()
            }
        }
    }
}

/// 0 to 1.
fn uniform(random: &mut SplitMix64) -> f64 {
    (random.draw() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Pauses of 8 s on average (exponential), bursts of at least 0.5 s (Pareto, exponent 1.5, at most 30 s).
fn bursts(steps: usize, random: &mut SplitMix64) -> Vec<f64> {
    let mut out = Vec::with_capacity(steps);
    while out.len() < steps {
        let pause = -8.0 * (1.0 - uniform(random)).ln();
        let burst = (0.5 * (1.0 - uniform(random)).powf(-1.0 / 1.5)).min(30.0);
        out.extend(std::iter::repeat_n(LOW, (pause / STEP) as usize));
        out.extend(std::iter::repeat_n(1.0, (burst / STEP).ceil() as usize));
    }
    out.truncate(steps);
    out
}
