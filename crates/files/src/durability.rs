//! Durability of bytes and names on the disk.

use std::{
    fs::File,
    io,
    path::Path,
    sync::mpsc::{RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use super::{Cancelled, Error, ProgressMonitor};

/// Interval at which a wait for the disk checks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Extent to which a file is written to the disk before it gets its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// The data, the file's length and its new name are on the disk before the save returns.
    #[default]
    Data,
    /// The system writes at its own time: a crash of the machine may lose or damage the new file; a
    /// crash of the process does not.
    None,
}

/// Syncs a file to the disk, which may take minutes and which no signal interrupts. Returns early
/// once the work is cancelled: the file may then be removed.
pub fn sync_watched(file: &File, monitor: &ProgressMonitor) -> io::Result<Result<(), Cancelled>> {
    let file = file.try_clone()?;
    watched(monitor, move || file.sync_data())
}

/// Runs `work` on a thread of its own, and waits for it until the monitor is cancelled.
fn watched(
    monitor: &ProgressMonitor,
    work: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<Result<(), Cancelled>> {
    let (done, ended) = sync_channel(1);
    thread::Builder::new().name("serdes sync".to_owned()).spawn(move || {
        // The receiver may have stopped waiting.
        let _ = done.send(work());
    })?;
    loop {
        match ended.recv_timeout(LOOK_EVERY) {
            Ok(synced) => return synced.map(Ok),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the syncing thread panicked"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(cancelled) = monitor.check() {
                    return Ok(Err(cancelled));
                }
            }
        }
    }
}

/// Syncs the names in a directory to the disk.
pub fn sync_directory(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        File::open(path)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| Error::new("sync", path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn sync_that_does_not_end_is_left_if_the_work_is_stopped() {
        let monitor = ProgressMonitor::new();
        let (release, blocked) = channel::<()>();
        let (began, begun) = channel();
        let stopper = monitor.clone();
        let stop = thread::spawn(move || {
            begun.recv().unwrap();
            stopper.cancel();
        });
        let waited = watched(&monitor, move || {
            began.send(()).unwrap();
            // Blocks until the test has ended.
            let _ = blocked.recv();
            Ok(())
        });
        assert_eq!(waited.unwrap(), Err(Cancelled));
        drop(release);
        stop.join().unwrap();
    }

    #[test]
    fn sync_error_of_the_disk_reaches_the_waiting_thread() {
        let monitor = ProgressMonitor::new();
        assert_eq!(watched(&monitor, || Ok(())).unwrap(), Ok(()));
        let full = watched(&monitor, || Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        let file = tempfile::tempfile().unwrap();
        assert_eq!(sync_watched(&file, &monitor).unwrap(), Ok(()));
    }
}
