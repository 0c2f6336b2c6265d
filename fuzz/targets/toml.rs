//! Any bytes against `fuzz::toml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::toml(data));
