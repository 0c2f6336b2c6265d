//! How many CPUs whole cores have together, where cores differ in size: hybrid processors, or cores with a CPU offline.

use std::collections::BTreeMap;

/// The sizes of some cores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CoreSizes {
    /// How many CPUs a core has, the largest first, with the number of such cores.
    classes: Vec<(usize, usize)>,
}

impl CoreSizes {
    pub(crate) fn of(sizes: impl IntoIterator<Item = usize>) -> CoreSizes {
        let mut classes: BTreeMap<usize, usize> = BTreeMap::new();
        sizes.into_iter().filter(|size| *size > 0).for_each(|size| *classes.entry(size).or_default() += 1);
        CoreSizes { classes: classes.into_iter().rev().collect() }
    }

    /// Do cores differ in size?
    pub(crate) fn are_mixed(&self) -> bool {
        self.classes.len() > 1
    }

    /// The smallest core; 1 without any.
    pub(crate) fn smallest(&self) -> usize {
        self.classes.last().map_or(1, |(size, _)| *size)
    }

    fn all(&self) -> usize {
        self.classes.iter().map(|(size, count)| size * count).sum()
    }

    /// The sizes of single cores, the largest first.
    pub(crate) fn each(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.classes.iter().flat_map(|(size, count)| std::iter::repeat_n(*size, *count))
    }

    /// How many CPUs the smallest `count` cores have, and how many the largest; beyond the last core as many as that.
    pub(crate) fn of_some(&self, count: usize) -> (usize, usize) {
        let all = self.classes.iter().map(|(_, count)| count).sum::<usize>();
        let beyond = count.saturating_sub(all);
        let least: usize = self.each().rev().take(count).sum();
        let most: usize = self.each().take(count).sum();
        let largest = self.classes.first().map_or(1, |(size, _)| *size);
        (
            least.saturating_add(beyond.saturating_mul(self.smallest())),
            most.saturating_add(beyond.saturating_mul(largest)),
        )
    }

    /// The largest number of CPUs, up to `most`, that whole cores have.
    pub(crate) fn below(&self, most: usize) -> usize {
        let most = most.min(self.all());
        match &self.classes[..] {
            [] => 0,
            [(size, _)] => most / size * size,
            _ => self.sums(most).iter().rposition(|is_sum| *is_sum).unwrap_or(0),
        }
    }

    /// The smallest number of CPUs, from `least` on, that whole cores have.
    pub(crate) fn above(&self, least: usize) -> Option<usize> {
        let sum = match &self.classes[..] {
            [] => 0,
            [(size, _)] => least.checked_next_multiple_of(*size)?,
            _ => {
                let sums = self.sums(self.all());
                (least..sums.len()).find(|sum| sums[*sum])?
            }
        };
        (sum >= least && sum <= self.all()).then_some(sum)
    }

    /// How many cores of each size have so many CPUs together, as few cores as can be; `None` if no whole cores do.
    pub(crate) fn split(&self, total: usize) -> Option<Vec<(usize, usize)>> {
        let mut parts = Vec::new();
        let mut rest = total;
        for (place, (size, count)) in self.classes.iter().enumerate() {
            let smaller = CoreSizes { classes: self.classes[place + 1..].to_vec() };
            let most = (rest / size).min(*count);
            let some = (0..=most).rev().find(|some| {
                let left = rest - some * size;
                smaller.below(left) == left
            })?;
            parts.push((*size, some));
            rest -= some * size;
        }
        (rest == 0).then_some(parts)
    }

    /// The numbers of CPUs next to this one that whole cores have, as `2 or 4`, and how far the nearest is.
    pub(crate) fn nearest(&self, count: usize) -> (String, usize) {
        let below = Some(self.below(count)).filter(|below| *below > 0);
        let near: Vec<usize> = below.into_iter().chain(self.above(count)).collect();
        let missing = near.iter().map(|near| near.abs_diff(count)).min().unwrap_or(1);
        let near: Vec<String> = near.iter().map(usize::to_string).collect();
        (near.join(" or "), missing)
    }

    /// `2`, `1 or 2`, `1, 2 or 4`.
    pub(crate) fn words(&self) -> String {
        let sizes: Vec<String> = self.classes.iter().rev().map(|(size, _)| size.to_string()).collect();
        match sizes.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => sizes.concat(),
        }
    }

    /// By number: do some of the cores have that many CPUs together? Up to `most`.
    fn sums(&self, most: usize) -> Vec<bool> {
        let mut sums = vec![false; most + 1];
        sums[0] = true;
        for (size, count) in &self.classes {
            // how many cores of this size each sum takes; those of larger ones take none
            let mut used = vec![0; most + 1];
            for sum in *size..=most {
                if !sums[sum] && sums[sum - size] && used[sum - size] < *count {
                    sums[sum] = true;
                    used[sum] = used[sum - size] + 1;
                }
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::CoreSizes;

    /// Every choice of cores, one after the other.
    fn by_trial(sizes: &[usize]) -> Vec<bool> {
        let mut sums = vec![false; sizes.iter().sum::<usize>() + 1];
        for chosen in 0..1_u32 << sizes.len() {
            let chosen = sizes.iter().enumerate().filter(|(at, _)| chosen & 1 << at != 0);
            sums[chosen.map(|(_, size)| size).sum::<usize>()] = true;
        }
        sums
    }

    #[test]
    fn sums_are_those_that_a_choice_of_cores_has() {
        for sizes in [
            &[2, 2, 2][..],
            &[1, 2, 2, 1, 1],
            &[2, 2, 1],
            &[3, 2, 2, 2],
            &[8, 8, 4, 3],
            &[4, 4, 4, 2, 1],
            &[5, 3, 3],
            &[1],
            &[],
        ] {
            let (all, sums) = (CoreSizes::of(sizes.iter().copied()), by_trial(sizes));
            for number in 0..sums.len() + 2 {
                let below = (0..=number).rev().find(|sum| sums.get(*sum) == Some(&true)).unwrap();
                assert_eq!(all.below(number), below, "{sizes:?} {number}");
                let above = (number..sums.len()).find(|sum| sums[*sum]);
                assert_eq!(all.above(number), above, "{sizes:?} {number}");
                let split = all.split(number);
                assert_eq!(split.is_some(), sums.get(number) == Some(&true), "{sizes:?} {number}");
                for (size, count) in split.iter().flatten() {
                    assert!(
                        sizes.iter().filter(|other| *other == size).count() >= *count,
                        "{sizes:?} {number}"
                    );
                }
                let total = |parts: Vec<(usize, usize)>| parts.iter().map(|(size, count)| size * count).sum();
                assert_eq!(split.map_or(number, total), number);
            }
        }
        assert_eq!(CoreSizes::of([1, 2, 4, 1]).words(), "1, 2 or 4");
        assert_eq!(CoreSizes::of([2, 2]).words(), "2");
    }
}
