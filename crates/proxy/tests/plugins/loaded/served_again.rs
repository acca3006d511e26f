//! Tests of a session whose devices move to another client of the plug-in, because a program of
//! another session does not end: its arrays are moved, and its programs compiled again.

use std::time::Duration;

use serdes::codec::StatusCode;
use serdes_proxy::{Limits, Server};

use super::{
    plugins::Library,
    served_programs::{AFTER, BYTES, Served, run},
};

/// Longer than any successful step takes.
const LONG: Duration = Duration::from_secs(30);

/// Connects two clients to a server that soon takes devices from programs of other sessions.
fn two_clients(library: &Library) -> [Served; 2] {
    let client = library.load().unwrap().create_client(&[]).unwrap();
    let mut limits = Limits::default();
    limits.set("shared-execution-seconds", "0.1").unwrap();
    let server = Server::builder(&client).limits(limits).build().unwrap();
    [Served::of(server.clone()), Served::of(server)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrays_and_programs_are_the_same_on_devices_that_were_taken() {
    let library = Library::new(106, &["MODULE"]);
    let [mut hanging, mut served] = two_clients(&library);
    served.put(1, BYTES).await;
    served.put(2, AFTER).await;
    let small = served.compile("outputs 1 donates -1").await.unwrap().loaded_executable_handle;
    let long = format!("outputs 1 donates -1{}", " ".repeat(17 << 20));
    let large = served.compile(&long).await.unwrap().loaded_executable_handle;
    served.execute(run(large, &[1], &[10])).await.unwrap();
    assert_eq!(served.get(10).await.unwrap()[..], AFTER);

    hanging.put(1, BYTES).await;
    let program = hanging.compile("outputs 1 donates -1").await.unwrap().loaded_executable_handle;
    library.hang_next();
    let hanging = tokio::spawn(async move { hanging.execute(run(program, &[1], &[10])).await });
    while !library.hangs() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    // The program is compiled again, and its argument moved; arrays that no program needs stay.
    let run_again = served.execute(run(small, &[1], &[11]));
    tokio::time::timeout(LONG, run_again).await.unwrap().unwrap();
    for (handle, expected) in [(1, BYTES), (2, AFTER), (10, AFTER), (11, AFTER)] {
        assert_eq!(served.get(handle).await.unwrap()[..], expected, "{handle}");
    }
    served.execute(run(small, &[1], &[12])).await.unwrap();
    assert_eq!(served.get(12).await.unwrap()[..], AFTER);
    // A source of more than 16 MiB is not kept.
    let (code, words) = served.execute(run(large, &[1], &[13])).await.unwrap_err();
    assert_eq!(code, StatusCode::Unavailable, "{words}");
    assert!(words.contains("too large to be kept"), "{words}");

    library.let_go();
    tokio::time::timeout(LONG, hanging).await.unwrap().unwrap().unwrap_err();
}
