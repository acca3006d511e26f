//! Programs in StableHLO. The module reads only the version of a program, not its content.

use std::fmt;

use bytes::Bytes;
use serdes_mlir_bytecode::{MAGIC, first_number};

use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
    },
    ifrt::IfrtError,
    stablehlo::StableHloVersion,
    version::SerDesVersion,
};

/// The first version is the one at which the portable artifact may mix dialects, as current writers
/// do. The artifact records no version of IFRT.
const FORMATS: Formats = Formats::of("HloProgram");

/// Limit on the length of a producer's name, which is normally short; bounds the search for its
/// end.
const LONGEST_PRODUCER: usize = 256;

/// A StableHLO program as a portable artifact (`xla::ifrt::HloProgram`, registered under its old
/// name `XlaProgram`).
///
/// The artifact is kept as bytes: MLIR bytecode that begins with its format and its producer. It
/// has no number of IFRT; requests below version 3 are refused, because readers of that time do not
/// know artifacts of mixed dialects. (Upstream refuses versions below its four-weeks-old one, which
/// moves with the calendar; ours is a constant, so that the same request always has the same
/// result.)
///
/// ```
/// use serdes::ifrt::HloProgram;
///
/// let program = HloProgram::new(&b"ML\xefR\x0dStableHLO_v1.13.7\0..."[..])?;
/// assert_eq!(program.stablehlo_version().unwrap().to_string(), "1.13.7");
/// assert!(HloProgram::new("module {}").is_err());
/// # Ok::<(), serdes::ifrt::IfrtError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Vec<u8>", into = "Vec<u8>"))]
pub struct HloProgram {
    artifact: Bytes,
    bytecode_version: u64,
    producer: String,
}

impl HloProgram {
    /// Creates the program of a portable artifact.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`] if the bytes do not begin like MLIR bytecode.
    pub fn new(artifact: impl Into<Bytes>) -> Result<Self, IfrtError> {
        let artifact = artifact.into();
        let Some(rest) = artifact.strip_prefix(MAGIC) else {
            return Err(IfrtError::Invalid(format!(
                "the artifact begins with `{}`; expected `ML\\xefR`, with which MLIR bytecode begins",
                artifact.get(..4).unwrap_or(&artifact).escape_ascii(),
            )));
        };
        let invalid = |message: &str| IfrtError::Invalid(message.to_owned());
        let (bytecode_version, rest) = first_number(rest)
            .ok_or_else(|| invalid("the artifact ends inside of its bytecode version"))?;
        let end = rest.iter().take(LONGEST_PRODUCER).position(|byte| *byte == 0);
        let producer = end.and_then(|end| rest.get(..end)).ok_or_else(|| {
            invalid("the artifact has no producer; expected a word that ends with a zero byte")
        })?;
        let producer = std::str::from_utf8(producer)
            .map_err(|_| invalid("the producer of the artifact is not UTF-8"))?
            .to_owned();
        Ok(Self { artifact, bytecode_version, producer })
    }

    /// Returns the artifact.
    pub const fn artifact(&self) -> &Bytes {
        &self.artifact
    }

    /// Returns the version of MLIR bytecode.
    pub const fn bytecode_version(&self) -> u64 {
        self.bytecode_version
    }

    /// Returns the name of the program that wrote the artifact, such as `StableHLO_v1.13.7`.
    pub fn producer(&self) -> &str {
        &self.producer
    }

    /// Returns the version of StableHLO that a reader needs; `None` if the producer is not
    /// StableHLO.
    pub fn stablehlo_version(&self) -> Option<StableHloVersion> {
        self.producer.strip_prefix("StableHLO_v")?.parse().ok()
    }
}

impl TryFrom<Vec<u8>> for HloProgram {
    type Error = IfrtError;

    fn try_from(artifact: Vec<u8>) -> Result<Self, Self::Error> {
        Self::new(artifact)
    }
}

impl From<HloProgram> for Vec<u8> {
    fn from(program: HloProgram) -> Self {
        program.artifact.into()
    }
}

/// Formats as `HloProgram(StableHLO_v1.13.7, 691 bytes)`.
impl fmt::Display for HloProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HloProgram({}, {} bytes)", self.producer, self.artifact.len())
    }
}

impl Registered for HloProgram {
    const TYPE_NAME: &'static str = "xla::ifrt::XlaProgram";
}

/// The "message" is the artifact itself.
impl ToProto for HloProgram {
    type Proto = Bytes;

    fn to_proto(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
        self.can_serialize_at(version)?;
        Ok(self.artifact.clone())
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS
            .for_request_of(format_args!("a program of {}", self.producer.escape_debug()), version)
            .map(drop)
    }

    fn to_bytes(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
        self.to_proto(version)
    }
}

impl FromProto for HloProgram {
    type Proto = Bytes;
    const NAME: &'static str = "HloProgram";

    fn from_proto(artifact: &Bytes, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        Self::new(artifact.clone()).map_err(|error| error.decoding(Self::NAME))
    }

    fn from_bytes(bytes: Bytes, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        Self::from_proto(&bytes, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hlo_program_without_the_bytecode_magic_is_refused() {
        let long = [MAGIC, &[0x0d], &[b'x'; 300]].concat();
        for artifact in [&b""[..], b"ML", b"module {}", b"ML\xefR", b"ML\xefR\x0dStable", &long] {
            assert!(HloProgram::new(artifact.to_vec()).is_err(), "{artifact:?}");
        }
        let other = HloProgram::new(&b"ML\xefR\x0dMLIR20.0\0"[..]).unwrap();
        assert_eq!((other.producer(), other.stablehlo_version()), ("MLIR20.0", None));
    }
}
