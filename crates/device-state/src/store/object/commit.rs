//! The commit of an upload, which makes it appear as a state or another object.

use std::{path::PathBuf, time::Duration};

use serdes_files::{Durability, object::Upload};

use crate::{Commit, Error};

/// The end of an upload that makes the object appear.
pub(super) struct UploadCommit {
    pub(super) upload: Upload,
    /// For messages.
    pub(super) place: PathBuf,
}

impl Commit for UploadCommit {
    fn commit(self: Box<Self>, _: Durability) -> Result<Duration, Error> {
        self.upload.complete().map_err(|error| Error::io("finish", &self.place, error))
    }
}
