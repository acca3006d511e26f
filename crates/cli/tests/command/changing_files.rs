//! Tests of files at addresses that change while they are read: the result is the old or the new
//! file, or an error.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Output,
    sync::{Arc, Mutex},
    thread,
};

use crate::testkit::{command, status, text};

/// Elements of each of the two tensors: more than the first requests fetch.
const ELEMENTS: usize = 400 << 10;
/// A server's headers for a file and for its successor of the same length.
type Headers = (&'static str, &'static str);
const TIME: &str = "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
const LATER: &str = "Last-Modified: Wed, 21 Oct 2015 07:28:09 GMT\r\n";
const BOTH: &str = "ETag: \"a\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";

/// A file that is replaced by another one.
struct Changing {
    old: Vec<u8>,
    new: Vec<u8>,
    headers: Headers,
    /// The number of the first request for bytes that finds the new file.
    at: usize,
    asked: Mutex<usize>,
}

/// Starts a server that serves one file under any path but an index's; lists of a bucket are empty.
fn serve(file: Changing) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let file = Arc::new(file);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let file = Arc::clone(&file);
            thread::spawn(move || answer(&stream, &file));
        }
    });
    address
}

fn answer(stream: &TcpStream, file: &Changing) {
    let mut lines = BufReader::new(stream).lines();
    let mut out = stream;
    while let Some(Ok(request)) = lines.next() {
        let mut range = None;
        for line in lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()) {
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                let (begin, end) = text.split_once('-').unwrap();
                range = Some((begin.parse::<usize>().unwrap(), end.parse::<usize>().unwrap()));
            }
        }
        let (bytes, headers) = {
            let mut asked = file.asked.lock().unwrap();
            *asked += usize::from(range.is_some());
            match *asked < file.at {
                true => (&file.old, file.headers.0),
                false => (&file.new, file.headers.1),
            }
        };
        let (head, body) = if request.contains(".index ") {
            ("404 Not Found\r\n".to_owned(), &[][..])
        } else if request.contains("list-type") {
            ("200 OK\r\n".to_owned(), &b"<ListBucketResult></ListBucketResult>"[..])
        } else if request.starts_with("HEAD") {
            let head =
                format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n", bytes.len());
            if out.write_all(head.as_bytes()).is_err() {
                return;
            }
            continue;
        } else if let Some((begin, end)) = range {
            let part = &bytes[begin..bytes.len().min(end + 1)];
            let last = begin + part.len() - 1;
            let range = format!("Content-Range: bytes {begin}-{last}/{}", bytes.len());
            (format!("206 Partial Content\r\n{range}\r\n{headers}"), part)
        } else {
            ("404 Not Found\r\n".to_owned(), &[][..])
        };
        let head = format!("HTTP/1.1 {head}Content-Length: {}\r\n\r\n", body.len());
        if out.write_all(head.as_bytes()).and_then(|()| out.write_all(body)).is_err() {
            return;
        }
    }
}

/// Runs the command with `s3://` directed to the server.
fn run(address: &str, arguments: &[&str]) -> Output {
    command()
        .args(arguments)
        .env("AWS_ENDPOINT", format!("http://{address}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_SKIP_SIGNATURE", "true")
        .output()
        .unwrap()
}

/// Writes a file of two tensors filled with `byte`, in the format that `name` suggests.
fn tensors(folder: &Path, name: &str, byte: u8) -> Vec<u8> {
    use serdes::ifrt::{DType, Shape};
    use serdes_device_state::{Durability, Versions, WriteOptions};
    use serdes_tensors::{TensorInfo, create};
    let path = folder.join(name);
    let options = WriteOptions::new(Versions::current()).with_durability(Durability::None);
    let shape = Shape::new([ELEMENTS as i64]).unwrap();
    let info = |name| TensorInfo::new(name, DType::U8, shape.clone()).unwrap();
    let mut sink =
        create(&path, &options).unwrap().begin(vec![info("a"), info("b")], &None).unwrap();
    for position in sink.order().to_vec() {
        sink.write(position, &mut std::io::repeat(byte)).unwrap();
    }
    sink.finish().unwrap();
    fs::read(path).unwrap()
}

/// Returns the byte that fills the data of a converted npy file; `None` if there are different
/// ones.
fn byte_of(path: &Path) -> Option<u8> {
    let bytes = fs::read(path).unwrap();
    let data = &bytes[bytes.len() - 2 * ELEMENTS..];
    data.iter().all(|byte| *byte == data[0]).then_some(data[0])
}

/// Converts a file that changes at the first request, then at the second, and so on, until it
/// changes too late; returns how often that was an error.
fn convert(scheme: &str, name: &str, headers: Headers) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = [1, 2].map(|byte| tensors(folder.path(), name, byte));
    assert_eq!(old.len(), new.len());
    let out: PathBuf = folder.path().join("out.safetensors");
    let mut errors = 0;
    for at in 1.. {
        assert!(at < 100, "it asks for ever");
        let (old, new) = (old.clone(), new.clone());
        let address = serve(Changing { old, new, headers, at, asked: Mutex::new(0) });
        let from = match scheme {
            "http" => format!("http://{address}/bucket/{name}"),
            scheme => format!("{scheme}://bucket/{name}"),
        };
        let _ = fs::remove_file(&out);
        let done = run(&address, &["convert", &from, text(&out)]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        match status(&done) {
            0 => {
                let byte = byte_of(&out);
                assert!(byte.is_some(), "{from}, request {at}, {headers:?}: a mix of two files");
                if byte == Some(1) {
                    break;
                }
            }
            status => {
                assert_eq!(status, 2, "{said}");
                assert!(said.contains("changed while it was read"), "request {at}: {said}");
                assert!(!out.exists());
                errors += 1;
            }
        }
    }
    errors
}

#[test]
fn convert_takes_no_mix_of_a_file_that_changes_on_the_web() {
    for headers in [
        ("ETag: \"a\"\r\n", "ETag: \"b\"\r\n"),
        ("ETag: W/\"a\"\r\n", "ETag: W/\"b\"\r\n"),
        ("ETag: \"a\"\r\n", "ETag: W/\"a\"\r\n"),
        ("ETag: \"a\"\r\n", ""),
        (TIME, LATER),
        (TIME, ""),
        (BOTH, TIME),
        ("", "ETag: \"b\"\r\n"),
        ("x-amz-version-id: 1\r\n", "x-amz-version-id: 2\r\n"),
    ] {
        assert!(convert("http", "a.safetensors", headers) > 0, "{headers:?}");
    }
}

#[test]
fn convert_takes_no_mix_of_an_object_that_changes() {
    for headers in [
        (BOTH, "ETag: \"b\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n"),
        ("ETag: W/\"a\"\r\n", "ETag: W/\"b\"\r\n"),
        (TIME, LATER),
        (BOTH, TIME),
    ] {
        assert!(convert("s3", "a.safetensors", headers) > 0, "{headers:?}");
    }
}

#[test]
fn convert_takes_no_mix_whatever_the_form_of_the_file_is() {
    for name in ["a.npz", "a.sds"] {
        for scheme in ["http", "s3"] {
            let headers = (BOTH, "ETag: \"b\"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n");
            assert!(convert(scheme, name, headers) > 0, "{scheme} {name}");
        }
    }
}

#[test]
fn check_says_that_a_file_changed() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = [1, 2].map(|byte| tensors(folder.path(), "a.sds", byte));
    for scheme in ["http", "s3"] {
        let headers = ("ETag: \"a\"\r\n", "ETag: \"b\"\r\n");
        let (old, new) = (old.clone(), new.clone());
        let address = serve(Changing { old, new, headers, at: 3, asked: Mutex::new(0) });
        let path = match scheme {
            "http" => format!("http://{address}/a.sds"),
            scheme => format!("{scheme}://bucket/a.sds"),
        };
        let check = run(&address, &["check", &path, "--verify-data"]);
        let said = [&check.stdout[..], &check.stderr[..]].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(status(&check), 2, "{said}");
        assert!(said.contains("changed while it was read"), "{said}");
    }
}
