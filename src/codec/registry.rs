//! A registry of serializers, by the type of a value and by its name in the data.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    marker::PhantomData,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use bytes::Bytes;
use prost::Message;

use super::{
    DecodeError, DeserializeOptions, EncodeError, FromProto, Registered, RegistryError,
    SerializeOptions, Serialized, ToProto,
};
use crate::version::{Ifrt, Line};

/// Serializes and deserializes the values of one type.
///
/// The registry calls it from any thread, without holding a lock.
pub trait SerDes<L: Line = Ifrt>: Send + Sync + 'static {
    /// The type.
    type Value: Any + Send + Sync;

    /// Returns the name of the type in the data.
    fn type_name(&self) -> &str;

    /// Returns the data of `value`. Implementations pass the version in `options` on to nested
    /// calls unchanged.
    ///
    /// # Errors
    /// The registry passes an error on unchanged, and writes nothing.
    fn serialize(
        &self,
        value: &Self::Value,
        options: &SerializeOptions<L>,
    ) -> Result<Bytes, EncodeError>;

    /// Returns the value of `data`.
    ///
    /// # Errors
    /// The registry passes an error on unchanged.
    fn deserialize(
        &self,
        data: &Bytes,
        options: &DeserializeOptions,
    ) -> Result<Self::Value, DecodeError>;
}

/// The SerDes of a type that converts from and to a message and has a name.
pub struct MessageSerDes<T>(PhantomData<fn() -> T>);

impl<T> MessageSerDes<T> {
    /// Creates the SerDes of `T`.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for MessageSerDes<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for MessageSerDes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageSerDes<{}>", type_name::<T>())
    }
}

impl<T, L, P> SerDes<L> for MessageSerDes<T>
where
    L: Line,
    P: Message + Default,
    T: Registered + ToProto<L, Proto = P> + FromProto<Proto = P> + Any + Send + Sync,
{
    type Value = T;

    fn type_name(&self) -> &str {
        T::TYPE_NAME
    }

    fn serialize(&self, value: &T, options: &SerializeOptions<L>) -> Result<Bytes, EncodeError> {
        value.to_bytes(options.version())
    }

    fn deserialize(&self, data: &Bytes, options: &DeserializeOptions) -> Result<T, DecodeError> {
        T::from_bytes(data.clone(), options)
    }
}

/// A value whose type is known at run time only.
pub type AnyValue = Box<dyn Any + Send + Sync>;

/// A [`SerDes`] with its value type erased.
trait Erased<L: Line>: Send + Sync {
    fn type_name(&self) -> &str;
    fn rust_type(&self) -> &'static str;
    /// Returns `None` if `value` is of another type.
    fn serialize(
        &self,
        value: &dyn Any,
        options: &SerializeOptions<L>,
    ) -> Option<Result<Bytes, EncodeError>>;
    fn deserialize(
        &self,
        data: &Bytes,
        options: &DeserializeOptions,
    ) -> Result<AnyValue, DecodeError>;
}

impl<L: Line, S: SerDes<L>> Erased<L> for S {
    fn type_name(&self) -> &str {
        SerDes::type_name(self)
    }

    fn rust_type(&self) -> &'static str {
        type_name::<S::Value>()
    }

    fn serialize(
        &self,
        value: &dyn Any,
        options: &SerializeOptions<L>,
    ) -> Option<Result<Bytes, EncodeError>> {
        value.downcast_ref().map(|value| SerDes::serialize(self, value, options))
    }

    fn deserialize(
        &self,
        data: &Bytes,
        options: &DeserializeOptions,
    ) -> Result<AnyValue, DecodeError> {
        SerDes::deserialize(self, data, options).map(|value| Box::new(value) as AnyValue)
    }
}

struct Tables<L: Line> {
    by_type: HashMap<TypeId, Arc<dyn Erased<L>>>,
    by_name: HashMap<String, Arc<dyn Erased<L>>>,
}

/// A registry of [`SerDes`], by the Rust type of a value and by the type name in the data.
///
/// Entries live as long as the registry; the look-up is by the exact type. The lock is held for
/// look-ups and insertions only, so a SerDes may use the registry that it is in.
///
/// ```
/// use bytes::Bytes;
/// use serdes::codec::{DecodeError, DeserializeOptions, EncodeError, SerDes, SerDesRegistry, SerializeOptions};
/// use serdes::version::SerDesVersion;
///
/// #[derive(Debug, PartialEq)]
/// struct Greeting(String);
/// struct GreetingSerDes;
///
/// impl SerDes for GreetingSerDes {
///     type Value = Greeting;
///     fn type_name(&self) -> &str { "example::Greeting" }
///     fn serialize(&self, value: &Greeting, _: &SerializeOptions) -> Result<Bytes, EncodeError> {
///         Ok(Bytes::from(value.0.clone()))
///     }
///     fn deserialize(&self, data: &Bytes, _: &DeserializeOptions) -> Result<Greeting, DecodeError> {
///         let text = std::str::from_utf8(data)
///             .map_err(|error| DecodeError::malformed("Greeting", error.to_string()))?;
///         Ok(Greeting(text.to_owned()))
///     }
/// }
///
/// let registry = SerDesRegistry::new();
/// registry.register(GreetingSerDes)?;
/// let options = SerializeOptions::new(SerDesVersion::current());
/// let serialized = registry.serialize(&Greeting("hello".to_owned()), &options)?;
/// assert_eq!(serialized.type_name(), "example::Greeting");
/// let greeting: Greeting = registry.deserialize(&serialized, &DeserializeOptions::new())?;
/// assert_eq!(greeting, Greeting("hello".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SerDesRegistry<L: Line = Ifrt> {
    tables: RwLock<Tables<L>>,
}

impl<L: Line> SerDesRegistry<L> {
    /// Creates a registry without any SerDes.
    pub fn new() -> Self {
        Self { tables: RwLock::new(Tables { by_type: HashMap::new(), by_name: HashMap::new() }) }
    }

    // No code that could leave the tables half changed runs under the lock, so a poisoned lock is
    // safe to use.
    fn read(&self) -> RwLockReadGuard<'_, Tables<L>> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables<L>> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a SerDes under its type and its type name.
    ///
    /// # Errors
    /// [`RegistryError`] if the type or the name is registered already; the registry is then
    /// unchanged.
    pub fn register<S: SerDes<L>>(&self, serdes: S) -> Result<(), RegistryError> {
        self.insert(TypeId::of::<S::Value>(), Arc::new(serdes))
    }

    // Not generic, so that it is compiled once and not once per type.
    fn insert(&self, rust_type: TypeId, serdes: Arc<dyn Erased<L>>) -> Result<(), RegistryError> {
        let name = serdes.type_name().to_owned();
        let mut tables = self.write();
        if let Some(registered) = tables.by_type.get(&rust_type) {
            return Err(RegistryError::DuplicateType {
                rust_type: serdes.rust_type(),
                registered_name: registered.type_name().to_owned(),
            });
        }
        if let Some(registered) = tables.by_name.get(&name) {
            let registered_type = registered.rust_type();
            return Err(RegistryError::DuplicateName { name, registered_type });
        }
        tables.by_type.insert(rust_type, Arc::clone(&serdes));
        tables.by_name.insert(name, serdes);
        Ok(())
    }

    /// Adds the SerDes of a type that converts from and to a message and has a name.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn register_message<T, P>(&self) -> Result<(), RegistryError>
    where
        P: Message + Default,
        T: Registered + ToProto<L, Proto = P> + FromProto<Proto = P> + Any + Send + Sync,
    {
        self.register(MessageSerDes::<T>::new())
    }

    /// Serializes `value` with the SerDes of its type.
    ///
    /// # Errors
    /// [`EncodeError::MissingSerDes`] if the type is not registered; else the error of its SerDes.
    pub fn serialize<T: Any>(
        &self,
        value: &T,
        options: &SerializeOptions<L>,
    ) -> Result<Serialized, EncodeError> {
        self.find_and_serialize(value, type_name::<T>(), options)
    }

    /// Serializes a value whose type is known at run time only.
    ///
    /// # Errors
    /// As [`serialize`](Self::serialize); the error cannot name the type.
    pub fn serialize_any(
        &self,
        value: &dyn Any,
        options: &SerializeOptions<L>,
    ) -> Result<Serialized, EncodeError> {
        self.find_and_serialize(value, "of the value", options)
    }

    fn find_and_serialize(
        &self,
        value: &dyn Any,
        rust_type: &'static str,
        options: &SerializeOptions<L>,
    ) -> Result<Serialized, EncodeError> {
        let found = self.read().by_type.get(&value.type_id()).map(Arc::clone);
        let missing = EncodeError::MissingSerDes { rust_type };
        let serdes = found.ok_or_else(|| missing.clone())?;
        let data = serdes.serialize(value, options).ok_or(missing)??;
        Ok(Serialized::new(serdes.type_name(), data))
    }

    /// Deserializes data as a `T`.
    ///
    /// # Errors
    /// [`DecodeError::UnknownTypeName`] if the name is not registered, [`DecodeError::WrongType`]
    /// if it is the name of another type; else the error of the SerDes.
    pub fn deserialize<T: Any>(
        &self,
        serialized: &Serialized,
        options: &DeserializeOptions,
    ) -> Result<T, DecodeError> {
        let serdes = self.find(serialized.type_name())?;
        let value = serdes.deserialize(serialized.data(), options)?;
        match value.downcast() {
            Ok(value) => Ok(*value),
            Err(_) => Err(DecodeError::WrongType {
                expected: type_name::<T>().to_owned(),
                found: serdes.rust_type().to_owned(),
            }),
        }
    }

    /// Deserializes data as the type that its type name says.
    ///
    /// # Errors
    /// As [`deserialize`](Self::deserialize).
    pub fn deserialize_any(
        &self,
        serialized: &Serialized,
        options: &DeserializeOptions,
    ) -> Result<AnyValue, DecodeError> {
        self.find(serialized.type_name())?.deserialize(serialized.data(), options)
    }

    fn find(&self, name: &str) -> Result<Arc<dyn Erased<L>>, DecodeError> {
        let found = self.read().by_name.get(name).map(Arc::clone);
        found.ok_or_else(|| DecodeError::UnknownTypeName { found: name.to_owned() })
    }

    /// Returns `true` if a SerDes is registered under this type name.
    pub fn contains(&self, type_name: &str) -> bool {
        self.read().by_name.contains_key(type_name)
    }

    /// Returns the registered type names, sorted.
    pub fn type_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.read().by_name.keys().cloned().collect();
        names.sort_unstable();
        names
    }
}

impl<L: Line> Default for SerDesRegistry<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: Line> fmt::Debug for SerDesRegistry<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SerDesRegistry").field("type_names", &self.type_names()).finish()
    }
}

#[cfg(test)]
mod tests;
