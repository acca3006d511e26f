//! Tests of `serdes serve` when something around it fails: the plug-in, the directory of the state,
//! the system.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serdes::ifrt::{DType, DeviceId, Shape};
use serdes_proxy::{Client, RemoteArray};

use crate::{
    serving::{Serving, serve},
    testkit::{BINARY, serdes, stub_in, text},
};

/// Connects and creates an array, which lives as long as the result.
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

#[test]
fn plugin_hanging_in_a_copy_delays_no_stop_and_costs_no_state() {
    let folder = tempfile::tempdir().unwrap();
    let (plugin, state) = (folder.path().join("libstub.so"), folder.path().join("x.sds"));
    let arguments = [
        "--plugin",
        text(&plugin),
        "--state",
        text(&state),
        // The stub's devices report 100 bytes of memory.
        "--limit",
        "array-bytes=1M",
        "--limit",
        "save-seconds=1",
        "--limit",
        "stop-seconds=1",
    ];
    let runtime = runtime();
    stub_in(folder.path(), "");
    let server = Serving::start(&arguments);
    let held = runtime.block_on(put(&server.address, b"before"));
    let (status, said) = server.stop();
    assert_eq!(status, Some(0), "{said}");
    drop(held);
    let before = fs::read(&state).unwrap();
    // A save copies with one of these two functions.
    stub_in(folder.path(), "hang=sync_memcpy_dtoh\nhang=memcpy_dtoh");
    let server = Serving::start(&arguments);
    let held = runtime.block_on(put(&server.address, b"after"));
    server.signal("-TERM");
    let (status, said) = server.ends_within(Duration::from_secs(30));
    assert_eq!(status.code(), Some(2), "{status} {said}");
    assert!(said.contains("saving the state"), "{said}");
    assert_eq!(fs::read(&state).unwrap(), before);
    drop(held);
    // The next server finds the state unchanged, and no leftovers.
    stub_in(folder.path(), "");
    let (status, said) = Serving::start(&arguments).stop();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(fs::read(&state).unwrap(), before);
    let hidden = fs::read_dir(folder.path()).unwrap().flatten();
    let hidden = hidden.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0);
}

#[test]
fn state_is_locked_by_one_live_server() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("x.sds");
    let arguments = ["--state", text(&state)];
    let first = Serving::start(&arguments);
    let second = serve(&arguments).output().unwrap();
    let Output { status, stdout, stderr } = second;
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("process {}", first.child.id())), "{said}");
    assert!(stdout.is_empty());
    // Another state beside it is not locked.
    let beside = Serving::start(&["--state", text(&folder.path().join("y.sds"))]);
    let (code, said) = beside.stop();
    assert_eq!(code, Some(0), "{said}");
    first.signal("-KILL");
    let (killed, _) = first.ends_within(Duration::from_secs(60));
    assert!(!killed.success());
    let (code, said) = Serving::start(&arguments).stop();
    assert_eq!(code, Some(0), "{said}");
    // Also through a link.
    let link = folder.path().join("link.sds");
    std::os::unix::fs::symlink(&state, &link).unwrap();
    let first = Serving::start(&arguments);
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
    /// First bytes of an HTTP/2 client, which the server cannot refuse as another protocol.
    const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n 48; exec '{BINARY}' serve")]);
    let mut serving = Serving::run(command);
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
        // The system buffers this even if the server has not accepted the connection yet.
        stream.write_all(BEGIN).unwrap();
        open.push(stream);
    }
    while warnings.load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_secs(2));
    // The server waits 5 to 500 ms between tries: some ten tries. Without waiting it would try a
    // hundred thousand times.
    let tries = warnings.load(Ordering::Relaxed);
    assert!(tries < 100, "{tries}");
    drop(open);
    let answer = serdes(&["negotiate", &serving.address]);
    assert_eq!(answer.status.code(), Some(0), "{answer:?}");
    serving.signal("-TERM");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
    reading.join().unwrap();
}
