//! Tests of the kinds of the errors of servers and clients.

use std::path::Path;

use serdes::{
    ErrorKind,
    ifrt::{DType, DeviceId, Shape},
    version::VersionRange,
};
use serdes_device_state::Versions;

use super::network::{Running, plugin, test};
use crate::{
    Client, ClientOptions, ProxyError, Ranges, negotiate,
    server::{Limits, Server, Tokens},
};

fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/device_state");
    std::fs::read(folder.join(name)).unwrap()
}

/// Returns the error of a server that cannot start with its state.
fn error_of_state(path: &Path) -> ProxyError {
    let server = Server::builder(&plugin()).state(path).state_versions(Versions::current());
    server.build().unwrap_err()
}

/// Returns the kind of the error of a server whose state has these bytes.
fn kind_of_state(bytes: &[u8]) -> ErrorKind {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sds");
    std::fs::write(&path, bytes).unwrap();
    error_of_state(&path).kind()
}

#[test]
fn error_kinds_of_a_server_that_cannot_begin() {
    let error = error_of_state(Path::new("/no/such/folder/x.sds"));
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let error = Limits::default().set("no-such-limit", "1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let whole = golden("v0/small.sds");
    let cut = whole.get(..whole.len() / 2).unwrap();
    for (bytes, expected) in [
        (&golden("future.sds")[..], ErrorKind::TooNew),
        (cut, ErrorKind::Corrupt),
        (b"no state at all", ErrorKind::Corrupt),
        (b"", ErrorKind::Corrupt),
    ] {
        assert_eq!(kind_of_state(bytes), expected, "{} bytes", bytes.len());
    }
}

#[test]
fn error_kinds_of_a_client_that_cannot_connect() {
    test(|| async {
        let error = negotiate("127.0.0.1:1", Ranges::supported()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        let error = negotiate("no address", Ranges::supported()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let range = |low, high| VersionRange::new(low, high).unwrap();
        let old = Ranges::supported().with_serdes(range(0, 0));
        let tokens = Tokens::parse("the-token-of-this-test").unwrap();
        let server = Server::builder(&plugin()).ranges(old).tokens(tokens).build().unwrap();
        let running = Running::start(server).await;
        let wrong = ClientOptions::new().with_token("another-token-than-that-one");
        let error = Client::connect_with(&running.address, wrong).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        // Versions that do not overlap are a refusal, not damage.
        let new = Ranges::supported().with_serdes(range(1, 1));
        let right = ClientOptions::new().with_token("the-token-of-this-test");
        let error = Client::connect_with(&running.address, right.with_ranges(new)).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        running.stop().await.unwrap();
    });
}

#[test]
fn error_kinds_of_a_session() {
    test(|| async {
        let limits = Limits { peer_array_bytes: 1 << 20, ..Limits::default() };
        let server = Server::builder(&plugin()).limits(limits).build().unwrap();
        let running = Running::start(server).await;
        let client = Client::connect(&running.address).await.unwrap();
        let put = async |dims: i64, bytes: Vec<u8>| -> Result<_, ProxyError> {
            let shape = Shape::new([dims]).unwrap();
            let array = client.put(DType::U8, &shape, DeviceId(0), bytes).await?;
            client.wait(&array).await?;
            Ok(array)
        };
        let error = put(4, vec![0; 5]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let error = put(2 << 20, vec![0; 2 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        let array = put(4, vec![0; 4]).await.unwrap();
        client.delete(&array).await.unwrap();
        let error = client.get(&array).await.unwrap_err();
        let expected = [ErrorKind::NotFound, ErrorKind::InvalidInput];
        assert!(expected.contains(&error.kind()), "{error}");
        let other = put(4, vec![0; 4]).await.unwrap();
        // Without a file for the state, arrays cannot be kept.
        let error = client.keep("run", [("run/w", &other)], None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        running.stop().await.unwrap();
    });
}
