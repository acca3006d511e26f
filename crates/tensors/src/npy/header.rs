//! The header of an npy file: a Python literal, of which NumPy accepts more than it writes.

use std::path::Path;

use serdes::ifrt::{DType, Shape};
use serdes_files::ReadAt;

use super::{
    super::{Error, stand_in},
    KIND,
    descr::{self, Element},
    literal::{self, Literal},
};

const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// Maximum length of a header in characters that NumPy reads by default; plain arrays need about a
/// hundred.
const MOST_LETTERS: usize = 10_000;
/// Limit on the header in bytes: this number of characters in any encoding.
const MAXIMUM_BYTES: u64 = 4 * MOST_LETTERS as u64;
/// NumPy's maximum number of dimensions.
const MOST_DIMENSIONS: usize = 64;
/// Maximum number of bytes of an unreadable header that a message repeats.
const SHOWN_BYTES: usize = 256;

/// Header of an npy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct NpyHeader {
    /// The type, or the reason why its elements cannot be moved.
    pub(in super::super) dtype: Result<DType, String>,
    pub(in super::super) shape: Shape,
    /// Size of an element in bytes; `None` if the file does not define it, as for Python objects
    /// and structured elements.
    pub(in super::super) item_bytes: Option<u64>,
    /// True if the bytes of each number are big-endian.
    pub(in super::super) big_endian: bool,
    /// True if the first index varies fastest.
    pub(in super::super) fortran_order: bool,
    /// True if the elements are Python objects, which are stored as a pickle.
    pub(in super::super) is_pickled: bool,
    /// Offset of the elements, in bytes.
    pub(in super::super) data_offset: u64,
}

impl NpyHeader {
    /// Reads the header of a file; `path` is for messages.
    pub(in super::super) fn read(file: &dyn ReadAt, path: &Path) -> Result<Self, Error> {
        let corrupt = |found: String, expected: &str| Error::corrupt(path, KIND, found, expected);
        let io = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                corrupt("a file that ends in its header".to_owned(), "a whole header")
            }
            _ => Error::io("read", path, error),
        };
        let mut fixed = [0; 8];
        file.read_exact_at(&mut fixed, 0).map_err(io)?;
        if !fixed.starts_with(&MAGIC) {
            let found = stand_in::describe(file).unwrap_or_else(|| "another mark".to_owned());
            return Err(corrupt(found, "a file that begins with \\x93NUMPY"));
        }
        let [.., version, minor] = fixed;
        let (begin, length) = match (version, minor) {
            (1, 0) => {
                let mut length = [0; 2];
                file.read_exact_at(&mut length, 8).map_err(io)?;
                (10, u64::from(u16::from_le_bytes(length)))
            }
            (2 | 3, 0) => {
                let mut length = [0; 4];
                file.read_exact_at(&mut length, 8).map_err(io)?;
                (12, u64::from(u32::from_le_bytes(length)))
            }
            _ => return Err(corrupt(format!("npy version {version}.{minor}"), "1.0, 2.0 or 3.0")),
        };
        let too_long = |letters: u64| {
            corrupt(format!("a header of {letters} letters"), "at most 10000, which NumPy trusts")
        };
        if length > MAXIMUM_BYTES {
            return Err(too_long(length));
        }
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, begin).map_err(io)?;
        let text = match (version, std::str::from_utf8(&bytes)) {
            (3, Ok(text)) => text.to_owned(),
            (3, Err(_)) => return Err(corrupt("a header that is no UTF-8".to_owned(), "UTF-8")),
            // Each byte is a character (Latin-1).
            _ => bytes.iter().copied().map(char::from).collect(),
        };
        let letters = text.chars().count();
        if letters > MOST_LETTERS {
            return Err(too_long(letters as u64));
        }
        parse(&text, version, begin + length).ok_or_else(|| {
            let shown = bytes.get(..bytes.len().min(SHOWN_BYTES)).unwrap_or_default();
            corrupt(
                shown.escape_ascii().to_string(),
                "descr, fortran_order and shape as NumPy reads them",
            )
        })
    }

    /// Checks that the file's size matches its elements, if their size is known.
    pub(super) fn compare_size(&self, file: &dyn ReadAt, path: &Path) -> Result<(), Error> {
        let elements = self.shape.element_count().ok().and_then(|count| u64::try_from(count).ok());
        let bytes = elements.zip(self.item_bytes).and_then(|(count, item)| count.checked_mul(item));
        let size = file.size().map_err(|error| Error::io("read", path, error))?;
        let found = size.saturating_sub(self.data_offset);
        match bytes {
            Some(bytes) if bytes > found => Err(Error::corrupt(
                path,
                KIND,
                format!("{found} bytes of elements"),
                format!("{bytes} bytes"),
            )),
            _ => Ok(()),
        }
    }
}

fn parse(text: &str, version: u8, data_offset: u64) -> Option<NpyHeader> {
    let Literal::Dict(entries) = literal::parse(text, version < 3)? else { return None };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    for (key, value) in entries {
        let Literal::Text(key) = key else { return None };
        // For a repeated key Python uses the last value.
        *match key.as_str() {
            "descr" => &mut descr,
            "fortran_order" => &mut fortran_order,
            "shape" => &mut shape,
            _ => return None,
        } = Some(value);
    }
    let Literal::Bool(fortran_order) = fortran_order? else { return None };
    let Element { dtype, bytes, big_endian, is_pickled, .. } = descr::element(&descr?)?;
    let extents = extents(&shape?)?;
    if !is_addressable(&extents, bytes) {
        return None;
    }
    let shape = Shape::new(extents).ok()?;
    Some(NpyHeader {
        dtype,
        shape,
        item_bytes: bytes,
        big_endian,
        fortran_order,
        is_pickled,
        data_offset,
    })
}

/// Returns true if an array of these extents is addressable. Like NumPy, ignores extents of zero.
fn is_addressable(extents: &[i64], item_bytes: Option<u64>) -> bool {
    let Some(item) = item_bytes.and_then(|bytes| i64::try_from(bytes).ok()) else { return true };
    let mut extents = extents.iter().filter(|extent| **extent != 0);
    item == 0 || extents.try_fold(item, |bytes, extent| bytes.checked_mul(*extent)).is_some()
}

/// Parses the extents in a tuple of integers.
fn extents(shape: &Literal) -> Option<Vec<i64>> {
    let Literal::Tuple(extents) = shape else { return None };
    // Work on an array iterates over its dimensions for every few elements.
    if extents.len() > MOST_DIMENSIONS {
        return None;
    }
    let extent = |extent: &Literal| match extent {
        Literal::Int(extent) => *extent,
        _ => None,
    };
    extents.iter().map(extent).collect()
}
