//! Detects operations that wait for a partner outside of the program, which a server does not have.
//!
//! `infeed` and `outfeed` wait for a host that feeds the device and takes from it; the IFRT proxy
//! has no request for either, so that no client can be that host. `send` and `recv` wait for the
//! other end of their channel: a function of the client that came with the program. Without one
//! such a program would keep its devices forever.

use serdes::{codec::Status, stablehlo::Program};

use crate::status::status;

/// Operations that exchange data with a host, without their versions.
const FEEDS: &[&str] = &["infeed", "outfeed"];

/// Operations that exchange data with the other end of a channel.
const CHANNELS: &[&str] = &["send", "recv"];

/// Refuses a program with an operation that would wait forever; `callbacks` is the number of client
/// functions that came with it.
///
/// # Errors
/// UNIMPLEMENTED for `infeed` and `outfeed`, and for `send` and `recv` without a function.
pub(super) fn check(program: &Program<'_>, callbacks: usize) -> Result<(), Status> {
    for operation in program.operations() {
        let name = operation.rsplit_once("_v").map_or(operation, |(name, _)| name);
        if FEEDS.contains(&name) {
            return Err(status!(
                Unimplemented,
                "the program has the operation `stablehlo.{name}`, which waits for a host that exchanges data with the device while the program runs; no request of the IFRT proxy does that, and the program would never end: give the data as arguments and take it as results"
            ));
        }
        if CHANNELS.contains(&name) && callbacks == 0 {
            return Err(status!(
                Unimplemented,
                "the program has the operation `stablehlo.{name}`, and no function of the client came with it to be the other end of its channel, so that it would never end: write it with jax.pure_callback or jax.experimental.io_callback, or without"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes::codec::StatusCode;

    macro_rules! artifact {
        ($name:literal) => {
            include_bytes!(concat!("../../../../../tests/data/stablehlo/", $name, ".mlirbc"))
        };
    }

    fn refusal(artifact: &[u8], callbacks: usize) -> Option<String> {
        let error = check(&Program::read(artifact).unwrap(), callbacks).err()?;
        assert_eq!(error.code(), StatusCode::Unimplemented);
        Some(error.message().to_owned())
    }

    #[test]
    fn feeds_are_refused_by_name_with_or_without_callbacks() {
        for callbacks in [0, 1] {
            for (artifact, name) in [
                (&artifact!("infeed-1.10.9")[..], "`stablehlo.infeed`"),
                (artifact!("outfeed-1.10.9"), "`stablehlo.outfeed`"),
            ] {
                assert!(refusal(artifact, callbacks).unwrap().contains(name));
            }
        }
    }

    #[test]
    fn channels_are_refused_unless_functions_came_with_them() {
        for (artifact, name) in [
            (&artifact!("send-1.10.9")[..], "`stablehlo.send`"),
            (artifact!("recv-1.10.9"), "`stablehlo.recv`"),
        ] {
            let words = refusal(artifact, 0).unwrap();
            assert!(words.contains(name) && words.contains("pure_callback"), "{words}");
            assert_eq!(refusal(artifact, 1), None);
        }
    }

    #[test]
    fn programs_of_other_operations_pass() {
        for artifact in [&artifact!("add-1.22.0")[..], artifact!("psum-1.13.3")] {
            assert_eq!(refusal(artifact, 0), None);
        }
    }
}
