//! Lists the versions that are recorded in a serialized value, without reading the value.
//!
//! Data of newer builds can be inspected too: all versions are listed, including those that are too
//! new. Bytes are only split into fields; nothing is allocated for an announced length.

mod schema;

use std::fmt;

use schema::{Content, Schema};

use crate::{
    codec::DecodeError,
    ifrt::registry::message_of,
    version::{Ifrt, Line as _, VersionRange},
    wire::{Dialect, FieldValue, Malformed, WireReader},
};

/// Limit on the nesting of values.
const DEEPEST: usize = 100;

/// Limit on the total length of all locations, in bytes: deeply nested values have long ones.
const MOST_LOCATION_BYTES: usize = 64 << 20;

/// Limit on the number of values nested inside one value.
const MOST_VALUES: usize = 1 << 20;

const NAME: &str = "Serialized";

/// A value inside a serialized value, with the version that it records.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NestedVersion {
    /// Path of the value: field names separated by dots, as in
    /// `sharding.serialized_sharding.devices`; empty for the outermost value.
    pub location: String,
    /// The registered type name, or the full name of the message.
    pub type_name: String,
    /// The recorded number; `None` for data that has none, or of a type that this build does not
    /// know.
    pub recorded: Option<i32>,
}

impl fmt::Display for NestedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = if self.location.is_empty() { "(outermost)" } else { &self.location };
        write!(f, "{location}: {}", self.type_name)?;
        match self.recorded {
            Some(number) => write!(f, ", version {number}"),
            None => f.write_str(", no version"),
        }
    }
}

/// All values inside a serialized value, the outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Inspection {
    values: Vec<NestedVersion>,
}

impl Inspection {
    /// Inspects the bytes of a `Serialized` wrapper.
    ///
    /// ```
    /// use serdes::codec::Serialized;
    /// use serdes::ifrt::{Inspection, OpaqueSharding, DeviceList, MemoryKind};
    /// use serdes::version::SerDesVersion;
    ///
    /// let sharding = OpaqueSharding::new(DeviceList::from([0, 1]), MemoryKind::unset());
    /// let bytes = Serialized::of(&sharding, SerDesVersion::current())?.to_bytes();
    /// let inspection = Inspection::of_serialized(&bytes)?;
    /// assert_eq!(inspection.values()[0].type_name, "xla::ifrt::OpaqueSharding");
    /// assert_eq!(inspection.values()[1].location, "devices");
    /// assert_eq!(inspection.minimum_reader_version(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] if the bytes are not made of fields,
    /// [`DecodeError::LimitExceeded`] if values nest too deeply or are too many.
    pub fn of_serialized(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut inspection = Self { values: Vec::new() };
        inspection.add_serialized(bytes, &mut Location::default())?;
        Ok(inspection)
    }

    /// Inspects the bytes of a message.
    ///
    /// `message` is its full name, such as `xla.ifrt.ArraySpecProto`.
    ///
    /// # Errors
    /// [`DecodeError::UnknownTypeName`] if no message of that name has versions or contains
    /// messages that do; else as [`of_serialized`](Self::of_serialized).
    pub fn of_message(message: &str, bytes: &[u8]) -> Result<Self, DecodeError> {
        let Some(schema) = schema::find(message) else {
            return Err(DecodeError::unknown_type_name(message));
        };
        let mut inspection = Self { values: Vec::new() };
        inspection.add_message(schema, None, bytes, &mut Location::default())?;
        Ok(inspection)
    }

    /// Returns the values, each before the values inside it.
    pub fn values(&self) -> &[NestedVersion] {
        &self.values
    }

    /// Returns the lowest version that a reader must know: the highest version that is recorded, or
    /// that introduced one of the types. Negative numbers count as 0.
    ///
    /// ```
    /// use serdes::codec::{Serialized, ToProto};
    /// use serdes::ifrt::{Inspection, sharding_spec::SingleDeviceShardingSpec};
    /// use serdes::version::SerDesWeek4OldVersionAccessor;
    ///
    /// // Records format 0, and is in no build before version 5.
    /// let spec = Serialized::of(&SingleDeviceShardingSpec, SerDesWeek4OldVersionAccessor::get())?;
    /// let inspection = Inspection::of_serialized(&spec.to_bytes())?;
    /// assert_eq!(inspection.values()[0].recorded, Some(0));
    /// assert_eq!(inspection.minimum_reader_version(), 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn minimum_reader_version(&self) -> i32 {
        let values = self.values.iter();
        let first = |value: &NestedVersion| {
            value.recorded.unwrap_or_default().max(first_version(&value.type_name))
        };
        values.map(first).fold(0, i32::max)
    }

    /// Returns the values that record a version that this build does not know yet.
    pub fn too_new(&self) -> impl Iterator<Item = &NestedVersion> {
        let newest = VersionRange::<Ifrt>::supported().maximum();
        self.values.iter().filter(move |value| value.recorded.is_some_and(|number| number > newest))
    }

    fn push(
        &mut self,
        location: &mut Location,
        type_name: impl Into<String>,
        recorded: Option<i32>,
    ) -> Result<(), DecodeError> {
        if self.values.len() >= MOST_VALUES {
            let limit = MOST_VALUES as u64;
            return Err(DecodeError::limit_exceeded(
                NAME,
                "the number of values",
                limit + 1,
                limit,
            ));
        }
        location.listed += location.text.len();
        if location.listed > MOST_LOCATION_BYTES {
            let (found, limit) = (location.listed as u64, MOST_LOCATION_BYTES as u64);
            let what = "the size in bytes of all locations";
            return Err(DecodeError::limit_exceeded(NAME, what, found, limit));
        }
        let (location, type_name) = (location.text.clone(), type_name.into());
        self.values.push(NestedVersion { location, type_name, recorded });
        Ok(())
    }

    fn add_serialized(&mut self, bytes: &[u8], location: &mut Location) -> Result<(), DecodeError> {
        let (mut type_name, mut data) = (&[][..], &[][..]);
        let mut fields = WireReader::new(Dialect::Prost, bytes);
        while let Some(field) = fields.next_field().map_err(malformed)? {
            match (field.number, field.value) {
                (1, FieldValue::Bytes(found)) => type_name = found,
                (2, FieldValue::Bytes(found)) => data = found,
                _ => {}
            }
        }
        let type_name = std::str::from_utf8(type_name).map_err(|error| {
            DecodeError::malformed(NAME, format!("the type name is not UTF-8: {error}"))
        })?;
        let schema = message_of(type_name).and_then(|(package, name)| {
            schema::SCHEMAS.iter().find(|schema| schema.is(package, name))
        });
        match schema {
            Some(schema) => self.add_message(schema, Some(type_name), data, location),
            None => self.push(location, type_name, None),
        }
    }

    /// Adds the values in bytes that need not be a `Serialized`. Empty bytes mean "not set".
    fn add_bytes(&mut self, bytes: &[u8], location: &mut Location) -> Result<(), DecodeError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (values, text, depth) = (self.values.len(), location.text.len(), location.depth);
        match self.add_serialized(bytes, location) {
            Err(DecodeError::Malformed { .. }) => {
                self.values.truncate(values);
                location.text.truncate(text);
                location.depth = depth;
                self.push(location, "bytes", None)
            }
            result => result,
        }
    }

    fn add_message(
        &mut self,
        schema: &'static Schema,
        type_name: Option<&str>,
        bytes: &[u8],
        location: &mut Location,
    ) -> Result<(), DecodeError> {
        if location.depth > DEEPEST {
            let (found, limit) = (location.depth as u64, DEEPEST as u64);
            return Err(DecodeError::limit_exceeded(NAME, "the depth of nesting", found, limit));
        }
        let place = self.values.len();
        if schema.version.is_some() {
            self.push(location, type_name.unwrap_or(schema.message), Some(0))?;
        }
        // The number of occurrences of each field that holds messages, for the index in its
        // location.
        let mut counts = vec![0_usize; schema.fields.len()];
        let mut fields = WireReader::new(Dialect::Prost, bytes);
        while let Some(field) = fields.next_field().map_err(malformed)? {
            match field.value {
                FieldValue::Varint(recorded) if schema.version == Some(field.number) => {
                    if let Some(value) = self.values.get_mut(place) {
                        // Protobuf readers truncate a varint to an int32 in the same way.
                        value.recorded = Some(recorded as i32);
                    }
                }
                FieldValue::Bytes(nested) => {
                    let mut known = schema.fields.iter().zip(&mut counts);
                    let found = known.find(|((own, ..), _)| *own == field.number);
                    let Some(((_, name, content), count)) = found else { continue };
                    let outer = location.enter(name, *count);
                    *count += 1;
                    match content {
                        Content::Serialized => self.add_serialized(nested, location)?,
                        Content::Bytes => self.add_bytes(nested, location)?,
                        Content::Message(message) => {
                            if let Some(schema) = schema::find(message) {
                                self.add_message(schema, None, nested, location)?;
                            }
                        }
                    }
                    location.leave(outer);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn malformed(error: Malformed) -> DecodeError {
    DecodeError::malformed(NAME, error.to_string())
}

/// Returns the first version that has the named type, which is a registered type or a message; 0
/// for a type that versions.toml does not list.
fn first_version(type_name: &str) -> i32 {
    let last = type_name.rsplit(['.', ':']).next().unwrap_or(type_name);
    let name = match last.strip_suffix("Proto").unwrap_or(last) {
        // The type kept its old name in data.
        "XlaProgram" => "HloProgram",
        name => name,
    };
    let found = Ifrt::TYPES.iter().find(|found| found.name.eq_ignore_ascii_case(name));
    found.and_then(|found| found.granted.first()).copied().unwrap_or_default()
}

/// Path of the value that is being inspected.
#[derive(Default)]
struct Location {
    text: String,
    depth: usize,
    /// The total length of all listed locations.
    listed: usize,
}

impl Location {
    /// Enters the `count + 1`th occurrence of the field `name`; returns the value to pass to
    /// [`leave`](Self::leave).
    fn enter(&mut self, name: &str, count: usize) -> usize {
        let outer = self.text.len();
        if outer > 0 {
            self.text.push('.');
        }
        self.text.push_str(name);
        if count > 0 {
            self.text.push_str(&format!("[{count}]"));
        }
        self.depth += 1;
        outer
    }

    fn leave(&mut self, outer: usize) {
        self.text.truncate(outer);
        self.depth -= 1;
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, value) in self.values.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
