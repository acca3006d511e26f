//! Files of `jax.export`: an `Exported`, serialized as a flatbuffer.
//!
//! [`Exported::read_level`] does the same as `jax.export.deserialize` of a release, in the same
//! order. Does not depend on the contents of the module.

mod avals;
mod contents;
mod effects;
mod field;
mod flatbuffer;
mod profile;
mod reader;
mod refusal;
mod shape;
mod shardings;
mod tree;

pub use self::{avals::Value, effects::DisabledCheck};
pub(crate) use self::{
    contents::Exported,
    profile::ReaderProfile,
    reader::{is_exported, levels},
    refusal::Refusal,
};
