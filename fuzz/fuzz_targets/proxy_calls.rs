#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| serdes_fuzz::proxy_calls(data));
