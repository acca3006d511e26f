//! The commit of an upload, which makes the object appear.

use std::{path::PathBuf, time::Duration};

use serdes_files::{Durability, object::Upload};

use crate::{Commit, Error};

/// Completes an upload, which makes the object appear.
pub(super) struct UploadCommit {
    pub(super) upload: Upload,
    /// Path for messages.
    pub(super) place: PathBuf,
}

impl Commit for UploadCommit {
    fn commit(self: Box<Self>, _: Durability) -> Result<Duration, Error> {
        self.upload.complete().map_err(|error| Error::io("finish", &self.place, error))
    }
}
