//! The writing end of a save: buffers go in full and come back empty, and a thread of its own
//! hands them to the system meanwhile.

use std::{
    io::{self, Write},
    sync::mpsc::{Sender, SyncSender, channel, sync_channel},
    thread::{self, JoinHandle},
};

use crate::device_state::pump::{BUFFER_BYTES, Filled, IN_FLIGHT, Pool, Returns};

/// Buffers on the way: those that the device fills, those that are or wait to be written.
const BUFFERS: usize = 2 * IN_FLIGHT;

/// Where the bytes go.
pub(in crate::device_state) type Sink = Box<dyn Write + Send>;

/// A sink, and the buffers that go round between it and whoever fills them.
pub(super) struct Output {
    pool: Pool,
    drain: Drain,
}

/// The end at which full buffers go in, to be written in the order in which they are given.
pub(super) enum Drain {
    /// A second core writes.
    Thread { orders: Option<Sender<Order>>, writer: Option<JoinHandle<io::Result<Sink>>> },
    /// There is one core: a second thread would only take turns with this one.
    Inline { sink: Option<Sink>, returns: Returns },
}

/// What the writing thread is to do next.
pub(super) enum Order {
    Write(Filled),
    /// Hands everything to the system, and says when it is done.
    Flush(SyncSender<()>),
}

impl Output {
    pub(super) fn new(sink: Sink, threaded: bool) -> Self {
        if threaded {
            let (pool, returns) = Pool::bounded(BUFFERS, BUFFER_BYTES);
            return Self { pool, drain: Drain::thread(sink, returns) };
        }
        let (pool, returns) = Pool::new(BUFFER_BYTES);
        Self { pool, drain: Drain::Inline { sink: Some(sink), returns } }
    }

    /// Where empty buffers come out, and where full ones go in.
    pub(super) fn ends(&mut self) -> (&mut Pool, &mut Drain) {
        (&mut self.pool, &mut self.drain)
    }

    /// Waits until everything was handed to the system, and closes the sink.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.drain.flush()?;
        self.drain.close()
    }
}

impl Drain {
    fn thread(mut sink: Sink, returns: Returns) -> Self {
        let (orders, ordered) = channel();
        let writer = thread::spawn(move || {
            for order in ordered {
                match order {
                    Order::Write(filled) => {
                        sink.write_all(&filled)?;
                        returns.give(filled.into_buffer());
                    }
                    Order::Flush(done) => {
                        sink.flush()?;
                        // Whoever asked may have given up.
                        let _ = done.send(());
                    }
                }
            }
            Ok(sink)
        });
        Self::Thread { orders: Some(orders), writer: Some(writer) }
    }

    /// Writes a buffer.
    pub(super) fn give(&mut self, filled: Filled) -> io::Result<()> {
        match self {
            Self::Thread { .. } => self.order(Order::Write(filled)),
            Self::Inline { sink, returns } => {
                // After a failure there is none: what is written next would be in the wrong place.
                let mut open = sink.take().ok_or_else(closed)?;
                open.write_all(&filled)?;
                *sink = Some(open);
                returns.give(filled.into_buffer());
                Ok(())
            }
        }
    }

    /// Waits until everything so far was handed to the system.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Thread { .. } => {
                let (done, flushed) = sync_channel(1);
                self.order(Order::Flush(done))?;
                flushed.recv().map_err(|_| self.failure())
            }
            Self::Inline { sink, .. } => sink.as_mut().ok_or_else(closed)?.flush(),
        }
    }

    fn order(&mut self, order: Order) -> io::Result<()> {
        match self {
            Self::Thread { orders: Some(orders), .. } if orders.send(order).is_ok() => Ok(()),
            _ => Err(self.failure()),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        match self {
            Self::Thread { orders, writer } => {
                drop(orders.take());
                match writer.take().map(JoinHandle::join) {
                    Some(Ok(result)) => result.map(drop),
                    Some(Err(_)) => Err(io::Error::other("the writing thread panicked")),
                    None => Err(closed()),
                }
            }
            Self::Inline { sink, .. } => sink.take().map(drop).ok_or_else(closed),
        }
    }

    /// Why buffers are no longer taken, nor given back.
    pub(super) fn failure(&mut self) -> io::Error {
        self.close().err().unwrap_or_else(closed)
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "an earlier write failed")
}

impl Drop for Drain {
    fn drop(&mut self) {
        // The thread must not write into a file that its owner is about to remove.
        let _ = self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_state::{
        Error,
        pump::{Buffer, PoolError},
    };
    use std::sync::{Arc, Mutex};

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
        let (pool, drain) = output.ends();
        let made = pool.take(7, |_| Ok::<_, Error>(Buffer::pageable()));
        let mut filled = match made {
            Ok(buffer) => Filled::new(buffer, 7).unwrap(),
            Err(PoolError::Closed) => return Err(drain.failure()),
            Err(PoolError::Failed(error)) => panic!("{error}"),
        };
        filled.fill(byte);
        drain.give(filled)
    }

    #[test]
    fn buffers_are_written_in_order_with_and_without_a_thread() {
        for threaded in [false, true] {
            let sink = Shared::default();
            let mut output = Output::new(Box::new(sink.clone()), threaded);
            (0..10).for_each(|byte| fill(&mut output, byte).unwrap());
            output.finish().unwrap();
            let expected: Vec<u8> = (0..10).flat_map(|byte| [byte; 7]).collect();
            assert_eq!(*sink.0.lock().unwrap(), expected);
        }
    }

    #[test]
    fn after_a_flush_the_sink_has_everything_and_takes_more() {
        for threaded in [false, true] {
            let sink = Shared::default();
            let mut output = Output::new(Box::new(sink.clone()), threaded);
            for round in 1..=3 {
                (0..3).for_each(|byte| fill(&mut output, byte).unwrap());
                output.ends().1.flush().unwrap();
                assert_eq!(sink.0.lock().unwrap().len(), round * 21);
            }
            output.finish().unwrap();
        }
    }

    #[test]
    fn a_failed_write_comes_back_to_the_giver() {
        for threaded in [false, true] {
            let mut output = Output::new(Box::new(Shared::default()), threaded);
            let result = (0..100).try_for_each(|byte| fill(&mut output, byte));
            let error = result.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{threaded}");
            assert!(output.finish().is_err());
        }
    }
}
