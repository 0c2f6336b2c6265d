//! A knob's text and what it means.

use units::CpuSet;

use crate::knobs::{Encoding, Knob};

/// The CPUs of a text; `None` if it is none of this encoding.
pub(crate) fn cpus(encoding: Encoding, text: &str) -> Option<CpuSet> {
    match encoding {
        Encoding::Mask => CpuSet::from_mask(text.trim()).ok(),
        Encoding::List | Encoding::Affinity if text.trim().is_empty() => Some(CpuSet::new()),
        Encoding::List | Encoding::Affinity => text.trim().parse().ok(),
        _ => None,
    }
}

/// The text of a set of CPUs.
pub(crate) fn of_cpus(encoding: Encoding, cpus: &CpuSet) -> String {
    if encoding != Encoding::Mask {
        return cpus.to_string();
    }
    let count = cpus.last().map_or(1, |last| last / 32 + 1);
    let word = |word: usize| {
        (0..32).filter(|bit| cpus.contains(word * 32 + bit)).fold(0u32, |all, bit| all | 1 << bit)
    };
    let words: Vec<String> = (0..count).rev().map(|at| format!("{:08x}", word(at))).collect();
    words.join(",")
}

impl Knob {
    /// Do two texts mean the same?
    pub fn same(&self, one: &str, other: &str) -> bool {
        let (one, other) = (one.trim(), other.trim());
        if one == other {
            return true;
        }
        match self.encoding {
            Encoding::Choice => chosen(one) == chosen(other),
            Encoding::Number => one.parse::<i64>().is_ok_and(|number| other.parse() == Ok(number)),
            encoding => cpus(encoding, one).is_some_and(|set| cpus(encoding, other) == Some(set)),
        }
    }

    /// The text that brings this content back, and as people read it.
    pub fn plain<'t>(&self, content: &'t str) -> &'t str {
        if self.encoding == Encoding::Choice { chosen(content.trim()) } else { content.trim() }
    }
}

/// `madvise` of `always [madvise] never`.
fn chosen(text: &str) -> &str {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knobs::find;

    #[test]
    fn texts_that_mean_the_same() {
        let same = |name: &str, one: &str, other: &str| find(name).unwrap().same(one, other);
        assert!(same("interrupt-default", "ff", "000000ff"));
        assert!(same("interrupt-default", "1,00000000", "00000001,00000000"));
        assert!(!same("interrupt-default", "ff", "7f"));
        assert!(same("interrupts", "0,1,2", "0-2"));
        assert!(same("huge-pages", "always [madvise] never", "madvise"));
        assert!(!same("huge-pages", "[always] madvise never", "madvise"));
        assert!(same("stat-interval", "60", "60\n"));
    }

    #[test]
    fn masks_are_read_as_they_are_written() {
        for list in ["0", "0-7", "31-32", "5,64,95"] {
            let set: CpuSet = list.parse().unwrap();
            assert_eq!(cpus(Encoding::Mask, &of_cpus(Encoding::Mask, &set)), Some(set), "{list}");
        }
        assert_eq!(of_cpus(Encoding::Mask, &"32".parse().unwrap()), "00000001,00000000");
    }
}
