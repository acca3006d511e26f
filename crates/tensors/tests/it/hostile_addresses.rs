//! Tests of web servers that lie about their bytes or send wrong ones: no reader waits forever,
//! wastes memory, or accepts wrong bytes as those of the file.

use std::{
    io::{self, Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    thread,
};

use serdes_device_state::files::{Files, ReadAt};
use serdes_tensors::{self as tensor_io, storage::Storage};

/// Starts a local server that answers each request by its head; returns the address of a file
/// there. The server ends with the process.
fn server(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> PathBuf {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/x.safetensors", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                head.push(byte[0]);
            }
            // The client may have closed the connection.
            let _ = stream.write_all(&answer(&String::from_utf8_lossy(&head)));
        }
    });
    address.into()
}

/// Returns an answer with this status, these headers and this body.
fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Returns the range that a request asks for.
fn range(head: &str) -> (usize, usize) {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("range:")).unwrap();
    let (begin, end) = line.rsplit_once('=').unwrap().1.split_once('-').unwrap();
    (begin.parse().unwrap(), end.trim().parse::<usize>().unwrap() + 1)
}

fn part(head: &str, file: &[u8], size: u64) -> Vec<u8> {
    let (begin, end) = range(head);
    let end = end.min(file.len());
    let header = format!("content-range: bytes {begin}-{}/{size}\r\n", end.saturating_sub(1));
    answer("206 Partial Content", &header, file.get(begin..end).unwrap_or_default())
}

fn open(address: &Path) -> io::Result<std::sync::Arc<dyn ReadAt>> {
    Storage::anywhere().open(address)
}

fn refused(answers: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    match open(&server(answers)) {
        Ok(_) => panic!("the file is opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_file_that_is_sent_compressed_is_not_taken_for_the_file() {
    let said = refused(|_| answer("200 OK", "content-encoding: gzip\r\n", b"\x1f\x8b..."));
    assert!(said.contains("compressed (gzip)"), "{said}");
    let file = open(&server(|_| answer("200 OK", "content-encoding: identity\r\n", b"plain")));
    assert_eq!(file.unwrap().size().unwrap(), 5);
}

#[test]
fn a_server_that_sends_on_for_ever_is_left() {
    let said = refused(|_| answer("302 Found", "location: /x\r\n", b""));
    assert!(said.contains("more than 10 times"), "{said}");
    let said = refused(|_| answer("302 Found", "location: file:///etc/passwd\r\n", b""));
    assert!(said.contains("an address that is none"), "{said}");
}

#[test]
fn a_part_that_is_another_than_was_asked_for_is_an_error() {
    let said =
        refused(|_| answer("206 Partial Content", "content-range: bytes 5-8/100\r\n", b"1234"));
    assert!(said.contains("another range"), "{said}");
    // Fewer bytes than the range has.
    assert!(
        !refused(|_| {
            answer("206 Partial Content", "content-range: bytes 0-99/100\r\n", b"1234")
        })
        .is_empty()
    );
}

#[test]
fn more_bytes_than_were_asked_for_are_not_kept() {
    let long = vec![7; 200 << 10];
    let said = refused(move |_| {
        let length = long.len();
        let range = format!("content-range: bytes 0-{}/{length}\r\n", length - 1);
        answer("206 Partial Content", &range, &long)
    });
    assert!(said.contains("more than it was asked for"), "{said}");
}

#[test]
fn a_file_that_changes_its_length_is_not_mixed_with_another_one() {
    let file = vec![7; 200 << 10];
    let address = server(move |head| {
        let (begin, _) = range(head);
        part(head, &file, if begin == 0 { 200 << 10 } else { 300 << 10 })
    });
    let opened = open(&address).unwrap();
    let error = opened.read_exact_at(&mut [0; 16], 150 << 10).unwrap_err();
    assert!(error.to_string().contains("replaced"), "{error}");
}

#[test]
fn no_memory_is_taken_for_a_length_that_a_server_announces() {
    // A header of 90 megabytes in a file of exabytes, of which only 64 KiB exist.
    let mut file = 90_000_000_u64.to_le_bytes().to_vec();
    file.resize(64 << 10, b' ');
    let address = server(move |head| part(head, &file, u64::MAX / 2));
    let error = tensor_io::open_in(&Storage::anywhere(), &address).err().unwrap();
    assert!(error.to_string().contains("x.safetensors"), "{error}");
}

#[test]
fn text_of_a_server_cannot_control_a_terminal() {
    let said = refused(|_| answer("200 OK", "content-encoding: \u{9b}2Jevil\r\n", b"x"));
    assert!(said.contains("compressed") && !said.contains(char::is_control), "{said:?}");
}

/// Opens a file of a server that describes it with one element of `said` per answer, and reads all
/// of it; the last element is repeated forever.
fn read_all(said: &'static [&'static str]) -> io::Result<Vec<u8>> {
    let file: Vec<u8> = (0..300_u32 << 10).map(|number| number as u8).collect();
    let (copy, asked) = (file.clone(), std::sync::atomic::AtomicUsize::new(0));
    let address = server(move |head| {
        let number = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let headers = said[number.min(said.len() - 1)];
        let (begin, end) = range(head);
        let end = end.min(copy.len());
        let range = format!("content-range: bytes {begin}-{}/{}\r\n{headers}", end - 1, copy.len());
        answer("206 Partial Content", &range, &copy[begin..end])
    });
    let opened = open(&address)?;
    let mut bytes = vec![0; file.len()];
    for (number, step) in bytes.chunks_mut(10_000).enumerate() {
        opened.read_exact_at(step, number as u64 * 10_000)?;
    }
    assert!(bytes == file);
    Ok(bytes)
}

#[test]
fn first_answer_about_a_file_holds_for_all_of_them() {
    const TIME: &str = "last-modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
    for same in [&[""][..], &["etag: \"a\"\r\n"], &["etag: W/\"a\"\r\n"], &[TIME]] {
        assert!(read_all(same).is_ok(), "{same:?}");
    }
    for changing in [
        &["etag: \"a\"\r\n", "etag: \"b\"\r\n"][..],
        &["etag: \"a\"\r\n", "etag: \"a\"\r\n", "etag: \"b\"\r\n"],
        &["etag: W/\"a\"\r\n", "etag: W/\"b\"\r\n"],
        &["etag: W/\"a\"\r\n", "etag: \"a\"\r\n"],
        &["etag: \"a\"\r\n", ""],
        &["", "etag: \"a\"\r\n"],
        &[TIME, "last-modified: Wed, 21 Oct 2015 07:28:01 GMT\r\n"],
        &[TIME, ""],
    ] {
        let error = read_all(changing).unwrap_err().to_string();
        assert!(error.contains("changed while it was read"), "{changing:?}: {error}");
    }
}

#[test]
fn a_file_that_is_refused_or_gone_later_on_has_changed() {
    for status in ["412 Precondition Failed", "404 Not Found", "200 OK"] {
        let file = vec![7; 200 << 10];
        let address = server(move |head| match range(head) {
            (0, _) => part(head, &file, 200 << 10),
            _ => answer(status, "etag: \"b\u{9b}\"\r\n", b"other"),
        });
        let opened = open(&address).unwrap();
        let error = opened.read_exact_at(&mut [0; 16], 150 << 10).unwrap_err().to_string();
        assert!(error.contains("changed while it was read"), "{error}");
        assert!(error.contains(status) && !error.contains(char::is_control), "{error:?}");
    }
}

#[test]
fn later_requests_make_the_condition_that_the_file_is_the_same() {
    for (said, condition) in [
        ("etag: \"a\"\r\n", "if-match: \"a\""),
        ("last-modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n", "if-unmodified-since: wed, 21"),
    ] {
        let heads = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
        let log = std::sync::Arc::clone(&heads);
        let file = vec![7; 200 << 10];
        let address = server(move |head| {
            log.lock().unwrap().push(head.to_ascii_lowercase());
            let (begin, end) = range(head);
            let range = format!("content-range: bytes {begin}-{}/{}\r\n{said}", end - 1, 200 << 10);
            answer("206 Partial Content", &range, &file[begin..end])
        });
        open(&address).unwrap().read_exact_at(&mut [0; 16], 150 << 10).unwrap();
        let heads = heads.lock().unwrap();
        assert!(!heads[0].contains(condition) && heads[1].contains(condition), "{heads:?}");
    }
}
