//! Tests of paths that are addresses, and of states of several parts. Tests with buckets are in
//! tests/interop/object_store.py.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use crate::testkit::{objects, serdes, state_of, status, text, tiny};

/// A file server that counts the bytes that it sends. `/moved/NAME` redirects to `/NAME`, and
/// `/whole/NAME` ignores ranges.
struct Web {
    address: String,
    sent: Arc<AtomicU64>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Web {
    fn of(files: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> Self {
        let files: HashMap<String, Vec<u8>> =
            files.into_iter().map(|(name, bytes)| (format!("/{name}"), bytes)).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sent, requests) = (Arc::new(AtomicU64::new(0)), Arc::<Mutex<Vec<String>>>::default());
        let (files, count, log) = (Arc::new(files), Arc::clone(&sent), Arc::clone(&requests));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, count, log) =
                    (Arc::clone(&files), Arc::clone(&count), Arc::clone(&log));
                thread::spawn(move || serve(&stream, &files, &count, &log));
            }
        });
        Self { address, sent, requests }
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }
}

fn serve(
    stream: &TcpStream,
    files: &HashMap<String, Vec<u8>>,
    sent: &AtomicU64,
    log: &Mutex<Vec<String>>,
) {
    let mut lines = BufReader::new(stream).lines();
    let mut out = stream;
    while let Some(Ok(request)) = lines.next() {
        let path = request.split(' ').nth(1).unwrap().split('?').next().unwrap().to_owned();
        let mut range = None;
        for line in lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()) {
            let line = line.to_ascii_lowercase();
            if let Some(text) = line.strip_prefix("range: bytes=") {
                let (begin, end) = text.split_once('-').unwrap();
                range = Some((begin.parse::<usize>().unwrap(), end.parse::<usize>().unwrap()));
            }
        }
        log.lock().unwrap().push(format!("{path} {range:?}"));
        let (head, body) = if let Some(name) = path.strip_prefix("/moved") {
            (format!("302 Found\r\nLocation: {name}"), &[][..])
        } else if let Some(bytes) = files.get(path.trim_start_matches("/whole")) {
            match range.filter(|_| !path.starts_with("/whole")) {
                Some((begin, end)) => {
                    let part = &bytes[begin..bytes.len().min(end + 1)];
                    let last = begin + part.len() - 1;
                    let range = format!("bytes {begin}-{last}/{}", bytes.len());
                    (format!("206 Partial Content\r\nContent-Range: {range}\r\nETag: \"1\""), part)
                }
                None => ("200 OK".to_owned(), &bytes[..]),
            }
        } else {
            ("404 Not Found".to_owned(), &[][..])
        };
        sent.fetch_add(body.len() as u64, Ordering::Relaxed);
        let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len());
        if out.write_all(head.as_bytes()).and_then(|()| out.write_all(body)).is_err() {
            return;
        }
    }
}

/// Returns a state with a tensor of `bytes` bytes.
fn large_state(bytes: usize) -> Vec<u8> {
    use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
    use serdes_device_state::{Versions, WriteOptions};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.sds");
    let mut writer = WriteOptions::new(Versions::current()).create(&path).unwrap();
    let shape = Shape::new([bytes as i64]).unwrap();
    let spec = ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)));
    writer.add_bytes("large", &spec, &vec![7; bytes]).unwrap();
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

#[test]
fn a_file_of_the_web_is_judged_by_the_ranges_that_it_takes() {
    let state = large_state(8 << 20);
    let web = Web::of([("a.sds", state)]);
    for name in ["a.sds", "moved/a.sds"] {
        web.sent.store(0, Ordering::Relaxed);
        let check = serdes(&["check", &web.at(name), "--json"]);
        assert_eq!(status(&check), 0, "{check:?}");
        assert_eq!(objects(&check)[0]["kind"], "device_state");
        let sent = web.sent.load(Ordering::Relaxed);
        assert!(sent <= 256 << 10, "{sent} bytes for a verdict: {:?}", web.requests.lock());
    }
    let inspect = serdes(&["inspect", &web.at("a.sds"), "--json"]);
    assert_eq!(objects(&inspect)[0]["tensors"][0]["bytes"], 8 << 20, "{inspect:?}");
    let whole = serdes(&["check", &web.at("a.sds"), "--verify-data", "--json"]);
    assert_eq!(status(&whole), 0, "{whole:?}");
}

#[test]
fn file_of_the_web_is_saved_restored_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let tensors = fs::read(tiny()).unwrap();
    let web = Web::of([("a.safetensors", tensors)]);
    let state = folder.path().join("a.sds");
    for from in ["a.safetensors", "whole/a.safetensors"] {
        let save = serdes(&["save", "--from", &web.at(from), "-o", text(&state)]);
        assert_eq!(status(&save), 0, "{save:?}");
        let diff = serdes(&["diff", &web.at(from), text(&state)]);
        assert_eq!(status(&diff), 0, "{diff:?}");
    }
    let web = Web::of([("a.sds", fs::read(&state).unwrap())]);
    let back = folder.path().join("back.safetensors");
    let restore = serdes(&["restore", &web.at("a.sds"), "--to", text(&back)]);
    assert_eq!(status(&restore), 0, "{restore:?}");
    assert_eq!(status(&serdes(&["diff", text(&tiny()), text(&back)])), 0);
}

#[test]
fn missing_object_is_not_found_and_secrets_stay_hidden() {
    let web = Web::of([]);
    let missing = web.at("nothing.sds?X-Amz-Signature=secret");
    let check = serdes(&["check", &missing, "--json"]);
    assert_eq!(status(&check), 2, "{check:?}");
    assert_eq!(objects(&check)[0]["reasons"][0]["rule"], "not_found");
    for arguments in [
        vec!["check", &missing],
        vec!["inspect", &missing],
        vec!["restore", &missing],
        vec!["save", "--from", &missing, "-o", "never.sds"],
        vec!["diff", &missing, &missing],
        vec!["restore", "https://me:secret@127.0.0.1/a.sds"],
    ] {
        let output = serdes(&arguments);
        assert_eq!(status(&output), 2, "{output:?}");
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        assert!(!String::from_utf8_lossy(&said).contains("secret"), "{output:?}");
    }
}

#[test]
fn an_address_without_a_bucket_says_so_in_every_command() {
    for arguments in [
        vec!["save", "--from", "s3://", "-o", "never.sds"],
        vec!["convert", "s3://", "never.sds"],
        vec!["diff", "s3://", "s3://"],
        vec!["restore", "s3://"],
        vec!["inspect", "s3://"],
    ] {
        let output = serdes(&arguments);
        assert_eq!(status(&output), 2, "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("names no bucket; expected s3://bucket/key"), "{said}");
    }
}

#[test]
fn the_web_is_not_written_and_a_file_address_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let state = state_of(folder.path(), "a");
    let save = serdes(&["save", "--from", text(&tiny()), "-o", "http://127.0.0.1:1/a.sds"]);
    assert_eq!(status(&save), 2, "{save:?}");
    assert!(String::from_utf8_lossy(&save.stderr).contains("only read"), "{save:?}");
    let address = format!("file://{}", text(&state));
    let other = format!("file://{}/b%20c.safetensors", text(folder.path()));
    assert_eq!(status(&serdes(&["check", &address])), 0);
    assert_eq!(status(&serdes(&["restore", &address, "--to", &other])), 0);
    let written = folder.path().join("b c.safetensors");
    assert_eq!(status(&serdes(&["diff", text(&written), &address])), 0);
}

#[test]
fn an_inspection_says_what_each_device_of_a_state_holds() {
    let folder = tempfile::tempdir().unwrap();
    let state = state_of(folder.path(), "a");
    let found = &objects(&serdes(&["inspect", text(&state), "--json"]))[0];
    assert_eq!(found["pieces"], 1, "{found}");
    assert_eq!(found["parts"], 0);
    assert_eq!(found["devices"][0]["id"], 0);
    assert_eq!(found["devices"][0]["bytes"], found["data_bytes"]);
    assert_eq!(found["shardings"][0]["kind"], "single_device");
    assert_eq!(found["shardings"][0]["tensors"], 1);
    assert_eq!(found["tensors"][0]["sharding"], 0);
    assert_eq!(found["tensors"][0]["pieces"], 1);
    assert!(found["meshes"].as_array().unwrap().is_empty());
    assert!(found["metadata"].is_object());
    let words = serdes(&["inspect", text(&state)]);
    let words = String::from_utf8_lossy(&words.stdout).into_owned();
    assert!(words.contains("device") && words.contains("sharding"), "{words}");
}

#[test]
fn an_index_of_the_web_is_followed_to_the_files_beside_it() {
    let index = |file: &str| {
        let map = serde_json::json!({ "weight_map": { "ones": "tiny.safetensors", "x": file } });
        map.to_string().into_bytes()
    };
    let web = Web::of([
        ("m/tiny.safetensors", fs::read(tiny()).unwrap()),
        ("m/good.safetensors.index.json", index("tiny.safetensors")),
        ("m/lost.safetensors.index.json", index("lost.safetensors")),
    ]);
    let check = |name: &str| {
        let output = serdes(&["check", &web.at(name), "--json"]);
        let object = objects(&output).remove(0);
        (status(&output), object["kind"].clone(), object["reasons"].to_string())
    };
    let (code, kind, reasons) = check("m/good.safetensors.index.json");
    assert_eq!((code, kind), (2, "shard_index".into()), "{reasons}");
    assert!(reasons.contains("x in tiny.safetensors"), "{reasons}");
    let (_, _, reasons) = check("m/lost.safetensors.index.json");
    assert!(reasons.contains("not_found") && reasons.contains("lost.safetensors"), "{reasons}");
    let inspected = serdes(&["inspect", &web.at("m/good.safetensors.index.json"), "--json"]);
    assert!(objects(&inspected)[0]["tensors"].as_array().unwrap().len() > 3);
}
