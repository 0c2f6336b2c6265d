//! The buffer cache: blocks of 8 KB that are found by their address through a hash table, as a database finds them.
//! A read takes its bucket's latch, walks the chain, pins the block, lets the latch go, touches the block and unpins
//! it. All blocks are there from the beginning: nothing is ever read from a disk or given to another address.

use std::{
    hint::{black_box, spin_loop},
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

/// Of a block.
pub(super) const BLOCK_BYTES: usize = 8192;
const BLOCK_WORDS: usize = BLOCK_BYTES / size_of::<u64>();

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// Tries before a latch's holder is given the CPU: some microseconds, as it may wait for that very CPU.
const SPINS: u32 = 2000;

/// Where a database finds a block: a file and a block in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address {
    pub file: u32,
    pub block: u32,
}

impl Address {
    fn word(self) -> u64 {
        (u64::from(self.file) << 32) | u64::from(self.block)
    }

    /// Neighbouring blocks lie in buckets far from one another (the finaliser of MurmurHash3, 64 bits).
    fn hash(self) -> u64 {
        let mut state = self.word();
        state = (state ^ (state >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        state = (state ^ (state >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        state ^ (state >> 33)
    }
}

/// Chains of the hash table, each under a latch.
struct Bucket {
    latch: AtomicU32,
    first: u32,
}

/// What is known of a block without touching it.
struct Header {
    address: u64,
    next: u32,
    pins: AtomicU32,
}

/// What was met at latches.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Latches {
    /// The latch was taken by another reader.
    pub misses: u64,
    /// It was taken for so long that the CPU was offered to others.
    pub yields: u64,
}

/// All blocks with their hash table.
pub(super) struct BufferCache {
    buckets: Vec<Bucket>,
    headers: Vec<Header>,
    words: Vec<u64>,
    shift: u32,
}

/// A block that stays where it is.
pub(super) struct Pinned<'c> {
    words: &'c [u64],
    pins: &'c AtomicU32,
}

impl BufferCache {
    /// Files of this many blocks each, every byte of them written by the calling thread and `threads - 1` more, so that
    /// each page is where their memory policy puts it.
    pub fn fill(files: u32, blocks_per_file: u32, threads: usize) -> BufferCache {
        let blocks = files as usize * blocks_per_file as usize;
        let mut words = vec![0; blocks * BLOCK_WORDS];
        let share = blocks.div_ceil(threads.max(1)).max(1);
        let address = |index: usize| {
            let index = index as u32; // there are less than u32::MAX blocks: below
            Address { file: index / blocks_per_file, block: index % blocks_per_file }
        };
        thread::scope(|scope| {
            for (part, words) in words.chunks_mut(share * BLOCK_WORDS).enumerate() {
                scope.spawn(move || {
                    for (block, words) in words.chunks_exact_mut(BLOCK_WORDS).enumerate() {
                        let word = address(part * share + block).word();
                        words.iter_mut().zip(0..).for_each(|(place, number)| *place = word ^ (number << 40));
                    }
                });
            }
        });
        // one block in a chain, on average
        let count = blocks.next_power_of_two().max(2);
        let shift = 64 - count.trailing_zeros();
        let mut buckets: Vec<Bucket> =
            (0..count).map(|_| Bucket { latch: AtomicU32::new(0), first: NONE }).collect();
        let headers = (0..blocks).map(|index| {
            let address = address(index).word();
            Header { address, next: NONE, pins: AtomicU32::new(0) }
        });
        let mut headers: Vec<Header> = headers.collect();
        // The last to come stands first in its chain, where it is found sooner: the files take turns, or the reader of the
        // last file had an eighth more reads from the same CPU time than that of the first.
        for block in 0..blocks_per_file as usize {
            for index in (block..blocks).step_by(blocks_per_file.max(1) as usize) {
                let bucket = &mut buckets[(address(index).hash() >> shift) as usize];
                headers[index].next = std::mem::replace(&mut bucket.first, index as u32);
            }
        }
        BufferCache { buckets, headers, words, shift }
    }

    /// Of all blocks, in bytes.
    pub fn bytes(&self) -> u64 {
        (self.words.len() * size_of::<u64>()) as u64
    }

    /// Finds a block and pins it; `None` if no such block is there.
    pub fn get(&self, address: Address, latches: &mut Latches) -> Option<Pinned<'_>> {
        let bucket = &self.buckets[(address.hash() >> self.shift) as usize];
        take(&bucket.latch, latches);
        let mut place = bucket.first;
        let found = loop {
            let Some(header) = self.headers.get(place as usize) else { break None };
            if header.address == address.word() {
                header.pins.fetch_add(1, Ordering::Relaxed);
                break Some((place as usize, &header.pins));
            }
            place = header.next;
        };
        bucket.latch.store(0, Ordering::Release);
        let (place, pins) = found?;
        Some(Pinned { words: &self.words[place * BLOCK_WORDS..][..BLOCK_WORDS], pins })
    }
}

fn take(latch: &AtomicU32, latches: &mut Latches) {
    let free = || latch.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if free() {
        return;
    }
    latches.misses += 1;
    loop {
        for _ in 0..SPINS {
            if latch.load(Ordering::Relaxed) == 0 && free() {
                return;
            }
            spin_loop();
        }
        latches.yields += 1;
        thread::yield_now();
    }
}

impl Pinned<'_> {
    /// Reads this many words, evenly over the block; false if the block is another one's.
    pub fn touch(&self, address: Address, words: usize) -> bool {
        let step = (BLOCK_WORDS / words.clamp(1, BLOCK_WORDS)).max(1);
        let sum = self.words.iter().step_by(step).fold(0_u64, |sum, word| sum.wrapping_add(*word));
        black_box(sum);
        self.words.first() == Some(&address.word())
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.pins.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_found_by_its_address_and_no_other_is() {
        let cache = BufferCache::fill(3, 50, 2);
        let mut latches = Latches::default();
        for file in 0..3 {
            for block in 0..50 {
                let address = Address { file, block };
                let pinned = cache.get(address, &mut latches).unwrap();
                assert!(pinned.touch(address, 64), "{address:?}");
                assert!(!pinned.touch(Address { file, block: block + 1 }, 64));
            }
        }
        assert!(cache.get(Address { file: 3, block: 0 }, &mut latches).is_none());
        assert!(cache.get(Address { file: 0, block: 50 }, &mut latches).is_none());
        assert_eq!(cache.bytes(), 150 * 8192);
    }

    /// Else readers of the same CPU time differ in their reads, however fairly it is shared.
    #[test]
    fn blocks_of_every_file_are_found_after_as_many_steps() {
        let (files, blocks) = (9, 2000);
        let cache = BufferCache::fill(files, blocks, 2);
        let steps = |address: Address| {
            let mut place = cache.buckets[(address.hash() >> cache.shift) as usize].first;
            let mut steps = 1;
            while cache.headers[place as usize].address != address.word() {
                place = cache.headers[place as usize].next;
                steps += 1;
            }
            steps
        };
        let of_file = |file| (0..blocks).map(|block| steps(Address { file, block })).sum::<u32>();
        let each: Vec<u32> = (0..files).map(of_file).collect();
        let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
        assert!(f64::from(*least) >= 0.95 * f64::from(*most), "{each:?}");
    }

    #[test]
    fn a_block_is_pinned_as_long_as_it_is_looked_at() {
        let cache = BufferCache::fill(1, 1, 1);
        let address = Address { file: 0, block: 0 };
        let mut latches = Latches::default();
        let pins = || cache.headers[0].pins.load(Ordering::Relaxed);
        let one = cache.get(address, &mut latches);
        let other = cache.get(address, &mut latches);
        assert_eq!(pins(), 2, "no latch is taken any longer");
        drop((one, other));
        assert_eq!(pins(), 0);
    }

    #[test]
    fn a_latch_lets_one_in_at_a_time() {
        let latch = AtomicU32::new(0);
        let mut counted = 0_u64;
        let place = std::sync::Mutex::new(&mut counted);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        take(&latch, &mut Latches::default());
                        let mut count = place.try_lock().expect("the latch lets one in at a time");
                        **count += 1;
                        drop(count);
                        latch.store(0, Ordering::Release);
                    }
                });
            }
        });
        assert_eq!(counted, 8000);
    }
}
