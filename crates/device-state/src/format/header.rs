//! The header of a state: the frozen prefix and the fields after it.

use serdes::version::{Line, VersionRange};

use super::{
    ALIGNMENT, CRITICAL, Cursor, Error, MAGIC, align, checksum, length_u32,
    role::{MergedRole, PartRole, Role},
};

/// Size in bytes of the frozen prefix, whose meaning never changes.
pub(crate) const PREFIX_BYTES: usize = 32;
/// Maximum size of a header in bytes: it holds the metadata of the source, which safetensors limits
/// similarly.
const MAXIMUM_BYTES: usize = 128 << 20;

const BAD_CONSUMERS: u32 = CRITICAL | 1;
const PRODUCER_RELEASE: u32 = 2;
const IFRT_VERSION: u32 = 3;
const CHUNK_BYTES: u32 = CRITICAL | 4;
const METADATA: u32 = 5;
const PART: u32 = CRITICAL | 6;
const MERGED: u32 = CRITICAL | 7;

/// The numbers of a reading build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Supported {
    /// Its current version.
    pub(crate) current: i32,
    /// The oldest format that it reads.
    pub(crate) minimum: i32,
    /// The oldest producer whose data it reads.
    pub(crate) min_producer: i32,
}

impl Supported {
    /// Returns the versions of this build in the line `L`.
    pub(crate) fn in_line<L: Line>() -> Self {
        let range = VersionRange::<L>::supported();
        Self { current: range.maximum(), minimum: range.minimum(), min_producer: L::MIN_PRODUCER }
    }
}

/// Contents of the frozen first 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// Number of the layout of the rest of the file.
    pub(crate) format: i32,
    /// The current device-state number of the build that wrote the file.
    pub(crate) producer: i32,
    /// The oldest device-state number whose builds can read the file.
    pub(crate) min_consumer: i32,
    /// Length of the header in bytes, including this prefix.
    pub(crate) header_bytes: usize,
}

impl Prefix {
    /// Decodes the prefix and checks if a build with these numbers can read the file.
    pub(crate) fn decode(bytes: &[u8], ours: Supported) -> Result<Self, Error> {
        let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else {
            let magic = MAGIC.get(..bytes.len()).unwrap_or(&MAGIC);
            return Err(if bytes.is_empty() || !bytes.starts_with(magic) {
                Error::NotDeviceState { path: None, found: describe(bytes) }
            } else {
                Error::corrupt(
                    "header",
                    format!("{} bytes", bytes.len()),
                    format!("at least {PREFIX_BYTES} bytes"),
                )
            });
        };
        let mut cursor = Cursor::new(prefix, "header");
        if cursor.array::<8>()? != MAGIC {
            return Err(Error::NotDeviceState { path: None, found: describe(bytes) });
        }
        let (format, producer, min_consumer) = (cursor.i32()?, cursor.i32()?, cursor.i32()?);
        let (header_bytes, reserved) = (cursor.u32()? as usize, cursor.u32()?);
        let stored = cursor.u32()?;
        let computed = checksum(&prefix[..PREFIX_BYTES - 4]);
        if stored != computed {
            return Err(Error::checksum("header", stored, computed));
        }
        // From here the bytes are valid, so that a larger number comes from a newer writer and is
        // not damage.
        if min_consumer > ours.current {
            return Err(Error::TooNew {
                path: None,
                what: "device state format",
                found: i64::from(min_consumer.max(format)),
                supported: i64::from(ours.current),
            });
        }
        if format < 0 || min_consumer < 0 || producer < format || format < min_consumer {
            return Err(Error::corrupt(
                "header",
                format!("producer {producer}, format {format}, min_consumer {min_consumer}"),
                "0 <= min_consumer <= format <= producer".to_owned(),
            ));
        }
        if producer < ours.min_producer {
            return Err(Error::ProducerTooOld {
                path: None,
                found: producer,
                supported: ours.min_producer,
            });
        }
        if format < ours.minimum {
            return Err(Error::TooOld { path: None, found: format, supported: ours.minimum });
        }
        if reserved != 0
            || header_bytes < PREFIX_BYTES + ALIGNMENT as usize / 2
            || header_bytes > MAXIMUM_BYTES
            || header_bytes % ALIGNMENT as usize != 0
        {
            return Err(Error::corrupt(
                "header",
                format!("length {header_bytes}, reserved {reserved}"),
                format!("a multiple of {ALIGNMENT} up to {MAXIMUM_BYTES}, reserved 0"),
            ));
        }
        Ok(Self { format, producer, min_consumer, header_bytes })
    }
}

/// The header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) format: i32,
    pub(crate) producer: i32,
    pub(crate) min_consumer: i32,
    /// Device-state numbers of faulty builds, which must not read the file.
    pub(crate) bad_consumers: Vec<i32>,
    /// Name and release of the program that wrote the file.
    pub(crate) producer_release: String,
    /// The IFRT SerDes number that was requested for the array specs.
    pub(crate) ifrt_version: i32,
    /// Bytes per checksum; a power of two from 64 to 2^24.
    pub(crate) chunk_bytes: u32,
    /// Key-value metadata of the source, in its order; `None` if its format has none.
    pub(crate) metadata: Option<Vec<(String, String)>>,
    /// Role of the file in its state.
    pub(crate) role: Role,
}

impl Header {
    /// Encodes the header.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut fields = Vec::new();
        let bad: Vec<u8> = self.bad_consumers.iter().flat_map(|n| n.to_le_bytes()).collect();
        field(&mut fields, BAD_CONSUMERS, &bad)?;
        field(&mut fields, PRODUCER_RELEASE, self.producer_release.as_bytes())?;
        field(&mut fields, IFRT_VERSION, &self.ifrt_version.to_le_bytes())?;
        field(&mut fields, CHUNK_BYTES, &self.chunk_bytes.to_le_bytes())?;
        if let Some(metadata) = &self.metadata {
            let mut value = length_u32(metadata.len(), "metadata")?.to_le_bytes().to_vec();
            for text in metadata.iter().flat_map(|(key, value)| [key, value]) {
                value.extend(length_u32(text.len(), "metadata")?.to_le_bytes());
                value.extend(text.as_bytes());
            }
            field(&mut fields, METADATA, &value)?;
        }
        match &self.role {
            Role::Whole => {}
            Role::Part(part) => field(&mut fields, PART, &part.encode())?,
            Role::Merged(merged) => field(&mut fields, MERGED, &merged.encode()?)?,
        }
        // An empty field with tag 0 ends the list; then the checksum in the last four bytes.
        let needed = (PREFIX_BYTES + fields.len() + 8 + 4) as u64;
        let total = align(needed, ALIGNMENT).unwrap_or(u64::MAX);
        if total > MAXIMUM_BYTES as u64 {
            return Err(Error::TooLarge { what: "metadata", found: total });
        }
        let total = total as usize;
        let mut bytes = Vec::with_capacity(total);
        bytes.extend(MAGIC);
        for number in [self.format, self.producer, self.min_consumer, total as i32, 0] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(checksum(&bytes).to_le_bytes());
        bytes.extend(fields);
        bytes.resize(total - 4, 0);
        bytes.extend(checksum(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// Decodes a whole header; `ours` are the numbers of the reader.
    pub(crate) fn decode(bytes: &[u8], ours: Supported) -> Result<Self, Error> {
        let prefix = Prefix::decode(bytes, ours)?;
        let Some((body, stored)) =
            bytes.get(..prefix.header_bytes).and_then(<[u8]>::split_last_chunk::<4>)
        else {
            return Err(Error::corrupt(
                "header",
                format!("{} bytes", bytes.len()),
                format!("{} bytes", prefix.header_bytes),
            ));
        };
        let (stored, computed) = (u32::from_le_bytes(*stored), checksum(body));
        if stored != computed {
            return Err(Error::checksum("header", stored, computed));
        }
        let mut header = Self {
            format: prefix.format,
            producer: prefix.producer,
            min_consumer: prefix.min_consumer,
            bad_consumers: Vec::new(),
            producer_release: String::new(),
            ifrt_version: 0,
            chunk_bytes: 0,
            metadata: None,
            role: Role::Whole,
        };
        let mut cursor = Cursor::new(body.get(PREFIX_BYTES..).unwrap_or_default(), "header");
        let mut previous = None;
        loop {
            let (tag, length) = (cursor.u32()?, cursor.u32()? as usize);
            if tag == 0 && length == 0 {
                break cursor.zeros()?;
            }
            // Ascending order also excludes duplicate fields.
            if previous.is_some_and(|before| before >= tag & !CRITICAL) {
                return Err(Error::corrupt(
                    "header",
                    format!("field {} out of order", tag & !CRITICAL),
                    "fields in ascending order".to_owned(),
                ));
            }
            previous = Some(tag & !CRITICAL);
            let value = cursor.take(length)?;
            Cursor::new(cursor.take(length.next_multiple_of(8) - length)?, "header").zeros()?;
            header.set(tag, value)?;
        }
        if header.bad_consumers.contains(&ours.current) {
            let number = ours.current;
            let release = header.producer_release;
            return Err(Error::BadConsumer { path: None, number, release });
        }
        if !header.chunk_bytes.is_power_of_two() || !(64..=1 << 24).contains(&header.chunk_bytes) {
            return Err(Error::corrupt(
                "header",
                format!("chunks of {} bytes", header.chunk_bytes),
                "a power of two from 64 to 2^24".to_owned(),
            ));
        }
        Ok(header)
    }

    fn set(&mut self, tag: u32, value: &[u8]) -> Result<(), Error> {
        let mut cursor = Cursor::new(value, "header");
        match tag {
            BAD_CONSUMERS => {
                while cursor.remaining() > 0 {
                    self.bad_consumers.push(cursor.i32()?);
                }
            }
            PRODUCER_RELEASE => {
                self.producer_release = String::from_utf8_lossy(value).into_owned();
            }
            IFRT_VERSION => self.ifrt_version = cursor.i32()?,
            CHUNK_BYTES => self.chunk_bytes = cursor.u32()?,
            METADATA => {
                let mut metadata = Vec::new();
                for _ in 0..cursor.u32()? {
                    let key = cursor.string()?.to_owned();
                    metadata.push((key, cursor.string()?.to_owned()));
                }
                cursor.zeros()?;
                self.metadata = Some(metadata);
            }
            PART => self.role = Role::Part(PartRole::decode(value)?),
            MERGED if self.role != Role::Whole => {
                return Err(Error::corrupt(
                    "header",
                    "a part that holds parts together".to_owned(),
                    "the one or the other".to_owned(),
                ));
            }
            MERGED => self.role = Role::Merged(MergedRole::decode(value)?),
            unknown if unknown & CRITICAL != 0 => {
                return Err(Error::TooNewFeature {
                    path: None,
                    what: "header field",
                    found: unknown & !CRITICAL,
                });
            }
            _ => {}
        }
        Ok(())
    }
}

fn field(fields: &mut Vec<u8>, tag: u32, value: &[u8]) -> Result<(), Error> {
    fields.extend(tag.to_le_bytes());
    fields.extend(length_u32(value.len(), "header field")?.to_le_bytes());
    fields.extend(value);
    fields.resize(fields.len().next_multiple_of(8), 0);
    Ok(())
}

fn describe(bytes: &[u8]) -> String {
    match bytes.get(..bytes.len().min(8)) {
        None | Some([]) => "an empty file".to_owned(),
        Some(first) => format!("a file that begins with \"{}\"", first.escape_ascii()),
    }
}
