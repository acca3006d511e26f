//! Merges the parts of several processes under one index.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use serdes_files::ReadAt;

use super::{LocalParts, Part, PartStore, SaveId};
use crate::{
    Error, Reader, WriteOptions,
    format::{
        checksum,
        header::Header,
        index::IndexBuilder,
        role::{MergedRole, PartRecord, Role},
        trailer::{TRAILER_BYTES, Trailer},
    },
    load::read_header,
    shards::check_tiling,
};

/// Summary of a merge.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Merged {
    /// Number of parts.
    pub parts: u32,
    /// Number of tensors.
    pub tensors: u64,
    /// Payload of all tensors in bytes; none of it was copied.
    pub bytes: u64,
    /// Length of the index in bytes, including header and trailer.
    pub index_bytes: u64,
    /// Time of syncing and renaming.
    pub sync_time: Duration,
}

/// Merges the parts that several processes wrote with [`WriteOptions::create_part`] into the state
/// at `path`, once all of them have finished.
///
/// Only the indexes of the parts are read, and one index is written. The state appears atomically:
/// a reader of `path` finds the old state or the new one. Leftovers of other saves of `path` are
/// then removed. `options` sets the durability of the index and, if the parts have no metadata, the
/// metadata of the state.
///
/// Any of the processes may call it; concurrent calls are harmless.
///
/// ```
/// use serdes_device_state::{Part, Reader, SaveId, Durability, Versions, WriteOptions, merge};
/// use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("step-1000.sds");
/// let options = WriteOptions::new(Versions::week_4_old()).with_durability(Durability::None);
/// let spec = ArraySpec::new(DType::F32, Shape::new([2])?, SingleDeviceSharding::new(DeviceId(0)));
///
/// let save = SaveId::random(); // known to all processes
/// for process in 0..2 {
///     // In each process:
///     let mut part = options.clone().create_part(&path, Part::new(save, process, 2)?)?;
///     part.add_bytes(&format!("bias-{process}"), &spec, &[0; 8])?;
///     part.finish()?;
/// }
/// // In one of them, when all have finished:
/// assert!(!path.exists());
/// merge(&path, save, &options)?;
/// assert_eq!(Reader::open(&path)?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::IncompleteSave`] if parts are missing; [`Error::OtherSave`] or [`Error::Shards`] if
/// they do not fit together; or if a part cannot be read or the index cannot be written. The old
/// state stays then.
pub fn merge(
    path: impl AsRef<Path>,
    save: SaveId,
    options: &WriteOptions,
) -> Result<Merged, Error> {
    merge_in(Arc::new(LocalParts::new(path.as_ref())), save, options)
}

/// Like [`merge`], in any store.
///
/// # Errors
/// As [`merge`].
pub fn merge_in(
    store: Arc<dyn PartStore>,
    save: SaveId,
    options: &WriteOptions,
) -> Result<Merged, Error> {
    let (readers, records): (Vec<_>, Vec<_>) = read_all(&store, save)?.into_iter().unzip();
    let first = readers.first().ok_or_else(|| incomplete(save, 0, 0, 0))?;
    let header = &first.state.header;
    for (number, reader) in readers.iter().enumerate() {
        agree(number as u32, &reader.state.header, header)?;
    }
    let merged = MergedRole { save: save.0, directory: store.directory(), parts: records };
    let mut builder = IndexBuilder::default();
    let data_bytes = collect(&readers, &merged, &mut builder)?;
    let tensors = builder.arrays_len() as u64;

    let header = Header {
        producer: readers.iter().map(|r| r.state.header.producer).max().unwrap_or_default(),
        min_consumer: readers.iter().map(|r| r.state.header.min_consumer).max().unwrap_or_default(),
        bad_consumers: bad_consumers(&readers),
        metadata: header.metadata.clone().or_else(|| options.metadata.clone()),
        role: Role::Merged(merged),
        ..header.clone()
    };
    let mut bytes = header.encode()?;
    let header_checksum = bytes.last_chunk().map_or(0, |sum| u32::from_le_bytes(*sum));
    let index = builder.encode()?;
    let trailer = Trailer {
        index_offset: bytes.len() as u64,
        index_bytes: index.len() as u64,
        file_bytes: (bytes.len() + index.len() + TRAILER_BYTES) as u64,
        index_checksum: checksum(&index),
        header_checksum,
        data_bytes,
    };
    bytes.extend(index);
    bytes.extend(trailer.encode());
    options.monitor.check()?;
    let sync_time = store.commit_index(&bytes, options.durability())?;
    store.clean(&[save]);
    Ok(Merged {
        parts: readers.len() as u32,
        tensors,
        bytes: data_bytes,
        index_bytes: bytes.len() as u64,
        sync_time,
    })
}

/// Returns the readers that any of the parts excludes.
fn bad_consumers(parts: &[Reader]) -> Vec<i32> {
    let mut all: Vec<i32> =
        parts.iter().flat_map(|part| part.state.header.bad_consumers.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn incomplete(save: SaveId, found: u32, expected: u32, first_missing: u32) -> Error {
    Error::IncompleteSave { save: save.to_string(), found, expected, first_missing }
}

/// Removes the parts of a failed save of the state at `path`, so that they are not merged. They
/// stay if the state consists of them, or one of them is still being written: then its writer also
/// calls this function.
///
/// The next save does the same before it begins; this frees disk space until then. Failures are
/// ignored.
///
/// ```
/// use serdes_device_state::{Part, SaveId, Versions, WriteOptions, discard};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("step-1000.sds");
/// let save = SaveId::random();
/// WriteOptions::new(Versions::current()).create_part(&path, Part::new(save, 0, 2)?)?.finish()?;
/// // The other process failed.
/// discard(&path, save);
/// assert_eq!(directory.path().read_dir()?.count(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn discard(path: impl AsRef<Path>, save: SaveId) {
    let store = LocalParts::new(path.as_ref());
    // If the parts cannot be listed, all stay.
    let Ok(parts) = store.list_parts() else { return };
    let others: Vec<_> = parts.into_iter().map(Part::save).filter(|one| *one != save).collect();
    clean_all_but(&store, &others);
}

/// Removes leftovers of dead processes before a part of the save `ours` is started; the parts of
/// the existing state stay.
pub(crate) fn clean_before(store: &dyn PartStore, ours: SaveId) {
    clean_all_but(store, &[ours]);
}

/// Removes leftovers of dead processes from saves other than `keep` and that of the existing state.
fn clean_all_but(store: &dyn PartStore, keep: &[SaveId]) {
    let current = match store.open_index() {
        Ok(source) => {
            let length = source.size().unwrap_or_default();
            match read_header(&*source, &store.place(), length) {
                Ok((header, ..)) => match header.role {
                    Role::Merged(merged) => Some(SaveId(merged.save)),
                    _ => None,
                },
                // A state of a newer build may have parts that cannot be listed.
                Err(_) => return,
            }
        }
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
        Err(_) => return,
    };
    store.clean(&[keep, current.as_slice()].concat());
}

/// A part whose file is open only while its index is read: there may be more parts than a process
/// may have open files.
struct Closable(RwLock<Option<Box<dyn ReadAt>>>);

impl Closable {
    fn close(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn with<T>(&self, act: impl FnOnce(&dyn ReadAt) -> io::Result<T>) -> io::Result<T> {
        let source = self.0.read().unwrap_or_else(PoisonError::into_inner);
        act(&**source.as_ref().ok_or_else(|| io::Error::other("the part has been closed"))?)
    }
}

impl ReadAt for Closable {
    fn size(&self) -> io::Result<u64> {
        self.with(|source| source.size())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|source| source.read_at(buffer, offset))
    }
}

/// Returns the indexes of the parts of a save, in order, with the records for a merged state.
fn read_all(store: &Arc<dyn PartStore>, save: SaveId) -> Result<Vec<(Reader, PartRecord)>, Error> {
    let mut parts: Vec<Part> =
        store.list_parts()?.into_iter().filter(|part| part.save() == save).collect();
    parts.sort_by_key(|part| (part.count(), part.number()));
    // A save that was restarted with another number of processes: the last one is used only if it
    // is unambiguous.
    let count = parts.first().map_or(0, |part| part.count());
    if let Some(other) = parts.iter().find(|part| part.count() != count) {
        return Err(Error::OtherSave {
            part: other.number(),
            reason: format!("it is one of {}, others are of {count}", other.count()),
        });
    }
    let found = parts.len() as u32;
    let missing = (0..count).find(|n| parts.get(*n as usize).is_none_or(|p| p.number() != *n));
    if missing.is_some() || count == 0 {
        return Err(incomplete(save, found, count, missing.unwrap_or(0)));
    }
    parts
        .into_iter()
        .map(|part| {
            let source = Some(store.open_part(&store.directory(), part)?);
            let source = Arc::new(Closable(RwLock::new(source)));
            let name = store.place().with_file_name(store.directory()).join(part.name());
            let reader = Reader::from_source(Arc::clone(&source), name)?;
            let header_bytes = reader.state.header_bytes;
            let record = PartRecord { header_bytes, trailer: trailer_of(&reader)? };
            source.close();
            match &reader.state.header.role {
                Role::Part(role) if *role == part.role() => Ok((reader, record)),
                other => Err(Error::OtherSave {
                    part: part.number(),
                    reason: format!("it says of itself {other:?}"),
                }),
            }
        })
        .collect()
}

/// Checks that a part was written with the options of the first.
fn agree(part: u32, header: &Header, first: &Header) -> Result<(), Error> {
    let differs = |what: &str, found: i64, expected: i64| {
        Err(Error::OtherSave { part, reason: format!("its {what} is {found}, not {expected}") })
    };
    if header.format != first.format {
        return differs("format", header.format.into(), first.format.into());
    }
    if header.ifrt_version != first.ifrt_version {
        return differs("IFRT version", header.ifrt_version.into(), first.ifrt_version.into());
    }
    if header.chunk_bytes != first.chunk_bytes {
        return differs("chunk length", header.chunk_bytes.into(), first.chunk_bytes.into());
    }
    Ok(())
}

fn trailer_of(reader: &Reader) -> Result<Trailer, Error> {
    let shared = &reader.state;
    let mut bytes = [0; TRAILER_BYTES];
    let offset = shared.file_bytes.saturating_sub(TRAILER_BYTES as u64);
    let read = shared.source.read_exact_at(&mut bytes, offset);
    read.map_err(|error| Error::io("read", &shared.path, error))?;
    Trailer::decode(&bytes, shared.file_bytes)
}

/// Adds the pieces of all parts to one index, array by array; returns their length in bytes.
fn collect(
    readers: &[Reader],
    merged: &MergedRole,
    builder: &mut IndexBuilder,
) -> Result<u64, Error> {
    let mut names: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (part, reader) in readers.iter().enumerate() {
        for name in reader.names() {
            names.entry(name).or_default().push(part);
        }
    }
    let bases: Vec<u64> = merged.bases().collect();
    let mut total = 0_u64;
    for (name, parts) in names {
        let mut spec: Option<&[u8]> = None;
        let mut first = None;
        let mut pieces = Vec::new();
        for part in parts {
            let Some((reader, base)) = readers.get(part).zip(bases.get(part)) else { continue };
            let tensor = reader.tensor(name)?;
            let index = &reader.state.index;
            let bytes = index.spec(tensor.spec);
            match spec {
                None => {
                    builder.array(name, bytes)?;
                    spec = Some(bytes);
                }
                Some(first) if first == bytes => {}
                Some(_) => {
                    let reason = format!("its array spec of {name:?} is another");
                    return Err(Error::OtherSave { part: part as u32, reason });
                }
            }
            for (_, piece) in tensor.pieces() {
                let Some(placement) = index.placement(piece.placement) else { continue };
                let chunk_bytes = reader.chunk_bytes();
                let offset = base.saturating_add(piece.data_offset);
                builder.piece(placement, offset, piece.data_bytes, chunk_bytes)?;
                let sums: Vec<u32> = index.checksums_of(&piece, chunk_bytes).collect();
                builder.checksums(&sums);
                total = total.saturating_add(piece.data_bytes);
                pieces.push(placement.domain.clone());
            }
            first = first.or(Some(tensor));
        }
        if let Some(tensor) = first {
            check_tiling(tensor.spec(), &pieces).map_err(|reason| Error::shards(name, reason))?;
        }
    }
    Ok(total)
}
