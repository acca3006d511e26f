//! NumPy's npy: a dictionary in Python's notation, then the elements.

mod fortran;
mod header;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(super) use header::NpyHeader;
pub(super) use read::{NpySource, elements};
pub(super) use write::{NpyTarget, encode_header};

const KIND: &str = "npy";
