//! NumPy's npz: a zip archive of npy files.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub(super) use read::NpzSource;
pub(super) use write::NpzTarget;

const KIND: &str = "npz";
