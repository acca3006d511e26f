//! Tests of limits on the names of arrays that no request asked to keep.

use super::*;

/// Limit on handles with which all clients together have 1 MiB for names, and each client half of
/// it.
const HANDLES: usize = 8192;

fn limited(place: &Folder) -> Server {
    let limits = Limits { handles: HANDLES, peer_handles: HANDLES / 2, ..Limits::default() };
    place.builder().limits(limits).build().unwrap()
}

/// Returns the name of a session whose arrays need 100 kB of the header each, half of it for their
/// owner.
fn long(letter: &str) -> String {
    letter.repeat(50_000)
}

/// Returns the handle of an array in the server's state.
async fn first(client: &mut Client) -> u64 {
    let attributes = init(client).await.unwrap().client_attributes.unwrap();
    let map = AttributeMap::from_proto(&attributes, &DeserializeOptions::new()).unwrap();
    let mut handles = map.iter().filter(|(key, _)| key.starts_with("serdes.state.handle."));
    let (key, _) = handles.next().unwrap();
    map.int64(key).unwrap().cast_unsigned()
}

async fn put(client: &mut Client, handle: u64) -> Result<(), StatusCode> {
    client.put(handle, b"x", &on(&[0])).await.map(drop)
}

#[tokio::test]
async fn names_of_living_arrays_are_refused_where_a_save_would_fail() {
    let place = Folder::new();
    let server = limited(&place);
    let mut client = named(&server, &long("a")).await;
    for handle in 1..=5 {
        put(&mut client, handle).await.unwrap();
    }
    assert_eq!(put(&mut client, 6).await, Err(StatusCode::ResourceExhausted));
    assert_eq!(server.save().await.unwrap(), 5);
    // The space of a destroyed handle is free for another array.
    client.destruct(5).await.unwrap();
    put(&mut client, 7).await.unwrap();
}

#[tokio::test]
async fn names_of_initialization_data_count_for_their_client() {
    let place = Folder::new();
    let server = limited(&place);
    let long = long("a").repeat(11);
    let data = [("serdes.state.name", "model"), ("serdes.state.name.7", &long)];
    let mut client = open(&server, &data);
    init(&mut client).await.unwrap();
    assert_eq!(put(&mut client, 1).await, Err(StatusCode::ResourceExhausted));
    assert_eq!(put(&mut client, 7).await, Err(StatusCode::ResourceExhausted));
    let mut other = named(&server, "other").await;
    put(&mut other, 1).await.unwrap();
}

#[tokio::test]
async fn names_kept_at_the_end_of_a_session_count_for_their_client() {
    let place = Folder::new();
    let server = limited(&place);
    let mut client = named(&server, &long("a")).await;
    for handle in 1..=5 {
        put(&mut client, handle).await.unwrap();
    }
    drop(client);
    let mut again = open(&server, &[("serdes.state.name", &long("b"))]);
    let kept = first(&mut again).await;
    assert_eq!(put(&mut again, 1).await, Err(StatusCode::ResourceExhausted));
    again.delete(kept).await.unwrap();
    put(&mut again, 2).await.unwrap();
}

#[tokio::test]
async fn restored_names_leave_that_much_less_room_for_clients() {
    let place = Folder::new();
    let server = place.server();
    let mut client = named(&server, &long("a")).await;
    for handle in 1..=9 {
        put(&mut client, handle).await.unwrap();
    }
    drop(client);
    stop(server, async {}).await.unwrap();

    let server = limited(&place);
    let mut client = open(&server, &[("serdes.state.name", &long("b"))]);
    let kept = first(&mut client).await;
    put(&mut client, 1).await.unwrap();
    assert_eq!(put(&mut client, 2).await, Err(StatusCode::ResourceExhausted));
    assert_eq!(server.save().await.unwrap(), 10);
    client.delete(kept).await.unwrap();
    put(&mut client, 3).await.unwrap();
}
