//! Numbers as people read them: few digits on charts, more in tables, times and bytes in fitting units. Never used
//! where a program reads on: CSV has every digit.

/// On a chart or in a sentence: three digits, `K`, `M`, `G`, `T` from 10,000 on.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".to_owned();
    }
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e15).contains(&size) {
        return scientific(value);
    }
    // what rounds up to the next prefix is written with it
    for (from, by, prefix) in
        [(9.995e11, 1e12, "T"), (9.995e8, 1e9, "G"), (9.995e5, 1e6, "M"), (9_999.5, 1e3, "K")]
    {
        if size >= from {
            return format!("{}{prefix}", digits(value / by, 3));
        }
    }
    if size >= 999.5 { thousands(&format!("{value:.0}")) } else { digits(value, 3) }
}

/// In a table: five digits, thousands set apart.
pub fn long(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-6..1e15).contains(&size) {
        return scientific(value);
    }
    thousands(&if size >= 9_999.5 { format!("{value:.0}") } else { digits(value, 5) })
}

/// [`short`] with its unit; seconds and bytes in the unit that fits.
pub fn with_unit(value: f64, unit: &str) -> String {
    let scaled = Unit::fitting(unit, value.abs());
    join(short(value / scaled.by), scaled.name)
}

/// [`long`] with its unit.
pub fn long_with_unit(value: f64, unit: &str) -> String {
    let scaled = Unit::fitting(unit, value.abs());
    join(long(value / scaled.by), scaled.name)
}

/// A share of 1 in per cent.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".to_owned();
    }
    let hundredths = share * 100.0;
    let ordinary = (1e-4..1e4).contains(&hundredths.abs());
    format!("{}\u{a0}%", if ordinary { digits(hundredths, 2) } else { short(hundredths) })
}

/// How surely an interval covers what it is of: `95 %`, rounded down.
pub fn coverage(share: f64) -> String {
    format!("{:.0}\u{a0}%", (share * 100.0 + 1e-9).floor())
}

/// A ratio: two decimals where they say something.
pub fn ratio(value: f64) -> String {
    if (0.1..100.0).contains(&value) { format!("{value:.2}") } else { short(value) }
}

/// Two digits: of what is known no better.
pub fn rounded(value: f64) -> String {
    if !(100.0..1e15).contains(&value) {
        return short(value);
    }
    let power = 10f64.powf(value.log10().floor() - 1.0);
    short((value / power).round() * power)
}

/// A length of time in seconds, in the words of a sentence.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round();
    if !seconds.is_finite() || seconds < 0.0 {
        "–".to_owned()
    } else if seconds < 119.5 {
        format!("{} s", digits(seconds, 3))
    } else if seconds < 7_200.0 {
        format!("{} min {:02} s", (whole / 60.0).floor(), whole % 60.0)
    } else {
        format!("{} h {:02} min", (whole / 3_600.0).floor(), ((whole % 3_600.0) / 60.0).floor())
    }
}

/// A unit as it is written, and how many of the measure's own make one of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit<'a> {
    /// `ms`; empty: none.
    pub name: &'a str,
    /// `0.001` for a measure in seconds.
    pub by: f64,
}

impl<'a> Unit<'a> {
    /// The one in which a value of this size has few digits before and behind the point.
    pub fn fitting(unit: &'a str, size: f64) -> Unit<'a> {
        let choose = |steps: &[(f64, &'static str)]| {
            let (by, name) = steps.iter().find(|(by, _)| size >= *by * 0.9995).or(steps.last()).copied()?;
            Some(Unit { name, by })
        };
        let found = match unit {
            "s" if size > 0.0 => choose(&[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]),
            "bytes" | "B" => choose(&[
                (1024f64.powi(4), "TiB"),
                (1024f64.powi(3), "GiB"),
                (1024f64.powi(2), "MiB"),
                (1024.0, "KiB"),
                (1.0, "B"),
            ]),
            _ => None,
        };
        found.unwrap_or(Unit { name: unit, by: 1.0 })
    }
}

/// A number and its unit: `35.7K/s`, `1.2 ms`.
pub fn join(number: String, unit: &str) -> String {
    match unit {
        "" => number,
        unit if unit.starts_with('/') => number + unit,
        "1/s" => number + "/s",
        unit => format!("{number} {unit}"),
    }
}

/// At least this many significant digits, without zeros at the end; a whole number is not rounded.
fn digits(value: f64, count: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let before = value.abs().log10().floor() as i32 + 1;
    let behind = usize::try_from((count - before).max(0)).unwrap_or(0);
    let text = format!("{value:.behind$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Three significant digits, the others zeros, thousands set apart: `40,400`, `1.1`, `0.00214`.
pub fn three(value: f64) -> String {
    thousands(&significant(value, 3))
}

/// Rounded to this many significant digits, without zeros at the end.
pub fn significant(value: f64, count: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let behind = count - 1 - value.abs().log10().floor() as i32;
    if behind > 0 {
        return digits(value, count);
    }
    let unit = 10_f64.powi(-behind);
    format!("{:.0}", (value / unit).round() * unit)
}

fn scientific(value: f64) -> String {
    let text = format!("{value:.2e}");
    match text.split_once('e') {
        Some((mantissa, power)) => {
            format!("{}e{power}", mantissa.trim_end_matches('0').trim_end_matches('.'))
        }
        None => text,
    }
}

/// `12345.6` → `12,345.6`.
fn thousands(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) =
        rest.split_once('.').map_or((rest, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits_on_charts_and_more_in_tables() {
        let shorts = [0.0, 0.5, 9.25, 35_712.0, 999.6, 999_600.0, 1e12, 43.8e3, 1e-7, -1234.0].map(short);
        assert_eq!(shorts, ["0", "0.5", "9.25", "35.7K", "1,000", "1M", "1T", "43.8K", "1e-7", "-1,234"]);
        assert_eq!([35_712.4, 9.25, 1_234.56].map(long), ["35,712", "9.25", "1,234.6"]);
    }

    #[test]
    fn times_and_bytes_are_in_the_unit_that_fits() {
        assert_eq!(with_unit(0.0012, "s"), "1.2 ms");
        assert_eq!(with_unit(37e-6, "s"), "37 µs");
        assert_eq!(with_unit(0.0, "s"), "0 s");
        assert_eq!(with_unit(3.0 * 1024.0 * 1024.0, "bytes"), "3 MiB");
        assert_eq!(with_unit(35_700.0, "1/s"), "35.7K/s");
        assert_eq!(with_unit(2.0, "CPUs"), "2 CPUs");
        assert_eq!([4.0, 150.0, 7_260.0].map(duration), ["4 s", "2 min 30 s", "2 h 01 min"]);
    }
}
