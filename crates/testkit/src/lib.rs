//! Code shared by the tests of several crates: copies of the sources and cargo in them,
//! documentation pages with edits, code generated from `proto/`, hand-written protobuf, and noise.
//!
//! It is not published, and does not depend on other crates of the workspace.

#![forbid(unsafe_code)]

pub mod copies;
pub mod fields;
pub mod noise;
pub mod pages;
pub mod protos;
