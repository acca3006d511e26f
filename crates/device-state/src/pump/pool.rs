//! Reusable buffers: taken empty from the pool, and returned when their bytes have arrived.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::Buffer;
use crate::Error;

/// The reason why there is no buffer, or no contents for it.
#[derive(Debug)]
pub(crate) enum PoolError {
    /// The side that returns buffers has ended; its own error gives the reason.
    Closed,
    /// A buffer could not be allocated or filled.
    Failed(Error),
}

impl From<Error> for PoolError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Failed(error) => error,
            PoolError::Closed => Self::invalid("the other end of the pump has ended".to_owned()),
        }
    }
}

/// Buffers of one length. One thread takes them; any thread returns them, through [`Returns`].
#[derive(Debug)]
pub(crate) struct Pool {
    free: Receiver<Buffer>,
    bytes: usize,
    /// Number of buffers that may still be allocated before the consumer waits for one; `None` if
    /// it never waits.
    left: Option<usize>,
}

/// Sender that returns buffers to a pool.
#[derive(Clone, Debug)]
pub(crate) struct Returns {
    free: Sender<Buffer>,
    bytes: usize,
}

impl Pool {
    /// Creates a pool of buffers of `bytes` bytes, which allocates one whenever none is free: for a
    /// consumer that returns them itself, and holds few.
    pub(crate) fn new(bytes: usize) -> (Self, Returns) {
        let (give_back, free) = channel();
        (Self { free, bytes, left: None }, Returns { free: give_back, bytes })
    }

    /// Creates a pool of at most `most` buffers, whose consumer waits for other threads to return
    /// them.
    pub(crate) fn bounded(most: usize, bytes: usize) -> (Self, Returns) {
        let (pool, returns) = Self::new(bytes);
        (Self { left: Some(most), ..pool }, returns)
    }

    /// Takes a buffer of at least `least` bytes: a free one, a new one from `make`, which gets the
    /// length, or, at the maximum number, the next that is returned. One that is longer than the
    /// pool's buffers is used only once.
    pub(crate) fn take(
        &mut self,
        least: usize,
        make: impl FnOnce(usize) -> Result<Buffer, Error>,
    ) -> Result<Buffer, PoolError> {
        if least > self.bytes {
            return Ok(make(least)?);
        }
        match self.free.try_recv() {
            Ok(buffer) => return Ok(buffer),
            Err(_) if self.left == Some(0) => {
                return self.free.recv().map_err(|_| PoolError::Closed);
            }
            Err(_) => {}
        }
        let buffer = make(self.bytes)?;
        self.left = self.left.map(|left| left - 1);
        Ok(buffer)
    }
}

impl Returns {
    /// Returns a buffer to the pool.
    pub(crate) fn give(&self, buffer: Buffer) {
        if buffer.len() == self.bytes {
            // The receiver is gone for the last buffers.
            let _ = self.free.send(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(bytes: usize) -> Result<Buffer, Error> {
        Ok(Buffer::from(vec![0; bytes]))
    }

    fn never(_: usize) -> Result<Buffer, Error> {
        Err(Error::invalid("one more".to_owned()))
    }

    #[test]
    fn no_more_buffers_are_made_than_there_may_be() {
        let (mut pool, returns) = Pool::bounded(2, 10);
        let first = pool.take(10, make).unwrap();
        let second = pool.take(1, make).unwrap();
        assert_eq!((first.len(), second.len()), (10, 10));
        returns.give(first);
        pool.take(3, never).unwrap();
        drop(returns);
        assert!(matches!(pool.take(3, never), Err(PoolError::Closed)));
    }

    #[test]
    fn a_longer_buffer_is_made_for_once_and_not_kept() {
        let (mut pool, returns) = Pool::bounded(1, 10);
        let long = pool.take(11, make).unwrap();
        assert_eq!(long.len(), 11);
        returns.give(long);
        assert_eq!(pool.take(10, make).unwrap().len(), 10);
        assert!(matches!(pool.take(11, never), Err(PoolError::Failed(_))));
    }
}
