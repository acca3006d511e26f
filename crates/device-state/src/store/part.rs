//! Identities of saves and of their parts.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    process,
    str::FromStr,
    time::SystemTime,
};

use crate::{Error, format::role::PartRole};

/// Identifies one attempt of several processes to save a state together: the same for all of them,
/// and different for every attempt.
///
/// ```
/// use serdes_device_state::SaveId;
///
/// let save = SaveId::random(); // one process makes it and tells the others
/// assert_eq!(save.to_string().parse::<SaveId>()?, save);
/// # Ok::<(), serdes_device_state::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SaveId(pub(crate) [u8; 16]);

impl SaveId {
    /// Creates the id from 16 bytes.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns a new random id.
    pub fn random() -> Self {
        // The system seeds each state; time and process distinguish those with equal seeds.
        let seed = (SystemTime::now(), process::id());
        let half = || u128::from(RandomState::new().hash_one(seed));
        Self((half() << 64 | half()).to_le_bytes())
    }

    /// Derives the id from a text, so that processes agree on it without communication: the 32
    /// hexadecimal digits of an id give that id, any other text is hashed (FNV-1a of 128 bits).
    ///
    /// ```
    /// use serdes_device_state::SaveId;
    ///
    /// let save = SaveId::random();
    /// assert_eq!(SaveId::of_text(&save.to_string()), save);
    /// assert_ne!(SaveId::of_text("step-10"), SaveId::of_text("step-11"));
    /// ```
    pub fn of_text(text: &str) -> Self {
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let hash = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        text.to_ascii_lowercase()
            .parse()
            .unwrap_or_else(|_| Self(text.bytes().fold(BASIS, hash).to_be_bytes()))
    }

    /// Returns its 16 bytes.
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

/// Formats 32 hexadecimal digits.
impl fmt::Display for SaveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SaveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SaveId({self})")
    }
}

impl FromStr for SaveId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let lower = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match u128::from_str_radix(text, 16) {
            Ok(number) if text.len() == 32 && lower => Ok(Self(number.to_be_bytes())),
            _ => Err(Error::invalid(format!(
                "{text:?} is no id of a save; expected 32 hexadecimal digits"
            ))),
        }
    }
}

/// Identity of one process's part in a save of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    save: SaveId,
    number: u32,
    count: u32,
}

impl Part {
    /// Creates the part `number` of `count`, counted from 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `number` is not below `count`.
    pub fn new(save: SaveId, number: u32, count: u32) -> Result<Self, Error> {
        if number < count {
            return Ok(Self { save, number, count });
        }
        Err(Error::invalid(format!("found part {number} of {count}; expected 0 to {count} - 1")))
    }

    /// Returns the id of the save.
    pub const fn save(self) -> SaveId {
        self.save
    }

    /// Returns the number of the part, from 0.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Returns the number of parts.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Returns the name under which a [`PartStore`](super::PartStore) stores it.
    pub fn name(self) -> String {
        format!("{}-{:06}-of-{:06}.part", self.save, self.number, self.count)
    }

    /// Parses the name of a part; `None` for other names.
    pub fn from_name(name: &str) -> Option<Self> {
        let (save, rest) = name.strip_suffix(".part")?.split_at_checked(32)?;
        let (number, count) = rest.strip_prefix('-')?.split_once("-of-")?;
        let (number, count) = (number.parse().ok()?, count.parse().ok()?);
        let part = Self::new(save.parse().ok()?, number, count).ok()?;
        (part.name() == name).then_some(part)
    }

    pub(crate) const fn role(self) -> PartRole {
        PartRole { save: self.save.0, number: self.number, count: self.count }
    }
}
