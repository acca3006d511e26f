//! Code that tests of several crates share: copies of the sources and cargo in them, pages that
//! list edits, the code that is generated from `proto/`, protobuf written by hand, and noise.
//!
//! It is not published, and knows no other crate of the workspace.

#![forbid(unsafe_code)]

pub mod copies;
pub mod fields;
pub mod noise;
pub mod pages;
pub mod protos;
