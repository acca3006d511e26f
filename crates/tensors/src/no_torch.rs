//! Stand-in for the module `torch` in builds without that feature.

use std::{path::Path, sync::Arc};

use serdes_files::{ReadAt, Tree};

use super::{Error, Source};

pub(super) fn open(_: Arc<dyn ReadAt>, path: &Path) -> Result<Box<dyn Source>, Error> {
    Err(missing(path))
}

pub(super) fn open_folder(_: Arc<dyn Tree>, folder: &Path) -> Result<Box<dyn Source>, Error> {
    Err(missing(folder))
}

/// Returns false: such an archive is reported as the npz that it may be as well.
pub(super) fn is_archive(_: &Arc<dyn ReadAt>, _: &Path) -> bool {
    false
}

/// Returns false: this format is unknown without the feature.
pub(super) fn is_legacy(_: &[u8]) -> bool {
    false
}

fn missing(path: &Path) -> Error {
    let reason = "this build reads no files of PyTorch's; enable the feature `torch`".to_owned();
    Error::UnknownForm { path: path.to_owned(), reason }
}
