//! The index: all arrays, pieces and checksums in tables that are searched in place. Readers rely
//! on it; the headers and footers of pieces are for files that lost it.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use super::{
    CRITICAL, Cursor, Error, checksum, length_u32,
    piece::{Domain, PieceLayout, chunk_count, header_length},
    u32_at, u64_at,
};

/// The first bytes of an index.
pub(crate) const MAGIC: [u8; 8] = *b"\x8fSDSidx\n";
const TABLE_ENTRY_BYTES: usize = 24;
/// Maximum number of tables; all formats have fewer.
const MAXIMUM_TABLES: u32 = 64;

const ARRAYS: u32 = CRITICAL | 1;
const PIECES: u32 = CRITICAL | 2;
const CHECKSUMS: u32 = CRITICAL | 3;
const PLACEMENTS: u32 = CRITICAL | 4;
const SPECS: u32 = CRITICAL | 5;
const NAMES: u32 = CRITICAL | 6;

const ARRAY_BYTES: usize = 16;
const PIECE_BYTES: usize = 32;

/// Device and domain of a piece.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Placement {
    /// Id of the device that the piece was copied from.
    pub(crate) device: i32,
    pub(crate) domain: Domain,
}

/// An entry of the table of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayEntry<'a> {
    pub(crate) name: &'a str,
    /// Position in the table of specs.
    pub(crate) spec: u32,
    pub(crate) first_piece: u32,
    pub(crate) piece_count: u32,
}

/// An [`ArrayEntry`] whose name is not decoded.
pub(crate) struct ArrayRow<'a> {
    name: &'a [u8],
    pub(crate) spec: u32,
    pub(crate) first_piece: u32,
    pub(crate) piece_count: u32,
}

impl ArrayRow<'_> {
    /// Returns true if the piece with this number belongs to the tensor.
    fn has_piece(&self, number: u32) -> bool {
        number.checked_sub(self.first_piece).is_some_and(|number| number < self.piece_count)
    }
}

/// An entry of the table of pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceEntry {
    pub(crate) data_offset: u64,
    pub(crate) data_bytes: u64,
    /// Position of the array in the table of arrays, which is sorted by name.
    pub(crate) array: u32,
    /// Position of the first of the piece's checksums.
    pub(crate) first_chunk: u32,
    /// Position in the table of placements.
    pub(crate) placement: u32,
}

/// An array added to an [`IndexBuilder`]; the fields are those of an [`ArrayEntry`].
#[derive(Debug)]
struct WrittenArray {
    name: String,
    spec: u32,
    first_piece: u32,
    piece_count: u32,
}

/// Collects the index while pieces are written.
#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    /// Arrays in the order of writing.
    arrays: Vec<WrittenArray>,
    pieces: Vec<PieceEntry>,
    checksums: Vec<u32>,
    placements: Vec<Placement>,
    placement_numbers: HashMap<Placement, u32>,
    specs: Vec<Vec<u8>>,
    spec_numbers: HashMap<Vec<u8>, u32>,
    names: HashSet<String>,
    names_bytes: usize,
}

impl IndexBuilder {
    /// Starts an array, to which the next pieces belong.
    pub(crate) fn array(&mut self, name: &str, spec: &[u8]) -> Result<(), Error> {
        if !self.names.insert(name.to_owned()) {
            return Err(Error::DuplicateName { name: name.to_owned() });
        }
        self.names_bytes += name.len();
        length_u32(self.names_bytes, "names")?;
        let number = match self.spec_numbers.get(spec) {
            Some(number) => *number,
            None => {
                let number = length_u32(self.specs.len(), "array specs")?;
                self.specs.push(spec.to_vec());
                self.spec_numbers.insert(spec.to_vec(), number);
                number
            }
        };
        let first_piece = length_u32(self.pieces.len(), "pieces")?;
        let name = name.to_owned();
        self.arrays.push(WrittenArray { name, spec: number, first_piece, piece_count: 0 });
        Ok(())
    }

    /// Adds a piece to the last array and returns its number; its checksums are added by
    /// [`checksums`](Self::checksums).
    pub(crate) fn piece(
        &mut self,
        placement: &Placement,
        data_offset: u64,
        data_bytes: u64,
        chunk_bytes: u32,
    ) -> Result<u32, Error> {
        let number = length_u32(self.pieces.len(), "pieces")?;
        let placement = match self.placement_numbers.get(placement) {
            Some(number) => *number,
            None => {
                let number = length_u32(self.placements.len(), "placements")?;
                self.placements.push(placement.clone());
                self.placement_numbers.insert(placement.clone(), number);
                number
            }
        };
        let first_chunk = self.pieces.last().map_or(0, |last| {
            u64::from(last.first_chunk) + chunk_count(last.data_bytes, chunk_bytes)
        });
        let first_chunk = length_u32(first_chunk as usize, "chunks")?;
        let array = (self.arrays.len().saturating_sub(1)) as u32;
        self.pieces.push(PieceEntry { data_offset, data_bytes, array, first_chunk, placement });
        if let Some(array) = self.arrays.last_mut() {
            array.piece_count += 1;
        }
        Ok(number)
    }

    /// Appends the checksums of the next piece without them.
    pub(crate) fn checksums(&mut self, checksums: &[u32]) {
        self.checksums.extend(checksums);
    }

    /// Returns the number of arrays so far.
    pub(crate) fn arrays_len(&self) -> usize {
        self.arrays.len()
    }

    /// Encodes the index; its length is a multiple of 8.
    pub(crate) fn encode(self) -> Result<Vec<u8>, Error> {
        length_u32(self.arrays.len(), "arrays")?;
        let mut order: Vec<(usize, &WrittenArray)> = self.arrays.iter().enumerate().collect();
        order.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        let mut rank = vec![0_u32; order.len()];
        for (sorted, (written, _)) in (0..).zip(&order) {
            if let Some(rank) = rank.get_mut(*written) {
                *rank = sorted;
            }
        }
        let mut arrays = Vec::with_capacity(ARRAY_BYTES * order.len());
        let mut names = Vec::with_capacity(self.names_bytes);
        for (_, array) in &order {
            let begin = length_u32(names.len(), "names")?;
            for number in [begin, array.spec, array.first_piece, array.piece_count] {
                arrays.extend(number.to_le_bytes());
            }
            names.extend(array.name.as_bytes());
        }
        let mut pieces = Vec::with_capacity(PIECE_BYTES * self.pieces.len());
        for piece in &self.pieces {
            pieces.extend(piece.data_offset.to_le_bytes());
            pieces.extend(piece.data_bytes.to_le_bytes());
            let array = *rank.get(piece.array as usize).ok_or_else(|| {
                let found = format!("a piece of array {}", piece.array);
                Error::corrupt("index", found, format!("one of {} arrays", rank.len()))
            })?;
            for number in [array, piece.first_chunk, piece.placement, 0] {
                pieces.extend(number.to_le_bytes());
            }
        }
        let checksums = self.checksums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        let mut placements = Vec::new();
        for placement in &self.placements {
            let domain = placement.domain.as_deref().unwrap_or_default();
            placements.extend(placement.device.to_le_bytes());
            placements.extend(0_u32.to_le_bytes());
            placements.extend(length_u32(domain.len(), "rank")?.to_le_bytes());
            placements.extend(u32::from(placement.domain.is_some()).to_le_bytes());
            placements.extend(
                domain
                    .iter()
                    .flat_map(|(start, extent)| [start.to_le_bytes(), extent.to_le_bytes()])
                    .flatten(),
            );
        }
        let mut specs = Vec::new();
        for spec in &self.specs {
            specs.extend(length_u32(spec.len(), "array spec")?.to_le_bytes());
            specs.extend(spec);
        }
        let tables = [
            (ARRAYS, arrays),
            (PIECES, pieces),
            (CHECKSUMS, checksums),
            (PLACEMENTS, placements),
            (SPECS, specs),
            (NAMES, names),
        ];
        Ok(assemble(&tables))
    }
}

fn assemble(tables: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(MAGIC);
    bytes.extend((tables.len() as u32).to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    let mut offset = bytes.len() + TABLE_ENTRY_BYTES * tables.len();
    for (tag, table) in tables {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend((offset as u64).to_le_bytes());
        bytes.extend((table.len() as u64).to_le_bytes());
        offset = (offset + table.len()).next_multiple_of(8);
    }
    for (_, table) in tables {
        bytes.extend(table);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    bytes
}

/// A validated index over its own bytes.
#[derive(Debug)]
pub(crate) struct Index {
    bytes: Vec<u8>,
    arrays: Range<usize>,
    pieces: Range<usize>,
    checksums: Range<usize>,
    names: Range<usize>,
    specs: Vec<Range<usize>>,
    placements: Vec<Placement>,
}

/// Facts about the file that its index must match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    pub(crate) header_bytes: u64,
    pub(crate) chunk_bytes: u32,
    pub(crate) index_offset: u64,
    pub(crate) data_bytes: u64,
    pub(crate) index_checksum: u32,
    /// True if there may be gaps between pieces, as in an index created by a salvage.
    pub(crate) gaps: bool,
    /// True if the pieces lie in several parts, whose layout [`places`](super::spread::places)
    /// checks.
    pub(crate) spread: bool,
}

/// Returns the byte range of a table in an index of `bytes` bytes.
fn table_range(offset: u64, length: u64, bytes: usize) -> Result<Range<usize>, Error> {
    usize::try_from(offset)
        .ok()
        .zip(usize::try_from(length).ok())
        .and_then(|(offset, length)| Some(offset..offset.checked_add(length)?))
        .filter(|range| range.end <= bytes)
        .ok_or_else(|| {
            Error::corrupt(
                "index",
                format!("a table of {length} bytes at {offset}"),
                format!("inside {bytes} bytes"),
            )
        })
}

impl Index {
    /// Decodes and validates an index.
    pub(crate) fn decode(bytes: Vec<u8>, around: Surroundings) -> Result<Self, Error> {
        const WHAT: &str = "index";
        let computed = checksum(&bytes);
        if computed != around.index_checksum {
            return Err(Error::checksum(WHAT, around.index_checksum, computed));
        }
        let mut cursor = Cursor::new(&bytes, WHAT);
        if cursor.array::<8>()? != MAGIC {
            return Err(Error::corrupt(WHAT, "another mark".to_owned(), "an index".to_owned()));
        }
        let (count, _) = (cursor.u32()?, cursor.u32()?);
        if count > MAXIMUM_TABLES {
            return Err(Error::corrupt(WHAT, format!("{count} tables"), "fewer".to_owned()));
        }
        let mut index = Self {
            arrays: 0..0,
            pieces: 0..0,
            checksums: 0..0,
            names: 0..0,
            specs: Vec::new(),
            placements: Vec::new(),
            bytes: Vec::new(),
        };
        let (mut specs, mut placements) = (0..0, 0..0);
        for _ in 0..count {
            let (tag, _, offset, length) =
                (cursor.u32()?, cursor.u32()?, cursor.u64()?, cursor.u64()?);
            let range = table_range(offset, length, bytes.len())?;
            match tag {
                ARRAYS => index.arrays = range,
                PIECES => index.pieces = range,
                CHECKSUMS => index.checksums = range,
                NAMES => index.names = range,
                SPECS => specs = range,
                PLACEMENTS => placements = range,
                unknown if unknown & CRITICAL != 0 => {
                    return Err(Error::TooNewFeature {
                        path: None,
                        what: "index table",
                        found: unknown & !CRITICAL,
                    });
                }
                _ => {}
            }
        }
        index.read_specs(&bytes, specs)?;
        index.read_placements(bytes.get(placements).unwrap_or_default())?;
        index.bytes = bytes;
        index.check_arrays()?;
        index.check_pieces(around)?;
        Ok(index)
    }

    fn read_specs(&mut self, bytes: &[u8], range: Range<usize>) -> Result<(), Error> {
        let base = range.start;
        let mut cursor = Cursor::new(bytes.get(range).unwrap_or_default(), "index: specs");
        while cursor.remaining() > 0 {
            let length = cursor.u32()? as usize;
            let start = base + cursor.position();
            cursor.take(length)?;
            self.specs.push(start..start + length);
        }
        Ok(())
    }

    fn read_placements(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut cursor = Cursor::new(bytes, "index: placements");
        while cursor.remaining() > 0 {
            let (device, reserved) = (cursor.i32()?, cursor.u32()?);
            let (rank, partial) = (cursor.u32()?, cursor.u32()?);
            let mut domain = Vec::new();
            for _ in 0..rank {
                domain.push((cursor.u64()?, cursor.u64()?));
            }
            if reserved != 0 || partial > 1 || (partial == 0 && rank != 0) {
                return Err(Error::corrupt(
                    "index: placements",
                    format!("domain kind {partial} of rank {rank}"),
                    "kind 0 without dimensions, or kind 1".to_owned(),
                ));
            }
            self.placements.push(Placement { device, domain: (partial == 1).then_some(domain) });
        }
        Ok(())
    }

    /// Checks that names ascend, which excludes duplicates, and that numbers are valid indices of
    /// tables.
    fn check_arrays(&self) -> Result<(), Error> {
        const WHAT: &str = "index: arrays";
        let wrong =
            |found: String, expected: &str| Err(Error::corrupt(WHAT, found, expected.to_owned()));
        if !self.arrays.len().is_multiple_of(ARRAY_BYTES)
            || !self.pieces.len().is_multiple_of(PIECE_BYTES)
        {
            return wrong(
                format!("tables of {} and {} bytes", self.arrays.len(), self.pieces.len()),
                "whole lines",
            );
        }
        let names = std::str::from_utf8(self.bytes.get(self.names.clone()).unwrap_or_default())
            .map_err(|error| Error::corrupt(WHAT, error.to_string(), "names in UTF-8".into()))?;
        let table = self.bytes.get(self.arrays.clone()).unwrap_or_default();
        let pieces = self.pieces_len() as u64;
        let mut previous: Option<&str> = None;
        let mut rows = table.chunks_exact(ARRAY_BYTES).peekable();
        let mut expected_start = 0;
        let mut piece_total = 0_u64;
        while let Some(row) = rows.next() {
            let start = u32_at(row, 0) as usize;
            let end = rows.peek().map_or(names.len(), |next| u32_at(next, 0) as usize);
            let Some(name) = names.get(start..end).filter(|_| start == expected_start) else {
                return wrong(format!("a name at {start}..{end}"), "names one behind the other");
            };
            expected_start = end;
            if previous.is_some_and(|previous| previous >= name) {
                return wrong(format!("{name:?} behind its successor"), "names in order");
            }
            previous = Some(name);
            let (spec, first, count) = (u32_at(row, 4), u32_at(row, 8), u32_at(row, 12));
            if spec as usize >= self.specs.len() {
                return wrong(format!("spec {spec} of {name:?}"), "a spec in the table");
            }
            if count == 0 || u64::from(first) + u64::from(count) > pieces {
                return wrong(format!("pieces {first}+{count} of {name:?}"), "pieces in the table");
            }
            piece_total += u64::from(count);
        }
        if piece_total != pieces {
            return wrong(format!("{piece_total} pieces"), "every piece in one array");
        }
        Ok(())
    }

    /// Checks that every piece is at its position in the layout, directly after the one before, so
    /// that every byte of the file belongs to something.
    fn check_pieces(&self, around: Surroundings) -> Result<(), Error> {
        const WHAT: &str = "index: pieces";
        let wrong = |found: String, expected: String| Err(Error::corrupt(WHAT, found, expected));
        let table = self.bytes.get(self.pieces.clone()).unwrap_or_default();
        let (mut position, mut chunks, mut data) = (around.header_bytes, 0_u64, 0_u64);
        for (number, row) in table.chunks_exact(PIECE_BYTES).enumerate() {
            let piece = decode_piece(row);
            let Some(placement) = self.placements.get(piece.placement as usize) else {
                return wrong(format!("placement {}", piece.placement), "one in the table".into());
            };
            let array = self.array_row(piece.array);
            let Some(array) = array.filter(|array| array.has_piece(number as u32)) else {
                return wrong(format!("array {} of piece {number}", piece.array), "its own".into());
            };
            if u64::from(piece.first_chunk) != chunks || u32_at(row, 28) != 0 {
                return wrong(format!("first chunk {}", piece.first_chunk), chunks.to_string());
            }
            chunks += chunk_count(piece.data_bytes, around.chunk_bytes);
            data = data.saturating_add(piece.data_bytes);
            if around.spread {
                continue;
            }
            let header = header_length(
                array.name.len(),
                self.spec(array.spec).len(),
                placement.domain.as_ref().map_or(0, Vec::len),
            );
            let begin = if around.gaps {
                position.max(piece.data_offset.saturating_sub(header) / 64 * 64)
            } else {
                position
            };
            let layout = PieceLayout::new(begin, header, piece.data_bytes, around.chunk_bytes)
                .filter(|layout| {
                    layout.data == piece.data_offset && layout.end <= around.index_offset
                });
            let Some(layout) = layout else {
                return wrong(
                    format!("{} bytes at {}", piece.data_bytes, piece.data_offset),
                    format!("the first place behind {position}, before {}", around.index_offset),
                );
            };
            position = layout.end;
        }
        if (position != around.index_offset && !around.gaps) || data != around.data_bytes {
            return wrong(
                format!("{data} bytes of data that end at {position}"),
                format!("{} that end at {}", around.data_bytes, around.index_offset),
            );
        }
        if chunks.checked_mul(4) != Some(self.checksums.len() as u64) {
            return wrong(
                format!("{} bytes of checksums", self.checksums.len()),
                format!("{chunks} checksums"),
            );
        }
        Ok(())
    }

    /// Returns the number of arrays.
    pub(crate) fn arrays_len(&self) -> usize {
        self.arrays.len() / ARRAY_BYTES
    }

    /// Returns the number of pieces.
    pub(crate) fn pieces_len(&self) -> usize {
        self.pieces.len() / PIECE_BYTES
    }

    /// Returns the array at a position in the order of names.
    pub(crate) fn array(&self, number: u32) -> Option<ArrayEntry<'_>> {
        let row = self.array_row(number)?;
        Some(ArrayEntry {
            name: std::str::from_utf8(row.name).ok()?,
            spec: row.spec,
            first_piece: row.first_piece,
            piece_count: row.piece_count,
        })
    }

    /// Returns the name of the array at a position in the order of names; empty if there is none.
    pub(crate) fn name(&self, number: u32) -> &str {
        let name = self.array_row(number).map(|row| row.name).unwrap_or_default();
        // All names were validated as UTF-8 when the index was opened.
        std::str::from_utf8(name).unwrap_or_default()
    }

    /// Returns the array at a position in the order of names, with its name as bytes.
    #[inline]
    pub(crate) fn array_row(&self, number: u32) -> Option<ArrayRow<'_>> {
        let table = self.bytes.get(self.arrays.clone())?;
        let start = (number as usize).checked_mul(ARRAY_BYTES)?;
        let row = table.get(start..start + ARRAY_BYTES)?;
        let names = self.bytes.get(self.names.clone())?;
        let from = u32_at(row, 0) as usize;
        let to = match table.get(start + ARRAY_BYTES..start + ARRAY_BYTES + 4) {
            Some(next) => u32_at(next, 0) as usize,
            None => names.len(),
        };
        Some(ArrayRow {
            name: names.get(from..to)?,
            spec: u32_at(row, 4),
            first_piece: u32_at(row, 8),
            piece_count: u32_at(row, 12),
        })
    }

    /// Returns the position of the array with this name.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.arrays_len() as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.array_row(middle)?.name.cmp(name.as_bytes()) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Returns the piece at a position in the order of the file.
    #[inline]
    pub(crate) fn piece(&self, number: u32) -> Option<PieceEntry> {
        let start = self.pieces.start.checked_add((number as usize).checked_mul(PIECE_BYTES)?)?;
        let row = self.bytes.get(start..start.checked_add(PIECE_BYTES)?)?;
        (start < self.pieces.end).then(|| decode_piece(row))
    }

    /// Returns the checksum of a chunk.
    pub(crate) fn checksum(&self, chunk: u64) -> u32 {
        usize::try_from(chunk)
            .ok()
            .and_then(|chunk| self.checksums.start.checked_add(chunk.checked_mul(4)?))
            .map_or(0, |offset| u32_at(&self.bytes, offset))
    }

    /// Returns the checksums of a piece's chunks.
    pub(crate) fn checksums_of(
        &self,
        piece: &PieceEntry,
        chunk_bytes: u32,
    ) -> impl Iterator<Item = u32> {
        let first = u64::from(piece.first_chunk);
        (0..chunk_count(piece.data_bytes, chunk_bytes))
            .map(move |chunk| self.checksum(first + chunk))
    }

    /// Returns the serialized ArraySpec at a position; empty if there is none.
    pub(crate) fn spec(&self, number: u32) -> &[u8] {
        self.specs
            .get(number as usize)
            .and_then(|range| self.bytes.get(range.clone()))
            .unwrap_or_default()
    }

    /// Returns the number of distinct array specs.
    pub(crate) fn specs_len(&self) -> usize {
        self.specs.len()
    }

    /// Returns the placement at a position.
    #[inline]
    pub(crate) fn placement(&self, number: u32) -> Option<&Placement> {
        self.placements.get(number as usize)
    }
}

#[inline]
fn decode_piece(row: &[u8]) -> PieceEntry {
    PieceEntry {
        data_offset: u64_at(row, 0),
        data_bytes: u64_at(row, 8),
        array: u32_at(row, 16),
        first_chunk: u32_at(row, 20),
        placement: u32_at(row, 24),
    }
}
