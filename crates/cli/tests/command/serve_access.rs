//! Tests of the options that say who may connect to `serdes serve`, and with which limits.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use crate::{serving::Serving, testkit::serdes};

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

#[test]
fn listening_beyond_loopback_needs_access_rules() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (tokens, certificate, key) = (path("tokens"), path("certificate.pem"), path("key.pem"));
    write(Path::new(&tokens), "a-token-that-is-long\n");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    write(Path::new(&certificate), &made.cert.pem());
    write(Path::new(&key), &made.signing_key.serialize_pem());
    let listen = ["--listen", "0.0.0.0:0"];
    let encrypted = ["--tls-cert", &certificate, "--tls-key", &key];
    let refused = |more: &[&str], part: &str| {
        let output = serdes(&[&["serve"], &listen[..], more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(error_of(&output).contains(part), "{more:?}: {}", error_of(&output));
    };
    refused(&[], "--allow-anyone");
    refused(&encrypted, "encryption alone refuses no client");
    refused(&["--token-file", &tokens], "--allow-plain");
    let accepted = |more: &[&str]| {
        let serving = Serving::start(&[&listen[..], more].concat());
        assert!(serving.address.starts_with("0.0.0.0:"), "{more:?}");
        assert_eq!(serving.stop().0, Some(0), "{more:?}");
    };
    accepted(&["--allow-anyone"]);
    accepted(&["--allow-plain"]);
    accepted(&["--allow-plain", "--token-file", &tokens]);
    accepted(&[&encrypted[..], &["--allow-anyone"]].concat());
    accepted(&[&encrypted[..], &["--token-file", &tokens]].concat());
    accepted(&[&encrypted[..], &["--tls-client-ca", &certificate]].concat());
}

#[test]
fn tokens_are_required_on_loopback_and_reread_on_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (tokens, old, new) = (path("tokens"), path("old"), path("new"));
    write(Path::new(&tokens), "# of May\nold-token-of-may-2026\n");
    write(Path::new(&old), "old-token-of-may-2026\n");
    write(Path::new(&new), "new-token-of-june-2026 # of June\n");
    let serving = Serving::start(&["--token-file", &tokens]);
    let negotiate = |more: &[&str]| serdes(&[&["negotiate", &serving.address], more].concat());
    let without = negotiate(&[]);
    assert_eq!(without.status.code(), Some(2));
    assert!(error_of(&without).contains("UNAUTHENTICATED"), "{}", error_of(&without));
    assert_eq!(negotiate(&["--token-file", &new]).status.code(), Some(2));
    assert_eq!(negotiate(&["--token-file", &old]).status.code(), Some(0));
    write(Path::new(&tokens), "new-token-of-june-2026\n");
    serving.signal("-HUP");
    // The signal takes effect after a while.
    let renewed = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        negotiate(&["--token-file", &new]).status.code() == Some(0)
    });
    assert!(renewed);
    assert_eq!(negotiate(&["--token-file", &old]).status.code(), Some(2));
    // A file that is not a list of tokens changes nothing.
    let short = path("short");
    write(Path::new(&short), "x\n");
    for text in ["two words\n", "x\n"] {
        write(Path::new(&tokens), text);
        serving.signal("-HUP");
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(negotiate(&["--token-file", &new]).status.code(), Some(0), "{text}");
        assert_eq!(negotiate(&["--token-file", &short]).status.code(), Some(2), "{text}");
    }
    let (status, said) = serving.stop();
    assert_eq!(status, Some(0));
    assert!(said.contains("the old tokens stay"), "{said}");
    assert!(said.contains("line 1") && said.contains("at least 16 characters"), "{said}");
    for text in ["", "# none\n", "two words\n", "fifteen-letters\n"] {
        write(Path::new(&tokens), text);
        assert_eq!(serdes(&["serve", "--token-file", &tokens]).status.code(), Some(2));
    }
}

#[test]
fn negotiation_without_a_session_for_want_of_a_token_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let tokens = path("tokens");
    write(Path::new(&tokens), "a-token-that-is-long\n");
    let serving = Serving::start(&["--token-file", &tokens, "--allow-session-token"]);
    let negotiate = |more: &[&str]| serdes(&[&["negotiate", &serving.address], more].concat());
    // Anyone may ask for the versions; no session is opened.
    let without = negotiate(&[]);
    assert_eq!(without.status.code(), Some(2), "{without:?}");
    assert!(error_of(&without).contains("this server wants a token"), "{without:?}");
    let json = negotiate(&["--json"]);
    assert_eq!(json.status.code(), Some(2), "{json:?}");
    let object = &crate::testkit::objects(&json)[0];
    assert!(object["session"].as_str().unwrap().contains("wants a token"), "{object}");
    assert_eq!(negotiate(&["--token-file", &tokens]).status.code(), Some(0));
    assert_eq!(serving.stop().0, Some(0));
}

/// Creates a named pipe, to which the shell command `write` writes; its process ends with the test.
fn pipe(path: &Path, write: &str) -> std::process::Child {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let mut writer = Command::new("sh");
    writer.args(["-c", &format!("exec >\"$0\"; {write}")]).arg(path);
    writer.stderr(std::process::Stdio::null()).spawn().unwrap()
}

#[test]
fn token_file_without_an_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (large, endless, silent) = (path("large"), path("endless"), path("silent"));
    fs::File::create(&large).unwrap().set_len((1 << 20) + 1).unwrap();
    let mut writers =
        vec![pipe(&endless, "yes a-token-that-comes-for-ever"), pipe(&silent, "exec sleep 600")];
    for (file, words) in [
        (Path::new("/dev/zero"), "is a device"),
        (Path::new("/dev/null"), "is a device"),
        (&large, "more than 1048576 bytes"),
        (&endless, "more than 1048576 bytes"),
        (&silent, "did not end within 10 seconds"),
        (folder.path(), "cannot read"),
    ] {
        let file = file.to_str().unwrap();
        let output = serdes(&["serve", "--token-file", file]);
        assert_eq!(output.status.code(), Some(2), "{file}");
        assert!(error_of(&output).contains(words), "{file}: {}", error_of(&output));
    }
    let client = serdes(&["negotiate", "127.0.0.1:1", "--token-file", "/dev/zero"]);
    assert!(error_of(&client).contains("is a device"), "{}", error_of(&client));
    // A pipe that is closed is read like any file.
    let ends = path("ends");
    writers.push(pipe(&ends, "sleep 0.3; echo a-token-out-of-a-pipe"));
    let serving = Serving::start(&["--token-file", ends.to_str().unwrap()]);
    let plain = path("plain");
    write(&plain, "a-token-out-of-a-pipe\n");
    let plain = plain.to_str().unwrap();
    let client = serdes(&["negotiate", &serving.address, "--token-file", plain]);
    assert_eq!(client.status.code(), Some(0), "{client:?}");
    assert_eq!(serving.stop().0, Some(0));
    for mut writer in writers {
        drop(writer.kill());
        writer.wait().unwrap();
    }
}

#[test]
fn token_file_that_turns_endless_leaves_the_old_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (tokens, old) = (path("tokens"), path("old"));
    write(Path::new(&tokens), "old-token-of-may-2026\n");
    fs::copy(&tokens, &old).unwrap();
    let serving = Serving::start(&["--token-file", &tokens]);
    fs::remove_file(&tokens).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &tokens).unwrap();
    serving.signal("-HUP");
    std::thread::sleep(Duration::from_millis(500));
    let client = serdes(&["negotiate", &serving.address, "--token-file", &old]);
    assert_eq!(client.status.code(), Some(0), "{client:?}");
    let (status, said) = serving.stop();
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("the old tokens stay") && said.contains("is a device"), "{said}");
}

#[test]
fn limits_are_listed_and_set_and_a_wrong_one_is_bad_usage() {
    let help = serdes(&["serve", "--limit", "help"]);
    assert_eq!(help.status.code(), Some(0));
    let text = String::from_utf8(help.stdout).unwrap();
    for key in ["peer-sessions", "host-bytes", "array-bytes", "handshake-seconds"] {
        assert!(text.lines().any(|line| line.starts_with(&format!("{key} "))), "{text}");
    }
    for (limit, part) in [
        ("session=1", "peer-sessions"),
        ("host-bytes=1GB", "512M"),
        ("sessions", "KEY=VALUE"),
        ("sessions=none", "above 0"),
    ] {
        let output = serdes(&["serve", "--limit", limit]);
        assert_eq!(output.status.code(), Some(2));
        assert!(error_of(&output).contains(part), "{}", error_of(&output));
    }
    let serving = Serving::start(&["--limit", "sessions=1", "--limit", "host-bytes=64M"]);
    assert_eq!(serdes(&["negotiate", &serving.address]).status.code(), Some(0));
    assert_eq!(serving.stop().0, Some(0));
}
