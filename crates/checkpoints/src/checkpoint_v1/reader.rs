//! Opening the files of a V1 checkpoint, and reading tensors.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_files::{ReadAt, Tree};
use serdes_graph_format::data_type::{DataType, describe};
use serdes_version_registry::{Consumer, VersionDef};

use super::{error::CheckpointV1Error, messages::RawMeta, values};
use crate::{
    patterns::{is_pattern, matching},
    slice::{Runs, TensorSlice, are_apart, elements_in},
    table::{Table, TableDefect},
    tensor_bundle::{FileSystem, Files, VerifyOptions, element_count},
};

/// Number of slices of a tensor that are compared pair by pair when the checkpoint is opened; the
/// slices of a tensor with more are compared when it is read, all at once.
const COMPARED_SLICES: usize = if cfg!(test) { 4 } else { 256 };

/// A V1 checkpoint that is open for reading.
#[derive(Debug)]
pub struct CheckpointV1 {
    shards: Vec<ShardV1>,
    tensors: Vec<TensorV1>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
struct ShardV1 {
    path: PathBuf,
    table: Table<Arc<dyn ReadAt>>,
    versions: VersionDef,
    has_versions: bool,
}

/// A tensor of a V1 checkpoint.
#[derive(Clone, Debug)]
pub struct TensorV1 {
    name: String,
    dtype: i32,
    shape: Vec<i64>,
    /// Each slice, with the number of its file.
    slices: Vec<(TensorSlice, usize)>,
}

impl TensorV1 {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the element type; `None` if TensorFlow 2.21 has no type with that number.
    #[must_use]
    pub fn data_type(&self) -> Option<DataType> {
        DataType::from_number(self.dtype)
    }

    /// Returns the number of the element type as the checkpoint has it.
    #[must_use]
    pub fn data_type_number(&self) -> i32 {
        self.dtype
    }

    /// Sizes of the dimensions.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Returns the number of bytes of the whole tensor in memory; `None` for strings and unknown
    /// types.
    #[must_use]
    pub fn byte_len(&self) -> Option<u64> {
        element_count(&self.shape).ok()?.checked_mul(self.data_type()?.element_size()?)
    }

    /// Returns the slices that the tensor is stored in.
    pub fn slices(&self) -> impl Iterator<Item = &TensorSlice> {
        self.slices.iter().map(|(slice, _)| slice)
    }
}

impl CheckpointV1 {
    /// Opens the files that match `pattern` (the path of a file, or a pattern with `?`, `*` or
    /// `[...]`) if this build may read them.
    ///
    /// # Errors
    /// If one of them cannot be opened: the reason.
    pub fn open(pattern: impl AsRef<Path>) -> Result<Self, CheckpointV1Error> {
        Self::open_for(pattern, &super::default_consumer())
    }

    /// Like [`CheckpointV1::open`], for another consumer.
    ///
    /// # Errors
    /// As [`CheckpointV1::open`].
    pub fn open_for(
        pattern: impl AsRef<Path>,
        consumer: &Consumer,
    ) -> Result<Self, CheckpointV1Error> {
        let paths = matching_files(pattern.as_ref())?;
        Self::open_files(&FileSystem, &paths, Some(consumer))
    }

    /// Like [`CheckpointV1::open_for`], for files in any tree. Without a consumer, versions are not
    /// checked.
    ///
    /// # Errors
    /// As [`CheckpointV1::open`].
    pub fn open_in(
        tree: &dyn Tree,
        pattern: &Path,
        consumer: Option<&Consumer>,
    ) -> Result<Self, CheckpointV1Error> {
        if tree.is_of_system(pattern) {
            return Self::open_files(tree, &matching_files(pattern)?, consumer);
        }
        let paths = if is_pattern(pattern) { matching(tree, pattern) } else { None };
        let paths = paths.unwrap_or_else(|| vec![pattern.to_owned()]);
        if paths.is_empty() {
            return Err(CheckpointV1Error::NoFiles { pattern: tree.name(pattern) });
        }
        Self::open_files(tree, &paths, consumer)
    }

    /// Opens the given files, which together are a checkpoint. Without a consumer, versions are not
    /// checked.
    ///
    /// # Errors
    /// The reason why the first file that cannot be opened cannot be.
    pub fn open_files(
        files: &dyn Files,
        paths: &[PathBuf],
        consumer: Option<&Consumer>,
    ) -> Result<Self, CheckpointV1Error> {
        let mut checkpoint =
            Self { shards: Vec::new(), tensors: Vec::new(), by_name: HashMap::new() };
        if paths.is_empty() {
            return Err(CheckpointV1Error::NoFiles { pattern: String::new() });
        }
        for path in paths {
            checkpoint.add_file(files, path, consumer)?;
        }
        Ok(checkpoint)
    }

    fn add_file(
        &mut self,
        files: &dyn Files,
        path: &Path,
        consumer: Option<&Consumer>,
    ) -> Result<(), CheckpointV1Error> {
        let path = path.to_owned();
        let source = match files.open(&path) {
            Ok(source) => source,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(CheckpointV1Error::NoFiles { pattern: path.display().to_string() });
            }
            Err(source) => return Err(CheckpointV1Error::Io { path, source }),
        };
        let table = match Table::open(source) {
            Ok(table) => table,
            Err(source) => return Err(CheckpointV1Error::Table { path, source }),
        };
        let value = match table.get(b"") {
            Ok(Some(value)) => value,
            Ok(None) => return Err(CheckpointV1Error::NoHeader { path, source: None }),
            Err(source) => return Err(CheckpointV1Error::NoHeader { path, source: Some(source) }),
        };
        let meta = match RawMeta::parse(&value) {
            Ok(meta) => meta,
            Err(source) => return Err(CheckpointV1Error::Header { path, source }),
        };
        if let Some(consumer) = consumer {
            let check = consumer.check(&meta.versions);
            check.map_err(|source| CheckpointV1Error::Version { path: path.clone(), source })?;
        }
        let shard = self.shards.len();
        for tensor in meta.tensors {
            self.add_tensor(tensor, shard)?;
        }
        let (versions, has_versions) = (meta.versions, meta.has_versions);
        self.shards.push(ShardV1 { path, table, versions, has_versions });
        Ok(())
    }

    fn add_tensor(
        &mut self,
        raw: super::messages::RawTensor,
        shard: usize,
    ) -> Result<(), CheckpointV1Error> {
        let name = raw.name;
        if let Err(source) = element_count(&raw.shape) {
            return Err(CheckpointV1Error::Shape { name, source });
        }
        // A tensor exists once one of its slices does.
        for slice in &raw.slices {
            let in_slice = |source| CheckpointV1Error::Slice { name: name.clone(), source };
            let slice = slice.check().map_err(in_slice)?;
            slice.bounds(&raw.shape).map_err(in_slice)?;
            let index = match self.by_name.get(&name) {
                Some(index) => *index,
                None => {
                    let slices = Vec::new();
                    self.tensors.push(TensorV1 {
                        name: name.clone(),
                        dtype: raw.dtype,
                        shape: raw.shape.clone(),
                        slices,
                    });
                    self.by_name.insert(name.clone(), self.tensors.len() - 1);
                    self.tensors.len() - 1
                }
            };
            let Some(tensor) = self.tensors.get_mut(index) else { continue };
            if tensor.shape != raw.shape || tensor.dtype != raw.dtype {
                let text = |dtype, shape: &[i64]| format!("{} {shape:?}", describe(dtype));
                let (found, expected) =
                    (text(raw.dtype, &raw.shape), text(tensor.dtype, &tensor.shape));
                return Err(CheckpointV1Error::Conflict { name, found, expected });
            }
            if tensor.slices.len() < COMPARED_SLICES
                && tensor.slices.iter().any(|(other, _)| overlap(other, &slice, &raw.shape))
            {
                return Err(CheckpointV1Error::Overlap { name });
            }
            tensor.slices.push((slice, shard));
        }
        Ok(())
    }

    /// Returns the versions of each file.
    pub fn versions(&self) -> impl Iterator<Item = (&Path, &VersionDef)> {
        self.shards.iter().map(|shard| (shard.path.as_path(), &shard.versions))
    }

    /// Checks that `consumer` may read every file.
    ///
    /// # Errors
    /// [`CheckpointV1Error::Version`] for the first file that it may not read.
    pub fn check_versions(&self, consumer: &Consumer) -> Result<(), CheckpointV1Error> {
        self.shards.iter().try_for_each(|shard| {
            let check = consumer.check(&shard.versions);
            check.map_err(|source| CheckpointV1Error::Version { path: shard.path.clone(), source })
        })
    }

    /// Returns the tensors, in the order in which the files name them.
    #[must_use]
    pub fn tensors(&self) -> &[TensorV1] {
        &self.tensors
    }

    /// Returns the tensor with `name`.
    ///
    /// # Errors
    /// [`CheckpointV1Error::TensorNotFound`].
    pub fn tensor(&self, name: &str) -> Result<&TensorV1, CheckpointV1Error> {
        let found = self.by_name.get(name).and_then(|index| self.tensors.get(*index));
        found.ok_or_else(|| CheckpointV1Error::TensorNotFound { name: name.to_owned() })
    }

    /// Returns the defects of the files that do not keep the checkpoint from being opened.
    #[must_use]
    pub fn defects(&self) -> Vec<CheckpointV1Error> {
        let mut defects = Vec::new();
        for ShardV1 { path, table, has_versions, .. } in &self.shards {
            if !has_versions {
                defects.push(CheckpointV1Error::NoVersions { path: path.clone() });
            }
            let found = table.verify_blocks();
            defects.extend(
                found
                    .into_iter()
                    .map(|defect| CheckpointV1Error::TableDefect { path: path.clone(), defect }),
            );
        }
        defects
    }

    /// Returns the bytes of a tensor of fixed element size, as little-endian elements in row-major
    /// order, its slices joined.
    ///
    /// # Errors
    /// If slices are missing, their values do not match the header, or the format does not support
    /// the type.
    pub fn read(&self, tensor: &TensorV1) -> Result<Vec<u8>, CheckpointV1Error> {
        let data_type = supported(tensor)?;
        let Some(size) = data_type.element_size() else {
            let reason = "its elements have no fixed size; read them as strings";
            return Err(CheckpointV1Error::Unsupported {
                name: tensor.name.clone(),
                found: describe(tensor.dtype),
                reason,
            });
        };
        let size = usize::try_from(size).unwrap_or(1);
        let count = self.coverage(tensor)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        // Nothing is allocated before all values are found, so that a shape cannot request more
        // memory than the files justify.
        let mut pieces = Vec::with_capacity(tensor.slices.len());
        for (slice, shard) in &tensor.slices {
            let value = self.value(tensor, slice, *shard)?;
            let decoded = values::numbers(&value, data_type).unwrap_or_else(|| Ok(Vec::new()));
            let decoded = decoded.map_err(|error| slice_data(tensor, slice, error.to_string()))?;
            let (runs, elements) = runs(tensor, slice)?;
            if decoded.len() as u64 != elements.saturating_mul(size as u64) {
                let reason =
                    format!("it has {elements} elements, and {} are there", decoded.len() / size);
                return Err(slice_data(tensor, slice, reason));
            }
            if decoded.len() as u64 == count.saturating_mul(size as u64) {
                return Ok(decoded);
            }
            pieces.push((slice, runs, decoded));
        }
        let mut out = vec![0; pieces.iter().map(|(_, _, decoded)| decoded.len()).sum()];
        for (slice, mut runs, decoded) in pieces {
            let run = usize::try_from(runs.len()).unwrap_or(usize::MAX).saturating_mul(size);
            for bytes in decoded.chunks(run.max(1)) {
                let start = runs
                    .start()
                    .and_then(|start| usize::try_from(start).ok())
                    .map(|start| start * size);
                let target = start.and_then(|start| out.get_mut(start..start + bytes.len()));
                target
                    .ok_or_else(|| slice_data(tensor, slice, "it does not fit".to_owned()))?
                    .copy_from_slice(bytes);
                runs.advance();
            }
        }
        Ok(out)
    }

    /// Returns the elements of a string tensor, in row-major order.
    ///
    /// # Errors
    /// As [`CheckpointV1::read`].
    pub fn strings(&self, tensor: &TensorV1) -> Result<Vec<Vec<u8>>, CheckpointV1Error> {
        if supported(tensor)? != DataType::String {
            let reason = "its elements are not strings";
            return Err(CheckpointV1Error::Unsupported {
                name: tensor.name.clone(),
                found: describe(tensor.dtype),
                reason,
            });
        }
        if self.coverage(tensor)? == 0 {
            return Ok(Vec::new());
        }
        let mut pieces = Vec::with_capacity(tensor.slices.len());
        for (slice, shard) in &tensor.slices {
            let value = self.value(tensor, slice, *shard)?;
            let decoded = values::strings(&value)
                .map_err(|error| slice_data(tensor, slice, error.to_string()))?;
            let (runs, elements) = runs(tensor, slice)?;
            if decoded.len() as u64 != elements {
                let reason = format!("it has {elements} elements, and {} are there", decoded.len());
                return Err(slice_data(tensor, slice, reason));
            }
            pieces.push((runs, decoded));
        }
        let mut out = vec![Vec::new(); pieces.iter().map(|(_, decoded)| decoded.len()).sum()];
        for (mut runs, decoded) in pieces {
            let run = usize::try_from(runs.len()).unwrap_or(usize::MAX);
            let mut decoded = decoded.into_iter();
            while let Some(start) = runs.start() {
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                for (slot, string) in out.iter_mut().skip(start).take(run).zip(&mut decoded) {
                    *slot = string;
                }
                runs.advance();
            }
        }
        Ok(out)
    }

    /// Checks that the slices cover the tensor, and returns the number of its elements.
    fn coverage(&self, tensor: &TensorV1) -> Result<u64, CheckpointV1Error> {
        let name = || tensor.name.clone();
        let needed = element_count(&tensor.shape)
            .map_err(|source| CheckpointV1Error::Shape { name: name(), source })?;
        let mut covered = 0u64;
        for (slice, _) in &tensor.slices {
            covered = covered.saturating_add(runs(tensor, slice)?.1);
        }
        if covered < needed {
            let slices = tensor.slices.len();
            return Err(CheckpointV1Error::SlicesMissing { name: name(), slices, covered, needed });
        }
        if tensor.slices.len() > COMPARED_SLICES {
            let boxes = tensor.slices.iter().map(|(slice, _)| slice.bounds(&tensor.shape));
            let boxes = boxes.collect::<Result<Vec<_>, _>>();
            let boxes =
                boxes.map_err(|source| CheckpointV1Error::Slice { name: name(), source })?;
            match are_apart(&boxes) {
                Some(true) => {}
                Some(false) => return Err(CheckpointV1Error::Overlap { name: name() }),
                None => {
                    return Err(CheckpointV1Error::Unsupported {
                        name: name(),
                        found: format!("{} slices", boxes.len()),
                        reason: "they lie so that it cannot be told in time whether two of them overlap",
                    });
                }
            }
        }
        Ok(needed)
    }

    /// Returns the errors of a tensor's values that cannot be read, needed or not.
    fn damaged_values(&self, tensor: &TensorV1, data_type: DataType) -> Vec<CheckpointV1Error> {
        let decode = |(slice, shard): &(TensorSlice, usize)| {
            let value = self.value(tensor, slice, *shard)?;
            let decoded = match data_type {
                DataType::String => values::strings(&value).map(drop),
                _ => values::numbers(&value, data_type).map_or(Ok(()), |numbers| numbers.map(drop)),
            };
            decoded.map_err(|error| slice_data(tensor, slice, error.to_string()))
        };
        tensor.slices.iter().filter_map(|part| decode(part).err()).collect()
    }

    /// Returns the value under a slice's key.
    fn value(
        &self,
        tensor: &TensorV1,
        slice: &TensorSlice,
        shard: usize,
    ) -> Result<Vec<u8>, CheckpointV1Error> {
        let found =
            self.shards.get(shard).map(|shard| shard.table.get(&slice.key(tensor.name.as_bytes())));
        match found {
            Some(Ok(Some(value))) => Ok(value),
            Some(Err(error)) => Err(slice_data(tensor, slice, error.to_string())),
            _ => Err(slice_data(tensor, slice, "they are not in the file".to_owned())),
        }
    }

    /// Checks the tables and the description of each tensor; with [`VerifyOptions::with_data`],
    /// also every value of every tensor. Returns the warnings, then the tensors that cannot be
    /// restored (empty unless the data was verified).
    #[must_use]
    pub fn verify(
        &self,
        options: &VerifyOptions<'_>,
    ) -> (Vec<CheckpointV1Error>, Vec<CheckpointV1Error>) {
        let (mut warnings, mut errors) = (self.defects(), Vec::new());
        let mut budget =
            self.shards.iter().fold(0u64, |sum, shard| sum.saturating_add(shard.table.file_len()));
        budget = budget.saturating_mul(64).saturating_add(64 << 20);
        for tensor in &self.tensors {
            if options.is_cancelled() {
                break;
            }
            let found = supported(tensor).and_then(|data_type| {
                let count = self.coverage(tensor)?;
                if !options.verify_data {
                    return Ok(());
                }
                if count == 0 {
                    // TensorFlow does not look up slices without values.
                    warnings.extend(self.damaged_values(tensor, data_type));
                    return Ok(());
                }
                let bytes = count.saturating_mul(data_type.element_size().unwrap_or(16));
                budget = budget.checked_sub(bytes).ok_or_else(|| {
                    let reason =
                        "the tensors before it were longer than the files together".to_owned();
                    slice_data(tensor, &TensorSlice::full(tensor.shape.len()), reason)
                })?;
                match data_type {
                    DataType::String => self.strings(tensor).map(drop)?,
                    _ => self.read(tensor).map(drop)?,
                }
                options.advance(bytes);
                Ok(())
            });
            errors.extend(found.err());
        }
        if options.verify_data {
            let (lost, harmless) = warnings.into_iter().partition(|defect| {
                matches!(
                    defect,
                    CheckpointV1Error::TableDefect { defect: TableDefect::Block(_), .. }
                )
            });
            warnings = harmless;
            let lost: Vec<_> = lost;
            errors.extend(lost);
        } else {
            warnings.append(&mut errors);
        }
        (warnings, errors)
    }
}

/// Returns the files that a path or pattern matches, sorted by name.
fn matching_files(pattern: &Path) -> Result<Vec<PathBuf>, CheckpointV1Error> {
    let text = pattern.to_string_lossy();
    if !text.contains(['?', '*', '[']) || pattern.is_file() {
        return Ok(vec![pattern.to_owned()]);
    }
    let failed =
        |reason: String| CheckpointV1Error::Pattern { pattern: text.clone().into_owned(), reason };
    let found = glob::glob(&text).map_err(|error| failed(error.to_string()))?;
    let mut paths = Vec::new();
    for path in found {
        match path {
            Ok(path) => paths.push(path),
            Err(error) => {
                return Err(CheckpointV1Error::Io {
                    path: error.path().to_owned(),
                    source: error.into(),
                });
            }
        }
    }
    if paths.is_empty() {
        return Err(CheckpointV1Error::NoFiles { pattern: text.into_owned() });
    }
    paths.sort();
    Ok(paths)
}

fn supported(tensor: &TensorV1) -> Result<DataType, CheckpointV1Error> {
    let known = tensor.data_type().filter(|data_type| values::is_supported(*data_type));
    known.ok_or_else(|| CheckpointV1Error::Unsupported {
        name: tensor.name.clone(),
        found: describe(tensor.dtype),
        reason: "V1 checkpoints hold no tensors of that type",
    })
}

fn slice_data(tensor: &TensorV1, slice: &TensorSlice, reason: String) -> CheckpointV1Error {
    CheckpointV1Error::SliceData { name: tensor.name.clone(), slice: slice.clone(), reason }
}

/// Returns the runs of a slice in its tensor, and the number of its elements.
fn runs(tensor: &TensorV1, slice: &TensorSlice) -> Result<(Runs, u64), CheckpointV1Error> {
    let bounds = slice.bounds(&tensor.shape);
    let bounds =
        bounds.map_err(|source| CheckpointV1Error::Slice { name: tensor.name.clone(), source })?;
    let runs = Runs::new(&tensor.shape, &bounds, Runs::first_joined(&tensor.shape, &bounds));
    Ok((runs, elements_in(&bounds)))
}

fn overlap(a: &TensorSlice, b: &TensorSlice, shape: &[i64]) -> bool {
    let (Ok(a), Ok(b)) = (a.bounds(shape), b.bounds(shape)) else { return false };
    a.iter().zip(&b).all(|((a, a_len), (b, b_len))| {
        *a < b.saturating_add(*b_len) && *b < a.saturating_add(*a_len)
    })
}
