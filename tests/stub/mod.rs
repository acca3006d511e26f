//! Builds the C plug-ins of `tests/plugins` with the system's compiler, and copies of them with habits.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serdes::stream_executor::{Error, LayoutChoice, Plugin};
use tempfile::TempDir;

/// The names of all layouts.
pub(crate) const LAYOUTS: [&str; 5] =
    ["tensorflow-2.14", "tensorflow-2.8", "tensorflow-2.5", "tensorflow-2.4", "rfc-257"];

/// Whether there is a C compiler; says once if there is none.
pub(crate) fn has_compiler() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let found = Command::new("cc").arg("--version").output().is_ok();
        if !found {
            eprintln!("skipped: there is no C compiler `cc` on this machine");
        }
        found
    })
}

/// A shared library in a folder of its own.
pub(crate) struct Compiled {
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

fn compile(source: &Path, flags: &[&str]) -> Compiled {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libplugin.so");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let output = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
        .arg("-I")
        .arg(include)
        .arg(source)
        .args(["-Wl,--no-as-needed"])
        .args(flags)
        .arg("-o")
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Compiled { path, _folder: folder }
}

/// Compiles a few lines of C into a shared library.
pub(crate) fn compile_text(text: &str, flags: &[&str]) -> Compiled {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source.c");
    std::fs::write(&source, text).unwrap();
    compile(&source, flags)
}

/// The library of `tests/plugins/stub_plugin.c` in a layout, compiled once a test binary.
fn library(layout: &str, flags: &[&str]) -> PathBuf {
    static LIBRARIES: Mutex<Option<HashMap<String, Compiled>>> = Mutex::new(None);
    let mut libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("{layout} {}", flags.join(" "));
    let compiled = libraries.get_or_insert_default().entry(key).or_insert_with(|| {
        let selector = layout.replace(['-', '.'], "_").to_uppercase();
        let define = format!("-DSERDES_SE_LAYOUT=SERDES_SE_{selector}");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugins/stub_plugin.c");
        compile(&source, &[&[define.as_str()], flags].concat())
    });
    compiled.path.clone()
}

/// A copy of the stub plug-in with habits: a library of its own, with a platform name of its own.
pub(crate) struct Stub {
    folder: TempDir,
    habits: String,
}

impl Stub {
    /// The stub of a layout with these habits, one a line; `None` without a C compiler.
    pub(crate) fn new(layout: &str, habits: &str) -> Option<Self> {
        Self::linked(layout, habits, &[])
    }

    /// As [`Self::new`], linked with more flags.
    pub(crate) fn linked(layout: &str, habits: &str, flags: &[&str]) -> Option<Self> {
        if !has_compiler() {
            return None;
        }
        static NEWEST: AtomicU32 = AtomicU32::new(0);
        let mut habits = habits.to_owned();
        if !habits.lines().any(|line| line.starts_with("name=")) {
            // Names have no digits.
            let number = NEWEST.fetch_add(1, Ordering::Relaxed);
            let letters: String =
                number.to_string().bytes().map(|digit| char::from(b'A' + digit - b'0')).collect();
            habits = format!("name=STUB_{letters}\n{habits}");
        }
        let folder = tempfile::tempdir().unwrap();
        let stub = Self { folder, habits };
        std::fs::copy(library(layout, flags), stub.path()).unwrap();
        std::fs::write(stub.beside("habits"), format!("{}\n", stub.habits)).unwrap();
        Some(stub)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("libstub.so")
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.folder.path().join(format!("libstub.so.{extension}"))
    }

    pub(crate) fn habits(&self) -> &str {
        &self.habits
    }

    pub(crate) fn load(&self) -> Result<Plugin, Error> {
        Plugin::load(self.path())
    }

    pub(crate) fn open(&self, layout: LayoutChoice) -> Result<Plugin, Error> {
        Plugin::open(self.path().to_str().unwrap(), layout)
    }

    /// Everything that was created has been destroyed.
    pub(crate) fn assert_balanced(&self) {
        let bytes = std::fs::read(self.beside("counts")).unwrap_or_default();
        for (kind, pair) in bytes.chunks_exact(16).enumerate() {
            let number = |at: usize| i64::from_ne_bytes(pair[at..at + 8].try_into().unwrap());
            // The last kind is callbacks, which are not objects.
            if kind < 13 {
                assert_eq!(number(0), number(8), "kind {kind} with {}", self.habits);
            }
        }
    }

    /// Nothing of the library has run.
    pub(crate) fn assert_never_loaded(&self) {
        assert!(!self.beside("counts").exists());
    }
}
