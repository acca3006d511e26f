//! Tests of tensors in a file with slow answers: how many requests a conversion makes, and how many
//! of them are concurrent.

use std::{
    io,
    ops::Range,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{Receiver, sync_channel},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use serdes_device_state::{Versions, WriteOptions};
use serdes_files::{Durability, ProgressMonitor, ReadAt};
use serdes_tensors::{
    Comparison, Form, Source, create, diff, open, open_at,
    transfers::{ConvertOptions, convert},
};

/// Time that each answer takes.
const DELAY: Duration = Duration::from_millis(20);

/// Bytes that arrive late, and the requests for them.
struct Late {
    bytes: Bytes,
    requests: AtomicUsize,
    under_way: Arc<AtomicUsize>,
    most: AtomicUsize,
}

impl Late {
    fn new(bytes: Vec<u8>) -> Arc<Self> {
        let (requests, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { bytes: bytes.into(), requests, under_way: Arc::default(), most })
    }
}

impl ReadAt for Late {
    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = (offset as usize + buffer.len()).min(self.bytes.len()) as u64;
        let bytes = self.begin_read(offset..end).unwrap().recv().unwrap()?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn begin_read(&self, range: Range<u64>) -> Option<Receiver<io::Result<Bytes>>> {
        self.requests.fetch_add(1, Relaxed);
        self.most.fetch_max(self.under_way.fetch_add(1, Relaxed) + 1, Relaxed);
        let (send, answer) = sync_channel(1);
        let bytes = self.bytes.slice(range.start as usize..range.end as usize);
        let under_way = Arc::clone(&self.under_way);
        thread::spawn(move || {
            thread::sleep(DELAY);
            under_way.fetch_sub(1, Relaxed);
            // The reader may have ended by now.
            let _ = send.send(Ok(bytes));
        });
        Some(answer)
    }

    fn answers_late(&self) -> bool {
        true
    }
}

/// Returns a file of tensors of `bytes` bytes each; `names` gives their order in it.
fn safetensors(names: &[usize], bytes: usize) -> Vec<u8> {
    let entries = names.iter().enumerate().map(|(place, name)| {
        let (begin, end) = (place * bytes, (place + 1) * bytes);
        format!(r#""w{name:05}":{{"dtype":"U8","shape":[{bytes}],"data_offsets":[{begin},{end}]}}"#)
    });
    let header = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    for name in names {
        file.extend((0..bytes).map(|at| (name * 31 + at) as u8));
    }
    file
}

fn open_late(file: &Arc<Late>) -> Box<dyn Source> {
    open_at(file.clone(), "late.safetensors", Some(Form::Safetensors)).unwrap()
}

fn convert_to(path: &Path, file: &Arc<Late>, chosen: &ConvertOptions) {
    let options = WriteOptions::new(Versions::current()).with_durability(Durability::None);
    let target = create(path, &options).unwrap();
    convert(&[open_late(file)], target, chosen, &ProgressMonitor::new()).unwrap();
}

#[test]
fn small_tensors_come_many_with_one_request_and_many_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<usize> = (0..600).collect();
    let bytes = safetensors(&names, 40 << 10);
    std::fs::write(folder.path().join("near.safetensors"), &bytes).unwrap();
    let near = open(folder.path().join("near.safetensors")).unwrap();
    for to in ["a.sds", "a.safetensors"] {
        let file = Late::new(bytes.clone());
        let to = folder.path().join(to);
        convert_to(&to, &file, &ConvertOptions::new());
        // 23 MiB in requests of 4 MiB, and two requests for the header.
        assert!(file.requests.load(Relaxed) <= 9, "{} requests", file.requests.load(Relaxed));
        assert!(file.most.load(Relaxed) >= 5, "{} at a time", file.most.load(Relaxed));
        let differences =
            diff(&*open(&to).unwrap(), &*near, None, &ProgressMonitor::new(), |_| {}).unwrap();
        assert_eq!(differences.len(), names.len());
        assert!(differences.iter().all(|one| one.comparison == Comparison::Equal));
    }
}

#[test]
fn tensors_of_a_block_or_more_are_under_way_together() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<usize> = (0..8).collect();
    let file = Late::new(safetensors(&names, 5 << 20));
    convert_to(&folder.path().join("a.sds"), &file, &ConvertOptions::new());
    assert!(file.most.load(Relaxed) >= 8, "{} at a time", file.most.load(Relaxed));
}

#[test]
fn tensors_that_are_not_wanted_are_not_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<usize> = (0..64).collect();
    let file = Late::new(safetensors(&names, 1 << 20));
    let chosen = ConvertOptions::new().with_only(vec!["w*0".to_owned()]);
    convert_to(&folder.path().join("a.sds"), &file, &chosen);
    // Seven requests for tensors that are not adjacent, and two for the header.
    assert_eq!(file.requests.load(Relaxed), 9);
    assert!(file.most.load(Relaxed) >= 6, "{} at a time", file.most.load(Relaxed));
}

#[test]
fn files_with_tensors_in_another_order_are_compared_by_name() {
    let names: Vec<usize> = (0..400).collect();
    let backwards: Vec<usize> = names.iter().rev().copied().collect();
    let [a, b] = [&names, &backwards].map(|names| Late::new(safetensors(names, 10 << 10)));
    let differences =
        diff(&*open_late(&a), &*open_late(&b), None, &ProgressMonitor::new(), |_| {}).unwrap();
    assert_eq!(differences.len(), names.len());
    assert!(differences.iter().all(|one| one.comparison == Comparison::Equal));
    assert!(a.requests.load(Relaxed) <= 4, "{} requests", a.requests.load(Relaxed));
    assert!(b.most.load(Relaxed) >= 16, "{} at a time", b.most.load(Relaxed));
}
