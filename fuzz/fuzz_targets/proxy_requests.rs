#![no_main]

#[path = "../src/proxy.rs"]
mod proxy;

libfuzzer_sys::fuzz_target!(|data: &[u8]| proxy::proxy_requests(data));
