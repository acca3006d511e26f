//! PyTorch's zip archives since 1.6: `NAME/data.pkl`, and a storage in each `NAME/data/KEY`.

use std::{collections::HashMap, io::Read, path::Path, sync::Arc};

use serdes_files::ReadAt;

use super::{
    super::{
        Error,
        archive::{self, Content, Member, read_error},
    },
    KIND,
    accounted::{self, Extent},
    budget::Budget,
    error::TorchError,
    input::Input,
    machine,
    parsed::{Parsed, Stored},
    rebuild,
    value::{ValueId, Values},
};

/// Name of the pickle in an archive.
const PICKLE: &str = "data.pkl";

/// Memory of an entry in bytes, without its name.
const MEMBER_BYTES: usize = 256;

/// Maximum size in bytes of the entry with the byte order.
const LONGEST_WORD: u64 = 16;

/// Returns true if a zip archive is PyTorch's, not NumPy's.
pub(in super::super) fn is_archive(file: &Arc<dyn ReadAt>, path: &Path) -> bool {
    archive::members(file, path, KIND, |_| ())
        .is_ok_and(|members| members.iter().any(|member| prefix(&member.name).is_some()))
}

/// Returns the text before the pickle's name, if the entry is the pickle.
fn prefix(name: &str) -> Option<&str> {
    let prefix = name.strip_suffix(PICKLE)?;
    let folder = prefix.strip_suffix('/').unwrap_or(prefix);
    let is_at_top = !folder.contains('/') && (prefix.is_empty() || prefix.ends_with('/'));
    is_at_top.then_some(prefix)
}

/// Reads the objects of an archive, and the positions of its storages.
pub(super) fn parse(file: &Arc<dyn ReadAt>, path: &Path) -> Result<Parsed, Error> {
    let size = file.size().map_err(|error| Error::io("read", path, error))?;
    let mut budget = Budget::of_file(size);
    accounted::check_end(file, path)?;
    let members = archive::members(file, path, KIND, Extent::of)?;
    accounted::check(file, path, &members)?;
    for member in &members {
        budget.take(MEMBER_BYTES + 2 * member.name.len()).map_err(|error| error.of(path))?;
    }
    let Some(prefix) = members.iter().find_map(|member| prefix(&member.name)) else {
        let reason = "is an archive without data.pkl; expected one of torch.save";
        return Err(Error::unsupported(path, reason));
    };
    let prefix = prefix.to_owned();
    let mut contents = HashMap::new();
    let mut is_program = false;
    for Member { name, content, is_inside, .. } in members {
        let Some(name) = name.strip_prefix(&prefix) else { continue };
        is_program |= name == "constants.pkl" || name.starts_with("code/");
        contents.insert(name.to_owned(), content.filter(|_| is_inside));
    }
    if is_program {
        let reason =
            "is a program of TorchScript; save the state_dict() of the module that it was made of";
        return Err(Error::unsupported(path, reason));
    }
    check_byte_order(&contents, file, path)?;
    let pickle = stored(&contents, PICKLE, path)?;
    // PyTorch writes 0 if it is told not to compute checksums.
    if pickle.checksum != 0 {
        pickle.compare(file, &mut |_| true).map_err(|error| read_error(path, KIND, error))?;
    }
    let mut input = Input::new(file, pickle.begin, pickle.begin.saturating_add(pickle.bytes));
    let (values, root) = machine::read(&mut input, budget).map_err(|error| error.of(path))?;
    let mut storages = HashMap::new();
    for id in values.outside_ids() {
        add_storage(&values, id, &contents, path, &mut storages)?;
    }
    Ok(Parsed { pickle_bytes: input.read(), values, root, storages })
}

/// Records the position of the storage with an id.
fn add_storage(
    values: &Values,
    id: ValueId,
    contents: &HashMap<String, Option<Content>>,
    path: &Path,
    storages: &mut HashMap<String, Stored>,
) -> Result<(), Error> {
    let storage = rebuild::storage(values, id).map_err(|error| error.of(path))?;
    let Some(storage) = storage.filter(|storage| !storages.contains_key(storage.key)) else {
        return Ok(());
    };
    let content = stored(contents, &format!("data/{}", storage.key), path)?;
    let checked = (content.checksum != 0).then_some(content);
    let place = Stored { begin: content.begin, bytes: content.bytes, checked };
    storages.insert(storage.key.to_owned(), place);
    Ok(())
}

/// Returns the position of an entry's bytes, if it exists and is not compressed.
fn stored(
    contents: &HashMap<String, Option<Content>>,
    name: &str,
    path: &Path,
) -> Result<Content, Error> {
    match contents.get(name) {
        Some(Some(content)) if !content.compressed && content.bytes == content.stored_bytes => {
            Ok(*content)
        }
        Some(Some(content)) if content.compressed => {
            let reason = format!(
                "{name} is compressed, as torch.save never writes it; unpack the archive and pack it without compression"
            );
            Err(Error::unsupported(path, reason))
        }
        Some(_) => {
            let found = format!("{name} outside the archive, or encrypted");
            Err(Error::corrupt(path, KIND, found, "an entry inside it"))
        }
        None => {
            Err(Error::corrupt(path, KIND, format!("no entry {name}"), "all that the pickle names"))
        }
    }
}

/// Returns an error unless the byte order is little endian, the default.
fn check_byte_order(
    contents: &HashMap<String, Option<Content>>,
    file: &Arc<dyn ReadAt>,
    path: &Path,
) -> Result<(), Error> {
    if !contents.contains_key("byteorder") {
        return Ok(());
    }
    let content = stored(contents, "byteorder", path)?;
    let mut word = Vec::new();
    content
        .raw(file)
        .take(LONGEST_WORD)
        .read_to_end(&mut word)
        .map_err(|error| read_error(path, KIND, error))?;
    match &*word {
        b"little" => Ok(()),
        b"big" => Err(TorchError::unsupported(
            "its numbers are big endian; load it with torch and save it on a machine that is little endian",
        )
        .of(path)),
        other => {
            let found = format!("the byte order {:?}", String::from_utf8_lossy(other));
            Err(Error::corrupt(path, KIND, found, "little or big"))
        }
    }
}
