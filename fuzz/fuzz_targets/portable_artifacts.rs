#![no_main]

#[path = "../src/jax.rs"]
mod jax;

use serdes_jax_artifacts::Kind;

libfuzzer_sys::fuzz_target!(|data: &[u8]| jax::jax_artifacts(Kind::StableHlo, data));
