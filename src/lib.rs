//! Moves machine-learning state between builds that were not made on the same day.

pub mod artifact;
pub mod check;
pub mod codec;
pub mod device_state;
pub mod ifrt;
pub mod proto;
#[cfg(feature = "proxy")]
pub mod proxy;
pub mod stream_executor;
pub mod tensor_io;
pub mod version;

/// Declares the lines of the crate's own `versions.toml`: a type a line, which is a
/// [`Line`](version::Line), and `REGISTRY` with everything that the file says.
///
/// The crate's `build.rs` calls `serdes_version_registry::build("versions.toml")`, which checks every
/// rule of the file; its documentation has the form of the file. `examples/downstream` is a whole
/// crate of this kind.
#[macro_export]
macro_rules! lines {
    () => {
        include!(concat!(env!("OUT_DIR"), "/serdes_lines.rs"));
    };
}
