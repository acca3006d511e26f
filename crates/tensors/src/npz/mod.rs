//! NumPy's npz: a zip archive of npy files.

mod open;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(super) use open::{create, open};

const KIND: &str = "npz";
