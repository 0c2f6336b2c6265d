//! Any bytes against `fuzz::experiment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::experiment(data));
