//! Reader of `.metadata`, which is a pickle of the classes in PyTorch's
//! `torch/distributed/checkpoint/metadata.py` and `filesystem.py`. Only their names are compared;
//! nothing is run.

use std::collections::HashMap;

use super::super::{
    super::error::cut,
    budget::Budget,
    error::TorchError,
    globals::{Elements, Known},
    names::{describe, name_of},
    value::{Value, ValueId, Values},
};

/// Maximum number of dimensions of a PyTorch tensor.
const MOST_DIMENSIONS: usize = 64;

/// Bytes of memory of a chunk or a position, in addition to its extents.
const CHUNK_BYTES: usize = 320;

/// Maximum number of parts that are joined to a name.
const MOST_PARTS: usize = 256;

/// Maximum length of a name in bytes.
const LONGEST_NAME: usize = 4096;

/// Position of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The file, among those that the description names.
    pub(super) file: usize,
    pub(super) begin: u64,
    pub(super) bytes: u64,
}

/// A box of the elements of a tensor.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// Its first index and its extent in each dimension.
    pub(super) offsets: Vec<u64>,
    pub(super) sizes: Vec<u64>,
    pub(super) place: Place,
}

/// A tensor in chunks.
#[derive(Clone, Debug)]
pub(super) struct Sharded {
    pub(super) name: String,
    /// Type of its elements; or the reason why they cannot be read.
    pub(super) elements: Result<Elements, String>,
    pub(super) shape: Vec<u64>,
    /// Chunks that have elements.
    pub(super) chunks: Vec<Chunk>,
}

/// A checkpoint.
#[derive(Debug, Default)]
pub(super) struct Description {
    /// Files by their names in the folder.
    pub(super) files: Vec<String>,
    pub(super) tensors: Vec<Sharded>,
    /// All other values, by name and position.
    pub(super) values: Vec<(String, Place)>,
    /// Names of entries that cannot be read, with the reasons.
    pub(super) refused: Vec<(String, String)>,
}

fn damaged(found: impl Into<String>, expected: &str) -> TorchError {
    TorchError::damaged(found, expected)
}

/// Reads a description from its pickle.
///
/// # Errors
/// If it is not the description of a checkpoint, has impossible positions, or takes too much
/// memory.
pub(super) fn read(mut values: Values, root: ValueId) -> Result<Description, TorchError> {
    let mut budget = values.take_budget();
    let values = &values;
    if !is_object_of(values, root, "Metadata") {
        let found = describe(values, root);
        return Err(damaged(found, "the metadata of torch.distributed.checkpoint"));
    }
    let attribute = |name: &str| {
        field(values, root, name).ok_or_else(|| damaged(format!("no {name}"), "metadata with it"))
    };
    let mut description = Description::default();
    let places = places(values, attribute("storage_data")?, &mut description, &mut budget)?;
    let names = names(values, field(values, root, "planner_data"), &mut budget)?;
    let Value::Dict(mut items) = values.get(attribute("state_dict_metadata")?) else {
        return Err(damaged("no dict of tensors", "tensors by their names"));
    };
    let mut seen = HashMap::new();
    while let Some((key, entry)) = items.next().zip(items.next()) {
        let name = short_text(values, key)
            .ok_or_else(|| damaged("a name that is none", "texts of at most 4096 bytes"))?;
        budget.take(CHUNK_BYTES + 6 * name.len())?;
        if seen.insert(name, ()).is_some() {
            return Err(damaged(format!("{:?} twice", cut(name)), "each name once"));
        }
        let shown = names.get(name).and_then(|way| whole_name(values, *way));
        let shown = shown.unwrap_or_else(|| name.to_owned());
        budget.take(shown.len() * 4)?;
        if is_object_of(values, entry, "TensorStorageMetadata") {
            let tensor = tensor(values, shown, name, entry, &places, &mut budget)?;
            description.tensors.push(tensor);
        } else if is_object_of(values, entry, "BytesStorageMetadata") {
            let place = places.get(&(name, None)).copied();
            let place = place.ok_or_else(|| {
                damaged(format!("{:?} without a place", cut(name)), "a place for each name")
            })?;
            description.values.push((shown, place));
        } else {
            let reason = format!("is {}, which no state holds", describe(values, entry));
            description.refused.push((shown, reason));
        }
    }
    Ok(description)
}

/// Returns true if a value is an object of that PyTorch class.
fn is_object_of(values: &Values, id: ValueId, class: &str) -> bool {
    let Value::Call { function, .. } = values.get(id) else { return false };
    let Value::Global(global) = values.get(function) else { return false };
    let (module, name) = values.names(&global);
    name == class && module.starts_with("torch.distributed")
}

/// Returns an attribute of an object.
fn field(values: &Values, object: ValueId, name: &str) -> Option<ValueId> {
    values.entry(values.state(object)?, name)
}

/// Returns a text that is not longer than a name may be, because it is compared again and again.
fn short_text(values: &Values, id: ValueId) -> Option<&str> {
    values.text_of(id).filter(|text| text.len() <= LONGEST_NAME)
}

/// Returns the numbers in a tuple, all of which must be 0 or more.
fn numbers(values: &Values, id: ValueId) -> Option<Vec<u64>> {
    let mut items = values.items(id)?;
    let numbers = items.by_ref().take(MOST_DIMENSIONS).map(|item| values.unsigned(item));
    let numbers = numbers.collect::<Option<Vec<_>>>()?;
    items.next().is_none().then_some(numbers)
}

/// Positions of the archives: by name, and for tensors also by the first index of the chunk.
type Places<'v> = HashMap<(&'v str, Option<Vec<u64>>), Place>;

fn places<'v>(
    values: &'v Values,
    data: ValueId,
    description: &mut Description,
    budget: &mut Budget,
) -> Result<Places<'v>, TorchError> {
    let Value::Dict(mut items) = values.get(data) else {
        return Err(damaged("no dict of places", "where each chunk lies"));
    };
    let (mut places, mut files) = (HashMap::new(), HashMap::new());
    let mut taken = Vec::new();
    while let Some((index, info)) = items.next().zip(items.next()) {
        let wrong = || damaged("a place without a name or a file", "a file, and bytes in it");
        let name = field(values, index, "fqn").and_then(|name| short_text(values, name));
        let name = name.ok_or_else(wrong)?;
        let offset = match field(values, index, "offset") {
            None | Some(ValueId::NONE) => None,
            Some(offset) => Some(numbers(values, offset).ok_or_else(wrong)?),
        };
        budget.take(CHUNK_BYTES + offset.as_ref().map_or(0, |offset| 16 * offset.len()))?;
        let file = field(values, info, "relative_path").and_then(|file| short_text(values, file));
        let number = |name: &str| values.unsigned(field(values, info, name)?);
        let (Some(file), Some(begin), Some(bytes)) = (file, number("offset"), number("length"))
        else {
            return Err(wrong());
        };
        check_plain(values, info)?;
        let file = match files.get(file) {
            Some(file) => *file,
            None => {
                check_name(file)?;
                budget.take(256 + 4 * file.len())?;
                description.files.push(file.to_owned());
                files.insert(file, description.files.len() - 1);
                description.files.len() - 1
            }
        };
        let place = Place { file, begin, bytes };
        taken.push((file, begin, bytes));
        if places.insert((name, offset), place).is_some() {
            return Err(damaged(format!("{:?} in two places", cut(name)), "one place for each"));
        }
    }
    taken.sort_unstable();
    let pairs = taken.iter().zip(taken.iter().skip(1));
    let overlap = pairs.clone().find(|((file, begin, bytes), next)| {
        *file == next.0 && begin.saturating_add(*bytes) > next.1
    });
    match overlap {
        Some((_, (_, begin, _))) => Err(damaged(
            format!("two chunks that share the bytes at {begin}"),
            "chunks one behind the other",
        )),
        None => Ok(places),
    }
}

/// Returns an error for bytes that were changed before they were written.
fn check_plain(values: &Values, info: ValueId) -> Result<(), TorchError> {
    let transforms = field(values, info, "transform_descriptors");
    let is_empty = match transforms.map(|transforms| values.get(transforms)) {
        None | Some(Value::None) => true,
        Some(Value::Tuple(mut items) | Value::List(mut items)) => items.next().is_none(),
        Some(_) => false,
    };
    if is_empty {
        return Ok(());
    }
    Err(TorchError::unsupported(
        "its chunks are compressed, or changed by another extension of torch.distributed; load it with torch and save it without",
    ))
}

/// Returns an error for the name of a file that is not in the folder.
fn check_name(file: &str) -> Result<(), TorchError> {
    if file.is_empty() || file == "." || file == ".." || file.contains(['/', '\\', '\0', ':']) {
        let found = format!("the file {:?}", cut(file));
        return Err(damaged(found, "files of the folder, by their names"));
    }
    Ok(())
}

/// Returns the paths of values in the state before it was flattened, by their names.
fn names<'v>(
    values: &'v Values,
    data: Option<ValueId>,
    budget: &mut Budget,
) -> Result<HashMap<&'v str, ValueId>, TorchError> {
    let mut names = HashMap::new();
    if let Some(Value::Dict(mut items)) = data.map(|data| values.get(data)) {
        while let Some((key, way)) = items.next().zip(items.next()) {
            if let Some(key) = short_text(values, key) {
                budget.take(CHUNK_BYTES)?;
                names.insert(key, way);
            }
        }
    }
    Ok(names)
}

/// Returns the name that a file of `torch.save` would give: the path of a value, joined by `/`.
fn whole_name(values: &Values, way: ValueId) -> Option<String> {
    let Value::Tuple(parts) = values.get(way) else { return None };
    let mut whole = String::new();
    for (number, part) in parts.take(MOST_PARTS).enumerate() {
        if number > 0 {
            whole.push('/');
        }
        match values.get(part) {
            Value::Text(text) if whole.len() + text.len() <= LONGEST_NAME => whole.push_str(text),
            Value::Integer(number) => whole.push_str(&number.to_string()),
            _ => return None,
        }
    }
    Some(whole)
}

fn tensor(
    values: &Values,
    shown: String,
    name: &str,
    entry: ValueId,
    places: &Places<'_>,
    budget: &mut Budget,
) -> Result<Sharded, TorchError> {
    let wrong = |what: &str| damaged(format!("{:?} {what}", cut(name)), "its size and its chunks");
    let shape = field(values, entry, "size").and_then(|size| numbers(values, size));
    let shape = shape.ok_or_else(|| wrong("without a size"))?;
    let chunks = field(values, entry, "chunks").and_then(|chunks| values.items(chunks));
    let mut found = Vec::new();
    for chunk in chunks.ok_or_else(|| wrong("without chunks"))? {
        let part = |name: &str| numbers(values, field(values, chunk, name)?);
        let (Some(offsets), Some(sizes)) = (part("offsets"), part("sizes")) else {
            return Err(wrong("with a chunk that is none"));
        };
        budget.take(CHUNK_BYTES + 32 * shape.len())?;
        if offsets.len() != shape.len() || sizes.len() != shape.len() {
            return Err(wrong("with a chunk of other dimensions"));
        }
        if sizes.contains(&0) {
            continue;
        }
        let place = places.get(&(name, Some(offsets.clone()))).copied();
        let place = place.ok_or_else(|| wrong("with a chunk that lies nowhere"))?;
        found.push(Chunk { offsets, sizes, place });
    }
    let elements = elements(values, entry).ok_or_else(|| wrong("without a type"))?;
    Ok(Sharded { name: shown, elements, shape, chunks: found })
}

/// Returns the element type of a tensor, from its properties: a tuple, or attributes.
fn elements(values: &Values, entry: ValueId) -> Option<Result<Elements, String>> {
    let state = values.state(field(values, entry, "properties")?)?;
    let named = match values.get(state) {
        Value::Tuple(mut items) => items.next()?,
        _ => values.entry(state, "dtype")?,
    };
    let Some(Known::ElementType(elements)) = values.known(named) else { return None };
    Some(match elements {
        Elements::Unknown => {
            Err(format!("the element type {} has no counterpart in IFRT", name_of(values, named)))
        }
        elements => Ok(elements),
    })
}
