//! Creates plug-ins in C for tests of the host: compiled once by the system's compiler, and copied
//! for each test, so that each test has its own library, name and counts.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serdes_stream_executor::{Error, LayoutChoice, Plugin, PluginOptions, Report};

/// The layouts by name, with their numbers in the C header.
pub(super) const LAYOUTS: [(&str, u32); 5] = [
    ("tensorflow-2.14", 21400),
    ("tensorflow-2.8", 20800),
    ("tensorflow-2.5", 20500),
    ("tensorflow-2.4", 20400),
    ("rfc-257", 257),
];

/// The newest layout.
pub(super) const NEWEST: &str = "tensorflow-2.14";

/// Longer than any call of a well-behaved plug-in; ends tests that hang.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Returns the library of a source in `tests/plugins` in a layout, which is compiled if necessary.
pub(super) fn compile(source: &str, layout: &str, flags: &[&str]) -> PathBuf {
    compile_file(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugins").join(source),
        layout,
        flags,
    )
}

/// Compiles a library from a few lines of C.
pub(super) fn compile_text(text: &str, flags: &[&str]) -> PathBuf {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source.c");
    std::fs::write(&source, text).unwrap();
    compile_file(&source, NEWEST, flags)
}

fn compile_file(source: &Path, layout: &str, flags: &[&str]) -> PathBuf {
    static COMPILING: Mutex<()> = Mutex::new(());
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let number = LAYOUTS.iter().find(|(name, _)| *name == layout).unwrap().1;
    let mut hasher = DefaultHasher::new();
    std::fs::read(source).unwrap().hash(&mut hasher);
    std::fs::read(include.join("serdes_stream_executor.h")).unwrap().hash(&mut hasher);
    (number, flags).hash(&mut hasher);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugins");
    let library = directory.join(format!("{:016x}.so", hasher.finish()));

    let _one_at_a_time = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
    if library.exists() {
        return library;
    }
    std::fs::create_dir_all(&directory).unwrap();
    // Renamed when it is complete, because other test binaries compile at the same time.
    let partial =
        directory.join(format!("{:016x}.{}.partial", hasher.finish(), std::process::id()));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(&compiler)
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
        .arg(format!("-DSERDES_SE_LAYOUT={number}"))
        .arg("-I")
        .arg(&include)
        .arg(source)
        .args(flags)
        .arg("-o")
        .arg(&partial)
        .output()
        .unwrap_or_else(|error| panic!("cannot run the C compiler {compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&partial, &library).unwrap();
    library
}

/// Loads the correct plug-in of a layout. All layouts use one platform name, so only one can be
/// loaded at a time: callers bind the guard first, so that the plug-in is dropped before it.
pub(super) fn correct(layout: &str) -> (MutexGuard<'static, ()>, Plugin) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    (guard, Plugin::load(compile("malloc_plugin.c", layout, &[])).unwrap())
}

/// Returns a name that no other plug-in of this process has.
pub(super) fn unused_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut name = "STUB_".to_owned();
    loop {
        name.push(char::from(b'A' + (number % 26) as u8));
        number /= 26;
        if number == 0 {
            return name;
        }
    }
}

/// A copy of the stub plug-in with fault switches (see `stub_plugin.c`).
pub(super) struct Stub {
    directory: tempfile::TempDir,
    name: String,
}

impl Stub {
    /// Creates the stub in that layout, with these fault switches, one per line.
    pub(super) fn new(layout: &str, switches: &str) -> Self {
        Self::linked(layout, switches, &[])
    }

    /// Creates the stub like [`Self::new`], linked with more flags.
    pub(super) fn linked(layout: &str, switches: &str, flags: &[&str]) -> Self {
        let stub = Self { directory: tempfile::tempdir().unwrap(), name: unused_name() };
        std::fs::copy(compile("stub_plugin.c", layout, flags), stub.path()).unwrap();
        let mut text = switches.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n");
        if !switches.lines().any(|line| line.trim().starts_with("name=")) {
            text.push_str(&format!("\nname={}", stub.name));
        }
        text.push('\n');
        std::fs::write(stub.directory.path().join("libstub.so.switches"), text.trim_start())
            .unwrap();
        stub
    }

    /// Creates the stub in the newest layout.
    pub(super) fn newest(switches: &str) -> Self {
        Self::new(NEWEST, switches)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("libstub.so")
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn open(&self) -> Result<Plugin, Error> {
        self.open_as(LayoutChoice::Detect)
    }

    pub(super) fn open_as(&self, layout: LayoutChoice) -> Result<Plugin, Error> {
        PluginOptions::new()
            .with_layout(layout)
            .with_time_limit(TIME_LIMIT)
            .open(self.path().to_str().unwrap())
    }

    pub(super) fn open_named(&self, layout: &str) -> Result<Plugin, Error> {
        self.open_as(LayoutChoice::named(layout).unwrap())
    }

    /// Returns the report of a registration that is refused.
    pub(super) fn refused(&self) -> Report {
        match self.open() {
            Err(Error::Refused(report)) => {
                assert!(!report.reasons.is_empty());
                *report
            }
            Err(error) => panic!("found {error}, expected a refusal"),
            Ok(_) => panic!("accepted, expected a refusal"),
        }
    }

    /// Returns the numbers of objects created and destroyed, by kind; empty if the plug-in was
    /// never loaded.
    pub(super) fn counts(&self) -> Vec<(&'static str, i64, i64)> {
        const KINDS: [&str; 14] = [
            "platforms",
            "platform functions",
            "devices",
            "device functions",
            "executors",
            "timer functions",
            "streams",
            "events",
            "timers",
            "device memory",
            "host memory",
            "unified memory",
            "allocators",
            "callbacks",
        ];
        let bytes = std::fs::read(self.directory.path().join("libstub.so.counts")).unwrap();
        let numbers: Vec<i64> = bytes
            .chunks_exact(8)
            .map(|bytes| i64::from_ne_bytes(bytes.try_into().unwrap()))
            .collect();
        KINDS
            .iter()
            .zip(numbers.chunks_exact(2))
            .map(|(kind, pair)| (*kind, pair[0], pair[1]))
            .collect()
    }

    /// Returns the number of created objects of a kind.
    pub(super) fn created(&self, kind: &str) -> i64 {
        self.counts().iter().find(|(name, ..)| *name == kind).unwrap().1
    }

    /// Asserts that no code of the library has run.
    #[track_caller]
    pub(super) fn assert_never_loaded(&self) {
        assert!(!self.directory.path().join("libstub.so.counts").exists());
    }

    /// Asserts that everything that was created is destroyed.
    #[track_caller]
    pub(super) fn assert_balanced(&self) {
        let left: Vec<_> = self
            .counts()
            .into_iter()
            .filter(|(_, created, destroyed)| created != destroyed)
            .collect();
        assert!(left.is_empty(), "(kind, created, destroyed): {left:?}");
    }
}

/// Returns bytes that differ from their neighbours.
pub(super) fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Copies bytes to a device of the plug-in and back in every way that it has.
#[track_caller]
pub(super) fn assert_moves_bytes(plugin: &Plugin) {
    let device = plugin.device(0).unwrap();
    let stream = device.create_stream().unwrap();
    for size in [1, 4096, 100_001] {
        let bytes = pattern(size);
        let memory = device.upload(&bytes).unwrap();
        assert!(device.download(&memory).unwrap() == bytes, "synchronous, {size} bytes");
        let second = device.allocate(size as u64).unwrap();
        match stream.copy_on_device(&memory, 0, &second, 0, size as u64) {
            Ok(()) => {
                let host = device.allocate_host(size).unwrap();
                let transfer = stream.copy_to_host(&second, 0, size, host).unwrap();
                assert!(transfer.wait().unwrap()[..] == bytes, "asynchronous, {size} bytes");
            }
            Err(error) => assert!(error.is_unsupported(), "{error}"),
        }
        stream.synchronize().unwrap();
    }
}
