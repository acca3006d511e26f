//! Files of `jax.export`: an `Exported`, serialized as a flatbuffer.
//!
//! [`Exported::read_level`] does what `jax.export.deserialize` of a release does with one, in the
//! same order. It must never know what is in the module.

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
