//! Sets of CPU and NUMA node numbers in the kernel's list format (`0-3,8,10-11`, and `0-31:2/4` for groups of a
//! range), with set operations. Never checks that a number exists on a machine.
//!
//! Source: Linux `Documentation/admin-guide/kernel-parameters.rst` ("cpu lists") and `lib/bitmap-str.c`.

use std::{fmt, marker::PhantomData, str::FromStr};

/// The largest number a set may hold. The kernel's own bound is `CONFIG_NR_CPUS` (8192 at most on x86-64); a
/// bound keeps `0-4000000000` from asking for half a gigabyte.
pub const MAX_ID: usize = 65_535;

/// The longest list that is read, in bytes: the longest canonical one (every second number) is shorter.
const MAX_LIST: usize = 256 * 1024;

/// Marks a set of logical CPU numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cpu {}
/// Marks a set of NUMA node numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {}

/// Logical CPUs as the kernel numbers them.
pub type CpuSet = IdSet<Cpu>;
/// NUMA nodes as the kernel numbers them.
pub type NodeSet = IdSet<Node>;

/// A set of numbers of one kind, `0..=MAX_ID`. Equality does not depend on how it was built.
pub struct IdSet<K> {
    /// Bit `i % 64` of word `i / 64`; the last word is never 0, so that equality is the words' equality.
    words: Vec<u64>,
    kind: PhantomData<K>,
}

/// Why a list could not be read. `at` counts bytes from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at position {at} of '{list}'", at = at + 1)]
pub struct ListError {
    /// The list as given, cut after 200 characters.
    pub list: String,
    /// Byte offset of the first thing that is wrong.
    pub at: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

impl<K> IdSet<K> {
    /// The empty set.
    pub const fn new() -> Self {
        IdSet { words: Vec::new(), kind: PhantomData }
    }

    /// All numbers `first..=last`; empty if `last < first`. Numbers over [`MAX_ID`] are left out.
    pub fn range(first: usize, last: usize) -> Self {
        let mut set = Self::new();
        if first <= last && first <= MAX_ID {
            set.insert_range(first, last.min(MAX_ID), 1, 1);
        }
        set
    }

    /// Adds the first `used` of every `group` numbers of `first..=last` (`last <= MAX_ID`), whole words at a
    /// time where all are used: a list of many wide ranges must not cost a step per number.
    fn insert_range(&mut self, first: usize, last: usize, used: usize, group: usize) {
        if used < group {
            (first..=last).step_by(group).for_each(|start| {
                self.insert_range(start, (start + used - 1).min(last), 1, 1);
            });
            return;
        }
        if last / 64 >= self.words.len() {
            self.words.resize(last / 64 + 1, 0);
        }
        for word in first / 64..=last / 64 {
            let low = first.saturating_sub(word * 64); // below 64: `word` starts at first's
            let high = (last - word * 64).min(63);
            self.words[word] |= (u64::MAX << low) & (u64::MAX >> (63 - high));
        }
    }

    /// Adds `id`; false if it was there already or is over [`MAX_ID`].
    pub fn insert(&mut self, id: usize) -> bool {
        if id > MAX_ID {
            return false;
        }
        let (word, bit) = (id / 64, 1u64 << (id % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Takes `id` out; false if it was not there.
    pub fn remove(&mut self, id: usize) -> bool {
        let there = self.contains(id);
        if there {
            self.words[id / 64] &= !(1u64 << (id % 64));
            self.trim();
        }
        there
    }

    /// Is `id` in the set?
    pub fn contains(&self, id: usize) -> bool {
        self.words.get(id / 64).is_some_and(|word| word & (1u64 << (id % 64)) != 0)
    }

    /// How many numbers the set holds.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Does the set hold nothing?
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The smallest number.
    pub fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    /// The largest number.
    pub fn last(&self) -> Option<usize> {
        let word = self.words.last()?;
        Some((self.words.len() - 1) * 64 + (63 - word.leading_zeros() as usize))
    }

    /// The numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    index * 64 + bit
                })
            })
        })
    }

    /// Numbers in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    /// Numbers in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    /// Numbers here that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    /// Is every number here also in `other`?
    pub fn is_subset(&self, other: &Self) -> bool {
        self.words.iter().enumerate().all(|(i, word)| word & !other.words.get(i).copied().unwrap_or(0) == 0)
    }

    /// Have the two sets no number in common?
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & b == 0)
    }

    /// Reads a CPU mask in hexadecimal words (`ff,00000000`), as `/sys` and hwloc print it; a leading `0x` of a
    /// word is taken too.
    ///
    /// # Errors
    /// A word that is not hexadecimal of at most 8 digits, or a mask beyond [`MAX_ID`].
    pub fn from_mask(mask: &str) -> Result<Self, ListError> {
        let wrong = |at, reason| ListError { list: mask.to_owned(), at, reason };
        let parts: Vec<&str> = mask.trim().split(',').collect();
        if parts.len() * 32 > MAX_ID + 1 {
            return Err(wrong(0, "mask is too long"));
        }
        let mut set = Self::new();
        let mut at = 0;
        for (index, part) in parts.iter().enumerate() {
            let digits = part.trim_start_matches("0x");
            // hwloc leaves a word of zeros empty: `0xff,,0x1`
            let word = if digits.is_empty() && parts.len() > 1 {
                0
            } else if digits.len() > 8 || digits.starts_with('+') {
                return Err(wrong(at, "expected at most 8 hexadecimal digits"));
            } else {
                u32::from_str_radix(digits, 16).map_err(|_| wrong(at, "expected hexadecimal digits"))?
            };
            let base = (parts.len() - 1 - index) * 32;
            (0..32).filter(|bit| word & (1 << bit) != 0).for_each(|bit| {
                set.insert(base + bit);
            });
            at += part.len() + 1;
        }
        Ok(set)
    }

    fn zip(&self, other: &Self, op: impl Fn(u64, u64) -> u64) -> Self {
        let word = |set: &Self, i: usize| set.words.get(i).copied().unwrap_or(0);
        let length = self.words.len().max(other.words.len());
        let mut out: Self = IdSet {
            words: (0..length).map(|i| op(word(self, i), word(other, i))).collect(),
            kind: PhantomData,
        };
        out.trim();
        out
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

/// One cursor over a list; the grammar is `{between} [range {between {between} range}] {between}`, `between` a comma, a space or
/// a tab, `range = n ["-" n [":" n "/" n]]`.
struct Cursor<'a> {
    list: &'a str,
    at: usize,
}

impl Cursor<'_> {
    fn wrong(&self, at: usize, reason: &'static str) -> ListError {
        ListError { list: self.list.chars().take(200).collect(), at, reason }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.list.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    /// What stands between ranges.
    fn take_between(&mut self) -> bool {
        let found = matches!(self.list.as_bytes().get(self.at), Some(b',' | b' ' | b'\t'));
        self.at += usize::from(found);
        found
    }

    fn number(&mut self) -> Result<usize, ListError> {
        let start = self.at;
        let digits = self.list.as_bytes()[start..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return Err(self.wrong(start, "expected a number"));
        }
        self.at += digits;
        self.list[start..self.at]
            .parse::<usize>()
            .ok()
            .filter(|&id| id <= MAX_ID)
            .ok_or_else(|| self.wrong(start, "number is over 65535"))
    }

    fn range<K>(&mut self, set: &mut IdSet<K>) -> Result<(), ListError> {
        let start = self.at;
        let first = self.number()?;
        if !self.take(b'-') {
            set.insert(first);
            return Ok(());
        }
        let last = self.number()?;
        if last < first {
            return Err(self.wrong(start, "the end of the range is below its start"));
        }
        let (mut used, mut group) = (1, 1);
        if self.take(b':') {
            used = self.number()?;
            if !self.take(b'/') {
                return Err(self.wrong(self.at, "expected '/' and the group size"));
            }
            group = self.number()?;
            if group == 0 || used == 0 || used > group {
                return Err(
                    self.wrong(start, "group size must be at least the used part, and both at least 1")
                );
            }
        }
        set.insert_range(first, last, used, group);
        Ok(())
    }
}

impl<K> FromStr for IdSet<K> {
    type Err = ListError;

    /// Reads `0-3,8`, `0-31:2/4`, or nothing for the empty set. As in the kernel, commas, spaces and tabs stand
    /// between ranges, as many as there are, and before and behind the list; none stands inside a range. A line's end ends
    /// the list for the kernel, which drops what follows: that is an error here.
    fn from_str(list: &str) -> Result<Self, ListError> {
        let list = list.trim();
        let mut set = Self::new();
        let mut cursor = Cursor { list, at: 0 };
        if list.len() > MAX_LIST {
            return Err(cursor.wrong(MAX_LIST, "list is too long"));
        }
        loop {
            // `bitmap_find_region` of the kernel
            while cursor.take_between() {}
            if cursor.at == list.len() && (list.is_empty() || !set.is_empty()) {
                return Ok(set);
            }
            cursor.range(&mut set)?;
            if cursor.at < list.len() && !cursor.take_between() {
                return Err(cursor.wrong(cursor.at, "expected ',' or '-' between numbers"));
            }
        }
    }
}

impl<K> fmt::Display for IdSet<K> {
    /// The kernel's canonical form: ascending, ranges joined, two neighbours as a range (`0-1`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ids = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = ids.next() {
            let mut last = first;
            while let Some(next) = ids.next_if_eq(&(last + 1)) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl<K> FromIterator<usize> for IdSet<K> {
    fn from_iter<I: IntoIterator<Item = usize>>(ids: I) -> Self {
        let mut set = Self::new();
        ids.into_iter().for_each(|id| {
            set.insert(id);
        });
        set
    }
}

// derived impls would demand them of the marker too
impl<K> Clone for IdSet<K> {
    fn clone(&self) -> Self {
        IdSet { words: self.words.clone(), kind: PhantomData }
    }
}
impl<K> Default for IdSet<K> {
    fn default() -> Self {
        Self::new()
    }
}
impl<K> PartialEq for IdSet<K> {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}
impl<K> Eq for IdSet<K> {}
impl<K> PartialOrd for IdSet<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for IdSet<K> {
    /// By the ascending list of numbers.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.iter().cmp(other.iter())
    }
}
impl<K> std::hash::Hash for IdSet<K> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.words.hash(state);
    }
}
impl<K> fmt::Debug for IdSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}
impl<K> serde::Serialize for IdSet<K> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
impl<'de, K> serde::Deserialize<'de> for IdSet<K> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let list = std::borrow::Cow::<'de, str>::deserialize(from)?;
        list.parse().map_err(serde::de::Error::custom)
    }
}
