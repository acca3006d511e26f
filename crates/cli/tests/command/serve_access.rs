//! Who may connect to `serdes serve`, and how much: as a user gives it.

use std::{fs, path::Path, process::Output, time::Duration};

use crate::{serving::Serving, testkit::serdes};

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

#[test]
fn beyond_this_machine_somebody_has_to_be_named_or_anyone_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (tokens, certificate, key) = (path("tokens"), path("certificate.pem"), path("key.pem"));
    write(Path::new(&tokens), "a-token\n");
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
    refused(&encrypted, "encryption alone keeps nobody out");
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
fn tokens_are_wanted_on_this_machine_too_and_read_again_on_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (tokens, old, new) = (path("tokens"), path("old"), path("new"));
    write(Path::new(&tokens), "# of May\nold-token\n");
    write(Path::new(&old), "old-token\n");
    write(Path::new(&new), "new-token # of June\n");
    let serving = Serving::start(&["--token-file", &tokens]);
    let negotiate = |more: &[&str]| serdes(&[&["negotiate", &serving.address], more].concat());
    let without = negotiate(&[]);
    assert_eq!(without.status.code(), Some(2));
    assert!(error_of(&without).contains("UNAUTHENTICATED"), "{}", error_of(&without));
    assert_eq!(negotiate(&["--token-file", &new]).status.code(), Some(2));
    assert_eq!(negotiate(&["--token-file", &old]).status.code(), Some(0));
    write(Path::new(&tokens), "new-token\n");
    serving.signal("-HUP");
    // The signal takes effect by and by.
    let renewed = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        negotiate(&["--token-file", &new]).status.code() == Some(0)
    });
    assert!(renewed);
    assert_eq!(negotiate(&["--token-file", &old]).status.code(), Some(2));
    // What is no list of tokens changes nothing.
    write(Path::new(&tokens), "two words\n");
    serving.signal("-HUP");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(negotiate(&["--token-file", &new]).status.code(), Some(0));
    assert_eq!(serving.stop().0, Some(0));
    for text in ["", "# none\n", "two words\n"] {
        write(Path::new(&tokens), text);
        assert_eq!(serdes(&["serve", "--token-file", &tokens]).status.code(), Some(2));
    }
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
