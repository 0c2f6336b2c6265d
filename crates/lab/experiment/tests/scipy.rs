//! The figures of comparisons against another implementation: SciPy 1.17.1 and NumPy. `p` is
//! `scipy.stats.mannwhitneyu(condition, baseline, method='exact')`, with ties `scipy.stats.permutation_test` over all divisions of
//! the midranks; the shift is `numpy.median(numpy.subtract.outer(condition, baseline))`; the interval is
//! `scipy.stats.bootstrap` of the ratio of medians, percentiles of 199,999 resamples; the variation is
//! `numpy.std(x, ddof=1) / numpy.mean(x)`.

#![allow(clippy::unwrap_used)] // a missing figure fails the test

use experiment::statistics::{compare, variation};

struct Known {
    name: &'static str,
    baseline: &'static [f64],
    condition: &'static [f64],
    p: f64,
    shift: f64,
    ratio: f64,
    interval: (f64, f64),
    variations: (f64, f64),
}

const KNOWN: [Known; 6] = [
    Known {
        name: "a command with 5 % more work",
        baseline: &[1.0031, 1.0027, 1.0044, 1.0029, 1.0052, 1.0036],
        condition: &[1.0519, 1.0533, 1.0561, 1.0524, 1.0547, 1.0529],
        p: 0.0021645021645021645,
        shift: 0.049699999999999966,
        ratio: 1.0495838939552495,
        interval: (1.0478702229299364, 1.0517550857598723),
        variations: (0.000969600209292353, 0.0014920425938375332),
    },
    Known {
        name: "a command on one CPU beside others",
        baseline: &[0.70, 0.75, 0.72, 0.69, 0.71, 0.74],
        condition: &[1.02, 0.98, 1.03, 1.80, 1.01, 1.46],
        p: 0.0021645021645021645,
        shift: 0.31500000000000006,
        ratio: 1.4335664335664335,
        interval: (1.3666666666666665, 2.263888888888889),
        variations: (0.032249745436462314, 0.27793301890011807),
    },
    Known {
        name: "transactions of equal conditions",
        baseline: &[36704.0, 35911.0, 37250.0, 36102.0, 36880.0, 36455.0],
        condition: &[36390.0, 36999.0, 36210.0, 35870.0, 37120.0, 36640.0],
        p: 0.9372294372294373,
        shift: -52.5,
        ratio: 0.998236717287005,
        interval: (0.981691321632366, 1.019874245194172),
        variations: (0.013628591663132109, 0.013053211643205363),
    },
    Known {
        name: "ten runs of each, with a tie",
        baseline: &[10.1, 9.7, 10.4, 9.9, 10.0, 10.6, 9.8, 10.2, 10.3, 9.6],
        condition: &[9.2, 9.4, 8.8, 9.1, 9.5, 8.9, 9.0, 9.3, 9.7, 8.7],
        p: 3.247526467340709e-05,
        shift: -0.9000000000000004,
        ratio: 0.9104477611940296,
        interval: (0.8737864077669903, 0.9489795918367347),
        variations: (0.03185053635705214, 0.0349799558681162),
    },
    Known {
        name: "five and seven runs",
        baseline: &[412.0, 398.5, 405.0, 421.0, 399.0],
        condition: &[431.0, 446.5, 418.0, 440.0, 452.0, 436.0, 429.5],
        p: 0.005050505050505051,
        shift: 31.0,
        ratio: 1.0765432098765433,
        interval: (1.0320987654320988, 1.119047619047619),
        variations: (0.02334225304486288, 0.02603068885479778),
    },
    Known {
        name: "many ties",
        baseline: &[0.5, 0.5, 0.51, 0.52],
        condition: &[0.51, 0.51, 0.53, 0.52, 0.5],
        p: 0.5317460317460317,
        shift: 0.010000000000000009,
        ratio: 1.00990099009901,
        interval: (0.9807692307692307, 1.0495049504950495),
        variations: (0.01886555877352392, 0.022182401266520213),
    },
];

#[test]
fn p_shift_ratio_interval_and_variation_are_those_of_another_implementation() {
    for known in &KNOWN {
        let near = |what: &str, seen: Option<f64>, expected: f64| {
            let seen = seen.unwrap();
            let apart = (seen - expected).abs();
            assert!(apart <= 1e-9 * expected.abs(), "{}: {what} is {seen}, not {expected}", known.name);
        };
        let compared = compare(known.baseline, known.condition);
        near("p", compared.p, known.p);
        near("the shift", compared.shift, known.shift);
        near("the ratio", compared.ratio, known.ratio);
        near("the interval's lower end", compared.interval.map(|(low, _)| low), known.interval.0);
        near("the interval's upper end", compared.interval.map(|(_, high)| high), known.interval.1);
        near("the baseline's variation", variation(known.baseline), known.variations.0);
        near("the condition's variation", variation(known.condition), known.variations.1);
    }
}
