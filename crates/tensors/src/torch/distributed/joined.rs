//! Joins the bytes of a tensor from those of its chunks.

use std::{
    io::{self, Read},
    sync::Arc,
};

use serdes_files::ReadAt;

use super::{
    super::strided::{Dimension, Layout, Strided},
    description::{Chunk, Sharded},
};

/// Maximum size in bytes of a block that is joined at a time.
const BLOCK_BYTES: u64 = 8 << 20;

/// Maximum number of files that are kept open.
const OPEN_FILES: usize = 32;

/// Chunks in files.
pub(super) trait Chunks: Sync {
    /// Opens a file, by its number.
    ///
    /// # Errors
    /// If the file cannot be opened.
    fn open_file(&self, file: usize) -> io::Result<Arc<dyn ReadAt>>;

    /// Reads the archive of a chunk, and verifies its checksum; returns the layout of its elements
    /// in the file.
    ///
    /// # Errors
    /// If it is not the chunk that was described.
    fn open_chunk(
        &self,
        tensor: &Sharded,
        chunk: &Chunk,
        file: &Arc<dyn ReadAt>,
    ) -> io::Result<Layout>;
}

/// Reader of the bytes of a tensor, row by row.
pub(super) struct Joined<'a> {
    source: &'a dyn Chunks,
    tensor: &'a Sharded,
    /// Bytes of an element.
    element: u64,
    /// The layouts of the chunks that were opened and whose checksums are right.
    opened: Vec<Option<Layout>>,
    files: Vec<(usize, Arc<dyn ReadAt>)>,
    /// The dimension of which a block has some indices; it has one index of each dimension before,
    /// and all indices of those behind.
    middle: usize,
    /// The first index of the next block.
    index: Vec<u64>,
    is_done: bool,
    block: Vec<u8>,
    taken: usize,
}

impl<'a> Joined<'a> {
    pub(super) fn new(source: &'a dyn Chunks, tensor: &'a Sharded, element: u64) -> Self {
        let (mut middle, mut row) = (tensor.shape.len().saturating_sub(1), element);
        while let Some(larger) = tensor
            .shape
            .get(middle)
            .and_then(|extent| row.checked_mul(*extent))
            .filter(|larger| *larger <= BLOCK_BYTES && middle > 0)
        {
            (middle, row) = (middle - 1, larger);
        }
        Self {
            source,
            tensor,
            element,
            opened: vec![None; tensor.chunks.len()],
            files: Vec::new(),
            middle,
            index: vec![0; tensor.shape.len()],
            is_done: tensor.shape.contains(&0),
            block: Vec::new(),
            taken: 0,
        }
    }

    /// Returns the extents of the block that begins at the index.
    fn extents(&self) -> Vec<u64> {
        let row = self.tensor.shape.iter().skip(self.middle + 1).product::<u64>() * self.element;
        let room = (BLOCK_BYTES / row.max(1)).max(1);
        let extents = self.tensor.shape.iter().zip(&self.index).enumerate();
        extents
            .map(|(dimension, (extent, index))| match dimension.cmp(&self.middle) {
                std::cmp::Ordering::Less => 1,
                std::cmp::Ordering::Equal => room.min(extent - index),
                std::cmp::Ordering::Greater => *extent,
            })
            .collect()
    }

    /// Joins the next block.
    fn step(&mut self) -> io::Result<()> {
        let extents = self.extents();
        let elements = extents.iter().product::<u64>();
        self.taken = 0;
        self.block.clear();
        self.block.resize((elements * self.element) as usize, 0);
        for number in 0..self.tensor.chunks.len() {
            let Some(chunk) = self.tensor.chunks.get(number) else { break };
            if let Some(common) = Common::of(&self.index, &extents, chunk) {
                self.put(number, chunk, &common, &extents)?;
            }
        }
        self.advance(&extents);
        Ok(())
    }

    /// Advances to the next block.
    fn advance(&mut self, extents: &[u64]) {
        let sides = self.index.iter_mut().zip(extents).zip(&self.tensor.shape);
        for ((index, step), extent) in sides.take(self.middle + 1).rev() {
            *index += step;
            if *index < *extent {
                return;
            }
            *index = 0;
        }
        self.is_done = true;
    }

    /// Copies the chunk's part of the block into the block.
    fn put(
        &mut self,
        number: usize,
        chunk: &Chunk,
        common: &Common,
        extents: &[u64],
    ) -> io::Result<()> {
        let file = self.file(chunk.place.file)?;
        let opened = match self.opened.get(number).cloned().flatten() {
            Some(opened) => opened,
            None => {
                let opened = self.source.open_chunk(self.tensor, chunk, &file)?;
                if let Some(place) = self.opened.get_mut(number) {
                    *place = Some(opened.clone());
                }
                opened
            }
        };
        let part = common.part(&opened, chunk);
        let mut bytes = vec![0; part.bytes() as usize];
        match part.is_contiguous() {
            true => file.read_exact_at(&mut bytes, part.begin)?,
            false => Strided::new(file, &part).read_exact(&mut bytes)?,
        }
        self.sort(&bytes, common, extents);
        Ok(())
    }

    /// Copies consecutive rows to their positions in the block.
    fn sort(&mut self, bytes: &[u8], common: &Common, extents: &[u64]) {
        let row = common.sizes.last().map_or(1, |size| *size) * self.element;
        let mut index = vec![0_u64; common.sizes.len()];
        let own = index.len().saturating_sub(1);
        for from in bytes.chunks_exact((row as usize).max(1)) {
            let places = common.begins.iter().zip(&index).zip(extents);
            let at = places.fold(0, |at, ((begin, index), extent)| at * extent + begin + index);
            let at = (at * self.element) as usize;
            if let Some(to) = self.block.get_mut(at..at + from.len()) {
                to.copy_from_slice(from);
            }
            for (index, size) in index.iter_mut().zip(&common.sizes).take(own).rev() {
                *index += 1;
                if *index < *size {
                    break;
                }
                *index = 0;
            }
        }
    }

    fn file(&mut self, number: usize) -> io::Result<Arc<dyn ReadAt>> {
        if let Some((_, file)) = self.files.iter().find(|(open, _)| *open == number) {
            return Ok(Arc::clone(file));
        }
        let file = self.source.open_file(number)?;
        if self.files.len() == OPEN_FILES {
            self.files.remove(0);
        }
        self.files.push((number, Arc::clone(&file)));
        Ok(file)
    }
}

impl Read for Joined<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.block.len() {
            if self.is_done {
                return Ok(0);
            }
            self.step()?;
        }
        let count = self.block.get(self.taken..).unwrap_or_default().read(out)?;
        self.taken += count;
        Ok(count)
    }
}

/// Intersection of a block and a chunk.
struct Common {
    /// Its first index in the block.
    begins: Vec<u64>,
    /// Its first index in the chunk.
    inside: Vec<u64>,
    sizes: Vec<u64>,
}

impl Common {
    fn of(index: &[u64], extents: &[u64], chunk: &Chunk) -> Option<Self> {
        let mut common = Self { begins: Vec::new(), inside: Vec::new(), sizes: Vec::new() };
        let sides = index.iter().zip(extents).zip(chunk.offsets.iter().zip(&chunk.sizes));
        for ((index, extent), (offset, size)) in sides {
            let begin = (*index).max(*offset);
            let end = (index + extent).min(offset + size);
            common.sizes.push(end.checked_sub(begin).filter(|size| *size > 0)?);
            common.begins.push(begin - index);
            common.inside.push(begin - offset);
        }
        Some(common)
    }

    /// Returns the layout of the intersection in the file of the chunk.
    fn part(&self, whole: &Layout, chunk: &Chunk) -> Layout {
        let mut part =
            Layout { begin: whole.begin, element: whole.element, dimensions: Vec::new() };
        let sides = self.inside.iter().zip(&self.sizes).zip(&whole.dimensions);
        for ((inside, size), dimension) in sides.take(chunk.sizes.len()) {
            part.begin += inside * dimension.stride * whole.element;
            part.dimensions.push(Dimension { extent: *size, stride: dimension.stride });
        }
        part
    }
}
