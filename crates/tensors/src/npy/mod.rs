//! NumPy's npy: a dictionary in Python's notation, then the elements.

mod descr;
mod fortran;
mod header;
mod literal;
mod read;
#[cfg(test)]
mod tests;
mod write;

#[cfg(feature = "npz")]
pub(super) use self::{
    read::{bytes_behind, elements},
    write::encode_header,
};
pub(super) use header::NpyHeader;
pub(super) use read::NpySource;
pub(super) use write::NpyTarget;

const KIND: &str = "npy";
