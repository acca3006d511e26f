//! Assembles arrays of several pieces into one stream of bytes, row by row.

use std::{
    io::{self, Read},
    sync::Arc,
};

use super::{Tensor, piece_reader::PieceReader};
use crate::{
    Error,
    format::index::PieceEntry,
    pump::ChunkSums,
    shards::{self, Block, CellIterator},
};

/// Numbers and entries of pieces, with their parts of the array.
type Pieces = (Vec<(u32, PieceEntry)>, Vec<Block>);

/// Returns the pieces of a tensor.
pub(super) fn pieces_of(tensor: &Tensor) -> Result<Pieces, Error> {
    let index = &tensor.state.index;
    let shape = tensor.spec().shape();
    let pieces: Vec<_> = tensor.pieces().collect();
    let blocks = pieces.iter().map(|(_, piece)| {
        let placement = index.placement(piece.placement)?;
        Block::of(&placement.domain, shape)
    });
    let blocks = blocks.collect::<Option<Vec<_>>>().ok_or_else(|| {
        Error::shards(tensor.name(), format!("a part of another rank than {shape}"))
    })?;
    Ok((pieces, blocks))
}

/// Returns the size of an element of the tensor in bytes.
pub(super) fn element_bytes(tensor: &Tensor) -> Result<u64, Error> {
    shards::element_bytes(tensor.spec())
        .map_err(|reason| Error::Unsupported { name: tensor.name().to_owned(), reason })
}

/// Creates an iterator over the tensor with its pieces as sources.
fn cells(tensor: &Tensor, blocks: &[Block]) -> Result<CellIterator, Error> {
    CellIterator::new(&Block::whole(tensor.spec().shape()), blocks, &[])
        .map_err(|reason| Error::Unsupported { name: tensor.name().to_owned(), reason })
}

/// Reader of a tensor of several pieces, row-major. Holds one chunk of each piece that the current
/// row crosses.
pub(super) struct Assembler {
    cells: CellIterator,
    element: u64,
    pieces: Vec<Source>,
    /// Source of the current run, and its remaining bytes.
    current: (usize, u64),
}

/// A piece that is being read: its reader, once started, and its remaining bytes.
struct Source {
    tensor: Tensor,
    piece: PieceEntry,
    reader: Option<PieceReader>,
    left: u64,
}

impl Assembler {
    pub(super) fn new(tensor: &Tensor) -> Result<Self, Error> {
        let (pieces, blocks) = pieces_of(tensor)?;
        let sources = pieces.into_iter().map(|(_, piece)| Source {
            tensor: tensor.clone(),
            piece,
            reader: None,
            left: piece.data_bytes,
        });
        Ok(Self {
            cells: cells(tensor, &blocks)?,
            element: element_bytes(tensor)?,
            pieces: sources.collect(),
            current: (0, 0),
        })
    }
}

impl Read for Assembler {
    #[expect(clippy::indexing_slicing, reason = "`length` is at most that of `out`")]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while self.current.1 == 0 {
            let Some(run) = self.cells.next() else { return Ok(0) };
            let gap = || io::Error::new(io::ErrorKind::InvalidData, "a part is missing");
            let source = run.source.ok_or_else(gap)?;
            self.current = (source as usize, run.elements.saturating_mul(self.element));
        }
        let count = self.pieces.len();
        let (number, left) = &mut self.current;
        let Some(source) = self.pieces.get_mut(*number) else { return Ok(0) };
        let length = out.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
        let reader = source.reader.get_or_insert_with(|| {
            PieceReader::new(Arc::clone(&source.tensor.state), source.piece, count)
        });
        let count = reader.read(&mut out[..length])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        *left -= count as u64;
        source.left = source.left.saturating_sub(count as u64);
        if source.left == 0 {
            // Its chunk is no longer needed.
            source.reader = None;
        }
        Ok(count)
    }
}

/// Distributes the bytes of a whole array to its pieces, and computes their checksums.
pub(super) struct Router {
    cells: CellIterator,
    element: u64,
    pieces: Vec<(PieceEntry, ChunkSums)>,
    current: (usize, u64),
}

impl Router {
    pub(super) fn new(tensor: &Tensor) -> Result<Self, Error> {
        let (pieces, blocks) = pieces_of(tensor)?;
        let sums = || ChunkSums::new(tensor.state.header.chunk_bytes);
        Ok(Self {
            cells: cells(tensor, &blocks)?,
            element: element_bytes(tensor)?,
            pieces: pieces.into_iter().map(|(_, piece)| (piece, sums())).collect(),
            current: (0, 0),
        })
    }

    /// Adds the next bytes; bytes after the end of the array are ignored.
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            while self.current.1 == 0 {
                let Some(run) = self.cells.next() else { return };
                let source = run.source.map_or(usize::MAX, |source| source as usize);
                self.current = (source, run.elements.saturating_mul(self.element));
            }
            let (number, left) = &mut self.current;
            let length = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
            let (now, later) = bytes.split_at(length);
            if let Some((_, sums)) = self.pieces.get_mut(*number) {
                sums.update(now);
            }
            *left -= now.len() as u64;
            bytes = later;
        }
    }

    /// Returns each piece with the checksums of its bytes.
    pub(super) fn finish(self) -> impl Iterator<Item = (PieceEntry, Vec<u32>)> {
        self.pieces.into_iter().map(|(piece, sums)| (piece, sums.finish()))
    }
}
