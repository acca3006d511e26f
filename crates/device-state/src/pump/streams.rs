//! The streams for copies: one per device, created for its first large copy.

use super::Memory;

/// A stream for each device with copies.
#[derive(Debug)]
pub struct Streams<M: Memory>(Vec<M::Stream>);

impl<M: Memory> Streams<M> {
    /// Creates an empty set.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the stream of a device, and creates it if needed.
    #[expect(
        clippy::indexing_slicing,
        reason = "a position that was found in the list, or its last"
    )]
    pub(super) fn of(&mut self, device: &M::Device) -> Result<&M::Stream, M::Error> {
        let at = match self.0.iter().position(|stream| M::is_on(stream, device)) {
            Some(at) => at,
            None => {
                self.0.push(M::create_stream(device)?);
                self.0.len() - 1
            }
        };
        Ok(&self.0[at])
    }
}
