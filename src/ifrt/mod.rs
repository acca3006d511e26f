//! The data types of IFRT: element types, shapes, devices, shardings, layouts, programs and plans.
//!
//! The room knows the codec. It must never know a file, a device of flesh or a connection.

mod layout;
pub mod xla;

pub use layout::{CompactLayout, Layout, PjRtLayout};
