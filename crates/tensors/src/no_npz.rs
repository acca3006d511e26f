//! Stand-in for the module `npz` in builds without that feature.

use std::{path::Path, sync::Arc};

use serdes_files::{Durability, ReadAt};

use super::{Error, Source, Target, form::unknown};

pub(super) fn open(_: Arc<dyn ReadAt>, path: &Path) -> Result<Box<dyn Source>, Error> {
    Err(unknown(path, "this build reads no npz; enable the feature `npz`"))
}

pub(super) fn create(path: &Path, _: Durability) -> Result<Box<dyn Target>, Error> {
    Err(unknown(path, "this build writes no npz; enable the feature `npz`"))
}
