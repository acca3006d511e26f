//! The header of an npy file: a literal of Python's.

use std::path::Path;

use super::{super::Error, KIND};
use crate::{
    files::ReadAt,
    ifrt::{DType, Shape},
};

const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// Plain arrays need a hundred bytes; NumPy itself trusts ten thousand.
const MAXIMUM_BYTES: u64 = 1 << 20;
/// The most dimensions that NumPy has.
const MOST_DIMENSIONS: usize = 64;
/// Bytes of a header that cannot be read which a message repeats.
const SHOWN_BYTES: usize = 256;

/// What the head of an npy file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct NpyHeader {
    /// The type, or why its elements cannot be moved.
    pub(in super::super) dtype: Result<DType, String>,
    pub(in super::super) shape: Shape,
    /// Bytes of an element; `None` where the file does not say, as for Python objects and
    /// structured elements.
    pub(in super::super) item_bytes: Option<u64>,
    /// Whether each number lies most significant byte first.
    pub(in super::super) big_endian: bool,
    /// Whether the first index runs fastest.
    pub(in super::super) fortran_order: bool,
    /// Where the elements begin.
    pub(in super::super) data_offset: u64,
}

impl NpyHeader {
    /// Reads the head of a file; `path` is for messages.
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
            return Err(corrupt("another mark".to_owned(), "a file that begins with \\x93NUMPY"));
        }
        let (begin, length) = match fixed[6] {
            1 => {
                let mut length = [0; 2];
                file.read_exact_at(&mut length, 8).map_err(io)?;
                (10, u64::from(u16::from_le_bytes(length)))
            }
            2 | 3 => {
                let mut length = [0; 4];
                file.read_exact_at(&mut length, 8).map_err(io)?;
                (12, u64::from(u32::from_le_bytes(length)))
            }
            version => return Err(corrupt(format!("npy version {version}"), "1, 2 or 3")),
        };
        if length > MAXIMUM_BYTES {
            return Err(corrupt(format!("a header of {length} bytes"), "at most 1 MiB"));
        }
        let mut text = vec![0; length as usize];
        file.read_exact_at(&mut text, begin).map_err(io)?;
        parse(&text, begin + length).ok_or_else(|| {
            let shown = text.get(..text.len().min(SHOWN_BYTES)).unwrap_or_default();
            corrupt(shown.escape_ascii().to_string(), "descr, fortran_order, shape")
        })
    }

    /// Compares the length of a file with what its elements take, where that is known.
    pub(super) fn compare_size(&self, file: &dyn ReadAt, path: &Path) -> Result<(), Error> {
        let elements = self.shape.element_count().ok().and_then(|count| u64::try_from(count).ok());
        let bytes = elements.zip(self.item_bytes).and_then(|(count, item)| count.checked_mul(item));
        let size = file.size().map_err(|error| Error::io("read", path, error))?;
        let found = size.saturating_sub(self.data_offset);
        match bytes {
            Some(bytes) if bytes != found => Err(Error::corrupt(
                path,
                KIND,
                format!("{found} bytes of elements"),
                format!("{bytes} bytes"),
            )),
            _ => Ok(()),
        }
    }
}

fn parse(text: &[u8], data_offset: u64) -> Option<NpyHeader> {
    let mut parser = Parser { text, position: 0 };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    parser.expect(b'{')?;
    while !parser.accept(b'}') {
        let key = parser.string()?;
        parser.expect(b':')?;
        match key {
            b"descr" => descr = Some(parser.descr()?),
            b"fortran_order" => fortran_order = Some(parser.boolean()?),
            b"shape" => shape = Some(parser.tuple()?),
            _ => return None,
        }
        if !parser.accept(b',') && parser.peek() != Some(b'}') {
            return None;
        }
    }
    if parser.peek().is_some() {
        return None;
    }
    let descr = descr?;
    let item_bytes = descr.and_then(item_bytes);
    let (dtype, big_endian) = match descr {
        Some(descr) => element_type(descr),
        None => (Err("structured elements have no counterpart in IFRT".to_owned()), false),
    };
    let shape = Shape::new(shape?).ok()?;
    Some(NpyHeader {
        dtype,
        shape,
        item_bytes,
        big_endian,
        fortran_order: fortran_order?,
        data_offset,
    })
}

/// Bytes of an element, from the type as NumPy writes it: a letter and a number of bytes, or of
/// characters of four bytes.
fn item_bytes(descr: &[u8]) -> Option<u64> {
    let code = match descr {
        [b'<' | b'>' | b'|' | b'=', code @ ..] => code,
        code => code,
    };
    let (letter, rest) = code.split_first()?;
    // A date has its unit behind the number.
    let digits = rest.split(|byte| *byte == b'[').next()?;
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    match letter {
        b'U' => number.checked_mul(4),
        b'b' | b'i' | b'u' | b'f' | b'c' | b'S' | b'a' | b'V' | b'M' | b'm' => Some(number),
        _ => None,
    }
}

fn element_type(descr: &[u8]) -> (Result<DType, String>, bool) {
    let (order, code) = match descr {
        [order @ (b'<' | b'>' | b'|' | b'='), code @ ..] => (*order, code),
        code => (b'=', code),
    };
    let dtype = match code {
        b"b1" | b"?" => DType::Pred,
        b"i1" => DType::S8,
        b"i2" => DType::S16,
        b"i4" => DType::S32,
        b"i8" => DType::S64,
        b"u1" => DType::U8,
        b"u2" => DType::U16,
        b"u4" => DType::U32,
        b"u8" => DType::U64,
        b"f1" => DType::F8E5M2,
        b"f2" => DType::F16,
        b"f4" => DType::F32,
        b"f8" => DType::F64,
        b"c8" => DType::C64,
        b"c16" => DType::C128,
        // NumPy has no bfloat16; arrays of ml_dtypes' are written so, and nothing else of two
        // bytes is.
        b"V2" if order != b'>' => DType::BF16,
        _ => {
            let shown = descr.get(..descr.len().min(SHOWN_BYTES)).unwrap_or_default();
            let descr = shown.escape_ascii();
            let reason = match code {
                b"V1" => "is written for nine different types alike; save it as safetensors",
                [b'O', ..] => "holds Python objects, which only Python can read",
                _ => "has no counterpart in IFRT",
            };
            return (Err(format!("the element type '{descr}' {reason}")), false);
        }
    };
    (Ok(dtype), order == b'>')
}

/// The part of Python's notation that NumPy writes.
struct Parser<'a> {
    text: &'a [u8],
    position: usize,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.position).is_some_and(u8::is_ascii_whitespace) {
            self.position += 1;
        }
        self.text.get(self.position).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.accept(byte).then_some(())
    }

    fn while_matching(&mut self, matches: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.text.get(self.position..).unwrap_or_default();
        let length = rest.iter().position(|byte| !matches(*byte)).unwrap_or(rest.len());
        self.position += length;
        rest.get(..length).unwrap_or_default()
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'))?;
        self.position += 1;
        let content = self.while_matching(|byte| byte != quote && byte != b'\\');
        self.expect(quote)?;
        Some(content)
    }

    /// A type in quotes, or `None` for the list that describes structured elements.
    fn descr(&mut self) -> Option<Option<&'a [u8]>> {
        if self.peek() != Some(b'[') {
            return self.string().map(Some);
        }
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'[' | b'(' => depth += 1,
                b']' | b')' => depth = depth.checked_sub(1)?,
                b'\'' | b'"' => {
                    self.string()?;
                    continue;
                }
                _ => {}
            }
            self.position += 1;
            if depth == 0 {
                return Some(None);
            }
        }
    }

    fn boolean(&mut self) -> Option<bool> {
        self.peek();
        match self.while_matching(|byte| byte.is_ascii_alphabetic()) {
            b"True" => Some(true),
            b"False" => Some(false),
            _ => None,
        }
    }

    fn tuple(&mut self) -> Option<Vec<i64>> {
        self.expect(b'(')?;
        let mut numbers = Vec::new();
        while !self.accept(b')') {
            self.peek();
            let digits = self.while_matching(|byte| byte.is_ascii_digit());
            // Python 2 marked long numbers.
            self.accept(b'L');
            // Work on an array goes through its dimensions for every few elements.
            if numbers.len() == MOST_DIMENSIONS {
                return None;
            }
            numbers.push(std::str::from_utf8(digits).ok()?.parse().ok()?);
            if !self.accept(b',') && self.peek() != Some(b')') {
                return None;
            }
        }
        Some(numbers)
    }
}
