//! Tests of `serdes serve --platform-name`: the name of the platform that clients see.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use serdes_proxy::Client;

fn serve(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_serdes"));
    command.args(["serve", "--platform-name", name]).env_remove("RUST_LOG");
    command
}

#[test]
fn clients_are_told_the_name_that_the_server_was_given() {
    let mut server = serve("tpu").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(Client::connect(address)).unwrap();
    assert_eq!(client.platform(), "tpu");
    drop(client);
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn invalid_platform_name_is_refused_with_the_expected_form() {
    for name in ["", "two words", "a\nb", &"n".repeat(65)] {
        let output = serve(name).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("the name of the platform") && said.contains("`tpu`"), "{said}");
    }
}
