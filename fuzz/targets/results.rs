//! Any bytes against `fuzz::results`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::results(data));
