//! The messages of the wire format, generated from `proto/`.
//!
//! This module **follows the wire and not semver**: a field appears here when a real build starts
//! to write it. The types of [`crate::ifrt`] are the stable ones; these are for code that nests the
//! messages in its own. The module does not depend on versions, rules or devices.
//!
//! - `bytes` fields are [`bytes::Bytes`]: decoding from a `Bytes` shares its memory instead of
//!   copying.
//! - Map fields are lists of their entries, which have the same encoding: prost would read a field
//!   of another wire type as an entry. Readers use the last entry of a key; writers sort, so that
//!   the same value always gives the same bytes. (Other writers use hash order.)
//! - Fields are written in the order of their numbers, as the C++ writer does. The generator of
//!   prost keeps the members of a oneof together; where the numbers of a oneof are not adjacent
//!   (`ConcreteShardingProto`: 2 and 5), its members are plain optional fields here.
//! - [`OpaqueMessage`] stands for messages whose content belongs to a compiler: it keeps all
//!   fields.
//!
//! Files under `generated/` are not edited: see `tests/it/proto_generated.rs`.

mod opaque;

pub use opaque::OpaqueMessage;

/// Package `xla`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
#[rustfmt::skip]
pub mod xla {
    include!("generated/xla.rs");

    /// Package `xla.ifrt`.
    pub mod ifrt {
        include!("generated/xla.ifrt.rs");

        /// Package `xla.ifrt.proto`.
        pub mod proto {
            include!("generated/xla.ifrt.proto.rs");
        }

        /// Package `xla.ifrt.proxy`.
        #[cfg(feature = "proxy")]
        pub mod proxy {
            include!("generated/xla.ifrt.proxy.rs");
        }
    }
}

/// Packages of Protocol Buffers themselves.
pub mod google {
    /// Package `google.protobuf`.
    #[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
    #[rustfmt::skip]
    pub mod protobuf {
        include!("generated/google.protobuf.rs");
    }
}

/// Packages of our own.
pub mod serdes {
    /// Package `serdes.ifrt`: messages whose numbers were not measured in a real build.
    #[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
    #[rustfmt::skip]
    pub mod ifrt {
        include!("generated/serdes.ifrt.rs");
    }
}

/// Package `tensorflow`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
#[rustfmt::skip]
pub mod tensorflow {
    include!("generated/tensorflow.rs");

    /// Package `tensorflow.error`.
    pub mod error {
        include!("generated/tensorflow.error.rs");
    }
}

// The generator does not look through repeated and recursive fields. None of these types holds a
// floating-point number.
impl Eq for xla::LayoutProto {}
impl Eq for xla::MeshProto {}
impl Eq for xla::NamedShardingProto {}
impl Eq for xla::named_sharding_proto::DimensionSharding {}
impl Eq for xla::OpSharding {}
impl Eq for xla::ShapeProto {}
