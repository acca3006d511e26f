//! Salvage of intact tensors from a truncated or damaged state.
//!
//! If the index exists, the file is verified piece by piece. Otherwise it is searched for pieces,
//! whose headers and footers repeat the contents of the index.

use std::{
    collections::{HashMap, HashSet},
    io::ErrorKind,
    path::Path,
    sync::Arc,
};

use serdes_files::{Files, ProgressMonitor, ReadAt, read_at};

use super::{
    Damage, Reader, Tensor,
    header::read_header,
    spec::{check_piece, decode_spec},
};
use crate::{
    Error, PartStore,
    format::{
        ALIGNMENT, checksum,
        header::Header,
        index::{Index, IndexBuilder, MAGIC as INDEX_MAGIC, Placement, Surroundings},
        piece::{self, Domain, HEADER_FIXED_BYTES, PieceLayout},
        role::Role,
    },
    pump::ChunkSums,
    shards::check_tiling,
    store::{Lost, Parts, ReadOnlyParts},
};

/// Maximum size in bytes of a piece's header in a search; real names and shardings are shorter, and
/// a hostile file could announce a long header every 64 bytes.
const MAXIMUM_HEADER_BYTES: u64 = 1 << 20;
/// Bytes that are searched or summed at a time.
const STEP_BYTES: usize = 1 << 20;

/// Result of salvaging a damaged state.
#[derive(Debug)]
#[non_exhaustive]
pub struct Salvaged {
    /// The readable part of the state; restore the tensors of [`whole`](Self::whole) from it.
    pub reader: Reader,
    /// Tensors whose bytes all match their checksums.
    pub whole: Vec<Tensor>,
    /// Known tensors with losses.
    pub lost: Vec<Damage>,
    /// Files of parts that are missing, cannot be opened, need a newer build, or are damaged, if
    /// several processes saved the state. Intact tensors of a damaged part are still in
    /// [`whole`](Self::whole).
    pub lost_parts: Vec<Damage>,
    /// True if every tensor of the state is in one of the two lists: the index exists, or the
    /// pieces were found without a gap up to the start of the index. Tensors after the end of a
    /// truncated file are unknown.
    pub complete_list: bool,
}

impl Salvaged {
    /// Returns true if nothing is lost: [`whole`](Self::whole) has all tensors of the state.
    pub fn is_complete(&self) -> bool {
        self.complete_list && self.lost.is_empty() && self.lost_parts.is_empty()
    }
}

/// Opens the file to salvage; may be called several times.
type Open<'a> = dyn Fn() -> Result<Box<dyn ReadAt>, Error> + 'a;

/// An intact piece that was found.
struct Found {
    spec: Vec<u8>,
    device: i32,
    domain: Domain,
    data_offset: u64,
    data_bytes: u64,
    sums: Vec<u32>,
}

impl Reader {
    /// Reads the whole state at `path` and reports its intact tensors.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the system cannot read a part of the file: that is not damage, and
    /// the data there may be intact. As [`open`](Self::open) if no part of the state can be used:
    /// if it is not a state, its header is damaged, or it needs a newer build; or if it is a
    /// damaged index over [parts](crate::Part): each part can be salvaged by itself.
    pub fn salvage(path: impl AsRef<Path>, monitor: &ProgressMonitor) -> Result<Salvaged, Error> {
        let path = path.as_ref();
        let open = || match read_at::open(path) {
            Ok(file) => Ok(Box::new(file) as Box<dyn ReadAt>),
            Err(error) => Err(Error::io("open", path, error)),
        };
        Self::salvage_opened(&open, path, None, monitor).map_err(unread)
    }

    /// Like [`salvage`](Self::salvage), for a state in any source of bytes; `path` is for messages,
    /// and locates the parts if several processes saved it.
    ///
    /// # Errors
    /// As [`salvage`](Self::salvage).
    pub fn salvage_source(
        source: Arc<dyn ReadAt>,
        path: impl AsRef<Path>,
        monitor: &ProgressMonitor,
    ) -> Result<Salvaged, Error> {
        let open = || Ok(Box::new(Arc::clone(&source)) as Box<dyn ReadAt>);
        Self::salvage_opened(&open, path.as_ref(), None, monitor).map_err(unread)
    }

    /// Like [`salvage_source`](Self::salvage_source), but opens the parts through `files`; `path`
    /// is the state's path there.
    ///
    /// # Errors
    /// As [`salvage`](Self::salvage).
    pub fn salvage_among(
        source: Arc<dyn ReadAt>,
        path: impl AsRef<Path>,
        files: Arc<dyn Files>,
        monitor: &ProgressMonitor,
    ) -> Result<Salvaged, Error> {
        let path = path.as_ref();
        let open = || Ok(Box::new(Arc::clone(&source)) as Box<dyn ReadAt>);
        let parts = Arc::new(ReadOnlyParts::new(files, path.to_owned()));
        Self::salvage_opened(&open, path, Some(parts), monitor).map_err(unread)
    }

    fn salvage_opened(
        open: &Open<'_>,
        path: &Path,
        store: Option<Arc<dyn PartStore>>,
        monitor: &ProgressMonitor,
    ) -> Result<Salvaged, Error> {
        let mut lost_parts = Vec::new();
        let opened = Self::from_index(open()?, path.to_owned(), store, |store, merged| {
            let (parts, lost) = Parts::open_left(store, merged)?;
            let (unread, lost): (Vec<_>, Vec<_>) = lost.into_iter().partition(is_unread);
            lost_parts = lost;
            match unread.into_iter().next() {
                Some(unread) => Err(unread.error),
                None => Ok(parts),
            }
        });
        match opened {
            Ok(reader) => reader.salvage_listed(lost_parts, monitor),
            Err(error @ Error::Corrupt { .. }) => salvage_found(open()?, path, error, monitor),
            Err(error) => Err(error),
        }
    }

    fn salvage_listed(
        self,
        mut lost_parts: Vec<Lost>,
        monitor: &ProgressMonitor,
    ) -> Result<Salvaged, Error> {
        let places = self.state.merged.as_ref().map(|merged| &merged.places[..]);
        // Part of a piece, if nothing of the part can be read.
        let unreadable = |piece: u32| {
            let place = places?.get(piece as usize)?;
            lost_parts.iter().find(|lost| lost.part.number() == place.part && !lost.is_readable())
        };
        // Pieces of a truncated part end too early.
        let damage = |error: &Error| match error {
            Error::Io { source, .. } => source.kind() == ErrorKind::UnexpectedEof,
            error => matches!(error, Error::Corrupt { .. }),
        };
        let mut lost = self.verify_pieces(monitor, |piece| unreadable(piece).is_none(), damage)?;
        let damaged: HashSet<String> = lost.iter().map(|damage| damage.tensor.clone()).collect();
        let mut whole = Vec::new();
        for (tensor, name) in self.tensors().zip(self.names()) {
            let lose = |error| Damage { tensor: name.to_owned(), error };
            match tensor {
                Err(error) => lost.push(lose(error)),
                Ok(_) if damaged.contains(name) => {}
                Ok(tensor) => {
                    let missing = tensor.pieces().find_map(|(piece, _)| unreadable(piece));
                    match missing {
                        Some(Lost { part, .. }) => {
                            let part = format!("part {} of {}", part.number(), part.count());
                            lost.push(lose(Error::LostPart { part }));
                        }
                        None => whole.push(tensor),
                    }
                }
            }
        }
        whole.sort_by_key(|tensor| tensor.first_piece);
        // One lost shard per tensor is enough for the report.
        let mut named = HashSet::new();
        lost.retain(|damage| named.insert(damage.tensor.clone()));
        if let Some(merged) = &self.state.merged {
            let known: HashSet<_> = lost_parts.iter().map(|lost| lost.part).collect();
            lost_parts.extend(merged.parts.verify(|part| !known.contains(&part), damage)?);
        }
        let parts = lost_parts.into_iter();
        let lost_parts = parts.map(|lost| Damage { tensor: lost.part.name(), error: lost.error });
        let lost_parts = lost_parts.collect();
        Ok(Salvaged { reader: self, whole, lost, lost_parts, complete_list: true })
    }
}

/// Separates I/O errors from damage.
fn unread(error: Error) -> Error {
    match error {
        Error::Io { action: "read", path, source } => Error::Unreadable { path, source },
        error => error,
    }
}

/// Returns true if the part may be intact but the system failed to read it. If its name belongs to
/// something other than a file, the part does not exist.
fn is_unread(lost: &Lost) -> bool {
    match &lost.error {
        Error::Io { source, .. } => {
            !matches!(source.kind(), ErrorKind::IsADirectory | ErrorKind::InvalidInput)
        }
        _ => false,
    }
}

/// Remedy for a state with a damaged header.
const WITHOUT_HEADER: &str =
    "without the header no tensor is found; take another copy, or a state that was saved before";

/// Remedy for a damaged index over the parts of several processes.
const WITHOUT_INDEX: &str = "its tensors lie in its parts: salvage each of those by itself";

/// Returns the error for a salvage that finds nothing.
fn nothing_salvaged(error: Error, path: &Path, remedy: &'static str) -> Error {
    match error {
        Error::Corrupt { place, found, expected, .. } => {
            Error::NothingSalvaged { path: path.to_path_buf(), place, found, expected, remedy }
        }
        error => error.in_file(path),
    }
}

/// Searches a file for pieces after opening it failed with `error`.
fn salvage_found(
    source: Box<dyn ReadAt>,
    path: &Path,
    error: Error,
    monitor: &ProgressMonitor,
) -> Result<Salvaged, Error> {
    let size = source.size().map_err(|error| Error::io("read", path, error))?;
    let (header, _, header_bytes) = read_header(&*source, path, size)
        .map_err(|error| nothing_salvaged(error, path, WITHOUT_HEADER))?;
    if matches!(header.role, Role::Merged(_)) {
        // An index over parts has no pieces.
        return Err(nothing_salvaged(error, path, WITHOUT_INDEX));
    }
    let mut search = Search { source: &*source, path, size, header: &header, monitor };

    // Arrays in the order in which they were found.
    let mut arrays: Vec<(String, Vec<Found>)> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut lost = Vec::new();
    let mut position = header_bytes;
    let mut gaps = false;
    while let Some(Step { begin, name, result, end }) = search.next(position)? {
        gaps |= begin != position;
        position = end;
        match result {
            Ok(found) => {
                let number = *numbers.entry(name.clone()).or_insert(arrays.len());
                match arrays.get_mut(number) {
                    Some((_, pieces)) => pieces.push(found),
                    None => arrays.push((name, vec![found])),
                }
            }
            Err(error) => lost.push(Damage { tensor: name, error: error.in_file(path) }),
        }
    }

    let complete_list = !gaps && search.is_index(position)?;
    let (builder, data_bytes) = list(arrays, &mut lost, header.chunk_bytes)?;
    let bytes = builder.encode()?;
    let around = Surroundings {
        header_bytes,
        chunk_bytes: header.chunk_bytes,
        index_offset: size,
        data_bytes,
        index_checksum: checksum(&bytes),
        gaps: true,
        spread: false,
    };
    let index = Index::decode(bytes, around)?;
    let header = (header, header_bytes);
    let reader =
        Reader::assemble(source, path.to_owned(), header, (index, None), size, data_bytes, true);
    let whole = reader.tensors_in_file_order()?;
    Ok(Salvaged { reader, whole, lost, lost_parts: Vec::new(), complete_list })
}

/// Lists the intact arrays, and counts the bytes of their data; the others are added to the lost
/// ones.
fn list(
    arrays: Vec<(String, Vec<Found>)>,
    lost: &mut Vec<Damage>,
    chunk_bytes: u32,
) -> Result<(IndexBuilder, u64), Error> {
    let mut builder = IndexBuilder::default();
    let mut data_bytes = 0;
    for (name, pieces) in arrays {
        if lost.iter().any(|damage| damage.tensor == name) {
            continue;
        }
        if let Err(error) = check_covered(&name, &pieces) {
            lost.push(Damage { tensor: name, error });
            continue;
        }
        let Some(first) = pieces.first() else { continue };
        builder.array(&name, &first.spec)?;
        for piece in pieces {
            data_bytes += piece.data_bytes;
            let placement = Placement { device: piece.device, domain: piece.domain };
            builder.piece(&placement, piece.data_offset, piece.data_bytes, chunk_bytes)?;
            builder.checksums(&piece.sums);
        }
    }
    Ok((builder, data_bytes))
}

/// Checks that the pieces of an array cover it.
fn check_covered(name: &str, pieces: &[Found]) -> Result<(), Error> {
    let Some(first) = pieces.first() else { return Ok(()) };
    let spec = decode_spec(name, &first.spec)?;
    for piece in pieces {
        check_piece(name, &spec, piece.domain.as_ref(), piece.data_bytes)?;
    }
    let place = format!("shards of {name:?}");
    let wrong = |found: String| Err(Error::corrupt(&place, found, "all of it once".to_owned()));
    if pieces.iter().any(|piece| piece.spec != first.spec) {
        return wrong("several array specs".to_owned());
    }
    let domains: Vec<_> = pieces.iter().map(|piece| piece.domain.clone()).collect();
    check_tiling(&spec, &domains).or_else(wrong)
}

/// A search through a file from piece to piece.
struct Search<'a> {
    source: &'a dyn ReadAt,
    path: &'a Path,
    size: u64,
    header: &'a Header,
    monitor: &'a ProgressMonitor,
}

/// A piece with an intact header.
struct Step {
    /// Offset of its header, in bytes.
    begin: u64,
    /// Name of its array.
    name: String,
    /// Its contents, or the damage.
    result: Result<Found, Error>,
    /// Offset from which to search for the next piece.
    end: u64,
}

impl Search<'_> {
    /// Returns the next piece with an intact header, at or after `position`.
    fn next(&mut self, mut position: u64) -> Result<Option<Step>, Error> {
        let mut window = Vec::new();
        while position + HEADER_FIXED_BYTES as u64 <= self.size {
            self.monitor.check()?;
            // Pieces are adjacent; a search is only needed after a damaged one.
            let length = if window.is_empty() { HEADER_FIXED_BYTES } else { STEP_BYTES };
            window.resize(length.min((self.size - position) as usize), 0);
            self.read(&mut window, position)?;
            for begin in (0..window.len()).step_by(ALIGNMENT as usize) {
                let here = position + begin as u64;
                let fixed = window.get(begin..).and_then(<[u8]>::first_chunk);
                let Some(length) = fixed.and_then(piece::announced) else { continue };
                if let Some(step) = self.piece(here, length)? {
                    return Ok(Some(step));
                }
            }
            position += (window.len() as u64).next_multiple_of(ALIGNMENT);
        }
        Ok(None)
    }

    fn piece(&self, position: u64, header_bytes: u64) -> Result<Option<Step>, Error> {
        let fits = position.checked_add(header_bytes).is_some_and(|end| end <= self.size);
        if header_bytes > MAXIMUM_HEADER_BYTES || !fits {
            return Ok(None);
        }
        let mut bytes = vec![0; header_bytes as usize];
        self.read(&mut bytes, position)?;
        let Ok(found) = piece::decode_header(&bytes) else { return Ok(None) };
        let chunk_bytes = self.header.chunk_bytes;
        let layout = PieceLayout::new(position, header_bytes, found.data_bytes, chunk_bytes)
            .filter(|layout| layout.data == found.data_offset);
        let Some(layout) = layout else { return Ok(None) };
        let name = found.name.to_owned();
        let step = |name, result, end| Ok(Some(Step { begin: position, name, result, end }));
        if layout.end > self.size {
            let place = format!("data of {name:?}");
            let (found, expected) = ("the end of the file".to_owned(), "all of it".to_owned());
            return step(name, Err(Error::corrupt(&place, found, expected)), self.size);
        }
        let footer_bytes = piece::encode_footer(0, &[]).len() as u64
            + 4 * piece::chunk_count(found.data_bytes, chunk_bytes);
        let mut footer = vec![0; footer_bytes as usize];
        self.read(&mut footer, layout.footer)?;
        let sums = match piece::decode_footer(&footer, found.number) {
            Ok(sums) => sums,
            Err(error) => return step(name, Err(error), layout.end),
        };
        let computed = self.sum(layout.data, found.data_bytes)?;
        let result = match computed.iter().zip(&sums).zip(0..).find(|((a, b), _)| a != b) {
            None => Ok(Found {
                spec: found.spec.to_vec(),
                device: found.device,
                domain: found.domain.clone(),
                data_offset: layout.data,
                data_bytes: found.data_bytes,
                sums,
            }),
            Some(((computed, stored), chunk)) => {
                let place = format!("data of {name:?}, chunk {chunk}");
                Err(Error::checksum(&place, *stored, *computed))
            }
        };
        step(name, result, layout.end)
    }

    /// Returns true if the index begins at `position`, after which there are no pieces.
    fn is_index(&self, position: u64) -> Result<bool, Error> {
        let mut magic = [0; INDEX_MAGIC.len()];
        if position.saturating_add(magic.len() as u64) > self.size {
            return Ok(false);
        }
        self.read(&mut magic, position)?;
        Ok(magic == INDEX_MAGIC)
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "the buffer is as long as the first and longest part"
    )]
    fn sum(&self, mut offset: u64, mut bytes: u64) -> Result<Vec<u32>, Error> {
        let mut sums = ChunkSums::new(self.header.chunk_bytes);
        let mut buffer = vec![0; bytes.min(STEP_BYTES as u64) as usize];
        while bytes > 0 {
            let part = &mut buffer[..bytes.min(STEP_BYTES as u64) as usize];
            self.read(part, offset)?;
            sums.update(part);
            offset += part.len() as u64;
            bytes -= part.len() as u64;
            self.monitor.advance(part.len() as u64)?;
        }
        Ok(sums.finish())
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let result = self.source.read_exact_at(buffer, offset);
        result.map_err(|error| Error::io("read", self.path, error))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io};

    use super::*;
    use crate::tests::small;
    use serdes_testkit::noise::noise;

    fn salvage(bytes: &[u8]) -> Result<Salvaged, Error> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sds");
        fs::write(&path, bytes).unwrap();
        Reader::salvage(&path, &ProgressMonitor::new())
    }

    fn names(salvaged: &Salvaged) -> Vec<&str> {
        salvaged.whole.iter().map(Tensor::name).collect()
    }

    #[test]
    fn a_truncated_state_gives_what_was_written_before_the_cut() {
        let bytes = small();
        let index = bytes.windows(8).position(|window| window == INDEX_MAGIC).unwrap();
        let mut counts = Vec::new();
        for length in 192..bytes.len() {
            let salvaged = salvage(&bytes[..length]).unwrap();
            // The first bytes of the index tell that no tensor follows.
            assert_eq!(salvaged.complete_list, length >= index + 8, "{length}");
            assert_eq!(salvaged.is_complete(), length >= index + 8, "{length}");
            assert_eq!(names(&salvaged), ["w", "empty", "words", "s"][..salvaged.whole.len()]);
            if let Some(tensor) = salvaged.whole.first() {
                let mut data = Vec::new();
                std::io::Read::read_to_end(&mut tensor.read().unwrap(), &mut data).unwrap();
                assert_eq!(data, noise(200, 1));
            }
            assert!(salvaged.reader.verify(&ProgressMonitor::new()).unwrap().is_empty());
            counts.push(salvaged.whole.len());
        }
        assert!(counts.is_sorted());
        assert_eq!((counts[0], counts[counts.len() - 1]), (0, 4));
    }

    #[test]
    fn a_flipped_bit_costs_one_tensor_with_and_without_an_index() {
        let mut bytes = small();
        let begin = bytes.windows(200).position(|window| window == noise(200, 1)).unwrap();
        bytes[begin + 70] ^= 1;
        let index = bytes.windows(8).position(|window| window == INDEX_MAGIC).unwrap();
        for (bytes, complete) in
            [(&bytes[..], true), (&bytes[..bytes.len() - 1], true), (&bytes[..index], false)]
        {
            let salvaged = salvage(bytes).unwrap();
            assert_eq!(names(&salvaged), ["empty", "words", "s"]);
            assert_eq!(salvaged.lost.len(), 1);
            assert_eq!(salvaged.lost[0].tensor, "w");
            assert_eq!(salvaged.complete_list, complete);
            assert!(!salvaged.is_complete());
        }
    }

    #[test]
    fn a_damaged_piece_header_hides_its_tensor_only() {
        let mut bytes = small();
        let begin = bytes.windows(4).position(|window| window == b"\x8fSDS").unwrap();
        assert_eq!(begin, 0);
        let begin = bytes.windows(7).position(|window| window == b"\x8fSDSbuf").unwrap();
        bytes[begin + 50] ^= 1;
        bytes.pop();
        let salvaged = salvage(&bytes).unwrap();
        assert_eq!(names(&salvaged), ["empty", "words", "s"]);
        assert!(!salvaged.complete_list);
    }

    /// A file in which the system cannot read a range of bytes.
    struct BadSector(Vec<u8>, std::ops::Range<u64>);

    impl ReadAt for BadSector {
        fn size(&self) -> io::Result<u64> {
            self.0.size()
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let end = offset + buffer.len() as u64;
            if offset < self.1.end && self.1.start < end {
                return Err(io::Error::other("Input/output error"));
            }
            self.0.read_at(buffer, offset)
        }
    }

    #[test]
    fn read_error_of_the_system_ends_the_salvage() {
        let bytes = small();
        let begin = bytes.windows(200).position(|window| window == noise(200, 1)).unwrap() as u64;
        // With the index, and without.
        for length in [bytes.len(), bytes.len() - 1] {
            let open = || {
                let bytes = bytes[..length].to_vec();
                Ok(Box::new(BadSector(bytes, begin..begin + 1)) as Box<dyn ReadAt>)
            };
            let path = Path::new("bad.sds");
            let error =
                Reader::salvage_opened(&open, path, None, &ProgressMonitor::new()).unwrap_err();
            assert!(matches!(error, Error::Io { action: "read", .. }), "{error}");
        }
    }

    #[test]
    fn a_state_with_a_damaged_header_cannot_be_salvaged() {
        let mut bytes = small();
        bytes[40] ^= 1;
        let error = salvage(&bytes).unwrap_err();
        assert!(matches!(error, Error::NothingSalvaged { .. }), "{error}");
        let words = error.to_string();
        assert!(words.contains("header") && words.contains("another copy"), "{words}");
        assert!(!words.contains("salvage what is whole"), "{words}");
    }
}
