//! The options of reading and writing.

use std::{
    any::{Any, TypeId, type_name},
    fmt,
    sync::Arc,
};

use super::DecodeError;
use crate::version::{Ifrt, Line, Version};

/// The amount of validation that a reader applies to the meaning of a value.
///
/// Upstream reads shardings without checking that they make sense, and finds out when it uses them.
/// Both modes return errors where upstream would end the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Validation {
    /// As lenient as upstream: everything that upstream reads is read.
    #[default]
    Parity,
    /// Everything that can be checked is checked: nothing is dropped silently, and values obey the
    /// rules of their constructors.
    Strict,
}

/// Values of different types, looked up by type.
#[derive(Clone, Default)]
struct Extensions(Vec<(TypeId, &'static str, Arc<dyn Any + Send + Sync>)>);

impl Extensions {
    fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.retain(|(id, ..)| *id != TypeId::of::<T>());
        self.0.push((TypeId::of::<T>(), type_name::<T>(), Arc::new(value)));
    }

    fn get<T: Any>(&self) -> Option<&T> {
        self.0
            .iter()
            .find(|(id, ..)| *id == TypeId::of::<T>())
            .and_then(|(.., value)| value.downcast_ref())
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_, name, _)| name)).finish()
    }
}

/// The options of a writer. There is no default: the caller always states the version.
#[derive(Clone, Debug)]
pub struct SerializeOptions<L: Line = Ifrt> {
    version: Version<L>,
    extensions: Extensions,
}

impl<L: Line> SerializeOptions<L> {
    /// Creates options that request this version, for the value and everything nested in it.
    pub fn new(version: Version<L>) -> Self {
        Self { version, extensions: Extensions::default() }
    }

    /// Returns the requested version.
    pub const fn version(&self) -> Version<L> {
        self.version
    }

    /// Adds a value for each SerDes that looks for one of this type, such as the version of another
    /// line.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, option: T) -> Self {
        self.extensions.insert(option);
        self
    }

    /// Returns the option of type `T`, if it was given.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.extensions.get()
    }
}

/// The options of a reader: its strictness, and the options that some types need.
///
/// Each nested value records its own version, so the options have none.
#[derive(Clone, Debug)]
pub struct DeserializeOptions {
    validation: Validation,
    maximum_bytes: u64,
    extensions: Extensions,
}

impl DeserializeOptions {
    /// The largest message that protobuf allows: 2 GiB less one byte.
    pub const MAXIMUM_MESSAGE_BYTES: u64 = i32::MAX as u64;

    /// Creates options with parity validation and nothing else.
    pub const fn new() -> Self {
        Self {
            validation: Validation::Parity,
            maximum_bytes: Self::MAXIMUM_MESSAGE_BYTES,
            extensions: Extensions(Vec::new()),
        }
    }

    /// Sets the amount of validation.
    #[must_use]
    pub fn with_validation(mut self, validation: Validation) -> Self {
        self.validation = validation;
        self
    }

    /// Sets the limit for the size of a message, in bytes. Protobuf's own limit remains.
    #[must_use]
    pub fn with_maximum_bytes(mut self, maximum_bytes: u64) -> Self {
        self.maximum_bytes = maximum_bytes.min(Self::MAXIMUM_MESSAGE_BYTES);
        self
    }

    /// Adds a value for the types that need one of this type, such as a device look-up.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, option: T) -> Self {
        self.extensions.insert(option);
        self
    }

    /// Returns the amount of validation.
    pub const fn validation(&self) -> Validation {
        self.validation
    }

    /// Returns `true` if everything that can be checked is checked.
    pub fn is_strict(&self) -> bool {
        self.validation == Validation::Strict
    }

    /// Returns the largest message that is read, in bytes.
    pub const fn maximum_bytes(&self) -> u64 {
        self.maximum_bytes
    }

    /// Returns the option of type `T`, if it was given.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.extensions.get()
    }

    /// Returns the option of type `T`, for reading a `reader`.
    ///
    /// # Errors
    /// [`DecodeError::MissingOption`], which names `T` and the type that needs it.
    pub fn require<T: Any>(&self, reader: &'static str) -> Result<&T, DecodeError> {
        self.get().ok_or_else(|| {
            let full = type_name::<T>();
            let required = full.rsplit_once("::").map_or(full, |(_, last)| last);
            DecodeError::MissingOption { type_name: reader, required }
        })
    }
}

impl Default for DeserializeOptions {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Colour(&'static str);

    #[test]
    fn an_option_is_found_by_its_type_and_a_later_one_replaces_it() {
        let options = DeserializeOptions::new().with(Colour("red")).with(7_u8).with(Colour("blue"));
        assert_eq!(options.get::<Colour>(), Some(&Colour("blue")));
        assert_eq!(options.get::<u8>(), Some(&7));
        assert_eq!(options.get::<u16>(), None);
    }

    #[test]
    fn a_missing_option_is_named_with_the_type_that_needs_it() {
        let error = DeserializeOptions::new().require::<Colour>("Painting").unwrap_err();
        assert_eq!(error.code(), crate::codec::StatusCode::InvalidArgument);
        assert!(error.to_string().contains("Painting: needs the option Colour"), "{error}");
    }

    #[test]
    fn the_limit_of_protobuf_cannot_be_raised() {
        let options = DeserializeOptions::new().with_maximum_bytes(u64::MAX);
        assert_eq!(options.maximum_bytes(), DeserializeOptions::MAXIMUM_MESSAGE_BYTES);
    }
}
