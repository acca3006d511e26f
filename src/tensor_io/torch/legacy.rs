//! The files of PyTorch before 1.6, and of `_use_new_zipfile_serialization=False` since: pickles of
//! a magic number, a version, the machine, the object and the keys of its storages, then the
//! storages, each with its length in elements before it.

use std::{collections::HashMap, path::Path, sync::Arc};

use super::{
    super::{Error, element_bytes},
    error::TorchError,
    input::Input,
    machine,
    parsed::{Parsed, Stored},
    value::{Elements, Value, ValueId, Values},
};
use crate::files::ReadAt;

/// The number in the first pickle, as its bytes lie there.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];

/// The number in the second.
const VERSION: i64 = 1001;

/// Whether the first bytes of a file are those of the first pickle, as `torch.save` writes it.
pub(in super::super) fn is_legacy(head: &[u8]) -> bool {
    head.starts_with(b"\x80\x02\x8a\x0al\xfc\x9cF")
}

/// What a file describes, and where its storages lie.
pub(super) fn parse(file: &Arc<dyn ReadAt>, path: &Path) -> Result<Parsed, Error> {
    let size = file.size().map_err(|error| Error::io("read", path, error))?;
    parse_bytes(&**file, size).map_err(|error| error.of(path))
}

fn parse_bytes(file: &dyn ReadAt, size: u64) -> Result<Parsed, TorchError> {
    let mut position = 0;
    let mut next = || -> Result<(Values, ValueId, u64), TorchError> {
        let mut input = Input::new(file, position, size);
        let (values, root) = machine::read(&mut input)?;
        position = input.position();
        Ok((values, root, input.read()))
    };
    let (values, magic, _) = next()?;
    if !matches!(values.get(magic), Value::Long(bytes) if **bytes == MAGIC) {
        let reason = "is a pickle, and none of torch.save; save tensors with torch.save";
        return Err(TorchError::unsupported(reason));
    }
    let (values, version, _) = next()?;
    if *values.get(version) != Value::Integer(VERSION) {
        let reason =
            "is of another version of torch.save than 1001; save it with a PyTorch of today";
        return Err(TorchError::unsupported(reason));
    }
    let (values, machine, _) = next()?;
    check_byte_order(&values, machine)?;
    let (values, root, pickle_bytes) = next()?;
    let (key_values, keys, _) = next()?;
    let keys = key_values
        .items(keys)
        .ok_or_else(|| TorchError::damaged("no list of storages", "the keys of all storages"))?;
    let sizes = element_sizes(&values);
    let mut storages = HashMap::new();
    for key in keys {
        let Value::Text(key) = key_values.get(*key) else {
            return Err(TorchError::damaged("a key that is no text", "the keys of all storages"));
        };
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
        storages.insert(Arc::clone(key), Stored { begin, bytes, checked: None });
        position = end;
    }
    Ok(Parsed { values, root, pickle_bytes, storages })
}

/// Bytes of an element of each storage.
fn element_sizes(values: &Values) -> HashMap<Arc<str>, u64> {
    let sizes = values.storages().map(|storage| {
        let size = match &storage.elements {
            Elements::Typed(dtype) => element_bytes(*dtype).unwrap_or(1),
            Elements::Bytes => 1,
            Elements::Unknown(name) => bytes_of_unknown(name),
        };
        (Arc::clone(&storage.key), size)
    });
    sizes.collect()
}

/// Bytes of an element that has no counterpart: those of quantized tensors.
fn bytes_of_unknown(name: &str) -> u64 {
    match name.rsplit('.').next() {
        Some("QInt32Storage" | "ComplexHalfStorage") => 4,
        _ => 1,
    }
}

/// An error unless the numbers of the machine that wrote it are little endian.
fn check_byte_order(values: &Values, machine: ValueId) -> Result<(), TorchError> {
    let Value::Dict(pairs) = values.get(machine) else {
        return Err(TorchError::damaged("no words of the machine", "its byte order"));
    };
    let is =
        |key: ValueId, name: &str| matches!(values.get(key), Value::Text(text) if &**text == name);
    let order = pairs.iter().rev().find(|(key, _)| is(*key, "little_endian"));
    match order.map(|(_, order)| values.get(*order)) {
        Some(Value::Bool(true)) => Ok(()),
        Some(Value::Bool(false)) => Err(TorchError::unsupported(
            "its numbers are big endian; load it with torch and save it on a machine that is little endian",
        )),
        _ => Err(TorchError::damaged("no byte order", "true or false for little_endian")),
    }
}
