//! Tests of deletions: arrays that leave the state, and arrays that stay.

use serdes::codec::StatusCode;

use super::{Folder, delete, handle, init, named, open, stop};
use crate::server::tests::session::on;

#[tokio::test]
async fn delete_removes_arrays_without_a_given_name() {
    let place = Folder::new();
    let server = place.server();
    let mut client = open(&server, &[]);
    for handle in 1..=3 {
        client.put(handle, &[handle as u8], &on(&[0])).await.unwrap();
    }
    assert_eq!(server.save().await.unwrap(), 3);
    // As JAX clients do: first the array, then the handle.
    assert_eq!(delete(&mut client, 1).await, Ok(()));
    client.destruct(1).await.unwrap();
    // Destroying a handle removes no array.
    client.destruct(2).await.unwrap();
    assert_eq!(server.save().await.unwrap(), 2);
    assert_eq!(place.names(), ["session-1/2", "session-1/3"]);
    assert_eq!(delete(&mut client, 3).await, Ok(()));
    drop(client);
    stop(server, async {}).await.unwrap();
    assert_eq!(place.names(), ["session-1/2"]);
}

#[tokio::test]
async fn delete_leaves_what_another_session_saved() {
    let place = Folder::new();
    let server = place.server();
    let mut first = open(&server, &[]);
    first.put(1, b"first", &on(&[0])).await.unwrap();
    let mut second = open(&server, &[]);
    second.put(1, b"second", &on(&[0])).await.unwrap();
    assert_eq!(server.save().await.unwrap(), 2);
    assert_eq!(delete(&mut second, 1).await, Ok(()));
    assert_eq!(delete(&mut second, 2).await, Err(StatusCode::NotFound));
    drop((first, second));
    stop(server, async {}).await.unwrap();
    assert_eq!(place.names(), ["session-1/1"]);
    assert_eq!(place.bytes("session-1/1"), b"first");
    // Deleted by another client of another server, which gets its handle.
    let server = place.server();
    let mut client = named(&server, "model").await;
    let answer = init(&mut client).await.unwrap();
    let restored = handle(answer, "session-1/1").unwrap();
    assert_eq!(delete(&mut client, restored).await, Ok(()));
    drop(client);
    stop(server, async {}).await.unwrap();
    assert!(place.names().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delete_during_a_save_takes_the_array_out_of_the_next() {
    for _ in 0..50 {
        let place = Folder::new();
        let server = place.server();
        let mut client = open(&server, &[]);
        client.put(1, b"one", &on(&[0])).await.unwrap();
        client.put(2, b"two", &on(&[0])).await.unwrap();
        let saving = server.clone();
        let saved = tokio::spawn(async move { saving.save().await.map(drop) });
        delete(&mut client, 1).await.unwrap();
        saved.await.unwrap().unwrap();
        drop(client);
        stop(server, async {}).await.unwrap();
        assert_eq!(place.names(), ["session-1/2"]);
    }
}

#[tokio::test]
async fn delete_after_a_failed_save_takes_the_array_out() {
    let place = Folder::new();
    let server = place.server();
    let mut client = open(&server, &[]);
    client.put(1, b"one", &on(&[0])).await.unwrap();
    server.save().await.unwrap();
    let (folder, away) = (place.0.path().to_path_buf(), place.0.path().with_extension("away"));
    std::fs::rename(&folder, &away).unwrap();
    assert!(server.save().await.is_err());
    std::fs::rename(&away, &folder).unwrap();
    assert_eq!(place.names(), ["session-1/1"]);
    delete(&mut client, 1).await.unwrap();
    drop(client);
    stop(server, async {}).await.unwrap();
    assert!(place.names().is_empty());
}
