//! Any bytes against `fuzz::cgrules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::cgrules(data));
