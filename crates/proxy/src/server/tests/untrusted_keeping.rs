//! Tests of attacks by untrusted clients with the call that keeps arrays in the state.

use std::path::Path;

use bytes::Bytes;
use prost::Message;
use serdes::{
    codec::StatusCode,
    ifrt::{DType, DeviceId, Shape},
    proto::xla::ifrt::proxy::GrpcHostBufferStoreMetadata,
};
use serdes_device_state::{Reader, Versions};
use tonic::{Code, Request as Call, codegen::http::uri::PathAndQuery, metadata::MetadataValue};
use tonic_prost::ProstCodec;

use super::network::{Running, channel, plugin, test};
use crate::{
    Client, ClientOptions, ProxyError, RemoteArray,
    keeping::KeepResponse,
    server::{Limits, Server, ServerBuilder, Tokens},
    service,
};

const OWNER: &str = "the-token-of-an-owner";
const OTHER: &str = "the-token-of-another";

fn server(path: &Path) -> ServerBuilder {
    Server::builder(&plugin()).state(path).state_versions(Versions::current())
}

fn with_tokens(path: &Path) -> ServerBuilder {
    server(path).tokens(Tokens::parse(&[OWNER, OTHER].join("\n")).unwrap())
}

async fn connect(running: &Running, session: &str, arrays: &[&str], token: &str) -> Client {
    let options = ClientOptions::new().with_state_names(session, arrays.iter().copied());
    Client::connect_with(&running.address, options.with_token(token)).await.unwrap()
}

async fn put(client: &Client, bytes: impl Into<Bytes>) -> RemoteArray {
    let bytes = bytes.into();
    let shape = Shape::new([bytes.len() as i64]).unwrap();
    let array = client.put(DType::U8, &shape, DeviceId(0), bytes).await.unwrap();
    client.wait(&array).await.unwrap();
    array
}

fn code<T>(result: Result<T, ProxyError>) -> Option<StatusCode> {
    match result {
        Ok(_) => None,
        Err(ProxyError::Status(status)) => Some(status.code()),
        Err(error) => panic!("{error:?}"),
    }
}

/// A request to keep no arrays below a name that need not be text.
#[derive(Clone, PartialEq, Message)]
struct RawKeep {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
}

/// Makes the call without the client library.
async fn keep(running: &Running, token: Option<&str>, session_id: u64, name: &[u8]) -> Code {
    let mut call = Call::new(RawKeep { name: name.to_owned() });
    if let Some(token) = token {
        call.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    let metadata = GrpcHostBufferStoreMetadata { session_id, ..Default::default() };
    let value = MetadataValue::from_bytes(&metadata.encode_to_vec());
    call.metadata_mut().insert_bin(service::STORE_METADATA, value);
    let codec: ProstCodec<RawKeep, KeepResponse> = ProstCodec::default();
    let path = PathAndQuery::from_static(service::KEEP);
    let answer = channel(&running.address).await.unary(call, path, codec).await;
    answer.map_or_else(|status| status.code(), |_| Code::Ok)
}

#[test]
fn keep_is_for_the_client_of_its_session_alone() {
    test(|| async {
        let folder = tempfile::tempdir().unwrap();
        let running =
            Running::start(with_tokens(&folder.path().join("x.sds")).build().unwrap()).await;
        let owner = connect(&running, "run/.a", &[], OWNER).await;
        let array = put(&owner, &b"kept"[..]).await;
        owner.keep("run", [("run/w", &array)], None).await.unwrap();
        let session = *running.server.registry.sessions().keys().next().unwrap();
        for (token, session, name, expected) in [
            (None, session, &b"run"[..], Code::Unauthenticated),
            (Some("a-token-that-is-none"), session, b"run", Code::Unauthenticated),
            (Some(OTHER), session, b"run", Code::NotFound),
            (Some(OWNER), session ^ 1, b"run", Code::NotFound),
            (Some(OWNER), session, b"", Code::InvalidArgument),
            (Some(OWNER), session, b"run\xff", Code::InvalidArgument),
        ] {
            assert_eq!(keep(&running, token, session, name).await, expected, "{token:?} {name:?}");
        }
        let there = owner.current_state_arrays().await.unwrap();
        assert_eq!(there.len(), 1);
        // The owner removes all of its arrays with a call without arrays.
        assert_eq!(keep(&running, Some(OWNER), session, b"run").await, Code::Ok);
        assert_eq!(owner.current_state_arrays().await.unwrap().len(), 0);
        running.stop().await.unwrap();
    });
}

#[test]
fn keep_takes_no_name_that_an_open_session_has_for_an_array() {
    test(|| async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sds");
        let running = Running::start(with_tokens(&path).build().unwrap()).await;
        let owner = connect(&running, "deep/er", &["run/w"], OWNER).await;
        let other = connect(&running, "of another", &[], OTHER).await;
        let array = put(&other, &b"other"[..]).await;
        for (below, name) in [
            ("run", "run/w"),
            ("deep", "deep/er/1"),
            ("deep/er", "deep/er/x"),
            ("deep/er", "deep/er/../1"),
        ] {
            let refused = other.keep(below, [(name, &array)], None).await;
            assert_eq!(code(refused), Some(StatusCode::AlreadyExists), "{name}");
        }
        // Dots do not lead to a parent: names are literal.
        other.keep("x", [("x/../run/w", &array)], None).await.unwrap();
        put(&owner, &b"own"[..]).await.leave();
        drop((owner, other));
        running.stop().await.unwrap();
        let names: Vec<_> = Reader::open(&path).unwrap().names().map(str::to_owned).collect();
        assert_eq!(names, ["run/w", "x/../run/w"]);
    });
}

#[test]
fn kept_names_count_for_the_limits_of_their_client() {
    test(|| async {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits {
            handles: 8000,
            peer_handles: 4000,
            handles_per_session: 4000,
            ..Limits::default()
        };
        let server = server(&folder.path().join("x.sds")).limits(limits);
        let running = Running::start(server.build().unwrap()).await;
        let client = connect(&running, "run/.a", &[], OWNER).await;
        let array = put(&client, &b""[..]).await;
        let names =
            |below: &str| -> Vec<_> { (0..800).map(|at| format!("{below}/{at}")).collect() };
        let (first, second) = (names("first"), names("second"));
        client.keep("first", first.iter().map(|name| (&name[..], &array)), None).await.unwrap();
        client.keep("second", second.iter().map(|name| (&name[..], &array)), None).await.unwrap();
        // As many names again exceed the limit, and so does one name of the same total length.
        let third = names("third");
        let refused = client.keep("third", third.iter().map(|name| (&name[..], &array)), None);
        assert_eq!(code(refused.await), Some(StatusCode::ResourceExhausted));
        let long = format!("third/{}", "x".repeat(800 * 256));
        let refused = client.keep("third", [(&long[..], &array)], None).await;
        assert_eq!(code(refused), Some(StatusCode::ResourceExhausted));
        // Arrays that leave the state free their memory, even if the session that kept them has
        // ended.
        client.keep("first", [], None).await.unwrap();
        client.keep("third", third.iter().map(|name| (&name[..], &array)), None).await.unwrap();
        drop((array, client));
        let again = connect(&running, "run/.a", &[], OWNER).await;
        let array = put(&again, &b""[..]).await;
        let refused = again.keep("first", first.iter().map(|name| (&name[..], &array)), None);
        assert_eq!(code(refused.await), Some(StatusCode::ResourceExhausted));
        again.keep("second", [], None).await.unwrap();
        again.keep("first", first.iter().map(|name| (&name[..], &array)), None).await.unwrap();
        running.stop().await.unwrap();
    });
}

#[test]
fn array_that_is_kept_by_several_names_counts_for_each() {
    test(|| async {
        const SIZE: u64 = 256 << 10;
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { peer_array_bytes: 4 * SIZE, ..Limits::default() };
        let server = server(&folder.path().join("x.sds")).limits(limits);
        let running = Running::start(server.build().unwrap()).await;
        let client = connect(&running, "run/.a", &[], OWNER).await;
        let array = put(&client, vec![7; SIZE as usize]).await;
        let names = ["run/a", "run/b", "run/c", "run/d", "run/e"];
        let keep = |count: usize| {
            let arrays = names.into_iter().take(count).map(|name| (name, &array));
            client.keep("run", arrays, None)
        };
        assert_eq!(code(keep(5).await), Some(StatusCode::ResourceExhausted));
        keep(4).await.unwrap();
        // Under another name the array counts a fifth time.
        let more = client.keep("more", [("more/a", &array)], None).await;
        assert_eq!(code(more), Some(StatusCode::ResourceExhausted));
        assert_eq!(client.current_state_arrays().await.unwrap().len(), 4);
        client.keep("run", [], None).await.unwrap();
        client.keep("more", [("more/a", &array)], None).await.unwrap();
        // Its memory is now used by another array.
        put(&client, vec![8; 3 * SIZE as usize]).await;
        running.stop().await.unwrap();
    });
}

#[test]
fn kept_array_is_readable_while_others_replace_it() {
    test(|| async {
        let folder = tempfile::tempdir().unwrap();
        let running = Running::start(server(&folder.path().join("x.sds")).build().unwrap()).await;
        let writer = connect(&running, "run/.a", &[], OWNER).await;
        let reader = connect(&running, "run/.b", &[], OWNER).await;
        let old = put(&writer, &b"old"[..]).await;
        writer.keep("run", [("run/w", &old)], None).await.unwrap();
        let seen = reader.current_state_arrays().await.unwrap();
        let new = put(&writer, &b"new"[..]).await;
        writer.keep("run", [("run/w", &new)], None).await.unwrap();
        drop(old);
        assert_eq!(&reader.get(&seen[0].1).await.unwrap()[..], b"old");
        // Nor does the reader remove the array that replaced it.
        reader.delete(&seen[0].1).await.unwrap();
        let seen = reader.current_state_arrays().await.unwrap();
        assert_eq!(&reader.get(&seen[0].1).await.unwrap()[..], b"new");
        running.stop().await.unwrap();
    });
}

#[test]
fn kept_arrays_outlast_a_save_that_finds_no_folder() {
    test(|| async {
        let folder = tempfile::tempdir().unwrap();
        let (there, away) = (folder.path().join("there"), folder.path().join("away"));
        std::fs::create_dir(&there).unwrap();
        let path = there.join("x.sds");
        let running = Running::start(server(&path).build().unwrap()).await;
        let client = connect(&running, "run/.a", &[], OWNER).await;
        let array = put(&client, &b"kept"[..]).await;
        client.keep("run", [("run/w", &array)], None).await.unwrap();
        std::fs::rename(&there, &away).unwrap();
        running.server.save().await.unwrap_err();
        let more = put(&client, &b"more"[..]).await;
        client.keep("run", [("run/w", &array), ("run/x", &more)], None).await.unwrap();
        std::fs::rename(&away, &there).unwrap();
        assert_eq!(running.server.save().await.unwrap(), 2);
        drop((array, more, client));
        running.stop().await.unwrap();
        assert_eq!(Reader::open(&path).unwrap().names().collect::<Vec<_>>(), ["run/w", "run/x"]);
    });
}
