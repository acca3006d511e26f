//! Tests of `serdes negotiate`: what is agreed on, and the message if nothing is.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Stdio},
};

use crate::testkit::{command, objects, serdes, status};

/// A server that is stopped when the test ends.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let mut child = command()
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn two_builds_agree_on_the_newest_that_both_have() {
    let server = Server::start(&["--serdes", "0..4"]);
    let output = serdes(&["negotiate", &server.address, "--json"]);
    assert_eq!(status(&output), 0, "{output:?}");
    let object = &objects(&output)[0];
    assert_eq!(
        (&object["ifrt_serdes_version"], &object["server"]),
        (&4.into(), &server.address.clone().into())
    );
    assert!(object["protocol_version"].is_i64(), "{object}");
    let older = serdes(&["negotiate", &server.address, "--serdes", "0..2", "--json"]);
    assert_eq!(objects(&older)[0]["ifrt_serdes_version"], 2);
}

#[test]
fn ranges_without_a_common_version_are_answered_with_the_offer() {
    let server = Server::start(&["--serdes", "0..2"]);
    let output = serdes(&["negotiate", &server.address, "--serdes", "3..4", "--json"]);
    assert_eq!(status(&output), 1, "{output:?}");
    let object = &objects(&output)[0];
    assert!(object["error"].is_string(), "{object}");
    assert_eq!(object["client"]["serdes"], serde_json::json!([3, 4]));
    assert!(object["client"]["protocol"].is_array(), "{object}");
}

#[test]
fn address_without_a_server_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let output = serdes(&["negotiate", &address, "--json"]);
    assert_eq!(status(&output), 2, "{output:?}");
    assert!(objects(&output)[0]["error"].as_str().unwrap().contains(&address), "{output:?}");
}
