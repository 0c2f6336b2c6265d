//! Any bytes against `fuzz::cgconfig`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::cgconfig(data));
