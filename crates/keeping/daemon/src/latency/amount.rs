//! A latency as programs write it.

use layout::LatencyUnit;

/// Seconds of `4.2ms`, `4.2 ms`, `0.0042`; a number without a unit is in `unit`. `None`: it is none, or below 0.
pub(crate) fn seconds(text: &str, unit: LatencyUnit) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|letter: char| letter.is_alphabetic() && !matches!(letter, 'e' | 'E'));
    let (number, own) = text.split_at(end.unwrap_or(text.len()));
    let per_second = match own {
        "" => unit.per_second(),
        "s" | "sec" => 1.0,
        "ms" | "msec" => 1e3,
        "us" | "µs" | "μs" | "usec" => 1e6,
        "ns" | "nsec" => 1e9,
        _ => return None,
    };
    let number: f64 = number.trim_end().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_its_unit_with_it_or_the_layouts() {
        let of = |text| seconds(text, LatencyUnit::Milliseconds);
        for (text, expected) in [
            ("4.2ms", 0.0042),
            (" 4200 us\n", 0.0042),
            ("4200 µs", 0.0042),
            ("1.5s", 1.5),
            ("12", 0.012),
            ("1e-3 s", 0.001),
            ("0", 0.0),
        ] {
            assert!((of(text).unwrap() - expected).abs() < 1e-12, "{text}");
        }
        for wrong in ["", "ms", "-1 ms", "NaN", "inf", "5 min", "4.2 ms 1", "p99: 4 ms", "1e999"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
