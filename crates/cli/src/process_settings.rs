//! Process settings that the work depends on and that a plug-in can change: the file mode mask and
//! the file size limit.
//!
//! They are recorded before foreign code is loaded, and restored at every step of the work. The
//! working directory is not needed: paths are made absolute before.

use std::sync::OnceLock;

use rustix::{
    fs::Mode,
    process::{Resource, Rlimit, getrlimit, setrlimit, umask},
};

struct Settings {
    mask: Mode,
    file_size: Rlimit,
}

static NOTED: OnceLock<Settings> = OnceLock::new();

/// Makes files that the process writes from now on private to the user. Existing files keep their
/// mode.
pub(crate) fn keep_private() {
    let mask = umask(Mode::RWXG | Mode::RWXO);
    umask(mask | Mode::RWXG | Mode::RWXO);
}

/// Records the settings. Must be called before there is a second thread, since reading the mask
/// requires changing it.
pub(crate) fn note() {
    NOTED.get_or_init(|| {
        let mask = umask(Mode::RWXG | Mode::RWXO);
        umask(mask);
        Settings { mask, file_size: getrlimit(Resource::Fsize) }
    });
}

/// Restores the recorded settings, if there are any.
pub(crate) fn put_back() {
    let Some(settings) = NOTED.get() else { return };
    umask(settings.mask);
    if getrlimit(Resource::Fsize) != settings.file_size {
        // A permanently lowered limit cannot be raised; writes beyond it then fail with an error.
        let _ = setrlimit(Resource::Fsize, settings.file_size);
    }
}
