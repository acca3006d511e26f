//! Versions of XLA executables, by which a runtime decides if it can load one.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use prost::Message;

use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, Serialized,
        Status, StatusCode, ToProto, decode_message, serde_forms::serde_as_message,
    },
    proto::xla::ifrt as wire,
    version::SerDesVersion,
};

const FORMATS: Formats = Formats::of("XlaExecutableVersion");

/// The version of the runtime interface that an executable needs: any registered type.
pub trait RuntimeAbiVersion: fmt::Debug + Send + Sync {
    /// Returns the value with its type name, at the requested version.
    ///
    /// # Errors
    /// As [`ToProto::to_proto`].
    fn to_serialized(&self, version: SerDesVersion) -> Result<Serialized, EncodeError>;
}

impl<T> RuntimeAbiVersion for T
where
    T: Registered + ToProto + fmt::Debug + Send + Sync,
    T::Proto: Message,
{
    fn to_serialized(&self, version: SerDesVersion) -> Result<Serialized, EncodeError> {
        Serialized::of(self, version)
    }
}

/// A value that was read is written unchanged; a caller that knows its type can decode it.
impl RuntimeAbiVersion for Serialized {
    fn to_serialized(&self, _: SerDesVersion) -> Result<Serialized, EncodeError> {
        Ok(self.clone())
    }
}

/// The platform that an executable was compiled for, and the version of the runtime interface that
/// it needs (`xla::ifrt::XlaExecutableVersion`).
///
/// The nested version is written at the requested version. (Upstream always writes it at its
/// four-weeks-old one, whatever was requested; a caller who wants that requests it.)
#[derive(Clone, Debug, Default)]
pub struct XlaExecutableVersion {
    platform_id: u64,
    runtime_abi_version: Option<Arc<dyn RuntimeAbiVersion>>,
}

impl XlaExecutableVersion {
    /// Creates the version of an executable for the platform, without a version of the runtime
    /// interface.
    pub const fn new(platform_id: u64) -> Self {
        Self { platform_id, runtime_abi_version: None }
    }

    /// Sets the version of the runtime interface that the executable needs.
    #[must_use]
    pub fn with_runtime_abi_version(mut self, version: impl RuntimeAbiVersion + 'static) -> Self {
        self.runtime_abi_version = Some(Arc::new(version));
        self
    }

    /// Returns the platform, a hash of its name.
    pub const fn platform_id(&self) -> u64 {
        self.platform_id
    }

    /// Returns the version of the runtime interface. A version that was read is a [`Serialized`].
    pub fn runtime_abi_version(&self) -> Option<&dyn RuntimeAbiVersion> {
        self.runtime_abi_version.as_deref()
    }

    /// Fails unless an executable of this version runs where one of `other` does, as far as the
    /// platforms decide that.
    ///
    /// # Errors
    /// FAILED_PRECONDITION , which names both platforms.
    pub fn check_compatible(&self, other: &Self) -> Result<(), Status> {
        if self.platform_id == other.platform_id {
            return Ok(());
        }
        Err(Status::new(
            StatusCode::FailedPrecondition,
            format!(
                "the executable is for the platform {}, not for {}; compile the program for the platform it is to run on",
                self.platform_id, other.platform_id
            ),
        ))
    }

    fn abi_bytes(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
        let Some(abi) = &self.runtime_abi_version else { return Ok(Bytes::new()) };
        let serialized = abi.to_serialized(version).map_err(|error| {
            let message = format!("the runtime ABI version cannot be written: {error}");
            EncodeError::inconsistent(Self::NAME, message)
        })?;
        let message: wire::Serialized = serialized.into();
        Ok(message.encode_to_vec().into())
    }
}

/// Two versions are equal if their bytes at the newest version are.
impl PartialEq for XlaExecutableVersion {
    fn eq(&self, other: &Self) -> bool {
        #[expect(clippy::disallowed_methods, reason = "compares, and writes nothing")]
        let newest = SerDesVersion::current();
        self.platform_id == other.platform_id && self.abi_bytes(newest) == other.abi_bytes(newest)
    }
}

serde_as_message!(
    XlaExecutableVersion,
    |value| value.to_bytes(crate::codec::at::requested()),
    |bytes| Self::from_bytes(bytes, &DeserializeOptions::new())
);

/// Formats as `XlaExecutableVersion(platform_id: 1, without a runtime ABI version)`.
impl fmt::Display for XlaExecutableVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = if self.runtime_abi_version.is_some() { "with" } else { "without" };
        write!(
            f,
            "XlaExecutableVersion(platform_id: {}, {with} a runtime ABI version)",
            self.platform_id
        )
    }
}

impl Registered for XlaExecutableVersion {
    const TYPE_NAME: &'static str = "xla::ifrt::XlaExecutableVersion";
}

/// Writes format 0 at every version.
impl ToProto for XlaExecutableVersion {
    type Proto = wire::SerializedXlaExecutableVersion;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        Ok(wire::SerializedXlaExecutableVersion {
            version_number: FORMATS.for_request(version)?,
            platform_id: self.platform_id,
            runtime_abi_version: self.abi_bytes(version)?,
        })
    }
}

/// Accepts format 0.
impl FromProto for XlaExecutableVersion {
    type Proto = wire::SerializedXlaExecutableVersion;
    const NAME: &'static str = "XlaExecutableVersion";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        FORMATS.check_recorded(proto.version_number)?;
        let mut version = Self::new(proto.platform_id);
        if !proto.runtime_abi_version.is_empty() {
            let bytes = proto.runtime_abi_version.clone();
            let message: wire::Serialized = decode_message(Self::NAME, bytes, options)?;
            version = version.with_runtime_abi_version(Serialized::from(message));
        }
        Ok(version)
    }
}
