//! Handles of a session's objects; those that the server creates cannot be guessed.

use ring::rand::{SecureRandom as _, SystemRandom};
use serdes::codec::Status;

use crate::status::status;

/// First handle that the server assigns; clients choose smaller ones.
pub(crate) const SERVER_HANDLES: u64 = 1 << 63;

/// Returns a random number other than 0, which cannot be guessed.
///
/// # Errors
/// INTERNAL if the system gives no random numbers.
pub(crate) fn unguessable() -> Result<u64, Status> {
    let random = SystemRandom::new();
    loop {
        let mut bytes = [0; 8];
        random
            .fill(&mut bytes)
            .map_err(|_| status!(Internal, "the system gives no random numbers"))?;
        match u64::from_ne_bytes(bytes) {
            0 => {}
            number => return Ok(number),
        }
    }
}
