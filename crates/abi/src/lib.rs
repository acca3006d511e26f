//! The memory layouts of the C APIs of device plug-ins: every published layout, as data and as
//! `repr(C)` types. The layouts of StreamExecutor are at the root of the crate; those of PJRT are
//! in the module `pjrt`, with the feature of the same name.
//!
//! StreamExecutor has two families of layouts. All of their headers declare version 0.0.1:
//!
//! * the layouts that TensorFlow shipped (2.4, 2.5 to 2.6, 2.8, and 2.14 to 2.21), in [`released`],
//!   [`tensorflow_2_8`], [`tensorflow_2_5`] and [`tensorflow_2_4`];
//! * the layout of RFC #257 as it was printed, in [`rfc`].
//!
//! A macro defines each struct once: its type, compile-time assertions that check its offsets
//! against the published ones, and its description as data ([`StructLayout`]). [`LAYOUTS`] lists
//! the descriptions by name.
//!
//! [`StatusCode`] lists the canonical status codes, which the C API, gRPC and TensorFlow's files
//! share. [`ErrorKind`] lists the kinds of errors; every error of a serdes crate has one.
//!
//! This crate contains no host, no plug-in and no allocation. Without features it has no
//! dependencies and does not need the standard library. The feature `std` maps errors of the
//! standard library to status codes; the feature `diff` reads layouts from files and compares them,
//! and needs dependencies and the standard library. Offsets are those of LP64 targets; they were
//! measured on x86-64 and aarch64 Linux.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::get_unwrap,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]
#![allow(unsafe_code, reason = "function pointer types of a C API are unsafe by nature")]
#![allow(non_camel_case_types, reason = "the types carry the names of the C API")]

#[macro_use]
mod define;
#[cfg(feature = "diff")]
pub mod diff;
mod error_kind;
mod handles;
mod history;
mod layout;
#[cfg(feature = "std")]
mod of_io;
#[cfg(feature = "pjrt")]
pub mod pjrt;
pub mod released;
pub mod rfc;
mod status;

pub use error_kind::ErrorKind;
pub use handles::{
    SE_EventStatus, SE_StatusCallbackFn, SP_Event, SP_Event_st, SP_Stream, SP_Stream_st, SP_Timer,
    SP_Timer_st, TF_Bool,
};
pub use history::{tensorflow_2_4, tensorflow_2_5, tensorflow_2_8};
pub use layout::{
    Family, FieldLayout, LAYOUTS, Layout, RFC_257, StructLayout, TENSORFLOW_2_4, TENSORFLOW_2_5,
    TENSORFLOW_2_8, TENSORFLOW_2_14, Zero, layout_named,
};
pub use released::*;
pub use status::{StatusCode, StatusFunctions, TF_Code, TF_Status};

/// The MAJOR number that every published header defines.
pub const SE_MAJOR: i32 = 0;
/// The MINOR number that every published header defines.
pub const SE_MINOR: i32 = 0;
/// The PATCH number that every published header defines.
pub const SE_PATCH: i32 = 1;
