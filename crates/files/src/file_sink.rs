//! Writer that syncs a file in the background while it is written, so that the sync at the end has
//! little left to do.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    sync::mpsc::{SyncSender, TrySendError, sync_channel},
    thread::{self, JoinHandle},
};

use super::Durability;

/// Bytes between two syncs. Each sync commits the file system's journal, so they should be rare.
const SYNC_EVERY: u64 = 64 << 20;

/// A file that is written sequentially and synced meanwhile.
pub struct FileSink {
    file: File,
    durability: Durability,
    /// Bytes written since the last request for a sync.
    waiting: u64,
    syncing: Option<Syncing>,
}

/// A thread that syncs the file on request. It waits for the disk and uses no core.
struct Syncing {
    ask: SyncSender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl FileSink {
    /// Creates a sink for a new file; `durability` says if the file is synced at the end.
    pub fn new(file: File, durability: Durability) -> Self {
        Self { file, durability, waiting: 0, syncing: None }
    }

    /// Requests a sync, unless a request is still pending.
    fn ask(&mut self) -> io::Result<()> {
        let syncing = match &self.syncing {
            Some(syncing) => syncing,
            None => {
                let file = self.file.try_clone()?;
                let (ask, asked) = sync_channel(1);
                let thread =
                    thread::spawn(move || asked.iter().try_for_each(|()| file.sync_data()));
                self.syncing.insert(Syncing { ask, thread })
            }
        };
        match syncing.ask.try_send(()) {
            Ok(()) | Err(TrySendError::Full(())) => Ok(()),
            Err(TrySendError::Disconnected(())) => self.join(),
        }
    }

    /// Waits for the running sync. The system reports a disk error to one sync only, so its result
    /// must not be dropped.
    fn join(&mut self) -> io::Result<()> {
        let Some(Syncing { ask, thread }) = self.syncing.take() else { return Ok(()) };
        drop(ask);
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the syncing thread panicked")))
    }
}

impl Write for FileSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.waiting += count as u64;
        if self.durability == Durability::Data && self.waiting >= SYNC_EVERY {
            self.waiting = 0;
            self.ask()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.join()
    }
}

impl Seek for FileSink {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        // The owner is about to remove the file: the result no longer matters.
        let _ = self.join();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn bytes_that_were_synced_on_the_way_are_all_there() {
        let mut file = tempfile::tempfile().unwrap();
        let mut sink = FileSink::new(file.try_clone().unwrap(), Durability::Data);
        for byte in 0..3 {
            sink.waiting = SYNC_EVERY;
            sink.write_all(&[byte; 1000]).unwrap();
        }
        assert!(sink.syncing.is_some());
        sink.flush().unwrap();
        assert!(sink.syncing.is_none());
        let mut all = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut all).unwrap();
        assert_eq!(all, [[0; 1000], [1; 1000], [2; 1000]].concat());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_error_of_an_early_sync_reaches_the_writer() {
        // A pipe can be written, but not synced.
        let (_reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let mut sink = FileSink::new(file, Durability::Data);
        sink.waiting = SYNC_EVERY;
        sink.write_all(b"a").unwrap();
        assert!(sink.flush().is_err());
    }
}
