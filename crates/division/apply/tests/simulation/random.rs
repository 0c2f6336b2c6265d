//! Random numbers from a seed, and choices made with them.

/// SplitMix64, as in `experiment::statistics`, which this crate may not use: the same seed must give the same run in every later
/// version.
#[derive(Debug, Clone)]
pub struct Random(u64, bool);

/// From this seed on layouts have more settings: the runs of the seeds before stay as they were.
pub const FIRST_WIDE: u64 = 1 << 32;

/// And from this one on only few generations can be undone one by one: the others are joined.
pub const FIRST_SHORT: u64 = 1 << 33;

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed, seed >= FIRST_WIDE)
    }

    /// Do layouts have settings that change others along?
    pub fn is_wide(&self) -> bool {
        self.1
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..bound`; for small bounds the first ones are not noticeably likelier.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}
