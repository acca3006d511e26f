//! Common steps of the command's tests: run it, parse its output, find the data.
//!
//! These steps are only here. This module does not depend on the expected output of a command.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

/// The command that is tested.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_serdes");

/// Returns the command without arguments.
pub(crate) fn command() -> Command {
    #[cfg(unix)]
    hear_signals();
    Command::new(BINARY)
}

/// Makes child processes react to the signals that tests send, even if the tests were started with
/// these signals ignored, as `nohup` and a shell's background jobs do: child processes inherit
/// ignored signals, but not caught ones.
#[cfg(unix)]
pub(crate) fn hear_signals() {
    use signal_hook::consts::signal::{SIGHUP, SIGINT};
    static HEARD: std::sync::Once = std::sync::Once::new();
    HEARD.call_once(|| {
        for signal in ignored(&[SIGHUP, SIGINT]) {
            signal_hook::flag::register(signal, std::sync::Arc::default()).unwrap();
        }
    });
}

/// Returns the signals that this process ignores; none if the system does not tell.
#[cfg(unix)]
fn ignored(signals: &[i32]) -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
    signals.iter().copied().filter(|signal| mask >> (signal - 1) & 1 == 1).collect()
}

/// Runs the command to its end.
pub(crate) fn serdes(arguments: &[&str]) -> Output {
    command().args(arguments).output().unwrap()
}

/// Returns the exit status; panics if the process was killed.
pub(crate) fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// Returns the output for people.
pub(crate) fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the JSON objects in the output.
pub(crate) fn objects(output: &Output) -> Vec<Value> {
    printed(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs the command, and returns the JSON objects that it prints.
pub(crate) fn objects_of(arguments: &[&str]) -> Vec<Value> {
    objects(&serdes(arguments))
}

/// Returns a path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the path of a file of the test data.
pub(crate) fn data(path: &str) -> PathBuf {
    root().join("tests/data").join(path)
}

/// Returns a small file of tensors of many types.
pub(crate) fn tiny() -> PathBuf {
    data("safetensors/tiny.safetensors")
}

/// Creates a state of one tensor called `name`, from a safetensors file.
pub(crate) fn state_of(folder: &Path, name: &str) -> PathBuf {
    let header = json!({ name: { "dtype": "U8", "shape": [2], "data_offsets": [0, 2] } });
    let header = header.to_string();
    let (source, state) = (folder.join("source.safetensors"), folder.join("state.sds"));
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), b"ab"].concat();
    fs::write(&source, bytes).unwrap();
    let save = serdes(&["save", "--from", text(&source), "-o", text(&state)]);
    assert_eq!(status(&save), 0, "{save:?}");
    state
}

/// Puts the stub plug-in of the library's tests into this folder, with these fault switches.
#[cfg(target_os = "linux")]
pub(crate) fn stub_in(folder: &Path, switches: &str) -> PathBuf {
    let library = folder.join("libstub.so");
    if !library.exists() {
        compile(&root().join("tests/plugins/stub_plugin.c"), &library);
    }
    fs::write(folder.join("libstub.so.switches"), format!("name=STUB\n{switches}\n")).unwrap();
    library
}

/// Puts the stub plug-in with these fault switches into a new folder.
#[cfg(target_os = "linux")]
pub(crate) fn stub(switches: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let library = stub_in(folder.path(), switches);
    (folder, library)
}

/// Compiles C to a shared library.
#[cfg(target_os = "linux")]
pub(crate) fn compile(source: &Path, library: &Path) {
    let compiled = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
        .args(["-std=c11", "-shared", "-fPIC", "-I"])
        .arg(root().join("include"))
        .arg(source)
        .arg("-o")
        .arg(library)
        .status()
        .unwrap();
    assert!(compiled.success());
}

/// Copies a model of the tests with all of its files to `place`.
pub(crate) fn copy_model(name: &str, place: &Path) {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => copy(&entry.path(), &to),
                false => drop(fs::copy(entry.path(), to).unwrap()),
            }
        }
    }
    copy(&data(&format!("tensorflow/sm/{name}")), place);
}
