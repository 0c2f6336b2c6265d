//! Any bytes against `fuzz::calendar`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::calendar(data));
