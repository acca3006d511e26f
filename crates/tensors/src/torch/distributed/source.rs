//! A checkpoint of torch.distributed as a source of tensors.

use std::{
    collections::HashSet,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes::ifrt::{DType, Shape};
use serdes_files::{ReadAt, Tree};

use super::{
    super::{
        super::{
            Error, Listing, Metadata, Refused, Source, TensorInfo, aliases::LEAVES, element_bytes,
            elements::Unpack,
        },
        budget::Budget,
        globals::Elements,
        input::Input,
        machine,
        read::TorchSource,
        strided::Layout,
    },
    DESCRIPTION, KIND,
    chunks::{self, Comparisons},
    description::{self, Chunk, Description, Place, Sharded},
    joined::{Chunks, Joined},
};

/// Limit on the size of a checkpoint's tensors, as a multiple of its files; the same as for one
/// file.
const MOST_GROWTH: u64 = 16;

/// Minimum of the limit in bytes, for files of any size.
const LEAST_GROWTH: u64 = 256 << 20;

/// Place of a tensor of the listing.
#[derive(Clone, Copy)]
enum Entry {
    /// A tensor in chunks.
    Sharded(usize),
    /// A tensor in the archive of a value.
    Inside(usize, usize),
}

/// A checkpoint of torch.distributed.
pub(in super::super::super) struct DistributedSource {
    tree: Arc<dyn Tree>,
    folder: PathBuf,
    files: Vec<String>,
    sharded: Vec<Sharded>,
    values: Vec<TorchSource>,
    listing: Listing,
    entries: Vec<Entry>,
}

impl DistributedSource {
    /// Opens the checkpoint in a folder: checks that all files exist with the lengths in the
    /// description.
    ///
    /// # Errors
    /// If a file is missing or too short, the description is damaged, or the chunks of a tensor are
    /// incomplete.
    pub(in super::super::super) fn open(tree: Arc<dyn Tree>, folder: &Path) -> Result<Self, Error> {
        let path = folder.join(DESCRIPTION);
        let shown = PathBuf::from(tree.name(&path));
        let failed = |error| Error::io("read", &shown, error);
        let file = tree.open(&path).map_err(|error| Error::io("open", &shown, error))?;
        let size = file.size().map_err(failed)?;
        let mut input = Input::new(&file, 0, size);
        let description = machine::read(&mut input, Budget::of_file(size))
            .and_then(|(values, root)| description::read(values, root))
            .map_err(|error| error.of(&shown))?;
        let Description { files, tensors, values, refused } = description;
        let mut source = Self {
            tree,
            folder: folder.to_owned(),
            files,
            sharded: tensors,
            values: Vec::new(),
            listing: Listing::default(),
            entries: Vec::new(),
        };
        let refused = refused.into_iter().map(|(name, reason)| Refused::new(name, reason));
        source.listing.refused.extend(refused);
        let sizes = source.sizes(&values)?;
        source.add_tensors(&shown, sizes.iter().sum())?;
        source.add_values(&values)?;
        source.check_names();
        Ok(source)
    }

    /// Returns the path of a file, for messages.
    fn shown(&self, file: usize) -> PathBuf {
        let name = self.files.get(file).map_or("", |name| name);
        PathBuf::from(self.tree.name(&self.folder.join(name)))
    }

    /// Returns the lengths of all files, checked against the description.
    fn sizes(&self, values: &[(String, Place)]) -> Result<Vec<u64>, Error> {
        let mut ends = vec![0_u64; self.files.len()];
        let chunks = self.sharded.iter().flat_map(|tensor| &tensor.chunks);
        let places = chunks.map(|chunk| &chunk.place);
        for place in places.chain(values.iter().map(|(_, place)| place)) {
            if let Some(end) = ends.get_mut(place.file) {
                *end = (*end).max(place.begin.saturating_add(place.bytes));
            }
        }
        let mut sizes = Vec::with_capacity(ends.len());
        for (file, end) in ends.into_iter().enumerate() {
            let shown = self.shown(file);
            let opened = self.open_file(file).and_then(|file| file.size());
            let size = opened.map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Error::corrupt(
                    &shown,
                    KIND,
                    "no such file",
                    "all files that .metadata names; fetch the whole folder",
                ),
                _ => Error::io("open", &shown, error),
            })?;
            if size < end {
                let found = format!("{size} bytes");
                let expected = format!("{end} bytes, as .metadata says; fetch it again");
                return Err(Error::corrupt(&shown, KIND, found, expected));
            }
            sizes.push(size);
        }
        Ok(sizes)
    }

    fn add_tensors(&mut self, shown: &Path, file_bytes: u64) -> Result<(), Error> {
        let chunk_count = self.sharded.iter().map(|tensor| tensor.chunks.len()).sum();
        let mut comparisons = Comparisons::of(chunk_count);
        let first = |tensor: &Sharded| {
            tensor.chunks.first().map(|chunk| (chunk.place.file, chunk.place.begin))
        };
        self.sharded.sort_by_key(first);
        let mut total = 0_u64;
        for (number, tensor) in self.sharded.iter().enumerate() {
            chunks::check(tensor, &mut comparisons).map_err(|error| error.of(shown))?;
            let refuse = |reason: String| Refused::new(tensor.name.clone(), reason);
            let info = match &tensor.elements {
                Ok(elements) => info(tensor, *elements),
                Err(reason) => Err(reason.clone()),
            };
            match info {
                Ok(info) => {
                    total = total.saturating_add(info.bytes);
                    self.listing.tensors.push(info);
                    self.entries.push(Entry::Sharded(number));
                }
                Err(reason) => self.listing.refused.push(refuse(reason)),
            }
        }
        if total > file_bytes.saturating_mul(MOST_GROWTH).saturating_add(LEAST_GROWTH) {
            let found = format!("tensors of {total} bytes in files of {file_bytes}");
            return Err(Error::corrupt(shown, KIND, found, "files that hold the tensors"));
        }
        Ok(())
    }

    /// Reads the values that are not tensors: each is a separate `torch.save` file.
    fn add_values(&mut self, values: &[(String, Place)]) -> Result<(), Error> {
        let mut leaves = String::new();
        for (name, place) in values {
            let shown = self.shown(place.file);
            let file =
                self.open_file(place.file).map_err(|error| Error::io("open", &shown, error))?;
            let part = Arc::new(Part { file, begin: place.begin, bytes: place.bytes });
            let source = TorchSource::of_value(part, &shown, name)?;
            let number = self.values.len();
            for (position, info) in source.tensors().iter().enumerate() {
                self.listing.tensors.push(info.clone());
                self.entries.push(Entry::Inside(number, position));
            }
            self.listing.refused.extend_from_slice(source.refused());
            self.listing.left_out.extend_from_slice(source.left_out());
            for (_, text) in source.metadata().iter().flatten() {
                let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
                leaves.push_str(if leaves.is_empty() { "{" } else { ", " });
                leaves.push_str(inner.unwrap_or_default());
            }
            if !source.tensors().is_empty() {
                self.values.push(source);
            }
        }
        let metadata: Metadata =
            (!leaves.is_empty()).then(|| vec![(LEAVES.to_owned(), leaves + "}")]);
        self.listing.metadata = metadata;
        Ok(())
    }

    /// Refuses duplicate names.
    fn check_names(&mut self) {
        let mut names = HashSet::new();
        let twice: Vec<usize> = (0..self.listing.tensors.len())
            .filter(|position| {
                let info = self.listing.tensors.get(*position);
                info.is_some_and(|info| !names.insert(info.name.clone()))
            })
            .collect();
        for position in twice.into_iter().rev() {
            self.entries.remove(position);
            let info = self.listing.tensors.remove(position);
            let reason = "is the second value that gets this name";
            self.listing.refused.push(Refused::new(info.name, reason));
        }
    }

    /// Reads the archive of a chunk: returns the position of its elements, whose number and type
    /// must match the description. Verifies its checksum on request.
    fn look_into(
        &self,
        tensor: &Sharded,
        chunk: &Chunk,
        file: &Arc<dyn ReadAt>,
        is_verified: bool,
    ) -> io::Result<Layout> {
        let Place { begin, bytes, .. } = chunk.place;
        let part = Part { file: Arc::clone(file), begin, bytes };
        let shown = self.shown(chunk.place.file);
        let wrong = |what: String| {
            let reason = format!("the chunk at byte {begin} of {}: {what}", shown.display());
            io::Error::new(io::ErrorKind::InvalidData, reason)
        };
        let source = TorchSource::of_value(Arc::new(part), &shown, &tensor.name);
        let source = source.map_err(|error| wrong(error.to_string()))?;
        if is_verified && let Some(error) = source.compare_checksums(&mut |_| true).pop() {
            return Err(wrong(error.to_string()));
        }
        let Some((found, layout)) = source.alone() else {
            return Err(wrong("is no single tensor".to_owned()));
        };
        let expected = match &tensor.elements {
            Ok(elements) => info_of(&tensor.name, &chunk.sizes, *elements).map_err(wrong)?,
            Err(reason) => return Err(wrong(reason.clone())),
        };
        if found.dtype != expected.dtype || found.shape != expected.shape {
            return Err(wrong(format!(
                "found {}{}, expected {}{}",
                found.dtype, found.shape, expected.dtype, expected.shape
            )));
        }
        let mut layout = layout.clone();
        layout.begin = layout.begin.saturating_add(begin);
        Ok(layout)
    }

    /// Reads the chunks of all tensors; returns the errors, and where `go_on` ended the work.
    fn look_into_chunks(
        &self,
        is_verified: bool,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Vec<Error> {
        let mut errors = Vec::new();
        let mut kept: Option<(usize, Arc<dyn ReadAt>)> = None;
        for tensor in self.sharded.iter().filter(|tensor| tensor.elements.is_ok()) {
            for chunk in &tensor.chunks {
                let number = chunk.place.file;
                let looked = match kept.take().filter(|(open, _)| *open == number) {
                    Some((_, file)) => Ok(file),
                    None => self.open_file(number),
                };
                let looked = looked.and_then(|file| {
                    kept = Some((number, Arc::clone(&file)));
                    self.look_into(tensor, chunk, &file, is_verified)
                });
                if let Err(source) = looked {
                    errors.push(Error::Data { name: tensor.name.clone(), source });
                }
                if !go_on(chunk.place.bytes) {
                    return errors;
                }
            }
        }
        errors
    }
}

impl Chunks for DistributedSource {
    fn open_file(&self, file: usize) -> io::Result<Arc<dyn ReadAt>> {
        let name = self.files.get(file).ok_or(io::ErrorKind::NotFound)?;
        self.tree.open(&self.folder.join(name))
    }

    fn open_chunk(
        &self,
        tensor: &Sharded,
        chunk: &Chunk,
        file: &Arc<dyn ReadAt>,
    ) -> io::Result<Layout> {
        self.look_into(tensor, chunk, file, true)
    }
}

/// Returns the description of a tensor of these extents, or the reason why there is none.
fn info_of(name: &str, extents: &[u64], elements: Elements) -> Result<TensorInfo, String> {
    let (dtype, pairs) = match elements {
        Elements::Typed(dtype) => (dtype, 1),
        Elements::Pairs(dtype) => (dtype, 2),
        _ => return Err("is of bytes without a type".to_owned()),
    };
    let extents = extents.iter().map(|extent| i64::try_from(*extent).ok());
    let extents = extents.collect::<Option<Vec<_>>>().and_then(|mut extents| {
        if pairs > 1 {
            let last = extents.last_mut()?;
            *last = last.checked_mul(pairs)?;
        }
        Some(extents)
    });
    let shape = extents.and_then(|extents| Shape::new(extents).ok());
    let info = shape.and_then(|shape| TensorInfo::new(name, dtype, shape).ok());
    info.ok_or_else(|| "has a shape that no tensor has".to_owned())
}

fn info(tensor: &Sharded, elements: Elements) -> Result<TensorInfo, String> {
    info_of(&tensor.name, &tensor.shape, elements)
}

impl Source for DistributedSource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn listing(&self) -> &Listing {
        &self.listing
    }

    fn pieces(&self, position: usize) -> Option<u64> {
        match self.entries.get(position)? {
            Entry::Sharded(number) => Some(self.sharded.get(*number)?.chunks.len() as u64),
            Entry::Inside(..) => Some(1),
        }
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        let absent = || Error::io("read", &self.folder, io::ErrorKind::NotFound.into());
        let info = self.listing.tensors.get(position).ok_or_else(absent)?;
        match self.entries.get(position).ok_or_else(absent)? {
            Entry::Inside(source, place) => {
                self.values.get(*source).ok_or_else(absent)?.read(*place)
            }
            Entry::Sharded(number) => {
                let tensor = self.sharded.get(*number).ok_or_else(absent)?;
                let element = match tensor.elements {
                    Ok(Elements::Typed(dtype)) => element_bytes(dtype).unwrap_or(1),
                    _ => 1,
                };
                let joined = Joined::new(self, tensor, element);
                Ok(match tensor.elements {
                    Ok(Elements::Pairs(DType::F4E2M1FN)) => {
                        Box::new(Unpack::new(joined, 4, info.bytes))
                    }
                    _ => Box::new(joined),
                })
            }
        }
    }

    fn compare_size(&self) -> Result<(), Error> {
        self.look_into_chunks(false, &mut |_| true).into_iter().next().map_or(Ok(()), Err)
    }

    fn compare_checksums(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Vec<Error> {
        let values = self.values.iter().flat_map(|source| source.compare_checksums(&mut |_| true));
        let mut errors: Vec<Error> = values.collect();
        errors.extend(self.look_into_chunks(true, go_on));
        errors
    }
}

/// One of several archives in a file.
struct Part {
    file: Arc<dyn ReadAt>,
    begin: u64,
    bytes: u64,
}

impl ReadAt for Part {
    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.bytes.saturating_sub(offset).min(buffer.len() as u64);
        match buffer.get_mut(..left as usize) {
            Some(part) if !part.is_empty() => {
                self.file.read_at(part, self.begin.saturating_add(offset))
            }
            _ => Ok(0),
        }
    }
}
