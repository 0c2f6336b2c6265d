//! Any bytes against `fuzz::group_list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::group_list(data));
