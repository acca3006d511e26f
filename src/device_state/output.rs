//! The writing end of a save: buffers go in full and come back empty, and a thread of its own
//! hands them to the system meanwhile.

use std::{
    io::{self, Write},
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, JoinHandle},
};

use super::buffer::Buffer;

/// Where the bytes go.
pub(super) type Sink = Box<dyn Write + Send>;

/// Buffers of one size on their way to a sink, in the order in which they are given.
pub(super) struct Output {
    route: Route,
    /// Buffers that may exist at a time.
    depth: usize,
    made: usize,
}

enum Route {
    /// A second core writes.
    Thread {
        full: Option<Sender<(Buffer, usize)>>,
        free: Receiver<Buffer>,
        writer: Option<JoinHandle<io::Result<Sink>>>,
    },
    /// There is one core: a second thread would only take turns with this one.
    Inline { sink: Option<Sink>, free: Vec<Buffer> },
}

impl Output {
    pub(super) fn new(mut sink: Sink, depth: usize, threaded: bool) -> Self {
        let route = if threaded {
            let (full, filled) = channel::<(Buffer, usize)>();
            let (empty, free) = channel();
            let writer = thread::spawn(move || {
                for (buffer, used) in filled {
                    sink.write_all(buffer.get(..used).unwrap_or_default())?;
                    // Nobody waits for the last ones.
                    let _ = empty.send(buffer);
                }
                Ok(sink)
            });
            Route::Thread { full: Some(full), free, writer: Some(writer) }
        } else {
            Route::Inline { sink: Some(sink), free: Vec::new() }
        };
        Self { route, depth, made: 0 }
    }

    /// An empty buffer: one that was written, or, as long as there may be more, one of `make`.
    pub(super) fn take<E>(
        &mut self,
        make: impl FnOnce() -> Result<Buffer, E>,
    ) -> Result<Result<Buffer, E>, io::Error> {
        let free = match &mut self.route {
            Route::Thread { free, .. } if self.made < self.depth => free.try_recv().ok(),
            Route::Thread { free, .. } => match free.recv() {
                Ok(buffer) => Some(buffer),
                Err(_) => return Err(self.failure()),
            },
            Route::Inline { free, .. } => free.pop(),
        };
        Ok(match free {
            Some(buffer) => Ok(buffer),
            None => make().inspect(|_| self.made += 1),
        })
    }

    /// Writes the first `used` bytes of a buffer.
    pub(super) fn give(&mut self, buffer: Buffer, used: usize) -> io::Result<()> {
        match &mut self.route {
            Route::Thread { full, .. } => match full {
                Some(full) if full.send((buffer, used)).is_ok() => Ok(()),
                _ => Err(self.failure()),
            },
            Route::Inline { sink, free } => {
                let Some(sink) = sink else { return Err(closed()) };
                sink.write_all(buffer.get(..used).unwrap_or_default())?;
                free.push(buffer);
                Ok(())
            }
        }
    }

    /// Waits until everything was handed to the system, and gives the sink back.
    pub(super) fn finish(mut self) -> io::Result<Sink> {
        let mut sink = self.close()?;
        sink.flush()?;
        Ok(sink)
    }

    fn close(&mut self) -> io::Result<Sink> {
        match &mut self.route {
            Route::Thread { full, writer, .. } => {
                drop(full.take());
                match writer.take().map(JoinHandle::join) {
                    Some(Ok(result)) => result,
                    Some(Err(_)) => Err(io::Error::other("the writing thread panicked")),
                    None => Err(closed()),
                }
            }
            Route::Inline { sink, .. } => sink.take().ok_or_else(closed),
        }
    }

    /// Why the writer stopped taking buffers.
    fn failure(&mut self) -> io::Error {
        match self.close() {
            Ok(_) => closed(),
            Err(error) => error,
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "an earlier write failed")
}

impl Drop for Output {
    fn drop(&mut self) {
        // The thread must not write into a file that its owner is about to remove.
        let _ = self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut all = self.0.lock().unwrap();
            if all.len() + bytes.len() > 100 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            all.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn fill(output: &mut Output, byte: u8) -> io::Result<()> {
        let mut buffer =
            output.take(|| Ok::<_, Infallible>(Buffer::pageable()))?.unwrap_or_else(|e| match e {});
        buffer.fill(byte);
        output.give(buffer, 7)
    }

    #[test]
    fn buffers_are_written_in_order_with_and_without_a_thread() {
        for threaded in [false, true] {
            let sink = Shared::default();
            let mut output = Output::new(Box::new(sink.clone()), 2, threaded);
            (0..10).for_each(|byte| fill(&mut output, byte).unwrap());
            output.finish().unwrap();
            let expected: Vec<u8> = (0..10).flat_map(|byte| [byte; 7]).collect();
            assert_eq!(*sink.0.lock().unwrap(), expected);
        }
    }

    #[test]
    fn a_failed_write_comes_back_to_the_giver() {
        for threaded in [false, true] {
            let mut output = Output::new(Box::new(Shared::default()), 2, threaded);
            let result = (0..100).try_for_each(|byte| fill(&mut output, byte));
            let error = result.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{threaded}");
        }
    }
}
