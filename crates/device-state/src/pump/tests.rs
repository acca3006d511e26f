//! Tests of the pump over a test device: it makes the required calls of a device, and no others.

use std::{
    cell::RefCell,
    io::{self, Read as _},
    sync::{Arc, Mutex, MutexGuard},
};

use serdes::ifrt::DType;
use serdes_files::ProgressMonitor;
use serdes_testkit::noise::noise;

use super::*;
use crate::Error;

/// A device that records its calls. It copies as late as it may, when it is waited for.
#[derive(Clone, Default)]
pub(crate) struct Toy(Arc<Mutex<Notes>>);

#[derive(Default)]
pub(crate) struct Notes {
    /// True if only whole memories can be copied.
    pub(crate) whole: bool,
    /// Number of operations after which all others fail.
    pub(crate) left: Option<usize>,
    /// True if a copy has failed.
    pub(crate) refused: bool,
    pub(crate) under_way: usize,
    pub(crate) most_under_way: usize,
    pub(crate) streams: usize,
    /// Lengths of the host buffers that were created.
    buffers: Vec<usize>,
    /// Number of synchronous calls.
    pub(crate) waited: usize,
    copies: Vec<(u64, usize)>,
}

impl Toy {
    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap()
    }

    fn operate(&self) -> Result<(), &'static str> {
        let mut notes = self.notes();
        match &mut notes.left {
            Some(0) => {
                notes.refused = true;
                Err("broken")
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl TryFrom<Buffer> for Vec<u8> {
    type Error = Buffer;

    fn try_from(buffer: Buffer) -> Result<Self, Buffer> {
        match buffer {
            Buffer::Pageable(bytes) => Ok(bytes),
            other => Err(other),
        }
    }
}

pub(crate) struct ToyMemory {
    toy: Toy,
    pub(crate) bytes: Arc<Mutex<Vec<u8>>>,
}

type ToyCopy = Box<dyn FnOnce(&mut Vec<u8>)>;

pub(crate) struct ToyTransfer {
    toy: Toy,
    run: RefCell<Option<ToyCopy>>,
    host: Vec<u8>,
}

impl Drop for ToyTransfer {
    fn drop(&mut self) {
        self.toy.notes().under_way -= 1;
    }
}

impl ToyMemory {
    fn with(toy: &Toy, bytes: Vec<u8>) -> Self {
        Self { toy: toy.clone(), bytes: Arc::new(Mutex::new(bytes)) }
    }

    fn begin(
        &self,
        offset: u64,
        bytes: usize,
        host: Vec<u8>,
        run: impl FnOnce(&mut Vec<u8>) + 'static,
    ) -> Result<ToyTransfer, &'static str> {
        self.toy.operate()?;
        assert!(bytes <= host.len() && offset + bytes as u64 <= Memory::bytes(self));
        let mut notes = self.toy.notes();
        assert!(!notes.whole || bytes as u64 == Memory::bytes(self), "a part of what is whole");
        notes.copies.push((offset, bytes));
        notes.under_way += 1;
        notes.most_under_way = notes.most_under_way.max(notes.under_way);
        Ok(ToyTransfer { toy: self.toy.clone(), run: RefCell::new(Some(Box::new(run))), host })
    }
}

impl Memory for ToyMemory {
    type Device = Toy;
    type Incoming = Self;
    type Stream = ();
    type HostBuffer = Vec<u8>;
    type Transfer = ToyTransfer;
    type Error = &'static str;

    fn allocate(device: &Toy, contents: &Contents) -> Result<Self, Self::Error> {
        device.operate()?;
        Ok(Self::with(device, vec![0; contents.bytes() as usize]))
    }

    fn allocate_host(device: &Toy, bytes: usize) -> Result<Vec<u8>, Self::Error> {
        device.operate()?;
        device.notes().buffers.push(bytes);
        Ok(vec![0; bytes])
    }

    fn create_stream(device: &Toy) -> Result<(), Self::Error> {
        device.operate()?;
        device.notes().streams += 1;
        Ok(())
    }

    fn is_on((): &(), _: &Toy) -> bool {
        true
    }

    fn is_same(one: &Toy, other: &Toy) -> bool {
        Arc::ptr_eq(&one.0, &other.0)
    }

    fn device(&self) -> &Toy {
        &self.toy
    }

    fn bytes(&self) -> u64 {
        self.bytes.lock().unwrap().len() as u64
    }

    fn is_read_whole(&self) -> bool {
        self.toy.notes().whole
    }

    fn begin_read(
        &self,
        (): &(),
        offset: u64,
        bytes: usize,
        target: Vec<u8>,
    ) -> Result<ToyTransfer, Self::Error> {
        let all = Arc::clone(&self.bytes);
        self.begin(offset, bytes, target, move |host| {
            host[..bytes].copy_from_slice(&all.lock().unwrap()[offset as usize..][..bytes]);
        })
    }

    fn wait(mut transfer: ToyTransfer) -> Result<Vec<u8>, Self::Error> {
        transfer.toy.operate()?;
        let run = transfer.run.borrow_mut().take().unwrap();
        run(&mut transfer.host);
        Ok(std::mem::take(&mut transfer.host))
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), Self::Error> {
        self.toy.operate()?;
        self.toy.notes().waited += 1;
        target.copy_from_slice(&self.bytes.lock().unwrap()[offset as usize..][..target.len()]);
        Ok(())
    }

    fn failed(action: &'static str, name: &str, error: &'static str) -> Error {
        Error::invalid(format!("{error} while {action} {name}"))
    }
}

impl Incoming<Self> for ToyMemory {
    fn device(&self) -> &Toy {
        &self.toy
    }

    fn bytes(&self) -> u64 {
        Memory::bytes(self)
    }

    fn begin_write(
        &mut self,
        (): &(),
        offset: u64,
        bytes: usize,
        source: Vec<u8>,
    ) -> Result<ToyTransfer, &'static str> {
        let all = Arc::clone(&self.bytes);
        self.begin(offset, bytes, source, move |host| {
            all.lock().unwrap()[offset as usize..][..bytes].copy_from_slice(&host[..bytes]);
        })
    }

    fn write(&mut self, offset: u64, source: &[u8]) -> Result<(), &'static str> {
        self.toy.operate()?;
        self.toy.notes().waited += 1;
        self.bytes.lock().unwrap()[offset as usize..][..source.len()].copy_from_slice(source);
        Ok(())
    }

    fn finish(self) -> Result<Self, &'static str> {
        self.toy.operate().map(|()| self)
    }
}

/// Returns contents of `bytes` bytes.
pub(crate) fn contents(bytes: u64) -> Contents {
    Contents::new(DType::U8, [bytes as i64]).unwrap()
}

const MIB: usize = BUFFER_BYTES;

/// Reads a memory; returns the bytes, and the lengths of the buffers in which they arrived.
fn read(memory: &ToyMemory, position: u64) -> Result<(Vec<u8>, Vec<usize>), Error> {
    let (mut pool, returns) = Pool::new(BUFFER_BYTES);
    let mut streams = Streams::new();
    let (mut all, mut cuts) = (Vec::new(), Vec::new());
    for filled in FromDevice::new("w", memory, &mut streams, &mut pool).at(position) {
        let filled = filled?;
        all.extend(&*filled);
        cuts.push(filled.len());
        returns.give(filled.into_buffer());
    }
    Ok((all, cuts))
}

#[test]
fn large_memory_is_read_in_order_through_few_buffers() {
    let toy = Toy::default();
    let bytes = noise(7 * MIB + 5, 1);
    let (all, cuts) = read(&ToyMemory::with(&toy, bytes.clone()), 0).unwrap();
    assert!(all == bytes);
    assert_eq!(cuts, [MIB, MIB, MIB, MIB, MIB, MIB, MIB, 5]);
    let notes = toy.notes();
    assert_eq!((notes.most_under_way, notes.under_way, notes.streams), (IN_FLIGHT, 0, 1));
    assert_eq!(notes.buffers, [MIB; IN_FLIGHT]);
    assert_eq!(notes.waited, 0);
}

#[test]
fn buffers_end_where_the_file_wants_them_to() {
    let toy = Toy::default();
    let bytes = noise(2 * MIB, 2);
    let (all, cuts) = read(&ToyMemory::with(&toy, bytes.clone()), (3 * MIB - 100) as u64).unwrap();
    assert!(all == bytes);
    assert_eq!(cuts, [100, MIB, MIB - 100]);
}

#[test]
fn small_memory_is_one_call_that_waits() {
    let toy = Toy::default();
    for bytes in [0, 1, MIB - 1] {
        let bytes = noise(bytes, 3);
        assert!(read(&ToyMemory::with(&toy, bytes.clone()), 0).unwrap().0 == bytes);
    }
    let notes = toy.notes();
    assert_eq!((notes.waited, notes.streams, notes.copies.len()), (2, 0, 0));
}

#[test]
fn memory_read_whole_takes_one_copy_and_keeps_no_buffer() {
    let toy = Toy::default();
    toy.notes().whole = true;
    let bytes = noise(5 * MIB + 1, 4);
    let memory = ToyMemory::with(&toy, bytes.clone());
    for _ in 0..2 {
        assert!(read(&memory, 77).unwrap().0 == bytes);
    }
    let notes = toy.notes();
    assert_eq!(notes.copies, [(0, 5 * MIB + 1); 2]);
    assert_eq!(notes.buffers, [5 * MIB + 1; 2]);
}

#[test]
fn a_buffer_of_another_kind_keeps_its_place_in_the_order() {
    let toy = Toy::default();
    let bytes = noise(4 * MIB, 5);
    let memory = ToyMemory::with(&toy, bytes.clone());
    // Pinned memory of a real device cannot be used for copies of this one.
    let device = serdes_stream_executor::Plugin::host().device(0).unwrap();
    let (mut pool, returns) = Pool::new(BUFFER_BYTES);
    returns.give(Buffer::from(vec![0; MIB]));
    returns.give(Buffer::from(device.allocate_host(MIB).unwrap()));
    let mut streams = Streams::new();
    let from = FromDevice::new("w", &memory, &mut streams, &mut pool);
    let all: Vec<u8> = from.flat_map(|filled| filled.unwrap().to_vec()).collect();
    assert!(all == bytes);
    let notes = toy.notes();
    assert_eq!((notes.waited, notes.copies.len()), (1, 3));
}

#[test]
fn device_failure_ends_the_bytes_and_leaves_no_copy() {
    let operations = {
        let toy = Toy::default();
        toy.notes().left = Some(usize::MAX);
        read(&ToyMemory::with(&toy, vec![0; 5 * MIB]), 0).unwrap();
        usize::MAX - toy.notes().left.unwrap()
    };
    for left in 0..operations {
        let toy = Toy::default();
        toy.notes().left = Some(left);
        let error = read(&ToyMemory::with(&toy, vec![0; 5 * MIB]), 0).unwrap_err();
        assert_eq!(error.to_string(), "broken while reading w");
        assert_eq!(toy.notes().under_way, 0, "{left}");
    }
}

#[test]
fn memories_that_take_turns_get_their_own_bytes() {
    let toy = Toy::default();
    let (pool, returns) = Pool::new(BUFFER_BYTES);
    let mut pool = pool;
    let mut to = ToDevice::<ToyMemory>::new(returns);
    let bytes = [noise(3 * MIB + 9, 6), noise(2 * MIB, 7), noise(10, 8)];
    let mut memories: Vec<ToyMemory> = bytes
        .iter()
        .map(|bytes| ToyMemory::allocate(&toy, &contents(bytes.len() as u64)).unwrap())
        .collect();
    for at in 0..4 {
        for (memory, bytes) in memories.iter_mut().zip(&bytes) {
            let Some(part) = bytes.chunks(MIB).nth(at) else { continue };
            let buffer = pool.take(part.len(), |bytes| {
                Ok(ToyMemory::allocate_host(&toy, bytes).unwrap().into())
            });
            let mut filled = Filled::new(buffer.unwrap(), part.len()).unwrap();
            filled.copy_from_slice(part);
            to.push("w", memory, (at * MIB) as u64, filled).unwrap();
        }
    }
    to.finish().unwrap();
    for (memory, bytes) in memories.iter().zip(&bytes) {
        assert!(*memory.bytes.lock().unwrap() == *bytes);
    }
    let notes = toy.notes();
    assert_eq!((notes.most_under_way, notes.under_way, notes.streams), (IN_FLIGHT, 0, 1));
    assert_eq!(notes.buffers.len(), IN_FLIGHT);
}

#[test]
fn a_tensor_goes_up_and_comes_back_as_it_was() {
    let toy = Toy::default();
    let monitor = ProgressMonitor::new();
    let mut uploads = Uploads::<ToyMemory>::new(&toy, &monitor);
    let mut downloads = Downloads::new();
    for bytes in [0, 3, MIB, 4 * MIB + 1] {
        let bytes = noise(bytes, 9);
        let memory =
            uploads.put("w", &mut &bytes[..], &contents(bytes.len() as u64)).unwrap().unwrap();
        let mut back = Vec::new();
        downloads.reader("w", &memory).read_to_end(&mut back).unwrap();
        assert!(back == bytes);
    }
    // A reader that ends early does not use up a buffer.
    for _ in 0..10 {
        let short = uploads.put("w", &mut &[0; 5][..], &contents(6)).unwrap();
        assert_eq!(short.err().map(|error| error.kind()), Some(io::ErrorKind::UnexpectedEof));
    }
    let made = toy.notes().buffers.len();
    assert!(made <= 2 * IN_FLIGHT + 1, "{made}");
    monitor.cancel();
    let error = uploads.put("w", &mut io::repeat(0), &contents(1)).err().unwrap();
    assert!(matches!(error, Error::Cancelled));
}
