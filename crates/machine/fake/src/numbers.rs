//! How kernels read what is written to them: numbers, amounts of memory and id lists, each as it was seen to be
//! taken or refused. Never lenient: a form that was not tried on a kernel is not read here.

use rustix::io::Errno;
use units::CpuSet;

/// A page of memory, in bytes; limits are counted in pages.
pub(super) const PAGE: u64 = 4096;
/// The number of pages that stands for "no limit".
pub(super) const MAX_PAGES: u64 = i64::MAX as u64 / PAGE;

/// A whole number without a sign as most files take it (`kstrtoull`, base 0): `500`, `0x400`, `01000`, `+5`, one
/// newline after it, no spaces.
pub(super) fn unsigned(text: &str) -> Result<u64, Errno> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_prefix('+').unwrap_or(text);
    let (digits, radix) = match text {
        t if t.starts_with("0x") || t.starts_with("0X") => (&t[2..], 16),
        t if t.len() > 1 && t.starts_with('0') => (&t[1..], 8),
        t => (t, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(Errno::INVAL);
    }
    u64::from_str_radix(digits, radix).map_err(|_| Errno::RANGE)
}

/// The same with a sign.
pub(super) fn signed(text: &str) -> Result<i64, Errno> {
    match text.strip_prefix('-') {
        Some(rest) if !rest.starts_with('+') => {
            let number = i64::try_from(unsigned(rest)?).map_err(|_| Errno::RANGE)?;
            Ok(-number)
        }
        Some(_) => Err(Errno::INVAL),
        None => i64::try_from(unsigned(text)?).map_err(|_| Errno::RANGE),
    }
}

/// A number with a sign and spaces around it, as the v2 core files and `tasks` take it.
pub(super) fn trimmed(text: &str) -> Result<i64, Errno> {
    signed(text.trim())
}

/// An amount of memory in bytes (`memparse`): a number with K, M, G, T, P or E; nothing at all is 0, and what is
/// too large wraps.
pub(super) fn amount(text: &str) -> Result<u64, Errno> {
    let text = text.trim();
    let (digits, radix) = match text {
        t if t.starts_with("0x") => (&t[2..], 16),
        t => (t, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(end);
    let number = digits
        .chars()
        .filter_map(|c| c.to_digit(radix))
        .fold(0_u64, |sum, digit| sum.wrapping_mul(radix.into()).wrapping_add(digit.into()));
    let shift = match suffix.to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        "P" => 50,
        "E" => 60,
        _ => return Err(Errno::INVAL),
    };
    if digits.is_empty() && !suffix.is_empty() {
        return Err(Errno::INVAL);
    }
    Ok(number.wrapping_shl(shift))
}

/// A memory limit in pages; `unlimited` is the word for none (`max` on v2, `-1` on v1).
pub(super) fn pages(text: &str, unlimited: &str) -> Result<u64, Errno> {
    if text.trim() == unlimited {
        return Ok(MAX_PAGES);
    }
    Ok((amount(text)? / PAGE).min(MAX_PAGES))
}

/// A count or `max`, spaces around it: `None` is no limit. What is above `most` has the errno `above`.
pub(super) fn count(text: &str, most: i64, below: Errno, above: Errno) -> Result<Option<i64>, Errno> {
    if text.trim() == "max" {
        return Ok(None);
    }
    match trimmed(text)? {
        number if number < 0 => Err(below),
        number if number > most => Err(above),
        number => Ok(Some(number)),
    }
}

/// The whole digits at the start of a word (`sscanf("%llu")`): `50000.5` is 50000. Too large wraps.
pub(super) fn leading(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| {
        text[..end]
            .bytes()
            .fold(0_u64, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
    })
}

/// A list of CPUs or nodes (`bitmap_parselist`): `0-3,8`, `0-7:2/4`, `all`; a number from `end` on is ERANGE.
pub(super) fn list(text: &str, end: usize) -> Result<CpuSet, Errno> {
    let mut ids = CpuSet::new();
    let separator = |c: char| c == ',' || c.is_ascii_whitespace();
    for region in text.split(separator).filter(|region| !region.is_empty()) {
        if region == "all" {
            ids = ids.union(&CpuSet::range(0, end - 1));
            continue;
        }
        let (range, step) = match region.split_once(':') {
            Some((range, step)) => (range, Some(step.split_once('/').ok_or(Errno::INVAL)?)),
            None => (region, None),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (id(first)?, id(last)?);
        let (used, group) = match step {
            Some((used, group)) => (id(used)?, id(group)?),
            None => (1, 1),
        };
        if first > last || group == 0 || used > group {
            return Err(Errno::INVAL);
        }
        if last >= end {
            return Err(Errno::RANGE);
        }
        (first..=last).filter(|number| (number - first) % group < used).for_each(|number| {
            ids.insert(number);
        });
    }
    Ok(ids)
}

fn id(text: &str) -> Result<usize, Errno> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().map_err(|_| Errno::RANGE) } else { Err(Errno::INVAL) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_kernels_read_them() {
        for (text, number) in [
            ("1024", Ok(1024)),
            ("600\n", Ok(600)),
            ("0x400", Ok(1024)),
            ("01000", Ok(512)),
            ("+500", Ok(500)),
            ("0", Ok(0)),
            (" 500", Err(Errno::INVAL)),
            ("500 ", Err(Errno::INVAL)),
            ("5k", Err(Errno::INVAL)),
            ("\n", Err(Errno::INVAL)),
            ("-1", Err(Errno::INVAL)),
            ("18446744073709551616", Err(Errno::RANGE)),
        ] {
            assert_eq!(unsigned(text), number, "{text:?}");
        }
        assert_eq!(signed("-2"), Ok(-2));
        assert_eq!(trimmed(" 7 \n"), Ok(7));
    }

    #[test]
    fn amounts_of_memory_take_suffixes_and_wrap() {
        for (text, bytes) in [
            ("1g", Ok(1 << 30)),
            (" 4M ", Ok(4 << 20)),
            ("0x100000", Ok(1 << 20)),
            ("\n", Ok(0)),
            ("99999999999999999999", Ok(7_766_279_631_452_241_919)),
            ("4 M", Err(Errno::INVAL)),
            ("x", Err(Errno::INVAL)),
            ("Max", Err(Errno::INVAL)),
        ] {
            assert_eq!(amount(text), bytes, "{text:?}");
        }
        assert_eq!(pages("max", "max"), Ok(MAX_PAGES));
        assert_eq!(pages("18446744073709551615", "max"), Ok(MAX_PAGES));
        assert_eq!(pages("-1", "max"), Err(Errno::INVAL));
    }

    #[test]
    fn lists_are_read_as_kernels_read_them() {
        for (text, ids) in [
            ("0,0,1", Ok("0-1")),
            (" 0 , 1", Ok("0-1")),
            ("1 0", Ok("0-1")),
            ("0,", Ok("0")),
            (",0", Ok("0")),
            ("0-7:2/4", Ok("0-1,4-5")),
            ("all", Ok("0-7")),
            ("\n", Ok("")),
            ("0-", Err(Errno::INVAL)),
            ("-1", Err(Errno::INVAL)),
            ("3-1", Err(Errno::INVAL)),
            ("1 - 3", Err(Errno::INVAL)),
            ("x", Err(Errno::INVAL)),
            ("8", Err(Errno::RANGE)),
            ("0-99", Err(Errno::RANGE)),
        ] {
            assert_eq!(list(text, 8).map(|ids| ids.to_string()), ids.map(str::to_owned), "{text:?}");
        }
    }
}
