//! In which order runs are made: randomised complete blocks from a seed.

/// SplitMix64 (Steele, Lea and Flood 2014, "Fast Splittable Pseudorandom Number Generators"): a counter, scrambled.
///
/// Its own eight lines, because the seed is part of an experiment's record: the same seed must give the same order in
/// every later version, and crates of random numbers reserve the right to change what a seed gives.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// From a seed; any will do.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The next 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..bound`, each as likely: draws that would make the first ones likelier are drawn again.
    fn below(&mut self, bound: u64) -> u64 {
        let uneven = (u64::MAX % bound + 1) % bound; // how many of the 2⁶⁴ are too many
        loop {
            let drawn = self.draw();
            if drawn <= u64::MAX - uneven {
                return drawn % bound;
            }
        }
    }
}

/// For each block the order in which its cells (numbered from 0) are run: each cell once, shuffled (Fisher and Yates).
/// Of a longer experiment with the same seed and cells the first blocks are the same.
pub fn order(seed: u64, blocks: usize, cells: usize) -> Vec<Vec<usize>> {
    let mut random = SplitMix64::new(seed);
    (0..blocks)
        .map(|_| {
            let mut block: Vec<usize> = (0..cells).collect();
            for last in (1..cells).rev() {
                block.swap(last, random.below(last as u64 + 1) as usize);
            }
            block
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The first numbers of seed 1234567 as published at Rosetta Code, "Pseudo-random numbers/Splitmix64", from Vigna's
    /// reference implementation in C.
    #[test]
    fn the_generator_gives_the_published_numbers() {
        let mut random = SplitMix64::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| random.draw()), expected);
    }

    #[test]
    fn every_block_holds_every_cell_once() {
        for mut block in order(7, 50, 9) {
            block.sort_unstable();
            assert_eq!(block, (0..9).collect::<Vec<_>>());
        }
        assert_eq!(order(7, 2, 0), [Vec::<usize>::new(), Vec::new()]);
        assert_eq!(order(7, 2, 1), [vec![0], vec![0]]);
    }

    #[test]
    fn a_seed_gives_the_same_order_however_many_blocks_follow() {
        assert_eq!(order(42, 6, 5)[..3], order(42, 3, 5)[..]);
        assert_ne!(order(42, 6, 5), order(43, 6, 5));
    }

    /// Of 24,000 blocks of 4 each of the 24 orders is expected 1,000 times; the standard deviation is 31.
    #[test]
    fn every_order_is_as_likely_as_any_other() {
        let mut seen: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        for block in order(1, 24_000, 4) {
            *seen.entry(block).or_default() += 1;
        }
        assert_eq!(seen.len(), 24);
        assert!(seen.values().all(|&times| (850..=1150).contains(&times)), "{seen:?}");
    }
}
