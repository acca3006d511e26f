//! Tests of `serdes serve` as an operator runs it: metrics, health, logs, a service manager, a stop
//! that waits for sessions.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::{fs::PermissionsExt as _, net::UnixDatagram},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use serdes::ifrt::{DType, DeviceId, Shape};
use serdes_proxy::Client;

/// Longer than any successful step takes.
const LONG: Duration = Duration::from_secs(60);

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_serdes"));
    command.args(arguments).env_remove("RUST_LOG").env_remove("NOTIFY_SOCKET");
    command
}

/// A server that is stopped when the test ends.
struct Serving {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    address: String,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        Self::run(command(&[&["serve"], arguments].concat()))
    }

    fn run(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{line:?} {said}")
        });
        let address = address.to_owned();
        Self { child, lines, address }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits until the server ends by itself; returns its exit status and its output.
    fn ended(mut self) -> (Option<i32>, String) {
        let since = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(since.elapsed() < LONG, "the server is still there"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }

    fn stop(self) -> (Option<i32>, String) {
        self.signal("-TERM");
        self.ended()
    }

    /// Returns the address of the metrics, which is printed after the server's address.
    fn metrics(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("metrics at http://").unwrap();
        rest.strip_suffix("/metrics").unwrap().to_owned()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn page(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

async fn put(client: &Client, bytes: &'static [u8]) -> serdes_proxy::RemoteArray {
    let shape = Shape::new([bytes.len() as i64]).unwrap();
    client.put(DType::U8, &shape, DeviceId(0), bytes).await.unwrap()
}

fn health(address: &str, more: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, .. } =
        command(&[&["negotiate", address, "--health"], more].concat()).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap())
}

#[test]
fn metrics_are_on_a_listener_of_their_own_on_this_machine() {
    for listen in ["0", ":0", "127.0.0.1:0"] {
        let mut serving = Serving::start(&["--metrics", listen]);
        let metrics = serving.metrics();
        assert!(metrics.starts_with("127.0.0.1:"), "{metrics}");
        assert_ne!(metrics, serving.address);
        let page = page(&metrics);
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
        assert!(page.contains("\nserdes_proxy_sessions 0\n"), "{page}");
        assert_eq!(serving.stop().0, Some(0));
    }
    let output = command(&["serve", "--metrics", "nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let mut json = command(&["serve", "--metrics", "0", "--json"]);
    let mut child = json.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let object: Value = serde_json::from_str(&line).unwrap();
    assert!(object["listening"].is_string() && object["metrics"].is_string(), "{object}");
}

#[test]
fn health_is_asked_without_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "one-of-two-tokens\ntwo-of-two-tokens\n").unwrap();
    let serving = Serving::start(&["--token-file", tokens.to_str().unwrap()]);
    let (status, said) = health(&serving.address, &[]);
    assert_eq!(status, Some(0));
    assert_eq!(said.trim(), format!("{}: serving", serving.address));
    let (status, said) = health(&serving.address, &["--json"]);
    assert_eq!(status, Some(0));
    let object: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(object["health"], "serving");
    // Nothing else is served without a token.
    let negotiated = command(&["negotiate", &serving.address]).output().unwrap();
    assert_eq!(negotiated.status.code(), Some(2));
    let address = serving.address.clone();
    assert_eq!(serving.stop().0, Some(0));
    assert_eq!(health(&address, &[]).0, Some(2));
}

#[test]
fn a_stop_waits_for_sessions_and_saves_what_they_have_made() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("x.sds");
    let serving = Serving::start(&["--drain", "60", "--state", state.to_str().unwrap()]);
    let address = serving.address.clone();
    let runtime = runtime();
    let client = runtime.block_on(Client::connect(&address)).unwrap();
    let first = runtime.block_on(put(&client, b"before"));
    serving.signal("-TERM");
    while health(&address, &[]).0 != Some(1) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(runtime.block_on(Client::connect(&address)).is_err());
    // Running work continues, and finishes.
    let second = runtime.block_on(put(&client, b"meanwhile"));
    assert_eq!(runtime.block_on(client.get(&second)).unwrap(), &b"meanwhile"[..]);
    drop((first, second, client));
    runtime.shutdown_timeout(Duration::from_secs(1));
    let (status, said) = serving.ended();
    assert_eq!(status, Some(0), "{said}");
    // Data of clients is not readable by other users of this machine.
    let mode = fs::metadata(&state).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[test]
fn stop_waits_within_its_limit_and_a_second_one_not_at_all() {
    let runtime = runtime();
    let serving = Serving::start(&["--drain", "0.5"]);
    let client = runtime.block_on(Client::connect(&serving.address)).unwrap();
    let (status, said) = serving.stop();
    assert_eq!(status, Some(0), "{said}");
    drop(client);
    let serving = Serving::start(&["--drain", "unlimited"]);
    let client = runtime.block_on(Client::connect(&serving.address)).unwrap();
    serving.signal("-TERM");
    std::thread::sleep(Duration::from_millis(300));
    let (status, _) = serving.stop();
    assert_eq!(status, None, "it ends by the signal");
    drop(client);
    for wrong in ["-1", "soon"] {
        let output = command(&["serve", &format!("--drain={wrong}")]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

/// Returns the lines of a log that are objects.
fn objects(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_line_of_the_log_says_of_which_request_it_is_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "a-token-that-is-secret\n").unwrap();
    let tokens = tokens.to_str().unwrap();
    let serving = Serving::start(&["--log-format", "json", "-vv", "--token-file", tokens]);
    let runtime = runtime();
    let options = serdes_proxy::ClientOptions::default().with_token("a-token-that-is-secret");
    runtime.block_on(async {
        let client = Client::connect_with(&serving.address, options).await.unwrap();
        let array = put(&client, b"secret bytes").await;
        client.delete(&array).await.unwrap();
        assert!(client.get(&array).await.is_err());
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let (status, said) = serving.stop();
    assert_eq!(status, Some(0), "{said}");
    assert!(!said.contains("secret"), "{said}");
    let lines = objects(&said);
    assert!(lines.iter().all(|line| line["target"].as_str().unwrap().starts_with("serdes")));
    let failed = lines.iter().find(|line| line["message"] == "request failed").unwrap();
    let request = failed["span"]["request"].as_str().unwrap();
    let (session, number) = request.split_once('-').unwrap();
    assert_eq!(session, "1");
    assert!(number.parse::<u64>().unwrap() > 1);
    assert_eq!(failed["span"]["kind"], "CopyToHostBufferRequest");
    assert!(failed["code"].is_string() && failed["seconds"].is_number(), "{failed}");
    let answered = lines.iter().filter(|line| line["message"] == "request answered");
    let numbers: Vec<_> = answered.map(|line| line["span"]["request"].to_string()).collect();
    let mut once = numbers.clone();
    once.sort();
    once.dedup();
    assert!(once.len() == numbers.len() && numbers.len() >= 4, "{numbers:?}");
}

#[test]
fn levels_say_what_a_person_wants_to_know() {
    let said = |arguments: &[&str], level: Option<&str>| {
        let mut command = command(&[&["serve"], arguments].concat());
        if let Some(level) = level {
            command.env("RUST_LOG", level);
        }
        let serving = Serving::run(command);
        let runtime = runtime();
        let client = runtime.block_on(Client::connect(&serving.address)).unwrap();
        drop(client);
        runtime.shutdown_timeout(Duration::from_secs(1));
        let (status, said) = serving.stop();
        assert_eq!(status, Some(0), "{said}");
        said
    };
    assert_eq!(said(&[], None), "");
    let told = said(&["-v"], None);
    assert!(told.contains("session open") && told.contains("session over"), "{told}");
    assert!(!told.contains("request answered"), "{told}");
    let details = said(&["-vv"], None);
    assert!(details.contains("request answered") && !details.contains("h2::"), "{details}");
    assert!(said(&["-vvv"], None).contains("h2::"));
    assert_eq!(said(&["-vvv"], Some("off")), "");
}

/// Returns the server's messages to its service manager, up to the message `until`.
fn told(socket: &UnixDatagram, until: &str) -> String {
    let (mut all, mut buffer) = (String::new(), [0; 4096]);
    while !all.lines().any(|line| line == until) {
        let read = socket.recv(&mut buffer).unwrap();
        all.push_str(&String::from_utf8_lossy(&buffer[..read]));
        all.push('\n');
    }
    all
}

#[test]
fn systemd_is_notified_of_start_and_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    let mut command = command(&["serve", "--drain", "7"]);
    command.env("NOTIFY_SOCKET", &path);
    let serving = Serving::run(command);
    assert!(told(&socket, "READY=1").contains(&format!("STATUS=serving on {}", serving.address)));
    serving.signal("-TERM");
    let stopping = told(&socket, "STOPPING=1");
    // The time-out is at least as long as sessions may continue.
    let limit = stopping.lines().find_map(|line| line.strip_prefix("EXTEND_TIMEOUT_USEC="));
    assert!(limit.unwrap().parse::<u64>().unwrap() > 7_000_000, "{stopping}");
    assert_eq!(serving.ended().0, Some(0));
}

#[test]
fn certificates_are_read_again_on_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |certificate: &str, key: &str| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(certificate, made.cert.pem()).unwrap();
        fs::write(key, made.signing_key.serialize_pem()).unwrap();
    };
    let (certificate, key, old) = (path("certificate"), path("key"), path("old"));
    write(&certificate, &key);
    fs::copy(&certificate, &old).unwrap();
    let serving = Serving::start(&["--tls-cert", &certificate, "--tls-key", &key]);
    let address = format!("https://{}", serving.address);
    let trusts = |authority: &str| {
        let arguments = ["--tls-ca", authority, "--tls-name", "localhost"];
        health(&address, &arguments).0 == Some(0)
    };
    assert!(trusts(&old));
    write(&certificate, &key);
    serving.signal("-HUP");
    let since = Instant::now();
    while !trusts(&certificate) {
        assert!(since.elapsed() < LONG, "the old certificate is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!trusts(&old));
    // A file that is not a certificate changes nothing.
    fs::write(&certificate, "none").unwrap();
    serving.signal("-HUP");
    std::thread::sleep(Duration::from_millis(300));
    let (status, said) = serving.stop();
    assert_eq!(status, Some(0));
    assert!(said.contains("the old certificates stay"), "{said}");
}

#[test]
fn systemd_unit_is_valid_and_uses_existing_options() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let unit = fs::read_to_string(packaging.join("serdes-serve.service")).unwrap();
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let start = start
        .replace("/usr/bin/serdes serve", "")
        .replace("${SERDES_PLUGIN}", "host")
        .replace("${SERDES_LISTEN}", "127.0.0.1:0")
        .replace("${SERDES_METRICS}", "127.0.0.1:0")
        .replace("${SERDES_DRAIN}", "1")
        .replace("${STATE_DIRECTORY}", folder.path().to_str().unwrap())
        .replace("$SERDES_OPTIONS", "");
    let arguments: Vec<&str> = start.split_whitespace().collect();
    let serving = Serving::start(&arguments);
    assert_eq!(health(&serving.address, &[]).0, Some(0));
    assert_eq!(serving.stop().0, Some(0));
    assert!(folder.path().join("arrays.sds").exists());
    // If systemd is installed, it must know every directive.
    let copied = folder.path().join("serdes-serve.service");
    fs::write(&copied, unit.replace("/usr/bin/serdes", "/bin/true")).unwrap();
    if let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&copied).output() {
        let said = String::from_utf8_lossy(&verified.stderr);
        assert!(!said.contains("serdes-serve.service:"), "{said}");
    }
}
