#![no_main]

#[path = "../src/environments.rs"]
mod environments;

libfuzzer_sys::fuzz_target!(|data: &[u8]| environments::environments(data));
