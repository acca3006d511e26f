//! Tests of arrays that are kept while their session is open.

use std::path::Path;

use serdes::{
    codec::StatusCode,
    ifrt::{DType, DeviceId, Shape},
};
use serdes_device_state::{Reader, Versions};

use super::network::{Running, plugin, test};
use crate::{
    Client, ClientOptions, ProxyError, RemoteArray,
    server::{Server, ServerBuilder, Tokens},
};

const OLD: &str = "the-old-token-of-a-client";
const NEW: &str = "the-new-token-of-a-client";
const OTHER: &str = "the-token-of-another-client";

fn server(path: &Path) -> ServerBuilder {
    Server::builder(&plugin()).state(path).state_versions(Versions::current())
}

async fn connect(running: &Running, session: &str, token: Option<&str>) -> Client {
    let options = ClientOptions::new().with_state_names(session, []);
    let options = token.map_or(options.clone(), |token| options.with_token(token));
    Client::connect_with(&running.address, options).await.unwrap()
}

async fn put(client: &Client, bytes: &'static [u8]) -> RemoteArray {
    let shape = Shape::new([bytes.len() as i64]).unwrap();
    client.put(DType::U8, &shape, DeviceId(0), bytes).await.unwrap()
}

/// Returns the arrays that a client sees, with their bytes.
async fn seen(client: &Client) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for (name, array) in client.current_state_arrays().await.unwrap() {
        found.push((name, client.get(&array).await.unwrap().to_vec()));
    }
    found.sort();
    found
}

fn code(error: &ProxyError) -> StatusCode {
    let ProxyError::Status(status) = error else { panic!("{error:?}") };
    status.code()
}

fn pair(name: &str, bytes: &[u8]) -> (String, Vec<u8>) {
    (name.to_owned(), bytes.to_vec())
}

#[test]
fn keep_replaces_all_below_a_name_while_its_session_is_open() {
    test(|| async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.sds");
        let running = Running::start(server(&path).build().unwrap()).await;
        let client = connect(&running, "run/.a", None).await;
        let other = connect(&running, "run/.b", None).await;
        let (w, b) = (put(&client, b"w1").await, put(&client, b"b1").await);
        client.keep("run", [("run/w@1", &w), ("run/b@1", &b)], None).await.unwrap();
        let first = [pair("run/b@1", b"b1"), pair("run/w@1", b"w1")];
        assert_eq!(seen(&client).await, first);
        // Another session sees them at once, and replaces them; arrays under a similar name are not
        // affected.
        assert_eq!(seen(&other).await, first);
        let (w, x) = (put(&other, b"w2").await, put(&other, b"x").await);
        other.keep("runs", [("runs/x", &x)], None).await.unwrap();
        other.keep("run", [("run/w@2", &w)], None).await.unwrap();
        let second = [pair("run/w@2", b"w2"), pair("runs/x", b"x")];
        assert_eq!(seen(&client).await, second);
        // Destroying handles and ending sessions neither removes nor adds arrays.
        drop((w, b, x, other));
        assert_eq!(seen(&client).await, second);
        assert_eq!(running.server.save().await.unwrap(), 2);
        drop(client);
        running.stop().await.unwrap();
        assert_eq!(Reader::open(&path).unwrap().names().collect::<Vec<_>>(), ["run/w@2", "runs/x"]);
    });
}

#[test]
fn keep_leaves_the_state_as_it_was_where_it_is_refused() {
    test(|| async {
        let folder = tempfile::tempdir().unwrap();
        let running = Running::start(server(&folder.path().join("x.sds")).build().unwrap()).await;
        let client = connect(&running, "run/.a", None).await;
        let kept = put(&client, b"kept").await;
        client.keep("run", [("run/w", &kept)], None).await.unwrap();
        let new = put(&client, b"new").await;
        for (name, arrays) in [
            ("", vec![("/w", &new)]),
            ("run", vec![("runs/w", &new)]),
            ("run", vec![("run/", &new)]),
            ("run", vec![("run/a", &new), ("run/a", &kept)]),
        ] {
            let refused = client.keep(name, arrays, None).await.unwrap_err();
            assert_eq!(code(&refused), StatusCode::InvalidArgument, "{refused:?}");
        }
        client.delete(&new).await.unwrap();
        assert!(client.keep("run", [("run/n", &new)], None).await.is_err());
        // An open session with an exclusive name excludes others.
        let holder = connect(&running, "model", None).await;
        let refused = client.keep("model", [("model/w", &kept)], None).await.unwrap_err();
        assert_eq!(code(&refused), StatusCode::AlreadyExists);
        assert_eq!(seen(&holder).await, [pair("run/w", b"kept")]);
        drop((client, holder));
        running.stop().await.unwrap();
    });
}

#[test]
fn keep_says_so_where_a_server_has_no_state() {
    test(|| async {
        let running = Running::start(Server::builder(&plugin()).build().unwrap()).await;
        let client = connect(&running, "run/.a", None).await;
        let array = put(&client, b"w").await;
        let refused = client.keep("run", [("run/w", &array)], None).await.unwrap_err();
        assert_eq!(code(&refused), StatusCode::FailedPrecondition);
        running.stop().await.unwrap();
    });
}

#[test]
fn keep_by_a_new_token_replaces_what_the_old_one_kept() {
    test(|| async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.sds");
        let tokens = |lines: &[&str]| Tokens::parse(&lines.join("\n")).unwrap();
        let builder = server(&path).tokens(tokens(&[OLD, NEW, OTHER]));
        let running = Running::start(builder.build().unwrap()).await;
        let client = connect(&running, "run/.a", Some(OLD)).await;
        let w = put(&client, b"old").await;
        client.keep("run", [("run/w", &w)], None).await.unwrap();
        let renewed = connect(&running, "run/.b", Some(NEW)).await;
        assert_eq!(seen(&renewed).await, []);
        let w = put(&renewed, b"new").await;
        // The name and its arrays belong to the old token, until a client shows that token as well.
        for (previous, expected) in [
            (None, StatusCode::AlreadyExists),
            (Some(OTHER), StatusCode::AlreadyExists),
            (Some("a-token-that-is-none"), StatusCode::Unauthenticated),
        ] {
            let refused = renewed.keep("run", [("run/w", &w)], previous).await.unwrap_err();
            assert_eq!(code(&refused), expected, "{previous:?}");
        }
        assert_eq!(seen(&client).await, [pair("run/w", b"old")]);
        renewed.keep("run", [("run/w", &w)], Some(OLD)).await.unwrap();
        assert_eq!(seen(&renewed).await, [pair("run/w", b"new")]);
        assert_eq!(seen(&client).await, []);
        // The old token is removed; nothing else is lost.
        running.server.replace_tokens(tokens(&[NEW, OTHER]));
        assert_eq!(seen(&renewed).await, [pair("run/w", b"new")]);
        drop((client, renewed));
        running.stop().await.unwrap();
        assert_eq!(Reader::open(&path).unwrap().names().collect::<Vec<_>>(), ["run/w"]);
    });
}
