//! A file that is taken to the disk while it is still being written, so that the sync at the end
//! has little left to do.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    sync::mpsc::{SyncSender, TrySendError, sync_channel},
    thread::{self, JoinHandle},
};

use super::Durability;

/// Bytes between two syncs. Each commits the file system's journal, so they must not be many.
const SYNC_EVERY: u64 = 64 << 20;

/// A file that is written from its beginning to its end.
pub struct FileSink {
    file: File,
    durability: Durability,
    /// Bytes since a sync was last asked for.
    waiting: u64,
    syncing: Option<Syncing>,
}

/// A thread that syncs the file each time it is asked to. It waits for the disk, not for a core.
struct Syncing {
    ask: SyncSender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl FileSink {
    /// Creates a new file, to be synced at the end as `durability` says.
    pub fn new(file: File, durability: Durability) -> Self {
        Self { file, durability, waiting: 0, syncing: None }
    }

    /// Asks for a sync; one that has not begun yet is enough.
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

    /// Waits until no sync is under way. The system reports an error of the disk to one sync only,
    /// so this must not drop it.
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
        // The owner is about to remove the file: what became of it no longer matters.
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
        // A pipe can be written, and not be synced.
        let (_reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let mut sink = FileSink::new(file, Durability::Data);
        sink.waiting = SYNC_EVERY;
        sink.write_all(b"a").unwrap();
        assert!(sink.flush().is_err());
    }
}
