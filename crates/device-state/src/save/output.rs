//! The output of a save: full buffers go in and empty ones come back, while a separate thread
//! writes. Bytes in memory of this process are written in place, before the call returns.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Sender, SyncSender, channel, sync_channel},
    },
    thread::{self, JoinHandle},
};

use crate::pump::{BUFFER_BYTES, Filled, IN_FLIGHT, Pool, Returns};

/// Number of buffers: those that the device fills, and those that wait to be written.
const BUFFERS: usize = 2 * IN_FLIGHT;

/// Destination of the bytes.
pub(crate) type Sink = Box<dyn Write + Send>;

/// A sink, and the buffers between it and the code that fills them.
pub(super) struct Output {
    pool: Pool,
    drain: Drain,
}

/// The input of the output: bytes are written in the order in which they are passed.
pub(super) struct Drain {
    sink: SharedSink,
    writing: Writing,
}

/// A sink for one thread at a time; `None` after a failure, since later bytes would be in the wrong
/// place.
#[derive(Clone)]
struct SharedSink(Arc<Mutex<Option<Sink>>>);

/// The way in which buffers are written.
enum Writing {
    /// On this thread, since there is one core: a second thread would only alternate with this one.
    Inline(Returns),
    /// On a second thread, started with the first buffer.
    NotYet(Returns),
    Thread(WritingThread),
    Closed,
}

/// A thread that writes buffers.
struct WritingThread {
    orders: Sender<Order>,
    writer: JoinHandle<io::Result<()>>,
    /// True if it may have unwritten buffers.
    busy: bool,
}

/// Next task of the writing thread.
enum Order {
    Write(Filled),
    /// Notifies when everything before was written.
    Tell(SyncSender<()>),
}

impl Output {
    pub(super) fn new(sink: Sink, threaded: bool) -> Self {
        let sink = SharedSink(Arc::new(Mutex::new(Some(sink))));
        let (pool, writing) = if threaded {
            let (pool, returns) = Pool::bounded(BUFFERS, BUFFER_BYTES);
            (pool, Writing::NotYet(returns))
        } else {
            let (pool, returns) = Pool::new(BUFFER_BYTES);
            (pool, Writing::Inline(returns))
        };
        Self { pool, drain: Drain { sink, writing } }
    }

    /// Returns the pool of empty buffers, and the drain for full ones.
    pub(super) fn ends(&mut self) -> (&mut Pool, &mut Drain) {
        (&mut self.pool, &mut self.drain)
    }

    /// Waits until the system has all bytes, and closes the sink.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.drain.flush()?;
        self.drain.close()
    }
}

impl SharedSink {
    fn with(&self, work: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sink = place.take().ok_or_else(closed)?;
        work(&mut *sink)?;
        *place = Some(sink);
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        let sink = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        sink.map(drop).ok_or_else(closed)
    }
}

impl WritingThread {
    fn start(sink: SharedSink, returns: Returns) -> io::Result<Self> {
        let (orders, ordered) = channel();
        let write = move || {
            for order in ordered {
                match order {
                    Order::Write(filled) => {
                        sink.with(|sink| sink.write_all(&filled))?;
                        returns.give(filled.into_buffer());
                    }
                    // The asking thread may have stopped waiting.
                    Order::Tell(written) => drop(written.send(())),
                }
            }
            Ok(())
        };
        let writer = thread::Builder::new().name("serdes writer".to_owned()).spawn(write)?;
        Ok(Self { orders, writer, busy: false })
    }

    /// Returns the error that ended the writing thread, if any.
    fn end(self) -> io::Result<()> {
        drop(self.orders);
        let panicked = |_| Err(io::Error::other("the writing thread panicked"));
        self.writer.join().unwrap_or_else(panicked)
    }
}

impl Drain {
    /// Writes a buffer, possibly after this call returns.
    pub(super) fn give(&mut self, filled: Filled) -> io::Result<()> {
        if let Writing::Inline(returns) = &self.writing {
            self.sink.with(|sink| sink.write_all(&filled))?;
            returns.give(filled.into_buffer());
            return Ok(());
        }
        self.order(Order::Write(filled))
    }

    /// Writes bytes of the caller before this call returns.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.settle()?;
        self.sink.with(|sink| sink.write_all(bytes))
    }

    /// Waits until the system has all bytes so far.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.settle()?;
        self.sink.with(|sink| sink.flush())
    }

    /// Waits until the sink has every buffer.
    fn settle(&mut self) -> io::Result<()> {
        if !matches!(&self.writing, Writing::Thread(thread) if thread.busy) {
            return Ok(());
        }
        let (tell, written) = sync_channel(1);
        self.order(Order::Tell(tell))?;
        written.recv().map_err(|_| self.failure())?;
        if let Writing::Thread(thread) = &mut self.writing {
            thread.busy = false;
        }
        Ok(())
    }

    fn order(&mut self, order: Order) -> io::Result<()> {
        self.start()?;
        match &mut self.writing {
            Writing::Thread(thread) if thread.orders.send(order).is_ok() => {
                thread.busy = true;
                Ok(())
            }
            _ => Err(self.failure()),
        }
    }

    /// Starts the thread for the first buffer.
    fn start(&mut self) -> io::Result<()> {
        self.writing = match std::mem::replace(&mut self.writing, Writing::Closed) {
            Writing::NotYet(returns) => {
                Writing::Thread(WritingThread::start(self.sink.clone(), returns)?)
            }
            writing => writing,
        };
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.writing, Writing::Closed) {
            Writing::Thread(thread) => thread.end().and_then(|()| self.sink.close()),
            Writing::Inline(_) | Writing::NotYet(_) => self.sink.close(),
            Writing::Closed => Err(closed()),
        }
    }

    /// Returns the reason why buffers are no longer taken or returned.
    pub(super) fn failure(&mut self) -> io::Error {
        self.close().err().unwrap_or_else(closed)
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "an earlier write failed")
}

impl Drop for Drain {
    fn drop(&mut self) {
        // The thread must not write to a file that its owner is about to remove.
        let _ = self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Error,
        pump::{Buffer, PoolError},
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

    #[test]
    fn bytes_of_the_caller_keep_their_place_among_buffers() {
        for threaded in [false, true] {
            let sink = Shared::default();
            let mut output = Output::new(Box::new(sink.clone()), threaded);
            for byte in 0..5 {
                fill(&mut output, byte).unwrap();
                output.ends().1.write(&[byte + 10; 3]).unwrap();
                // The bytes are written when the call has returned.
                assert_eq!(sink.0.lock().unwrap().last(), Some(&(byte + 10)), "{threaded}");
            }
            output.finish().unwrap();
            let expected: Vec<u8> =
                (0..5).flat_map(|byte| [vec![byte; 7], vec![byte + 10; 3]].concat()).collect();
            assert_eq!(*sink.0.lock().unwrap(), expected);
        }
    }

    #[test]
    fn bytes_of_the_caller_need_no_thread() {
        let mut output = Output::new(Box::new(Shared::default()), true);
        output.ends().1.write(&[1; 3]).unwrap();
        assert!(matches!(output.drain.writing, Writing::NotYet(_)));
        fill(&mut output, 1).unwrap();
        assert!(matches!(output.drain.writing, Writing::Thread(_)));
    }

    #[test]
    fn output_stops_behind_bytes_that_were_not_written() {
        for threaded in [false, true] {
            let sink = Shared::default();
            let mut output = Output::new(Box::new(sink.clone()), threaded);
            let error = output.ends().1.write(&[1; 101]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{threaded}");
            let result = (0..100).try_for_each(|byte| fill(&mut output, byte));
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::BrokenPipe, "{threaded}");
            assert!(output.ends().1.write(&[1]).is_err());
            assert!(sink.0.lock().unwrap().is_empty());
        }
    }
}
