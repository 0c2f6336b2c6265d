//! Any bytes against `fuzz::log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::log(data));
