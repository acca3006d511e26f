//! NumPy's npy: a dictionary as a Python literal, followed by the elements.

mod descr;
mod fortran;
mod header;
mod literal;
pub(super) mod read;
#[cfg(test)]
mod tests;
pub(super) mod write;

pub(super) use header::NpyHeader;
pub(super) use read::NpySource;
pub(super) use write::NpyTarget;

const KIND: &str = "npy";
