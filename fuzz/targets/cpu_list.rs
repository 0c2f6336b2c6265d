//! Any bytes against `fuzz::cpu_list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::cpu_list(data));
