#![no_main]

#[path = "../src/calls.rs"]
mod calls;

libfuzzer_sys::fuzz_target!(|data: &[u8]| calls::proxy_calls(data));
