//! CPUSPEC and MEMSPEC: lists such as `1,3,5-7`. Pure.

use units::IdSet;

use crate::cset::failure::Failure;

/// A list of numbers. `noun`: what cset calls it.
pub(crate) fn read<K>(noun: &str, spec: &str) -> Result<IdSet<K>, Failure> {
    if let Some(other) = spec.chars().find(|char| !char.is_ascii_digit() && !",-".contains(*char)) {
        let spec = spec.escape_debug();
        return Err(Failure::new(format!(
            "{noun} \"{spec}\" contains invalid characters: {}",
            other.escape_debug()
        )));
    }
    let mut whole = IdSet::new();
    // two commas are no error
    for group in spec.split(',').filter(|group| !group.is_empty()) {
        let bad = || Failure::new(format!("{noun} \"{spec}\" has bad group \"{group}\""));
        let part: IdSet<K> = group.parse().map_err(|_| bad())?;
        whole = whole.union(&part);
    }
    if whole.is_empty() { Err(Failure::new(format!("{noun} \"{spec}\" names none"))) } else { Ok(whole) }
}

/// CPUs that the root set has.
pub(crate) fn within<K>(noun: &str, spec: &str, all: &IdSet<K>) -> Result<IdSet<K>, Failure> {
    let cpus = read::<K>(noun, spec)?;
    match (cpus.last(), all.last()) {
        (Some(last), Some(most)) if last > most => Err(Failure::new(format!(
            "{noun} \"{spec}\" specifies higher max({last}) than available({most})"
        ))),
        _ => Ok(cpus),
    }
}

/// `1,3` as `a`.
pub(crate) fn to_hex(spec: &str) -> Result<String, Failure> {
    Ok(hex(&read::<()>("CPUSPEC", spec)?))
}

pub(crate) fn hex<K>(set: &IdSet<K>) -> String {
    let highest = set.last().map_or(0, |last| last / 4);
    let digit = |at: usize| {
        let bits = (0..4).filter(|bit| set.contains(at * 4 + bit)).fold(0, |all, bit| all | 1 << bit);
        char::from_digit(bits, 16).unwrap_or('0')
    };
    (0..=highest).rev().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_cset_reads_them() {
        let read = |spec: &str| {
            read::<()>("CPUSPEC", spec).map(|set| set.to_string()).map_err(|error| error.message)
        };
        assert_eq!(read("1,3,5-7").as_deref(), Ok("1,3,5-7"));
        assert_eq!(read("1,,2").as_deref(), Ok("1-2"));
        assert_eq!(read("-1"), Err("CPUSPEC \"-1\" has bad group \"-1\"".to_owned()));
        assert_eq!(read("1-2-3"), Err("CPUSPEC \"1-2-3\" has bad group \"1-2-3\"".to_owned()));
        assert_eq!(read("a"), Err("CPUSPEC \"a\" contains invalid characters: a".to_owned()));
        assert!(read("").is_err() && read("99999999999999999999").is_err());
        let error = within::<()>("CPUSPEC", "1-9", &"0-3".parse().unwrap()).map_err(|error| error.message);
        assert_eq!(error, Err("CPUSPEC \"1-9\" specifies higher max(9) than available(3)".to_owned()));
    }

    #[test]
    fn hexadecimal_has_no_leading_zeros() {
        for (spec, wanted) in [("0", "1"), ("1,3", "a"), ("0-3,8", "10f"), ("63", "8000000000000000")] {
            assert_eq!(to_hex(spec).ok().as_deref(), Some(wanted));
        }
    }
}
