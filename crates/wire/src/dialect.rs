//! Differences between parsers of protobuf, in one table that is compared with the parsers
//! themselves.
//!
//! | | [`Prost`](Dialect::Prost) | [`Tensorflow`](Dialect::Tensorflow) |
//! |---|---|---|
//! | a tag | up to 10 bytes that say 32 bits | up to 5 bytes, surplus bits dropped |
//! | a length | up to 10 bytes that say 64 bits | up to 5 bytes, below 2 GiB − 16 |
//! | a varint | up to 10 bytes that say 64 bits | up to 10 bytes, surplus bits dropped |
//! | messages and groups inside one another | 100 | 100 |
//! | a field in the hundredth group | refused | taken |
//!
//! Both refuse the field number 0, the wire types 6 and 7, and ends of groups that are not open.
//! The right column is TensorFlow's C++ parser, as measured: `tests/data/wire` has its results, and
//! those of the first parser that Python reads graphs with (upb), which refuses surplus bits in
//! tags only.
//!
//! The module knows parsers. It does not depend on messages.

use super::varint;

/// Limit on the nesting of messages and groups below the outermost message.
pub const MAXIMUM_DEPTH: usize = 100;

/// The parser whose rules decide if bytes are a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The parser of the Rust crate `prost`, which reads our own messages elsewhere in the library.
    Prost,
    /// The C++ parser that TensorFlow reads graphs and checkpoints with.
    Tensorflow,
}

impl Dialect {
    /// Takes the tag of a field: its number times 8, plus its wire type. Returns `None` and takes
    /// nothing if there is none.
    #[inline(always)]
    pub fn tag(self, bytes: &mut &[u8]) -> Option<u32> {
        match **bytes {
            [tag @ 0..0x80, ref rest @ ..] => {
                *bytes = rest;
                Some(tag.into())
            }
            _ => self.long_tag(bytes),
        }
    }

    #[inline(never)]
    fn long_tag(self, bytes: &mut &[u8]) -> Option<u32> {
        match self {
            Self::Prost => {
                let before = *bytes;
                let tag = u32::try_from(varint::checked(bytes)?).ok();
                if tag.is_none() {
                    *bytes = before;
                }
                tag
            }
            Self::Tensorflow => Some(varint::wrapping(bytes, varint::LONGEST_32)? as u32),
        }
    }

    /// Takes a number of 64 bits. Returns `None` and takes nothing if there is none.
    #[inline(always)]
    pub fn varint(self, bytes: &mut &[u8]) -> Option<u64> {
        match **bytes {
            [number @ 0..0x80, ref rest @ ..] => {
                *bytes = rest;
                Some(number.into())
            }
            _ => self.long_varint(bytes),
        }
    }

    #[inline(never)]
    fn long_varint(self, bytes: &mut &[u8]) -> Option<u64> {
        match self {
            Self::Prost => varint::checked(bytes),
            Self::Tensorflow => varint::wrapping(bytes, varint::LONGEST),
        }
    }

    /// Takes the length of a field, which may be [too long](Self::longest_field). Returns `None`
    /// and takes nothing if there is none.
    #[inline(always)]
    pub fn length(self, bytes: &mut &[u8]) -> Option<u64> {
        match **bytes {
            [length @ 0..0x80, ref rest @ ..] => {
                *bytes = rest;
                Some(length.into())
            }
            [low, high @ 0..0x80, ref rest @ ..] => {
                *bytes = rest;
                Some(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.long_length(bytes),
        }
    }

    #[inline(never)]
    fn long_length(self, bytes: &mut &[u8]) -> Option<u64> {
        match self {
            Self::Prost => varint::checked(bytes),
            Self::Tensorflow => varint::wrapping(bytes, varint::LONGEST_32),
        }
    }

    /// Returns the greatest length that a field may have.
    #[inline(always)]
    pub const fn longest_field(self) -> u64 {
        match self {
            Self::Prost => u64::MAX,
            // The C++ parser keeps 16 bytes of slack below 2^31.
            Self::Tensorflow => 0x7fff_ffff - 16,
        }
    }

    /// Returns true if the innermost permitted group may have fields; false if it must be empty.
    #[inline]
    pub const fn fills_the_deepest_group(self) -> bool {
        match self {
            Self::Prost => false,
            Self::Tensorflow => true,
        }
    }
}
