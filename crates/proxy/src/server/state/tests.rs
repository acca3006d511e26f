use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serdes::{
    codec::{DeserializeOptions, FromProto as _, StatusCode, ToProto as _},
    ifrt::{ArraySpec, AttributeMap, DType, Shape},
    proto::{
        tensorflow::StatusProto,
        xla::ifrt::proxy::{
            CheckFutureRequest, DeleteArrayRequest, InitRequest, InitResponse,
            MakeErrorArraysRequest, ifrt_request::Request, ifrt_response::Response,
        },
    },
    version::SerDesVersion,
};
use serdes_device_state::{Reader, Versions, WriteOptions};
use serdes_stream_executor::{LayoutChoice, Plugin};
use tokio::net::TcpListener;

use crate::{
    ProxyError, Ranges, requests,
    server::{
        Limits, LocalSession, Server, ServerBuilder,
        peers::{Caller, Identity},
        requests::begin,
        tests::session::{Client, on, tiled},
    },
};

mod deletion;
mod name_limits;
#[cfg(unix)]
mod place;

/// A folder for a state.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("state.sds")
    }

    fn builder(&self) -> ServerBuilder {
        let plugin = Plugin::open("host:devices=2", LayoutChoice::Detect).unwrap();
        let limits = Limits { stop_timeout: Duration::from_secs(2), ..Limits::default() };
        Server::builder(&plugin)
            .limits(limits)
            .state(self.path())
            .state_versions(Versions::current())
    }

    fn server(&self) -> Server {
        self.builder().build().unwrap()
    }

    /// Returns the names in the file.
    fn names(&self) -> Vec<String> {
        names(&self.path())
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        let tensor = Reader::open(self.path()).unwrap().tensor(name).unwrap();
        tensor.read().unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Returns the files beside the lock of a running server.
    fn files(&self) -> Vec<String> {
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut files: Vec<_> =
            fs::read_dir(self.0.path()).unwrap().map(|entry| name(entry.unwrap())).collect();
        files.retain(|name| name != ".state.sds.lock");
        files.sort();
        files
    }
}

fn names(path: &Path) -> Vec<String> {
    Reader::open(path).unwrap().names().map(str::to_owned).collect()
}

/// Opens a session with that initialization data, for a client without identification.
fn open(server: &Server, data: &[(&str, &str)]) -> Client {
    open_as(server, &server.registry.own_caller(), data)
}

/// Returns a client that has shown a token with this hash.
fn known(server: &Server, token: u8) -> Caller {
    let caller = server.registry.own_caller();
    let identity = Identity { token: Some([token; 32]), ..caller.identity };
    Caller { identity, ..caller }
}

fn open_as(server: &Server, caller: &Caller, data: &[(&str, &str)]) -> Client {
    let map: AttributeMap = data.iter().map(|(key, value)| (*key, (*value).into())).collect();
    let agreement = crate::Handshake::answer(server.registry.ranges, Ranges::supported()).unwrap();
    let session = server.registry.open(agreement, &map, caller).unwrap();
    Client::of(LocalSession::new(Arc::clone(&server.registry), session))
}

async fn init(client: &mut Client) -> Result<InitResponse, StatusCode> {
    match client.ask(Request::InitRequest(InitRequest {})).await? {
        Response::InitResponse(answer) => Ok(answer),
        _ => panic!("another answer"),
    }
}

/// Opens a session to which the client gives a name, and asserts that it has the name.
async fn named(server: &Server, name: &str) -> Client {
    let mut client = open(server, &[("serdes.state.name", name)]);
    init(&mut client).await.unwrap();
    client
}

fn handle(answer: InitResponse, array: &str) -> Option<u64> {
    let attributes = answer.client_attributes?;
    let map = AttributeMap::from_proto(&attributes, &DeserializeOptions::new()).unwrap();
    map.int64(&format!("serdes.state.handle.{array}")).ok().map(i64::cast_unsigned)
}

/// Returns the result of a deletion's future.
async fn delete(client: &mut Client, handle: u64) -> Result<(), StatusCode> {
    let request = DeleteArrayRequest { array_handle: vec![handle] };
    let answer = client.ask(Request::DeleteArrayRequest(request)).await?;
    let Response::DeleteArrayResponse(answer) = answer else { panic!("another answer") };
    let future_handle = answer.deletion_future_handle;
    let check = CheckFutureRequest { future_handle };
    client.ask(Request::CheckFutureRequest(check)).await.map(drop)
}

/// Serves until `before` is done, and stops.
async fn stop(server: Server, before: impl Future<Output = ()> + Send) -> Result<(), ProxyError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    tokio::time::timeout(Duration::from_secs(60), server.serve(listener, before)).await.unwrap()
}

#[tokio::test]
async fn snapshot_of_an_unnamed_client_outlives_the_server() {
    let place = Folder::new();
    let server = place.server();
    let mut client = open(&server, &[]);
    client.put(1, b"one", &on(&[0])).await.unwrap();
    client.put(2, b"two", &on(&[1])).await.unwrap();
    client.session.store(3, vec![3; 64].into()).await.unwrap();
    client.make(3, DType::F32, &[4, 4], &tiled(&[2, 1])).await.unwrap();
    assert_eq!(server.save().await.unwrap(), 3);
    client.destruct(1).await.unwrap();
    drop(client);
    // Their names are not given to other arrays.
    let mut other = open(&server, &[]);
    other.put(1, b"other", &on(&[0])).await.unwrap();
    assert_eq!(server.save().await.unwrap(), 4);
    drop(other);
    stop(server, async {}).await.unwrap();
    let expected = ["session-1/1", "session-1/2", "session-1/3", "session-2/1"];
    assert_eq!(place.names(), expected);

    let server = place.server();
    let mut third = open(&server, &[]);
    third.put(1, b"third", &on(&[0])).await.unwrap();
    server.save().await.unwrap();
    drop(third);
    stop(server, async {}).await.unwrap();
    assert_eq!(place.names()[..4], expected);
    assert_eq!(place.names()[4], "session-3/1");
    assert_eq!(place.bytes("session-1/2"), b"two");
    assert_eq!(place.bytes("session-1/3"), [3; 64]);
    assert_eq!(place.bytes("session-2/1"), b"other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_while_the_state_is_saved_loses_nothing() {
    for _ in 0..100 {
        let place = Folder::new();
        let server = place.server();
        let mut client = named(&server, "model").await;
        client.put(1, b"abc", &on(&[0])).await.unwrap();
        let end = tokio::task::spawn_blocking(move || drop(client));
        server.save().await.unwrap();
        end.await.unwrap();
        assert_eq!(place.names(), ["model/1"]);
    }
}

#[tokio::test]
async fn pending_arrays_are_left_out_of_a_save_without_waiting() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, "model").await;
    client.put(1, b"abc", &on(&[0])).await.unwrap();
    // A host buffer that is announced, but never sent.
    let mut idle = open(&server, &[]);
    let waiting = tokio::spawn(async move { idle.make(1, DType::U8, &[4], &on(&[0])).await });
    let spec = ArraySpec::new(DType::U8, Shape::new([1]).unwrap(), on(&[0]));
    let request = MakeErrorArraysRequest {
        error: Some(StatusProto { code: 10, message: "gone".into(), ..Default::default() }),
        array_specs: vec![spec.to_proto(SerDesVersion::current()).unwrap()],
        array_handles: vec![2],
    };
    client.ask(Request::MakeErrorArraysRequest(request)).await.unwrap();
    while server.metrics().arrays < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.save().await.unwrap(), 1);
    assert_eq!((server.metrics().saved_arrays, server.metrics().left_out_arrays), (1, 2));
    client.put(3, b"def", &on(&[0])).await.unwrap();
    stop(server, async {}).await.unwrap();
    assert_eq!(place.names(), ["model/1", "model/3"]);
    waiting.abort();
}

#[tokio::test]
async fn only_a_deletion_takes_a_named_array_out_of_the_state() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, "model").await;
    for handle in 1..=4 {
        client.put(handle, &[handle as u8], &on(&[0])).await.unwrap();
    }
    assert_eq!(server.save().await.unwrap(), 4);
    client.destruct(1).await.unwrap();
    client.delete(2).await.unwrap();
    assert_eq!(server.save().await.unwrap(), 3);
    client.delete(3).await.unwrap();
    drop(client);
    stop(server, async {}).await.unwrap();
    assert_eq!(place.names(), ["model/1", "model/4"]);

    // An array of the earlier server, by the handle that every client gets.
    let server = place.server();
    let mut client = open(&server, &[]);
    let answer = init(&mut client).await.unwrap();
    let handle = handle(answer, "model/4").unwrap();
    assert_eq!(&client.get(handle, 1).await.unwrap()[..], [4]);
    client.delete(handle).await.unwrap();
    stop(server, async {}).await.unwrap();
    assert_eq!(place.names(), ["model/1"]);
}

#[tokio::test]
async fn arrays_with_server_chosen_handles_are_saved() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, "model").await;
    for (buffer, bytes) in [(1, b"one"), (2, b"two")] {
        client.session.store(buffer, bytes.to_vec().into()).await.unwrap();
        let answer = client.make_somewhere(buffer, DType::U8, &[3], &on(&[1])).await.unwrap();
        assert!(answer >= 1 << 63, "{answer}");
        if buffer == 2 {
            assert_eq!(server.save().await.unwrap(), 2);
            delete(&mut client, answer).await.unwrap();
        }
    }
    drop(client);
    stop(server, async {}).await.unwrap();
    let [name] = &place.names()[..] else { panic!("{:?}", place.names()) };
    assert!(name.starts_with("model/"), "{name}");
    assert_eq!(place.bytes(name), b"one");

    // An array that the server shows keeps its only name.
    let server = place.server();
    let client = named(&server, "model").await;
    assert_eq!(server.save().await.unwrap(), 1);
    drop(client);
    stop(server, async {}).await.unwrap();
    assert_eq!(place.names(), std::slice::from_ref(name));
}

/// Donates arrays of a session to a program.
fn give(server: &Server, handles: &[u64]) {
    let sessions: Vec<_> = server.registry.sessions().values().cloned().collect();
    let [session] = &sessions[..] else { panic!("{} sessions", sessions.len()) };
    for handle in handles {
        let array = session.table().array(*handle).unwrap();
        session.state.give(&session.names, *handle, &array);
        session.table().delete(*handle).unwrap();
    }
}

#[tokio::test]
async fn donated_array_leaves_the_state_with_the_next_save() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, "model").await;
    // Steps of a loop; the state is saved after each of them.
    for step in 1..=5 {
        if step > 1 {
            give(&server, &[step - 1]);
            // There is no result yet, so the donated array is kept.
            server.save().await.unwrap();
            assert_eq!(place.names(), [format!("model/{}", step - 1)]);
        }
        client.put(step, &[step as u8], &on(&[0])).await.unwrap();
        server.save().await.unwrap();
        assert_eq!(place.names(), [format!("model/{step}")]);
    }
    // The result failed, or is not ready yet.
    give(&server, &[5]);
    let spec = ArraySpec::new(DType::U8, Shape::new([1]).unwrap(), on(&[0]));
    let request = MakeErrorArraysRequest {
        error: Some(StatusProto { code: 10, message: "gone".into(), ..Default::default() }),
        array_specs: vec![spec.to_proto(SerDesVersion::current()).unwrap()],
        array_handles: vec![6],
    };
    client.ask(Request::MakeErrorArraysRequest(request)).await.unwrap();
    let waits = server.registry.sessions().values().next().cloned().unwrap();
    client.put(7, b"seven", &on(&[0])).await.unwrap();
    let unsent = requests::make_array(
        DType::U8,
        &Shape::new([4]).unwrap(),
        &on(&[0]),
        None,
        8,
        SerDesVersion::current(),
    );
    let unsent = Request::MakeArrayFromHostBufferRequest(unsent.unwrap());
    let later = begin(&waits, Some(&unsent));
    server.save().await.unwrap();
    assert_eq!(place.names(), ["model/5", "model/7"]);
    drop(later);
    drop(waits);
    // Nor is it removed with its session.
    drop(client);
    stop(server, async {}).await.unwrap();
    assert_eq!(place.names(), ["model/5", "model/7"]);
}

#[tokio::test]
async fn a_new_array_that_was_never_saved_takes_no_older_one_with_it() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, "model").await;
    client.put(1, b"old", &on(&[0])).await.unwrap();
    drop(client);
    stop(server, async {}).await.unwrap();

    let server = place.server();
    let mut client = named(&server, "model").await;
    client.put(1, b"new", &on(&[0])).await.unwrap();
    client.delete(1).await.unwrap();
    server.save().await.unwrap();
    assert_eq!(place.bytes("model/1"), b"old");
    client.destruct(1).await.unwrap();
    client.put(1, b"newer", &on(&[0])).await.unwrap();
    server.save().await.unwrap();
    assert_eq!(place.bytes("model/1"), b"newer");
    drop(client);
    stop(server, async {}).await.unwrap();
    assert_eq!(place.bytes("model/1"), b"newer");
}

#[tokio::test]
async fn names_belong_to_who_made_them() {
    let place = Folder::new();
    let server = place.server();
    let mut first = named(&server, "a").await;
    first.put(1, b"a", &on(&[0])).await.unwrap();
    let attacks = [
        ("serdes.state.name.1", "a/1"),
        ("serdes.state.name.9", "a/7"),
        ("serdes.state.name", "a"),
    ];
    for attack in attacks {
        let mut second = open(&server, &[attack]);
        assert_eq!(init(&mut second).await, Err(StatusCode::AlreadyExists), "{attack:?}");
        // Its arrays are still saved, under other names.
        second.put(1, b"evil", &on(&[0])).await.unwrap();
        second.put(9, b"evil", &on(&[0])).await.unwrap();
        server.save().await.unwrap();
        assert_eq!(place.bytes("a/1"), b"a");
    }
    drop(first);
    // Kept, and restored by another server.
    stop(server, async {}).await.unwrap();
    let server = place.server();
    let mut second = open(&server, &[("serdes.state.name.1", "a/1")]);
    assert_eq!(init(&mut second).await, Err(StatusCode::AlreadyExists));
    drop(second);
    let mut first = named(&server, "a").await;
    first.put(1, b"again", &on(&[0])).await.unwrap();
    server.save().await.unwrap();
    assert_eq!(place.bytes("a/1"), b"again");
}

#[tokio::test]
async fn name_of_a_returning_client_is_free_after_its_session() {
    let place = Folder::new();
    let server = place.server();
    let first = named(&server, "model").await;
    let mut again = open(&server, &[("serdes.state.name", "model")]);
    let asked = tokio::spawn(async move { init(&mut again).await.map(drop) });
    tokio::task::yield_now().await;
    drop(first);
    assert_eq!(asked.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn stop_without_changes_leaves_the_file_alone() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, "model").await;
    client.put(1, b"abc", &on(&[0])).await.unwrap();
    drop(client);
    server.save().await.unwrap();
    let before = super::identity::FileIdentity::of(&place.path());
    stop(server, async {}).await.unwrap();
    assert_eq!(super::identity::FileIdentity::of(&place.path()), before);
    let server = place.server();
    stop(server, async {}).await.unwrap();
    assert_eq!(super::identity::FileIdentity::of(&place.path()), before);
    assert_eq!(place.files(), ["state.sds"]);

    let server = place.builder().previous_states(2).build().unwrap();
    let mut client = named(&server, "other").await;
    for handle in 1..=4 {
        client.put(handle, b"abc", &on(&[0])).await.unwrap();
        server.save().await.unwrap();
    }
    assert_eq!(place.files(), ["state.sds", "state.sds.1", "state.sds.2"]);
    let counts: Vec<_> = ["", ".1", ".2"]
        .map(|end| names(&place.0.path().join(format!("state.sds{end}"))).len())
        .into();
    assert_eq!(counts, [5, 4, 3]);
    // A file that was removed is written again.
    fs::remove_file(place.path()).unwrap();
    stop(server, async {}).await.unwrap();
    assert_eq!(place.names().len(), 5);
}

#[tokio::test]
async fn save_that_fails_at_the_stop_is_retried_without_loss() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, "model").await;
    client.put(1, b"abc", &on(&[0])).await.unwrap();
    server.save().await.unwrap();
    client.put(2, b"def", &on(&[0])).await.unwrap();
    // The folder is missing when the server stops, and reappears while the server retries.
    let (folder, away) = (place.0.path().to_path_buf(), place.0.path().with_extension("away"));
    fs::rename(&folder, &away).unwrap();
    let back = {
        let (folder, away) = (folder.clone(), away.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(400)).await;
            fs::rename(away, folder).unwrap();
        })
    };
    stop(server, async {}).await.unwrap();
    back.await.unwrap();
    assert_eq!(place.names(), ["model/1", "model/2"]);

    let server = place.server();
    let mut client = named(&server, "model").await;
    client.put(3, b"ghi", &on(&[0])).await.unwrap();
    fs::rename(&folder, &away).unwrap();
    let error = stop(server, async {}).await.unwrap_err();
    fs::rename(&away, &folder).unwrap();
    assert!(matches!(error, ProxyError::State(_)), "{error}");
    assert_eq!(place.names(), ["model/1", "model/2"]);
    assert_eq!(place.files(), ["state.sds", "state.sds.1"]);
}

#[tokio::test]
async fn a_save_that_is_given_up_ends_the_stop() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, "model").await;
    client.put(1, b"abc", &on(&[0])).await.unwrap();
    // Acts like a hanging save: it holds the lock for which the next save waits.
    let hanging = Arc::clone(&server.registry.state.saving).lock_owned().await;
    let hurry = server.clone();
    let error = stop(server, async move {
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            hurry.abandon_save();
        });
    });
    let error = error.await.unwrap_err();
    assert!(error.to_string().contains("given up"), "{error}");
    drop(hanging);
}

#[tokio::test]
async fn a_save_at_the_stop_has_a_deadline() {
    let place = Folder::new();
    let limits = Limits { save_timeout: Duration::from_millis(300), ..Limits::default() };
    let server = place.builder().limits(limits).build().unwrap();
    let hanging = Arc::clone(&server.registry.state.saving).lock_owned().await;
    let error = stop(server, async {}).await.unwrap_err();
    assert!(matches!(error, ProxyError::System { .. }), "{error}");
    drop(hanging);
}

#[test]
fn impossible_place_of_a_state_fails_the_build_of_a_server() {
    let place = Folder::new();
    let plugin = Plugin::open("host", LayoutChoice::Detect).unwrap();
    let build = |path: &str| {
        let path = place.0.path().join(path);
        Server::builder(&plugin)
            .state(path)
            .state_versions(Versions::current())
            .build()
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert!(build("nowhere/x.sds").unwrap_err().contains("there is no folder"));
    fs::write(place.0.path().join("file"), "").unwrap();
    assert!(build("file/x.sds").is_err());
    fs::create_dir(place.0.path().join("folder")).unwrap();
    assert!(build("folder").is_err());
    fs::write(place.0.path().join("text.sds"), "no state").unwrap();
    assert!(build("text.sds").unwrap_err().contains("no device state"));
    fs::create_dir(place.0.path().join("x.sds.1")).unwrap();
    assert!(build("x.sds").unwrap_err().contains("is a folder"));
    assert!(build("y.sds").is_ok());
    assert_eq!(place.files(), ["file", "folder", "text.sds", "x.sds.1"]);
}

#[tokio::test]
async fn unreadable_arrays_of_the_old_state_are_kept_beside_it() {
    let place = Folder::new();
    let server = place.builder().previous_states(0).build().unwrap();
    let mut client = open(&server, &[]);
    client.put(1, &[1; 100], &on(&[0])).await.unwrap();
    client.put(2, &[2; 100], &on(&[0])).await.unwrap();
    server.save().await.unwrap();
    drop(client);
    // The disk corrupts some bytes of the second array.
    let mut bytes = fs::read(place.path()).unwrap();
    let at = bytes.windows(100).position(|part| part == [2; 100]).unwrap();
    bytes[at + 50] ^= 1;
    // Changed in place, because the server has the file open.
    let mut file = fs::OpenOptions::new().write(true).open(place.path()).unwrap();
    std::io::Write::write_all(&mut file, &bytes).unwrap();
    let mut client = open(&server, &[]);
    client.put(1, b"new", &on(&[0])).await.unwrap();
    let error = server.save().await.unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
    assert_eq!(place.names(), ["session-1/1", "session-2/1"]);
    assert_eq!(names(&place.0.path().join("state.sds.1")), ["session-1/1", "session-1/2"]);
    // This is reported once.
    server.save().await.unwrap();
    drop(client);
    stop(server, async {}).await.unwrap();
    assert_eq!(place.names(), ["session-1/1", "session-2/1"]);
}

#[tokio::test]
async fn restored_arrays_count_for_what_a_server_may_hold() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, "model").await;
    client.put(1, &[1; 2048], &on(&[0])).await.unwrap();
    drop(client);
    stop(server, async {}).await.unwrap();

    let limits = Limits { total_array_bytes: 3072, ..Limits::default() };
    let server = place.builder().limits(limits).build().unwrap();
    let mut client = open(&server, &[]);
    let restored = handle(init(&mut client).await.unwrap(), "model/1").unwrap();
    let refused = client.put(3, &[3; 1025], &on(&[0])).await;
    assert_eq!(refused, Err(StatusCode::ResourceExhausted));
    client.put(4, &[4; 1024], &on(&[0])).await.unwrap();
    // It is removed when a client deletes it.
    client.delete(restored).await.unwrap();
    client.put(5, &[5; 2048], &on(&[0])).await.unwrap();
    drop(client);
    stop(server, async {}).await.unwrap();
}

#[tokio::test]
async fn a_state_larger_than_the_limit_is_restored_and_leaves_no_room() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, "model").await;
    client.put(1, &[1; 2048], &on(&[0])).await.unwrap();
    drop(client);
    stop(server, async {}).await.unwrap();
    let limits = Limits { total_array_bytes: 1024, ..Limits::default() };
    let server = place.builder().limits(limits).build().unwrap();
    let mut client = open(&server, &[]);
    let restored = handle(init(&mut client).await.unwrap(), "model/1").unwrap();
    assert_eq!(client.get(restored, 9).await.unwrap(), [1; 2048][..]);
    assert_eq!(client.put(2, b"a", &on(&[0])).await, Err(StatusCode::ResourceExhausted));
    client.delete(restored).await.unwrap();
    client.put(3, &[3; 1024], &on(&[0])).await.unwrap();
}

#[tokio::test]
async fn a_stopped_server_leaves_its_state_to_another_one() {
    let place = Folder::new();
    let first = place.server();
    let refused = place.builder().build().unwrap_err().to_string();
    assert!(refused.contains("another server"), "{refused}");
    let again = first.clone();
    stop(first, async {}).await.unwrap();
    let second = place.server();
    let refused = again.save().await.unwrap_err().to_string();
    assert!(refused.contains("another server"), "{refused}");
    drop(second);
    assert_eq!(again.save().await.unwrap(), 0);
}

#[tokio::test]
async fn a_state_is_written_for_the_builds_that_are_asked_for() {
    let place = Folder::new();
    let server = place.builder().state_versions(Versions::minimum()).build().unwrap();
    let mut client = named(&server, "model").await;
    client.put(1, b"abc", &on(&[0])).await.unwrap();
    server.save().await.unwrap();
    let reader = Reader::open(place.path()).unwrap();
    let wanted = Versions::minimum();
    assert_eq!(reader.ifrt_version(), wanted.specs().number());
    assert_eq!(reader.format(), wanted.container().number());
    // If another version is chosen, the file is written again.
    drop(client);
    stop(server, async {}).await.unwrap();
    stop(place.builder().build().unwrap(), async {}).await.unwrap();
    let reader = Reader::open(place.path()).unwrap();
    assert_eq!(reader.ifrt_version(), Versions::current().specs().number());
    assert_eq!(place.bytes("model/1"), b"abc");
}

#[tokio::test]
async fn words_of_the_state_that_are_not_the_servers_stay() {
    let place = Folder::new();
    let words = vec![("format".to_owned(), "pt".to_owned())];
    let options = WriteOptions::new(Versions::current());
    options.with_metadata(Some(words.clone())).create(place.path()).unwrap().finish().unwrap();
    let server = place.server();
    let mut client = named(&server, "model").await;
    client.put(1, b"abc", &on(&[0])).await.unwrap();
    server.save().await.unwrap();
    let reader = Reader::open(place.path()).unwrap();
    let found = reader.metadata().unwrap();
    assert_eq!(found[..1], words[..]);
    assert_eq!(found[1], ("serdes.state.owner/model/1".to_owned(), "session:model".to_owned()));
}

#[tokio::test]
async fn arrays_of_an_authenticated_client_stay_its_own() {
    let place = Folder::new();
    let name = [("serdes.state.name", "model")];
    let server = place.server();
    let mut alice = open_as(&server, &known(&server, 1), &name);
    init(&mut alice).await.unwrap();
    alice.put(1, b"abc", &on(&[0])).await.unwrap();
    drop(alice);
    let mut open_to_all = open(&server, &[("serdes.state.name", "free")]);
    init(&mut open_to_all).await.unwrap();
    open_to_all.put(1, b"abc", &on(&[0])).await.unwrap();
    drop(open_to_all);
    stop(server, async {}).await.unwrap();

    let server = place.server();
    for mut other in [open(&server, &[]), open_as(&server, &known(&server, 2), &[])] {
        let answer = init(&mut other).await.unwrap();
        assert_eq!(handle(answer.clone(), "model/1"), None);
        assert!(handle(answer, "free/1").is_some());
    }
    for caller in [server.registry.own_caller(), known(&server, 2)] {
        let mut other = open_as(&server, &caller, &name);
        assert_eq!(init(&mut other).await, Err(StatusCode::AlreadyExists));
        let mut other = open_as(&server, &caller, &[("serdes.state.name.1", "model/1")]);
        assert_eq!(init(&mut other).await, Err(StatusCode::AlreadyExists));
    }
    // An identified client cannot delete arrays without an owner, but can delete its own.
    let mut alice = open_as(&server, &known(&server, 1), &name);
    let answer = init(&mut alice).await.unwrap();
    let others = handle(answer.clone(), "free/1").unwrap();
    assert_eq!(delete(&mut alice, others).await, Err(StatusCode::PermissionDenied));
    assert_eq!(&alice.get(others, 1).await.unwrap()[..], b"abc");
    delete(&mut alice, handle(answer, "model/1").unwrap()).await.unwrap();
    drop(alice);
    stop(server, async {}).await.unwrap();
    assert_eq!(place.names(), ["free/1"]);
}

#[tokio::test]
async fn deletions_say_what_they_did() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, "a").await;
    client.put(1, b"a", &on(&[0])).await.unwrap();
    assert_eq!(delete(&mut client, 1).await, Ok(()));
    assert_eq!(delete(&mut client, 2).await, Err(StatusCode::NotFound));
}
