//! Contents of a state in memory, and options for its file.

use std::{path::PathBuf, sync::Weak};

use serdes_device_state::{Reader, Versions, WriteOptions};

use super::{identity::FileIdentity, kept_arrays::KeptArrays, names::NamedArrays};
use crate::server::arrays::Array;

/// Source of arrays in open sessions, which is queried for each save.
pub(crate) trait LiveArrays: Send + Sync + 'static {
    /// Returns the arrays of each session.
    fn live(&self) -> Vec<NamedArrays>;
}

/// Location of a state's file, and options for writing it.
#[derive(Clone, Debug)]
pub(crate) struct StateOptions {
    pub(crate) path: PathBuf,
    /// Number of earlier states that are kept beside the last one.
    pub(crate) previous: u32,
    pub(crate) versions: Versions,
}

impl StateOptions {
    pub(super) fn write_options(&self) -> WriteOptions {
        WriteOptions::new(self.versions).with_previous(self.previous)
    }
}

/// An array of the state that a session has given to a program: the program's results replace it
/// once they are saved.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// Number of the session.
    pub(super) session: u64,
    pub(super) name: String,
    pub(super) array: Weak<Array>,
}

/// Contents of the state.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) arrays: KeptArrays,
    /// The last saved state, open: its arrays can be read even if another file has taken its name.
    pub(super) file: Option<Reader>,
    pub(super) identity: Option<FileIdentity>,
    /// Metadata of the file that are not the server's.
    pub(super) metadata: Vec<(String, String)>,
    pub(super) given: Vec<Given>,
    /// Arrays that clients deleted during a save; `None` outside of one.
    pub(super) deleted: Option<Vec<(String, Weak<Array>)>>,
}
