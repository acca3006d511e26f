//! `serdes serve` where something around it fails: the plug-in, the place of the state, the system.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serdes::{
    ifrt::{DType, DeviceId, Shape},
    proxy::{Client, RemoteArray},
};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A server that listens, and ends with the test.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on ") else {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{line:?} {said}");
        };
        Self { address: address.to_owned(), child }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// How the server ends by itself within that time, and what it has said.
    fn ends_within(mut self, limit: Duration) -> (ExitStatus, String) {
        let since = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(since.elapsed() < limit, "the server is still there"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status, said)
    }

    fn stop(self) -> (Option<i32>, String) {
        self.signal("-TERM");
        let (status, said) = self.ends_within(Duration::from_secs(60));
        (status.code(), said)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn serve(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_serdes"));
    command.arg("serve").args(arguments);
    command
}

/// Connects and makes an array, which lives as long as the result.
async fn put(address: &str, bytes: &[u8]) -> (Client, RemoteArray) {
    let client = Client::connect(&format!("http://{address}")).await.unwrap();
    let shape = Shape::new([bytes.len() as i64]).unwrap();
    let array = client.put(DType::U8, &shape, DeviceId(0), bytes.to_vec()).await.unwrap();
    client.wait(&array).await.unwrap();
    (client, array)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// The stub plug-in of the library's tests in this folder, with this habit from its next start on.
fn stub(folder: &Path, habit: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let library = folder.join("libstub.so");
    if !library.exists() {
        let compiled = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
            .args(["-std=c11", "-shared", "-fPIC", "-I"])
            .arg(root.join("include"))
            .arg(root.join("tests/plugins/stub_plugin.c"))
            .arg("-o")
            .arg(&library)
            .status()
            .unwrap();
        assert!(compiled.success());
    }
    fs::write(folder.join("libstub.so.habits"), format!("name=STUB\n{habit}\n")).unwrap();
}

#[test]
fn a_plugin_that_hangs_in_a_copy_keeps_no_stop_waiting_and_costs_no_state() {
    let folder = tempfile::tempdir().unwrap();
    let (plugin, state) = (folder.path().join("libstub.so"), folder.path().join("x.sds"));
    let arguments = [
        "--plugin",
        text(&plugin),
        "--state",
        text(&state),
        // The stub's devices say that they have 100 bytes.
        "--limit",
        "array-bytes=1M",
        "--limit",
        "save-seconds=1",
        "--limit",
        "stop-seconds=1",
    ];
    let runtime = runtime();
    stub(folder.path(), "");
    let server = Serving::start(serve(&arguments));
    let held = runtime.block_on(put(&server.address, b"before"));
    let (status, said) = server.stop();
    assert_eq!(status, Some(0), "{said}");
    drop(held);
    let before = fs::read(&state).unwrap();
    // Whichever of the two a save copies by.
    stub(folder.path(), "hang=sync_memcpy_dtoh\nhang=memcpy_dtoh");
    let server = Serving::start(serve(&arguments));
    let held = runtime.block_on(put(&server.address, b"after"));
    server.signal("-TERM");
    let (status, said) = server.ends_within(Duration::from_secs(30));
    assert_eq!(status.code(), Some(2), "{status} {said}");
    assert!(said.contains("saving the state"), "{said}");
    assert_eq!(fs::read(&state).unwrap(), before);
    drop(held);
    // The next server finds the state as it was, and nothing in its way.
    stub(folder.path(), "");
    let (status, said) = Serving::start(serve(&arguments)).stop();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(fs::read(&state).unwrap(), before);
    let hidden = fs::read_dir(folder.path()).unwrap().flatten();
    let hidden = hidden.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0);
}

#[test]
fn two_servers_do_not_share_a_state_and_a_killed_one_locks_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("x.sds");
    let arguments = ["--state", text(&state)];
    let first = Serving::start(serve(&arguments));
    let second = serve(&arguments).output().unwrap();
    let Output { status, stdout, stderr } = second;
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("process {}", first.child.id())), "{said}");
    assert!(stdout.is_empty());
    // Another state beside it is nobody's.
    let beside = Serving::start(serve(&["--state", text(&folder.path().join("y.sds"))]));
    let (code, said) = beside.stop();
    assert_eq!(code, Some(0), "{said}");
    first.signal("-KILL");
    let (killed, _) = first.ends_within(Duration::from_secs(60));
    assert!(!killed.success());
    let (code, said) = Serving::start(serve(&arguments)).stop();
    assert_eq!(code, Some(0), "{said}");
    // By another name, too.
    let link = folder.path().join("link.sds");
    std::os::unix::fs::symlink(&state, &link).unwrap();
    let first = Serving::start(serve(&arguments));
    let second = serve(&["--state", text(&link)]).output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert_eq!(first.stop().0, Some(0));
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["link.sds", "x.sds", "y.sds"]);
}

#[test]
fn a_server_without_descriptors_waits_for_some_and_serves_again() {
    /// More than there are descriptors.
    const CONNECTIONS: usize = 80;
    /// What a client of HTTP/2 begins with: no stranger that can be sent away.
    const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let mut command = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_serdes");
    command.args(["-c", &format!("ulimit -n 48; exec '{program}' serve")]);
    let mut serving = Serving::start(command);
    let warnings = Arc::new(AtomicUsize::new(0));
    let said = BufReader::new(serving.child.stderr.take().unwrap());
    let counting = Arc::clone(&warnings);
    let reading = std::thread::spawn(move || {
        for line in said.lines().map_while(Result::ok) {
            if line.contains("no connection can be taken now") {
                counting.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(&serving.address).unwrap();
        // One that the server has not taken yet has room for this all the same.
        stream.write_all(BEGIN).unwrap();
        open.push(stream);
    }
    while warnings.load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_secs(2));
    // It waits from 5 to 500 ms: some ten times, where one that does not wait tries a hundred
    // thousand times.
    let tries = warnings.load(Ordering::Relaxed);
    assert!(tries < 100, "{tries}");
    drop(open);
    let answer = Command::new(program).args(["negotiate", &serving.address]).output().unwrap();
    assert_eq!(answer.status.code(), Some(0), "{answer:?}");
    serving.signal("-TERM");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
    reading.join().unwrap();
}
