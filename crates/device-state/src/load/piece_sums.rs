//! Compares bytes from another source with the checksums of a tensor's pieces.

use super::{Tensor, assemble::Router};
use crate::{Error, format::index::PieceEntry, pump::ChunkSums};

/// Checksums of bytes from another source, for comparing them with a tensor.
pub struct PieceSums(Sums);

enum Sums {
    /// A tensor of one piece.
    Whole(ChunkSums),
    /// A tensor of several pieces, to which the bytes are distributed.
    Shards(Router),
    /// A tensor that cannot be split; the comparison always fails.
    Never,
}

impl PieceSums {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Sums::Whole(sums) => sums.update(bytes),
            Sums::Shards(router) => router.update(bytes),
            Sums::Never => {}
        }
    }

    /// Compares the checksums of all bytes with those of `tensor`.
    pub fn compare(self, tensor: &Tensor) -> Result<(), Error> {
        let holds = |piece: &PieceEntry, sums: &[u32]| {
            tensor.state.compare_sums(tensor.name(), piece, sums).is_ok()
        };
        let same = match self.0 {
            Sums::Whole(sums) => {
                let sums = sums.finish();
                tensor.pieces().all(|(_, piece)| holds(&piece, &sums))
            }
            Sums::Shards(router) => router.finish().all(|(piece, sums)| holds(&piece, &sums)),
            Sums::Never => false,
        };
        if same { Ok(()) } else { Err(Error::ReadBack { name: tensor.name().to_owned() }) }
    }
}

impl Tensor {
    /// Creates checksums for bytes that should be this tensor's.
    pub fn sums(&self) -> PieceSums {
        if self.is_whole() {
            return PieceSums(Sums::Whole(ChunkSums::new(self.state.header.chunk_bytes)));
        }
        PieceSums(Router::new(self).map_or(Sums::Never, Sums::Shards))
    }
}
