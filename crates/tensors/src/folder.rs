//! Folders of files that hold tensors together: checkpoints of torch.distributed.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_files::{EntryKind, Tree, read_at::read_up_to};

use super::{Error, Source, torch};

/// The file that describes a checkpoint of torch.distributed, in its folder.
const DESCRIPTION: &str = ".metadata";

/// Returns the folder of the checkpoint of torch.distributed at a path: the path itself if it may
/// be one, or the folder of its description.
pub(super) fn of_distributed(tree: &dyn Tree, path: &Path, may_be: bool) -> Option<PathBuf> {
    if path.file_name().is_some_and(|name| name == DESCRIPTION) {
        return path.parent().map(Path::to_owned);
    }
    let is_folder = may_be && matches!(tree.look(path), Ok(EntryKind::Directory));
    (is_folder && is_distributed(tree, path)).then(|| path.to_owned())
}

/// Returns true if the folder has the description file of a torch.distributed checkpoint.
#[doc(hidden)]
pub fn is_distributed(tree: &dyn Tree, folder: &Path) -> bool {
    let head = || -> io::Result<bool> {
        let mut head = [0; 256];
        let file = tree.open(&folder.join(DESCRIPTION))?;
        let head = read_up_to(&file, &mut head, 0)?;
        // The pickle names a class of that module first.
        let module = b"torch.distributed";
        Ok(head.first() == Some(&0x80) && head.windows(module.len()).any(|part| part == module))
    };
    head().unwrap_or(false)
}

/// Opens the checkpoint of torch.distributed in a folder of any tree of files.
///
/// # Errors
/// If it is damaged or incomplete, or the feature `torch` is not enabled.
pub fn open_folder(tree: Arc<dyn Tree>, folder: &Path) -> Result<Box<dyn Source>, Error> {
    torch::open_folder(tree, folder)
}
