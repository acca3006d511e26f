//! Settings of the process that the work depends on and that a plug-in can change: the file mode
//! mask and the limit of a file's size.
//!
//! They are noted before foreign code is loaded, and put back at every step of the work. The
//! working directory needs no such thing: paths are made absolute before.

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

/// Keeps what the process writes from now on from other users. What was there before keeps its own
/// mode.
pub(crate) fn keep_private() {
    let mask = umask(Mode::RWXG | Mode::RWXO);
    umask(mask | Mode::RWXG | Mode::RWXO);
}

/// Notes the settings. To be called before there is a second thread, since the mask can only be
/// read by changing it.
pub(crate) fn note() {
    NOTED.get_or_init(|| {
        let mask = umask(Mode::RWXG | Mode::RWXO);
        umask(mask);
        Settings { mask, file_size: getrlimit(Resource::Fsize) }
    });
}

/// Puts back what was noted; nothing, where nothing was.
pub(crate) fn put_back() {
    let Some(settings) = NOTED.get() else { return };
    umask(settings.mask);
    if getrlimit(Resource::Fsize) != settings.file_size {
        // A limit that was lowered for good cannot be raised; writes beyond it fail then, and say
        // so.
        let _ = setrlimit(Resource::Fsize, settings.file_size);
    }
}
