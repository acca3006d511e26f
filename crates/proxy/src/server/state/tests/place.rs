//! Tests of a state's path with several names: one server locks all of them.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use serdes_device_state::Versions;
use serdes_stream_executor::Plugin;

use super::{Folder, delete, named, names, stop};
use crate::{
    StateHolder,
    server::{Server, ServerBuilder, tests::session::on},
};

fn server(path: impl AsRef<Path>) -> ServerBuilder {
    Server::builder(&Plugin::host()).state(path.as_ref()).state_versions(Versions::current())
}

/// Returns the reason why a second server cannot start.
fn refusal(path: impl AsRef<Path>) -> String {
    server(path).build().unwrap_err().to_string()
}

/// Creates a folder `inner`, a link `outer` to it, and names in both that lead to the missing file
/// `inner/two.sds`.
fn several_names(folder: &Path) -> Vec<PathBuf> {
    let inner = folder.join("inner");
    fs::create_dir_all(inner.join("deeper")).unwrap();
    symlink("inner", folder.join("outer")).unwrap();
    symlink("two.sds", inner.join("link.sds")).unwrap();
    symlink("../outer/link.sds", inner.join("chain.sds")).unwrap();
    symlink(inner.join("chain.sds"), folder.join("long.sds")).unwrap();
    let inside = ["link.sds", "chain.sds", "./two.sds", "deeper/../two.sds"];
    let inside = inside.map(|name| inner.join(name));
    let outside = ["long.sds", "outer/two.sds", "outer/chain.sds"].map(|name| folder.join(name));
    inside.into_iter().chain(outside).collect()
}

#[test]
fn lock_holds_by_every_name_before_there_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let several = several_names(folder.path());
    let plain = folder.path().join("inner/two.sds");
    for path in &several {
        for (first, second) in [(&plain, path), (path, &plain)] {
            let held = server(first).build().unwrap();
            let said = refusal(second);
            assert!(said.contains(&format!("process {}", std::process::id())), "{path:?} {said}");
            drop(held);
        }
    }
    let left = fs::read_dir(plain.parent().unwrap()).unwrap().count();
    assert_eq!(left, 3, "the links and the folder");
}

#[tokio::test]
async fn lock_keeps_to_the_place_that_a_link_meant() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link.sds");
    symlink("first.sds", &link).unwrap();
    let first = server(&link).build().unwrap();
    fs::remove_file(&link).unwrap();
    symlink("second.sds", &link).unwrap();
    let second = server(&link).build().unwrap();
    for (server, name) in [(&first, "a"), (&second, "b")] {
        let mut client = named(server, name).await;
        client.put(1, b"abc", &on(&[0])).await.unwrap();
        server.save().await.unwrap();
    }
    assert_eq!(names(&folder.path().join("first.sds")), ["a/1"]);
    assert_eq!(names(&folder.path().join("second.sds")), ["b/1"]);
}

#[tokio::test]
async fn lock_is_on_the_file_by_its_other_names_too() {
    let place = Folder::new();
    let first = place.server();
    let mut client = named(&first, "model").await;
    client.put(1, b"abc", &on(&[0])).await.unwrap();
    first.save().await.unwrap();
    let hard = place.0.path().join("hard.sds");
    fs::hard_link(place.path(), &hard).unwrap();
    let said = refusal(&hard);
    assert!(said.contains("hard link"), "{said}");
    // After a save it is no longer the first server's file.
    client.put(2, b"def", &on(&[0])).await.unwrap();
    first.save().await.unwrap();
    drop(server(&hard).build().unwrap());
    let again = place.0.path().join("again.sds");
    fs::hard_link(place.path(), &again).unwrap();
    assert!(refusal(&again).contains("hard link"));
    drop(client);
    stop(first, async {}).await.unwrap();
    drop(server(&again).build().unwrap());
    assert_eq!(place.files(), ["again.sds", "hard.sds", "state.sds", "state.sds.1"]);
}

#[tokio::test]
async fn lock_covers_the_places_of_older_states() {
    let place = Folder::new();
    let numbered = |number: u32| place.0.path().join(format!("state.sds.{number}"));
    let first = place.builder().previous_states(2).build().unwrap();
    for number in [1, 2] {
        assert!(refusal(numbered(number)).contains("another server"));
        assert!(StateHolder::of(&numbered(number)).is_some());
    }
    let beside = server(numbered(3)).build().unwrap();
    drop(first);
    let said = place.builder().previous_states(3).build().unwrap_err().to_string();
    assert!(said.contains("keeps its own states"), "{said}");
    drop(place.builder().previous_states(2).build().unwrap());
    drop(beside);
    assert!(place.files().is_empty());
}

#[tokio::test]
async fn holder_of_a_state_is_told_by_every_name() {
    let folder = tempfile::tempdir().unwrap();
    let several = several_names(folder.path());
    let plain = folder.path().join("inner/two.sds");
    assert_eq!(StateHolder::of(&plain), None);
    let server = server(&plain).build().unwrap();
    for path in several.iter().chain([&plain]) {
        let holder = StateHolder::of(path).unwrap();
        assert_eq!(holder.process(), Some(std::process::id()));
        assert!(holder.to_string().contains(&std::process::id().to_string()));
    }
    assert_eq!(StateHolder::of(&folder.path().join("two.sds")), None);
    let mut client = named(&server, "model").await;
    client.put(1, b"abc", &on(&[0])).await.unwrap();
    server.save().await.unwrap();
    delete(&mut client, 1).await.unwrap();
    assert!(StateHolder::of(&several[0]).is_some());
    drop(client);
    stop(server, async {}).await.unwrap();
    assert_eq!(StateHolder::of(&plain), None);
    // The lock that a killed server left behind.
    fs::write(folder.path().join("inner/.two.sds.lock"), "17\n1\n").unwrap();
    assert_eq!(StateHolder::of(&plain), None);
}
