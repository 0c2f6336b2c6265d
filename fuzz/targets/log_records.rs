//! Any bytes against `fuzz::log_records`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::log_records(data));
