//! Tensors out of what a pickle describes and where its storages lie.

use std::{
    collections::HashMap,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    super::{
        Error, Listing, Metadata, Refused, Source, TensorInfo, aliases::LEAVES, archive::Content,
        element_bytes, section::Section,
    },
    KIND,
    error::TorchError,
    legacy,
    parsed::{Parsed, Stored},
    strided::{Dimension, Layout, Strided},
    tree::{self, Leaf},
    value::{Elements, Storage, Value, Values, View},
    zipped,
};
use crate::{
    files::ReadAt,
    ifrt::{DType, Shape},
};

/// Dimensions that a tensor of PyTorch's may have.
const MOST_DIMENSIONS: usize = 64;

/// How much larger than the file its tensors may be: views that spread few elements, or cover each
/// other, are tensors of their own everywhere else.
const MOST_GROWTH: u64 = 16;

/// Bytes that tensors may have, however small the file.
const LEAST_GROWTH: u64 = 256 << 20;

/// A storage whose checksum is compared once.
struct Checksum {
    content: Content,
    compared: AtomicBool,
}

/// Where a tensor lies.
struct Entry {
    layout: Layout,
    /// The storage that it lies in, among those with checksums.
    checksum: Option<usize>,
    /// The tensor of which this is another name.
    alias_of: Option<usize>,
}

/// A file of PyTorch's.
pub(in super::super) struct TorchSource {
    file: Arc<dyn ReadAt>,
    path: PathBuf,
    listing: Listing,
    entries: Vec<Entry>,
    checksums: Vec<Checksum>,
}

impl TorchSource {
    /// Reads what a file describes; `path` is for messages, and gives its name to a tensor that has
    /// none.
    pub(in super::super) fn new(file: Arc<dyn ReadAt>, path: &Path) -> Result<Self, Error> {
        let io = |error| Error::io("read", path, error);
        let size = file.size().map_err(io)?;
        let mut head = [0; 4];
        let is_zip =
            size >= 4 && file.read_exact_at(&mut head, 0).is_ok() && head == *b"PK\x03\x04";
        let parsed = if is_zip { zipped::parse(&file, path)? } else { legacy::parse(&file, path)? };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let leaves = tree::leaves(&parsed.values, parsed.root, parsed.pickle_bytes, &stem)
            .map_err(|error| error.of(path))?;
        let mut found = Found::new(&parsed);
        for (name, leaf) in leaves {
            found.add(name, leaf).map_err(|error| error.of(path))?;
        }
        let total: u64 =
            found.tensors.iter().fold(0, |total, (info, ..)| total.saturating_add(info.bytes));
        if total > size.saturating_mul(MOST_GROWTH).saturating_add(LEAST_GROWTH) {
            let reason = format!(
                "its tensors are views that take {total} bytes of a file of {size}; save them with .contiguous(), or the tensors that they are views of"
            );
            return Err(Error::unsupported(path, reason));
        }
        Ok(found.into_source(file, path))
    }

    fn get(&self, position: usize) -> Result<(&TensorInfo, &Entry), Error> {
        let found = self.listing.tensors.get(position).zip(self.entries.get(position));
        found.ok_or_else(|| Error::io("read", &self.path, io::ErrorKind::NotFound.into()))
    }
}

/// What was found so far.
struct Found<'a> {
    parsed: &'a Parsed,
    tensors: Vec<(TensorInfo, Layout, Stored)>,
    refused: Vec<Refused>,
    /// Plain values, in JSON.
    plain: Vec<(String, String)>,
}

impl<'a> Found<'a> {
    fn new(parsed: &'a Parsed) -> Self {
        Self { parsed, tensors: Vec::new(), refused: Vec::new(), plain: Vec::new() }
    }

    fn add(&mut self, name: String, leaf: Leaf) -> Result<(), TorchError> {
        match leaf {
            Leaf::Plain(value) => self.plain.push((name, value)),
            Leaf::Refused(reason) => self.refused.push(Refused { name, reason }),
            Leaf::Tensor(view) => {
                let Value::Storage(storage) = self.parsed.values.get(view.storage) else {
                    return Err(TorchError::damaged("a tensor without a storage", "a storage"));
                };
                match elements_of(&view, storage) {
                    Ok(dtype) => self.tensor(name, &view, storage, dtype)?,
                    Err(reason) => self.refused.push(Refused { name, reason }),
                }
            }
        }
        Ok(())
    }

    fn tensor(
        &mut self,
        name: String,
        view: &View,
        storage: &Storage,
        dtype: DType,
    ) -> Result<(), TorchError> {
        let stored = *self.parsed.storages.get(&storage.key).ok_or_else(|| {
            let found = format!("{name:?} in the storage {}, which is not there", storage.key);
            TorchError::damaged(found, "storages in the file")
        })?;
        let (shape, dimensions) = dimensions(&self.parsed.values, view).ok_or_else(|| {
            TorchError::damaged(
                format!("{name:?} with extents and strides that are none"),
                "as many numbers of both, at most 64",
            )
        })?;
        let element = element_bytes(dtype).unwrap_or(1);
        // The storage counts its own elements, the tensor those of its type.
        let unit = match &storage.elements {
            Elements::Typed(dtype) => element_bytes(*dtype).unwrap_or(1),
            _ => 1,
        };
        let mut layout = Layout { begin: 0, element, dimensions };
        let place = storage.begin.checked_mul(unit).zip(view.offset.checked_mul(element));
        let place = place.and_then(|(part, offset)| part.checked_add(offset));
        let end = layout
            .span()
            .and_then(|span| span.checked_mul(element))
            .zip(place)
            .and_then(|(span, place)| place.checked_add(span));
        let storage_end = storage.count.checked_mul(unit).zip(storage.begin.checked_mul(unit));
        let storage_end = storage_end.and_then(|(bytes, begin)| begin.checked_add(bytes));
        let is_inside = end.zip(storage_end).is_some_and(|(end, storage_end)| {
            (end <= storage_end || layout.span() == Some(0)) && storage_end <= stored.bytes
        });
        let Some(place) = place.filter(|_| is_inside) else {
            let found = format!("{name:?} beyond the {} bytes of its storage", stored.bytes);
            return Err(TorchError::damaged(found, "tensors inside their storages"));
        };
        layout.begin = stored.begin.saturating_add(place);
        match TensorInfo::new(name, dtype, shape) {
            Ok(info) => self.tensors.push((info, layout, stored)),
            Err(error) => return Err(TorchError::damaged(error.to_string(), "a size in bytes")),
        }
        Ok(())
    }

    /// The tensors in the order of their bytes, each with the first one that lies where it does.
    fn into_source(mut self, file: Arc<dyn ReadAt>, path: &Path) -> TorchSource {
        self.tensors.sort_by_key(|(_, layout, _)| layout.begin);
        let mut source = TorchSource {
            file,
            path: path.to_owned(),
            listing: Listing {
                tensors: Vec::with_capacity(self.tensors.len()),
                refused: self.refused,
                metadata: metadata(&self.plain),
                ..Listing::default()
            },
            entries: Vec::with_capacity(self.tensors.len()),
            checksums: Vec::new(),
        };
        let mut first: HashMap<(u64, DType, Shape, Vec<u64>), usize> = HashMap::new();
        let mut checksums: HashMap<u64, usize> = HashMap::new();
        for (position, (info, layout, stored)) in self.tensors.into_iter().enumerate() {
            let checksum = stored.checked.map(|content| {
                *checksums.entry(content.begin).or_insert_with(|| {
                    let compared = AtomicBool::new(false);
                    source.checksums.push(Checksum { content, compared });
                    source.checksums.len() - 1
                })
            });
            let alias_of = (info.bytes > 0)
                .then(|| {
                    let strides = layout.dimensions.iter().map(|dimension| dimension.stride);
                    let place = (layout.begin, info.dtype, info.shape.clone(), strides.collect());
                    *first.entry(place).or_insert(position)
                })
                .filter(|first| *first != position);
            source.listing.tensors.push(info);
            source.entries.push(Entry { layout, checksum, alias_of });
        }
        source
    }
}

/// The type of a tensor's elements; why there is none.
fn elements_of(view: &View, storage: &Storage) -> Result<DType, String> {
    if view.is_lazy {
        let reason = "stands for the conjugate or the negative of what is stored; save it with .resolve_conj() or .resolve_neg()";
        return Err(reason.to_owned());
    }
    match view.elements.as_ref().unwrap_or(&storage.elements) {
        Elements::Typed(dtype) => Ok(*dtype),
        Elements::Bytes => Err("is of bytes without a type".to_owned()),
        Elements::Unknown(name) => {
            Err(format!("the element type {name} has no counterpart in IFRT"))
        }
    }
}

/// Extents and strides; `None` if they are no tensor's.
fn dimensions(values: &Values, view: &View) -> Option<(Shape, Vec<Dimension>)> {
    let (extents, strides) = values.items(view.shape).zip(values.items(view.strides))?;
    if extents.len() != strides.len() || extents.len() > MOST_DIMENSIONS {
        return None;
    }
    let pairs = extents.iter().zip(strides).map(|(extent, stride)| {
        Some(Dimension { extent: values.unsigned(*extent)?, stride: values.unsigned(*stride)? })
    });
    let dimensions = pairs.collect::<Option<Vec<_>>>()?;
    let extents = dimensions.iter().map(|dimension| i64::try_from(dimension.extent).ok());
    let shape = Shape::new(extents.collect::<Option<Vec<_>>>()?).ok()?;
    Some((shape, dimensions))
}

/// Plain values as metadata, where `serdes_ml.jax` looks for them.
fn metadata(plain: &[(String, String)]) -> Metadata {
    if plain.is_empty() {
        return None;
    }
    let entries = plain
        .iter()
        .map(|(name, value)| format!("{}: {value}", serde_json::Value::from(name.as_str())));
    let text = format!("{{{}}}", entries.collect::<Vec<_>>().join(", "));
    Some(vec![(LEAVES.to_owned(), text)])
}

impl Source for TorchSource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn listing(&self) -> &Listing {
        &self.listing
    }

    fn alias_of(&self, position: usize) -> Option<usize> {
        self.entries.get(position)?.alias_of
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        let (info, entry) = self.get(position)?;
        let checksum = entry.checksum.and_then(|place| self.checksums.get(place));
        let checksum = checksum.filter(|checksum| !checksum.compared.load(Ordering::Relaxed));
        let is_contiguous = entry.layout.is_contiguous();
        if let Some(Checksum { content, compared }) = checksum {
            let is_all = entry.layout.begin == content.begin && info.bytes == content.bytes;
            if is_contiguous && is_all && info.bytes > 0 {
                return Ok(Box::new(content.checked(&self.file)));
            }
            content
                .compare(&self.file, &mut |_| true)
                .map_err(|source| Error::Data { name: info.name.clone(), source })?;
            compared.store(true, Ordering::Relaxed);
        }
        if is_contiguous {
            let begin = entry.layout.begin;
            return Ok(Box::new(Section::new(&self.file, begin, begin + info.bytes)));
        }
        let strided = Strided::new(&self.file, &entry.layout).ok_or_else(|| {
            let reason = "its rows are scattered over the storage and longer than 16 MiB; save it with .contiguous()";
            Error::refused(&info.name, reason)
        })?;
        Ok(Box::new(strided))
    }

    fn compare_checksums(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Vec<Error> {
        let mut names: HashMap<usize, &str> = HashMap::new();
        for (info, entry) in self.listing.tensors.iter().zip(&self.entries) {
            if let Some(place) = entry.checksum {
                names.entry(place).or_insert(&info.name);
            }
        }
        let mut errors = Vec::new();
        for (place, checksum) in self.checksums.iter().enumerate() {
            if let Err(source) = checksum.content.compare(&self.file, go_on) {
                let name = names.get(&place).copied().unwrap_or_default().to_owned();
                errors.push(Error::Data { name, source });
            }
        }
        errors
    }
}
