//! Reading a table: opening, seeking, iterating, and verifying.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use serdes_files::ReadAt;

use super::{
    TableError,
    block::{Block, BlockCursor, read_raw},
    format::{BlockHandle, FOOTER_LEN, Footer, TRAILER_LEN, TYPE_RAW, TYPE_SNAPPY},
};

/// A table that is open for reading. It can be shared between threads; each thread uses its own
/// [`Cursor`].
#[derive(Debug)]
pub struct Table<S> {
    source: S,
    len: u64,
    footer: Footer,
    index: Block,
    /// The block that answered the last `get`.
    recent: Mutex<Option<(BlockHandle, Arc<Block>)>>,
}

impl<S: ReadAt> Table<S> {
    /// Opens a table: reads the footer and the index block, and makes TensorFlow's checks on them
    /// (magic number, handles, checksum of the index block).
    ///
    /// # Errors
    /// [`TableError`], with the status that TensorFlow gives.
    pub fn open(source: S) -> Result<Self, TableError> {
        let len = source.size()?;
        let Some(footer_at) = len.checked_sub(FOOTER_LEN as u64) else {
            return Err(TableError::TooShort { len });
        };
        let mut footer = [0; FOOTER_LEN];
        source.read_exact_at(&mut footer, footer_at)?;
        let footer = Footer::read(&footer)?;
        let index = Block::read(&source, len, footer.index)?;
        Ok(Self { source, len, footer, index, recent: Mutex::default() })
    }

    /// Returns the length of the file in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.len
    }

    /// Returns the source that the table is read from.
    #[must_use]
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns a cursor without a position.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_, S> {
        Cursor {
            table: self,
            index: BlockCursor::default(),
            block: None,
            at: BlockCursor::default(),
            entry: 0,
            defects: Vec::new(),
            read: 0,
        }
    }

    /// Returns the value under `key`, found by a search that trusts the order of the keys.
    ///
    /// # Errors
    /// If there is no such key, the first defect met during the search: the key may be in a block
    /// that could not be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TableError> {
        let mut cursor = self.cursor();
        cursor.block = self.recent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        cursor.seek(key);
        let found = (cursor.valid() && cursor.key() == key).then(|| cursor.value().to_vec());
        if let Some(recent) = cursor.block.take() {
            *self.recent.lock().unwrap_or_else(PoisonError::into_inner) = Some(recent);
        }
        match (found, cursor.defects.into_iter().next()) {
            (None, Some(defect)) => Err(defect),
            (found, _) => Ok(found),
        }
    }

    /// Limit on the bytes of blocks that one walk reads. A table whose blocks do not overlap needs
    /// no more than its length.
    fn budget(&self) -> u64 {
        self.len.saturating_mul(4).saturating_add(1 << 20)
    }

    /// Reads a block and checks its checksum and its type.
    fn verify_block(&self, handle: BlockHandle, buffer: &mut Vec<u8>) -> Result<(), TableError> {
        match read_raw(&self.source, self.len, handle, buffer)? {
            TYPE_RAW | TYPE_SNAPPY => Ok(()),
            found => Err(TableError::BlockType { offset: handle.offset, found }),
        }
    }

    /// Reads every block, the metaindex block included, and checks its checksum and its type. Reads
    /// each byte once and parses only the index.
    #[must_use]
    pub fn verify_blocks(&self) -> Vec<TableDefect> {
        let mut defects = Vec::new();
        let mut buffer = Vec::new();
        if !self.footer.padding_is_zero {
            defects.push(TableDefect::FooterPadding);
        }
        let metaindex = self.verify_block(self.footer.metaindex, &mut buffer);
        defects.extend(metaindex.err().map(TableDefect::Metaindex));
        let mut cursor = BlockCursor::default();
        let mut read = 0u64;
        let mut step = cursor.first(&self.index);
        let mut entry = 0;
        // The end of the previous block, while the blocks are in order and without gaps.
        let mut expected = Some(0);
        loop {
            if let Err(error) = step {
                defects.push(TableDefect::Block(error));
                return defects;
            }
            if !cursor.valid() {
                break;
            }
            match BlockHandle::read(cursor.value(&self.index)) {
                Some((handle, _)) => {
                    read = read.saturating_add(handle.size.min(self.len));
                    if read > self.budget() {
                        let limit = self.budget();
                        defects.push(TableDefect::Block(TableError::Overlapping {
                            limit,
                            len: self.len,
                        }));
                        return defects;
                    }
                    if expected.is_some_and(|expected| expected != handle.offset) {
                        defects.push(TableDefect::Gap { offset: handle.offset });
                    }
                    expected = handle
                        .offset
                        .checked_add(handle.size)
                        .and_then(|end| end.checked_add(TRAILER_LEN as u64));
                    let block = self.verify_block(handle, &mut buffer);
                    defects.extend(block.err().map(TableDefect::Block));
                }
                None => defects.push(TableDefect::Block(TableError::BadIndexHandle { entry })),
            }
            entry += 1;
            step = cursor.advance(&self.index);
        }
        if expected.is_some_and(|expected| expected != self.footer.metaindex.offset) {
            defects.push(TableDefect::Gap { offset: self.footer.metaindex.offset });
        }
        defects
    }
}

/// A defect of a table that can be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum TableDefect {
    /// A data block cannot be read: its entries are lost, those of other blocks are not.
    Block(TableError),
    /// The metaindex block cannot be read; no entry needs it.
    Metaindex(TableError),
    /// The padding in the footer is not zero.
    FooterPadding,
    /// The blocks are not contiguous: unreferenced bytes lie between them, or they overlap.
    Gap {
        /// The offset of a block that does not start where the previous block ends.
        offset: u64,
    },
    /// A key is below its predecessor: a search does not find it.
    KeyOrder {
        /// The key that is out of place.
        key: Vec<u8>,
    },
    /// A key occurs twice: a search finds the first occurrence.
    DuplicateKey {
        /// The key.
        key: Vec<u8>,
    },
}

impl fmt::Display for TableDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(error) => write!(f, "a data block is lost: {error}"),
            Self::Metaindex(error) => {
                write!(f, "the metaindex block, which no reader uses, is damaged: {error}")
            }
            Self::FooterPadding => f.write_str("the padding of the footer is not zero"),
            Self::Gap { offset } => write!(
                f,
                "the block at offset {offset} does not start where the one before it ends"
            ),
            Self::KeyOrder { key } => {
                write!(
                    f,
                    "key {:?} is below the one before it, so that a search does not find it",
                    String::from_utf8_lossy(key)
                )
            }
            Self::DuplicateKey { key } => {
                write!(
                    f,
                    "key {:?} is there twice, and a search finds the first",
                    String::from_utf8_lossy(key)
                )
            }
        }
    }
}

/// A position in a table.
///
/// It moves as TensorFlow's iterator does: a block that cannot be read is skipped, and its defect
/// is kept in [`Cursor::defects`].
#[derive(Debug)]
pub struct Cursor<'a, S> {
    table: &'a Table<S>,
    index: BlockCursor,
    block: Option<(BlockHandle, Arc<Block>)>,
    at: BlockCursor,
    /// Number of index entries passed since the last seek.
    entry: u64,
    defects: Vec<TableError>,
    /// Bytes of blocks read so far.
    read: u64,
}

impl<S: ReadAt> Cursor<'_, S> {
    /// Returns true if the cursor stands on an entry.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.at.valid() && self.block.is_some()
    }

    /// Returns the key at the cursor; empty if there is none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        if self.valid() { self.at.key() } else { &[] }
    }

    /// Returns the value at the cursor; empty if there is none.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        match &self.block {
            Some((_, block)) if self.at.valid() => self.at.value(block),
            _ => &[],
        }
    }

    /// Returns the defects of the blocks that could not be read so far, in the order met.
    #[must_use]
    pub fn defects(&self) -> &[TableError] {
        &self.defects
    }

    /// Takes the defects of the blocks that could not be read so far.
    pub fn take_defects(&mut self) -> Vec<TableError> {
        std::mem::take(&mut self.defects)
    }

    /// Goes to the first entry.
    pub fn first(&mut self) {
        self.entry = 0;
        let step = self.index.first(&self.table.index);
        self.arrive(step);
        self.enter_first();
        self.skip_empty();
    }

    /// Goes to the first entry whose key is not below `target`.
    pub fn seek(&mut self, target: &[u8]) {
        self.entry = 0;
        let step = self.index.seek(&self.table.index, target);
        self.arrive(step);
        if let Some((_, block)) = &self.block {
            let step = self.at.seek(block, target);
            self.note(step);
        }
        self.skip_empty();
    }

    /// Goes to the next entry.
    pub fn advance(&mut self) {
        if let Some((_, block)) = &self.block {
            let step = self.at.advance(block);
            self.note(step);
        }
        self.skip_empty();
    }

    fn note(&mut self, step: Result<(), TableError>) {
        if let Err(error) = step {
            self.defects.push(error);
        }
    }

    fn enter_first(&mut self) {
        if let Some((_, block)) = &self.block {
            let step = self.at.first(block);
            self.note(step);
        }
    }

    /// Reads the block at the index cursor.
    fn arrive(&mut self, step: Result<(), TableError>) {
        self.note(step);
        self.at.invalidate();
        if !self.index.valid() {
            self.block = None;
            return;
        }
        let Some((handle, _)) = BlockHandle::read(self.index.value(&self.table.index)) else {
            self.block = None;
            self.defects.push(TableError::BadIndexHandle { entry: self.entry });
            return;
        };
        if self.block.as_ref().is_some_and(|(current, _)| *current == handle) {
            return;
        }
        self.block = None;
        self.read = self.read.saturating_add(handle.size.min(self.table.len));
        if self.read > self.table.budget() {
            let limit = self.table.budget();
            self.defects.push(TableError::Overlapping { limit, len: self.table.len });
            self.index.invalidate();
            return;
        }
        match Block::read(&self.table.source, self.table.len, handle) {
            Ok(block) => self.block = Some((handle, Arc::new(block))),
            Err(error) => self.defects.push(error),
        }
    }

    fn skip_empty(&mut self) {
        while !self.valid() && self.index.valid() {
            self.entry += 1;
            let step = self.index.advance(&self.table.index);
            self.arrive(step);
            self.enter_first();
        }
        if !self.index.valid() && !self.valid() {
            self.block = None;
        }
    }
}
