//! Any bytes against `fuzz::journal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::journal(data));
