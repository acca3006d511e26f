//! Reads safetensors files.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes::ifrt::Shape;
use serdes_files::{ReadAt, read_at::read_arriving};

use super::{
    super::{
        Error, Listing, Refused, Source, TensorInfo,
        elements::Unpack,
        error::cut,
        section::{Announced, Section},
        stand_in,
    },
    KIND, LONGEST_HEADER, from_name,
    header::{Entry, Header},
};

/// A safetensors file.
pub(in super::super) struct SafetensorsSource {
    file: Arc<dyn ReadAt>,
    path: PathBuf,
    listing: Listing,
    /// Begin and end of each tensor in the file.
    places: Vec<(u64, u64)>,
    announced: Announced,
}

impl SafetensorsSource {
    /// Reads the header of a file; `path` is for messages.
    pub(in super::super) fn new(file: Arc<dyn ReadAt>, path: &Path) -> Result<Self, Error> {
        let size = file.size().map_err(|error| Error::io("read", path, error))?;
        let (header, data, spaces) = read_header(&*file, path, size)?;
        let mut entries = header.tensors;
        entries.sort_by_key(|(_, entry)| entry.data_offsets);
        let mut source = Self {
            file,
            path: path.to_path_buf(),
            listing: Listing {
                metadata: header.metadata,
                passed_over: passed_over(spaces, &header.replaced),
                ..Listing::default()
            },
            places: Vec::with_capacity(entries.len()),
            announced: Announced::default(),
        };
        // Check an entry's type even if another entry replaces it.
        let is_unknown = |(_, entry): &&(String, Entry)| from_name(&entry.dtype).is_none();
        for (name, entry) in header.replaced.iter().filter(is_unknown) {
            source.listing.refused.push(Refused::new(name, unknown_type(entry)));
        }
        let mut position = 0;
        for (name, entry) in entries {
            let (begin, end) = entry.data_offsets;
            if begin != position || end < begin {
                let found = format!("{name:?} at {begin}..{end}");
                let expected = format!("tensors without holes or overlaps, the next at {position}");
                return Err(Error::corrupt(path, KIND, found, expected));
            }
            position = end;
            source.add(name, &entry, data)?;
        }
        compare_length(path, size - data, position)?;
        Ok(source)
    }

    /// Adds a tensor or a refusal; the data of all tensors begin at `data`.
    fn add(&mut self, name: String, entry: &Entry, data: u64) -> Result<(), Error> {
        let (begin, end) = entry.data_offsets;
        let Some(dtype) = from_name(&entry.dtype) else {
            self.listing.refused.push(Refused { name, reason: unknown_type(entry) });
            return Ok(());
        };
        let shape = shape_of(&entry.shape);
        let info = shape.and_then(|shape| TensorInfo::new(&name, dtype, shape).ok());
        let bits = info
            .as_ref()
            .and_then(|info| info.elements().checked_mul(u64::from(info.dtype.bits()?)));
        let Some(info) = info.filter(|_| bits == (end - begin).checked_mul(8)) else {
            let found = format!("{} bytes for {name:?}", end - begin);
            let expected = format!("what {} {:?} needs", entry.dtype, entry.shape);
            return Err(Error::corrupt(&self.path, KIND, found, expected));
        };
        self.listing.tensors.push(info);
        self.places.push((data + begin, data + end));
        Ok(())
    }
}

fn unknown_type(entry: &Entry) -> String {
    format!("the element type {} is none that the format has", cut(&entry.dtype))
}

/// Creates the shape of these extents; `None` if a partial product exceeds 64 bits, which the
/// reference implementation refuses even before a zero.
fn shape_of(extents: &[u64]) -> Option<Shape> {
    extents.iter().try_fold(1_u64, |count, extent| count.checked_mul(*extent))?;
    let dims: Option<Vec<i64>> = extents.iter().map(|extent| i64::try_from(*extent).ok()).collect();
    Shape::new(dims?).ok()
}

/// Returns errors of a header that the reference implementation accepts and the format forbids.
fn passed_over(spaces: usize, replaced: &[(String, Entry)]) -> Vec<Refused> {
    let before =
        || format!("the header has {spaces} spaces before its object, which the format forbids");
    let twice = "comes again in the header, which the format forbids; the last entry counts";
    let spaces = (spaces > 0).then(|| Refused::new("", before()));
    spaces.into_iter().chain(replaced.iter().map(|(name, _)| Refused::new(name, twice))).collect()
}

/// Compares the length of the data in a file with its tensors.
fn compare_length(path: &Path, found: u64, expected: u64) -> Result<(), Error> {
    let how = match (found.checked_sub(expected), expected.checked_sub(found)) {
        (Some(0), _) => return Ok(()),
        (Some(more), _) => format!("{more} bytes too many behind the data"),
        (None, lacking) => {
            format!("that it is cut off, {} bytes short", lacking.unwrap_or_default())
        }
    };
    let found = format!("{found} bytes of data ({how})");
    Err(Error::corrupt(path, KIND, found, format!("{expected} bytes")))
}

/// Reads the header of a file of `size` bytes; also returns the offset of the data, and the number
/// of spaces before the header's object.
fn read_header(file: &dyn ReadAt, path: &Path, size: u64) -> Result<(Header, u64, usize), Error> {
    let corrupt = |found: String, expected: &str| Error::corrupt(path, KIND, found, expected);
    let io = |error| Error::io("read", path, error);
    let mut length = [0; 8];
    let otherwise = |found: String, expected: &str| match stand_in::describe(file) {
        Some(instead) => corrupt(instead, "a header of safetensors"),
        None => corrupt(found, expected),
    };
    if size < 8 {
        return Err(otherwise(format!("{size} bytes"), "at least 8"));
    }
    file.read_exact_at(&mut length, 0).map_err(io)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER {
        return Err(otherwise(
            format!("a header of {length} bytes"),
            "one of at most 100000000 bytes, as safetensors have",
        ));
    }
    if length > size - 8 {
        let lacking = length - (size - 8);
        return Err(otherwise(
            format!(
                "a header of {length} bytes in a file of {size} (it is cut off, at least {lacking} bytes short)"
            ),
            "a header inside the file",
        ));
    }
    let text = read_arriving(file, 8, length).map_err(io)?;
    // The format requires an object at the start; the reference implementation accepts any JSON.
    let is_space = |byte: &&u8| matches!(**byte, b' ' | b'\t' | b'\n' | b'\r');
    let spaces = text.iter().take_while(is_space).count();
    if text.get(spaces) != Some(&b'{') {
        return Err(otherwise("a header that is no object".to_owned(), "a header in JSON"));
    }
    let header = serde_json::from_slice(&text)
        .map_err(|error| corrupt(format!("a header with {error}"), "tensors in JSON"))?;
    Ok((header, 8 + length, spaces))
}

impl Source for SafetensorsSource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn listing(&self) -> &Listing {
        &self.listing
    }

    fn announce(&self, positions: &[usize]) {
        let places = positions.iter().filter_map(|position| self.places.get(*position));
        self.announced.announce(&self.file, places.map(|&(begin, end)| begin..end).collect());
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        let found = self.listing.tensors.get(position).zip(self.places.get(position));
        let Some((info, &(begin, end))) = found else {
            return Err(Error::io("read", &self.path, std::io::ErrorKind::NotFound.into()));
        };
        let section = Section::among(&self.announced, &self.file, begin, end);
        Ok(match info.dtype.bits() {
            Some(bits @ 1..8) => Box::new(Unpack::new(section, bits, info.elements())),
            _ => Box::new(section),
        })
    }
}
