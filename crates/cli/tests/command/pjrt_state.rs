//! Tests of `serdes save` and `serdes restore` with the PJRT plug-in over host memory, and of the
//! files that remain if a plug-in ends the process.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

use serde_json::{Value, json};
use serdes::ifrt::DeviceId;
use serdes_abi::pjrt::{Minor, function};
use serdes_device_state::Reader;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn serdes() -> Command {
    Command::new(env!("CARGO_BIN_EXE_serdes"))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the PJRT plug-in over host memory, built beside the command.
fn plugin() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_serdes")).parent().unwrap();
        let target = folder.parent().unwrap();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "serdes-host-pjrt", "--target-dir"]);
        build.arg(target).current_dir(root());
        if folder.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success());
        folder.join("libserdes_host_pjrt.so")
    })
}

/// Writes a file of tensors, one of which is transferred in pieces.
fn source(folder: &Path) -> PathBuf {
    const LONG: usize = (2 << 20) + 400;
    let header = json!({
        "long": { "dtype": "F32", "shape": [LONG / 4], "data_offsets": [0, LONG] },
        "none": { "dtype": "U8", "shape": [0], "data_offsets": [LONG, LONG] },
        "short": { "dtype": "BF16", "shape": [3, 1], "data_offsets": [LONG, LONG + 6] },
    });
    let header = header.to_string();
    let data: Vec<u8> = (0..LONG + 6).map(|at| (at * 7 + at / 251) as u8).collect();
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
    let path = folder.join("source.safetensors");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn tensors_pass_through_a_pjrt_plugin_detected_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let [state, back] = ["a.sds", "b.safetensors"].map(|name| folder.path().join(name));
    for named in [text(plugin()).to_owned(), format!("pjrt:{}", text(plugin()))] {
        let device = ["--plugin", &format!("{named}:devices=2"), "--device", "1", "--json"];
        let mut save = serdes();
        save.args(["save", "--from", text(&source), "-o", text(&state)]).args(device);
        let saved = save_output(&mut save);
        assert_eq!((&saved["plugin"], &saved["tensors"]), (&json!("serdes_host"), &json!(3)));
        let tensor = Reader::open(&state).unwrap().tensor("long").unwrap();
        assert_eq!(tensor.spec().sharding().devices().ids(), [DeviceId(1)]);
        let mut restore = serdes();
        restore.args(["restore", text(&state), "--to", text(&back), "--plugin", &named, "--json"]);
        let restored = save_output(&mut restore);
        assert_eq!(restored["read_back_verified"], json!(true));
        let mut dry_run = serdes();
        dry_run.args(["restore", text(&state), "--dry-run", "--plugin", &named, "--json"]);
        let fit = save_output(&mut dry_run);
        assert_eq!(fit["types"]["needed"], json!(["BF16", "F32", "U8"]));
        let offered = fit["types"]["offered"].as_array().unwrap();
        assert!(offered.contains(&json!("BF16")), "{fit}");
        assert_eq!(fit["mesh"], json!({"fits": true, "needed": 1, "offered": 1}));
        // A device of the other interface.
        let other = folder.path().join("c.safetensors");
        let mut restore = serdes();
        save_output(restore.args(["restore", text(&state), "--to", text(&other), "--json"]));
        let [back, other] = [&back, &other].map(|path| fs::read(path).unwrap());
        assert!(back == other);
        assert!(back.ends_with(&fs::read(&source).unwrap()[400..]), "other bytes came back");
    }
}

fn save_output(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    object(&output)
}

#[test]
fn invalid_pjrt_plugin_argument_is_an_error_of_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let (source, state) = (source(folder.path()), folder.path().join("a.sds"));
    let host = text(plugin());
    for (plugin, more, words) in [
        (host.to_owned(), &["--device", "1"][..], "has 1 device,"),
        (host.to_owned(), &["--layout", "tensorflow-2.14"], "is a PJRT plug-in"),
        (format!("{host}:devices"), &[], "expected KEY=VALUE"),
        (format!("{host}:devices=many"), &[], "devices"),
        (format!("{host}:devices=1,devices=2"), &[], "twice"),
        ("pjrt:nowhere.so".to_owned(), &[], "nowhere.so"),
        (format!("{}:devices=2", text(&source)), &[], "is no PJRT plug-in"),
    ] {
        let mut save = serdes();
        save.args(["save", "--from", text(&source), "-o", text(&state), "--json", "--plugin"]);
        let output = save.arg(&plugin).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{plugin}: {output:?}");
        let said = object(&output)["error"].as_str().unwrap().to_owned();
        assert!(said.contains(words), "{plugin}: {said}");
        assert!(!state.exists());
    }
}

/// Compiles the plug-in that ends its process into this folder.
fn dying(folder: &Path) -> PathBuf {
    let library = folder.join("libdying.so");
    let compiled = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-pedantic", "-shared", "-fPIC"])
        .arg(root().join("tests/plugins/pjrt_dying_plugin.c"))
        .args(["-ldl", "-o"])
        .arg(&library)
        .status()
        .unwrap();
    assert!(compiled.success());
    library
}

/// Returns the contents of a folder, and true if no file in it is unfinished.
fn files(folder: &Path) -> (BTreeMap<PathBuf, Vec<u8>>, bool) {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (parts, whole): (Vec<_>, Vec<_>) =
        entries.partition(|path| path.extension().is_some_and(|end| end == "partial"));
    let whole = whole.into_iter().map(|path| (path.clone(), fs::read(path).unwrap()));
    (whole.collect(), parts.is_empty())
}

/// The functions in which a plug-in ends the process: on opening, during transfers, at the end.
const FUNCTIONS: &[&str] = &[
    "PJRT_Plugin_Initialize",
    "PJRT_Client_Create",
    "PJRT_Client_BufferFromHostBuffer",
    "PJRT_Client_CreateBuffersForAsyncHostToDevice",
    "PJRT_AsyncHostToDeviceTransferManager_TransferData",
    "PJRT_Buffer_ReadyEvent",
    "PJRT_Buffer_ToHostBuffer",
    "PJRT_Buffer_CopyRawToHost",
    "PJRT_Event_Await",
    "PJRT_Buffer_Destroy",
    "PJRT_Client_Destroy",
];

/// Runs `command` with plug-ins that end the process. The file at `target` is `old` before, and
/// `new` after success.
fn survives(command: &[&str], folder: &Path, target: &Path, new: &[u8], manners: &[&str]) {
    let elsewhere = tempfile::tempdir().unwrap();
    let library = dying(elsewhere.path());
    let mut died = 0;
    for name in FUNCTIONS {
        let slot = function(name).unwrap().slot(Minor::new(80)).unwrap();
        for (manner, call) in manners.iter().flat_map(|manner| [(manner, 1), (manner, 2)]) {
            let what = format!("{command:?}: {name}, call {call}, {manner}");
            fs::write(target, "what was there").unwrap();
            let (before, _) = files(folder);
            let output = serdes()
                .args(command)
                .args(["--json", "--plugin", text(&library)])
                .env("DYING_REAL", plugin())
                .env("DYING_SLOT", slot.to_string())
                .env("DYING_CALL", call.to_string())
                .env("DYING_MANNER", manner)
                .output()
                .unwrap();
            match output.status.code() {
                // The plug-in did not end the process, or did so after the work was done.
                Some(0) => assert!(fs::read(target).unwrap() == new, "{what}: {output:?}"),
                status => {
                    died += 1;
                    assert_eq!(status, Some(2), "{what}: {output:?}");
                    let (after, is_all) = files(folder);
                    assert!(after == before && is_all, "{what}: {:?}", after.keys());
                    let said = object(&output)["error"].as_str().unwrap().to_owned();
                    let words = "did not let the work come to its end";
                    assert!(
                        said.contains(text(&library)) && said.contains(words),
                        "{what}: {said}"
                    );
                }
            }
        }
    }
    save_output(serdes().args(command).arg("--json"));
    assert!(files(folder).1, "{command:?}");
    assert!(fs::read(target).unwrap() == new);
    // Not every function is called twice, and the last ones are called after the work is done.
    assert!(died >= 6 * manners.len(), "{command:?}: {died}");
}

#[test]
fn plugin_that_dies_in_a_save_leaves_the_old_state() {
    let folder = tempfile::tempdir().unwrap();
    let (source, state) = (source(folder.path()), folder.path().join("a.sds"));
    let command = ["save", "--from", text(&source), "-o", text(&state)];
    let mut save = serdes();
    save_output(save.args(command).args(["--json", "--plugin", text(plugin())]));
    let new = fs::read(&state).unwrap();
    let manners = ["exit", "abort", "kill", "fault"];
    survives(&command, folder.path(), &state, &new, &manners);
}

#[test]
fn plugin_that_dies_in_a_restore_leaves_file_and_state() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let [state, back] = ["a.sds", "b.safetensors"].map(|name| folder.path().join(name));
    let mut save = serdes();
    save_output(save.args(["save", "--from", text(&source), "-o", text(&state), "--json"]));
    let command = ["restore", text(&state), "--to", text(&back)];
    save_output(serdes().args(command).arg("--json"));
    let new = fs::read(&back).unwrap();
    survives(&command, folder.path(), &back, &new, &["exit", "kill"]);
}

#[test]
fn save_finds_a_plug_in_that_answers_and_copies_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (source, state) = (source(folder.path()), folder.path().join("a.sds"));
    let command = ["save", "--from", text(&source), "-o", text(&state), "--json"];
    save_output(serdes().args(command).args(["--plugin", text(plugin())]));
    let new = fs::read(&state).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let library = dying(elsewhere.path());
    // The index of the memory among the arguments, in units of eight bytes.
    for (name, word) in [("PJRT_Buffer_ToHostBuffer", "4"), ("PJRT_Buffer_CopyRawToHost", "3")] {
        let slot = function(name).unwrap().slot(Minor::new(80)).unwrap();
        let mut found = 0;
        for call in 1..=4 {
            fs::write(&state, "what was there").unwrap();
            let output = serdes()
                .args(command)
                .args(["--plugin", text(&library)])
                .env("DYING_REAL", plugin())
                .env("DYING_SLOT", slot.to_string())
                .env("DYING_CALL", call.to_string())
                .env("DYING_MANNER", "lie")
                .env("DYING_TARGET", word)
                .output()
                .unwrap();
            let now = fs::read(&state).unwrap();
            if output.status.code() == Some(0) {
                assert!(now == new, "{name}, call {call}: other bytes were saved");
                continue;
            }
            found += 1;
            assert_eq!(output.status.code(), Some(2), "{name}, call {call}: {output:?}");
            let said = object(&output)["error"].as_str().unwrap().to_owned();
            let is_named = said.contains("\"long\"") || said.contains("\"short\"");
            assert!(said.contains("does not give back") && is_named, "{name} {call}: {said}");
            assert!(now == b"what was there" && files(folder.path()).1, "{name}, call {call}");
        }
        assert!(found > 0, "{name} is not called, or its lies are not found");
    }
}

/// Puts an array onto each device of the server at `address`, and reads it back.
fn put_and_get(address: &str) {
    use serdes::ifrt::{DType, Shape};
    use serdes_proxy::Client;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(&format!("http://{address}")).await.unwrap();
        assert_eq!(client.devices().len(), 2);
        for device in client.devices().iter().map(|device| device.id).collect::<Vec<_>>() {
            // In pieces, as a whole, with narrow elements, and empty.
            for (dtype, elements) in
                [(DType::F32, 3 << 20), (DType::BF16, 7), (DType::S4, 9), (DType::F64, 0)]
            {
                let bytes = elements as usize * dtype.unpacked_byte_size().unwrap() as usize;
                let data: Vec<u8> = (0..bytes).map(|at| ((at / 3) % 2) as u8).collect();
                let shape = Shape::new([elements]).unwrap();
                let array = client.put(dtype, &shape, device, data.clone()).await.unwrap();
                assert!(client.get(&array).await.unwrap() == data, "{dtype}");
            }
        }
    });
}

#[test]
fn server_over_a_pjrt_plugin_holds_arrays_and_keeps_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let (source, state) = (source(folder.path()), folder.path().join("a.sds"));
    let mut save = serdes();
    save_output(save.args(["save", "--from", text(&source), "-o", text(&state), "--json"]));
    let named = format!("{}:devices=2", text(plugin()));
    let mut server = serdes()
        .args(["serve", "--json", "--plugin", &named, "--state", text(&state), "--keep", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    put_and_get(said["listening"].as_str().unwrap());
    let stop = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert!(stop.success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
    let diff = serdes().args(["diff", text(&source), text(&state)]).output().unwrap();
    assert_eq!(diff.status.code(), Some(0), "{diff:?}");
}

/// Returns the status and the last message of a server over a plug-in that may end the process.
fn served(state: &Path, library: &Path, dying: [(&str, String); 3]) -> (Option<i32>, String) {
    let mut server = serdes()
        .args(["serve", "--json", "--keep", "0", "--state", text(state), "--plugin", text(library)])
        .env("DYING_REAL", plugin())
        .envs(dying)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut last = lines.next().unwrap_or_default();
    let said: Value = serde_json::from_str(&last).unwrap_or_default();
    if let Some(address) = said["listening"].as_str() {
        // The plug-in may end the server's process here.
        if is_put_and_got(address) {
            let _ = Command::new("kill").args(["-TERM", &server.id().to_string()]).status();
        }
    }
    last = lines.last().unwrap_or(last);
    (server.wait().unwrap().code(), last)
}

/// Returns true if arrays are read back. If not, the server has ended and has reported the failure.
fn is_put_and_got(address: &str) -> bool {
    use serdes::ifrt::{DType, Shape};
    use serdes_proxy::Client;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let trip = async {
        let client = Client::connect(&format!("http://{address}")).await?;
        let device = client.devices()[0].id;
        for elements in [3 << 20, 5] {
            let data = vec![1; elements as usize * 4];
            let shape = Shape::new([elements]).unwrap();
            let array = client.put(DType::F32, &shape, device, data).await?;
            client.get(&array).await?;
        }
        Ok::<_, serdes_proxy::ProxyError>(())
    };
    let limit = std::time::Duration::from_secs(60);
    let ended = runtime.block_on(async { tokio::time::timeout(limit, trip).await });
    ended.expect("the client was not told that the server is gone").is_ok()
}

#[test]
fn plugin_that_dies_under_a_server_leaves_the_old_state() {
    let folder = tempfile::tempdir().unwrap();
    let (source, state) = (source(folder.path()), folder.path().join("a.sds"));
    let mut save = serdes();
    save_output(save.args(["save", "--from", text(&source), "-o", text(&state), "--json"]));
    let elsewhere = tempfile::tempdir().unwrap();
    let library = dying(elsewhere.path());
    let (mut died, mut manners) = (0, ["exit", "abort", "kill", "fault"].into_iter().cycle());
    let calls = FUNCTIONS.iter().flat_map(|name| [(name, 1), (name, 4)]);
    for (name, call) in calls {
        let manner = manners.next().unwrap();
        let what = format!("{name}, call {call}, {manner}");
        let slot = function(name).unwrap().slot(Minor::new(80)).unwrap();
        let (status, said) = served(
            &state,
            &library,
            [
                ("DYING_SLOT", slot.to_string()),
                ("DYING_CALL", call.to_string()),
                ("DYING_MANNER", manner.to_owned()),
            ],
        );
        // Whatever happened, the file is a complete state with everything in it.
        let diff = serdes().args(["diff", text(&source), text(&state)]).output().unwrap();
        assert_eq!(diff.status.code(), Some(0), "{what}: {diff:?}");
        if status != Some(0) {
            died += 1;
            assert_eq!(status, Some(2), "{what}: {said}");
            let words = "did not let the work come to its end";
            assert!(said.contains(words) && said.contains(text(&library)), "{what}: {said}");
            assert!(files(folder.path()).1, "{what}");
        }
    }
    assert!(died >= 10, "{died}");
    // The next server removes the lock that a dead one left.
    let alive = [("DYING_SLOT", "0"), ("DYING_CALL", "0"), ("DYING_MANNER", "exit")];
    let (status, said) =
        served(&state, &library, alive.map(|(name, value)| (name, value.to_owned())));
    assert_eq!(status, Some(0), "{said}");
    assert!(files(folder.path()).1);
}

#[test]
fn plugin_of_the_sdk_fits_older_frameworks() {
    let inspected = save_output(serdes().args(["plugin", "inspect", text(plugin()), "--json"]));
    assert_eq!(inspected["oldest_framework"], json!("0.29"));
    let mut check = serdes();
    check.args(["plugin", "check", text(plugin()), "--for", "jaxlib-0.4.33", "--json"]);
    let checked = save_output(&mut check);
    assert_eq!((&checked["accepted"], &checked["for"]["fits"]), (&json!(true), &json!(true)));
    assert_eq!(checked["missing_optional"], json!([]));
}
