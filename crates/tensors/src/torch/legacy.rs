//! PyTorch files before 1.6, and with `_use_new_zipfile_serialization=False` since: pickles of a
//! magic number, a version, the machine, the object and the keys of its storages, then the
//! storages, each preceded by its length in elements.

use std::{collections::HashMap, path::Path, sync::Arc};

use serdes_files::ReadAt;

use super::{
    super::{Error, element_bytes},
    budget::Budget,
    error::TorchError,
    globals::Elements,
    input::Input,
    machine,
    names::name_of,
    parsed::{Parsed, Stored},
    rebuild,
    value::{Value, ValueId, Values},
};

/// The magic number of the first pickle, little endian.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];

/// The version number of the second pickle.
const VERSION: i64 = 1001;

/// Returns true if a file begins with the first pickle as `torch.save` writes it.
pub(in super::super) fn is_legacy(head: &[u8]) -> bool {
    head.starts_with(b"\x80\x02\x8a\x0al\xfc\x9cF")
}

/// Reads the objects of a file, and the positions of its storages.
pub(super) fn parse(file: &Arc<dyn ReadAt>, path: &Path) -> Result<Parsed, Error> {
    let size = file.size().map_err(|error| Error::io("read", path, error))?;
    parse_bytes(&**file, size).map_err(|error| error.of(path))
}

fn parse_bytes(file: &dyn ReadAt, size: u64) -> Result<Parsed, TorchError> {
    let mut position = 0;
    let mut next = |budget: Budget| -> Result<(Values, ValueId, u64), TorchError> {
        let mut input = Input::new(file, position, size);
        let (values, root) = machine::read(&mut input, budget)?;
        position = input.position();
        Ok((values, root, input.read()))
    };
    let (values, magic, _) = next(Budget::of_file(size))?;
    if !matches!(values.get(magic), Value::Long(bytes) if *bytes == MAGIC) {
        let reason = "is a pickle, and none of torch.save; save tensors with torch.save";
        return Err(TorchError::unsupported(reason));
    }
    drop(values);
    let (values, version, _) = next(Budget::of_file(size))?;
    if !matches!(values.get(version), Value::Integer(VERSION)) {
        let reason =
            "is of another version of torch.save than 1001; save it with a PyTorch of today";
        return Err(TorchError::unsupported(reason));
    }
    drop(values);
    let (values, machine, _) = next(Budget::of_file(size))?;
    check_byte_order(&values, machine)?;
    drop(values);
    let (mut values, root, pickle_bytes) = next(Budget::of_file(size))?;
    let (mut key_values, keys, _) = next(values.take_budget())?;
    let (storages, end) = storages(file, position, size, &values, &key_values, keys)?;
    if end < size {
        return Err(TorchError::unsupported(format!(
            "{} bytes behind its last storage belong to nothing: several files of torch.save in one; load each with torch and save it by itself",
            size - end
        )));
    }
    values.budget = key_values.take_budget();
    Ok(Parsed { values, root, pickle_bytes, storages })
}

/// Returns the positions of consecutive storages from `position`, by key, and the position of their
/// end.
fn storages(
    file: &dyn ReadAt,
    mut position: u64,
    size: u64,
    values: &Values,
    key_values: &Values,
    keys: ValueId,
) -> Result<(HashMap<String, Stored>, u64), TorchError> {
    let keys = key_values
        .items(keys)
        .ok_or_else(|| TorchError::damaged("no list of storages", "the keys of all storages"))?;
    let sizes = element_sizes(values)?;
    let mut storages = HashMap::new();
    for key in keys {
        let key = key_values.text_of(key).ok_or_else(|| {
            TorchError::damaged("a key that is no text", "the keys of all storages")
        })?;
        let size_of = sizes.get(key).copied().ok_or_else(|| {
            let found = format!("the storage {key}, which nothing names");
            TorchError::damaged(found, "storages that the object names")
        })?;
        let mut count = [0; 8];
        file.read_exact_at(&mut count, position)?;
        let begin = position.saturating_add(8);
        let bytes = u64::from_le_bytes(count).checked_mul(size_of);
        let end = bytes.and_then(|bytes| begin.checked_add(bytes)).filter(|end| *end <= size);
        let Some((bytes, end)) = bytes.zip(end) else {
            let found = format!("the storage {key}, which ends beyond the file");
            return Err(TorchError::damaged(found, "storages inside the file"));
        };
        storages.insert(key.to_owned(), Stored { begin, bytes, checked: None });
        position = end;
    }
    Ok((storages, position))
}

/// Returns the size of an element of each storage in bytes.
fn element_sizes(values: &Values) -> Result<HashMap<&str, u64>, TorchError> {
    let mut sizes = HashMap::new();
    for id in values.outside_ids() {
        let Some(storage) = rebuild::storage(values, id)? else { continue };
        sizes.entry(storage.key).or_insert_with(|| match storage.elements {
            Elements::Typed(dtype) => element_bytes(dtype).unwrap_or(1),
            Elements::Unknown => bytes_of_unknown(&name_of(values, storage.class)),
            Elements::Bytes | Elements::Pairs(_) => 1,
        });
    }
    Ok(sizes)
}

/// Returns the size of an element without a counterpart in bytes, as in quantized tensors.
fn bytes_of_unknown(name: &str) -> u64 {
    match name.rsplit('.').next() {
        Some("QInt32Storage" | "ComplexHalfStorage") => 4,
        _ => 1,
    }
}

/// Returns an error unless the writing machine was little endian.
fn check_byte_order(values: &Values, machine: ValueId) -> Result<(), TorchError> {
    if !matches!(values.get(machine), Value::Dict(_)) {
        return Err(TorchError::damaged("no words of the machine", "its byte order"));
    }
    let order = values.entry(machine, "little_endian");
    match order.map(|order| values.get(order)) {
        Some(Value::Bool(true)) => Ok(()),
        Some(Value::Bool(false)) => Err(TorchError::unsupported(
            "its numbers are big endian; load it with torch and save it on a machine that is little endian",
        )),
        _ => Err(TorchError::damaged("no byte order", "true or false for little_endian")),
    }
}
