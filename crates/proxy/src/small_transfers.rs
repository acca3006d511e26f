//! Small arrays on a stream of the session: a separate call would cost more than their data.
//!
//! Our client opens the stream if our server announces it. A message has a request as on the
//! session's stream, which creates an array from its host buffer or fills one, and the bytes of
//! that buffer; the bytes are never in the store for other calls. Messages that are ready at the
//! same time go out in one frame.
//!
//! The module has the messages and their transport. It does not depend on sessions or arrays.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body::Frame;
use prost::Message;
use serdes::proto::{tensorflow::StatusProto, xla::ifrt::proxy::IfrtRequest};

use super::bulk::HEADER;

/// Maximum size in bytes of an array on this stream.
pub(super) const MOST_BYTES: u64 = 64 << 10;

/// A request, with the data of its host buffer if it creates an array.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SmallTransfer {
    #[prost(message, optional, tag = "1")]
    pub(super) request: Option<IfrtRequest>,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) data: Bytes,
}

/// Result of a small transfer, with the data of its host buffer if it filled one. Answers come in
/// any order.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SmallTransferred {
    /// The number of the request.
    #[prost(uint64, tag = "1")]
    pub(super) op_id: u64,
    /// The error, if the request failed.
    #[prost(message, optional, tag = "2")]
    pub(super) status: Option<StatusProto>,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) data: Bytes,
}

/// Queue of outgoing messages. `K` is a value that each message keeps until it is sent.
#[derive(Debug)]
pub(super) struct Outbox<K = ()>(Mutex<Outgoing<K>>);

#[derive(Debug)]
struct Outgoing<K> {
    bytes: BytesMut,
    kept: Vec<K>,
    over: bool,
    /// Waker of the sender, if it waits for messages.
    sender: Option<Waker>,
}

impl<K> Default for Outbox<K> {
    fn default() -> Self {
        let (bytes, kept) = (BytesMut::new(), Vec::new());
        Self(Mutex::new(Outgoing { bytes, kept, over: false, sender: None }))
    }
}

impl<K> Outbox<K> {
    /// Maximum size of a frame in bytes.
    const FRAME: usize = 256 << 10;

    fn lock(&self) -> MutexGuard<'_, Outgoing<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message. It is dropped after the end.
    pub(super) fn push(&self, message: &impl Message, keep: Option<K>) {
        let length = message.encoded_len();
        let mut outgoing = self.lock();
        if outgoing.over {
            return;
        }
        outgoing.bytes.reserve(HEADER + length);
        outgoing.bytes.put_u8(0);
        // Messages are no longer than a small array with its description.
        outgoing.bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
        message.encode_raw(&mut outgoing.bytes);
        outgoing.kept.extend(keep);
        let sender = outgoing.sender.take();
        drop(outgoing);
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Accepts no more messages.
    pub(super) fn close(&self) {
        let mut outgoing = self.lock();
        outgoing.over = true;
        let sender = outgoing.sender.take();
        drop(outgoing);
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Returns the bytes of the queued messages; `None` after the last ones.
    pub(super) fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut outgoing = self.lock();
        if outgoing.bytes.len() > Self::FRAME {
            return Poll::Ready(Some(outgoing.bytes.split_to(Self::FRAME).freeze()));
        }
        if outgoing.bytes.is_empty() {
            if outgoing.over {
                return Poll::Ready(None);
            }
            if !outgoing.sender.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                outgoing.sender = Some(context.waker().clone());
            }
            return Poll::Pending;
        }
        outgoing.kept.clear();
        Poll::Ready(Some(std::mem::take(&mut outgoing.bytes).freeze()))
    }
}

/// The body of a request whose messages come from an outbox.
pub(super) struct Outgone(pub(super) Arc<Outbox>);

impl http_body::Body for Outgone {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_take(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A waker of a sender that counts its calls.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn message(bytes: usize) -> SmallTransferred {
        SmallTransferred { op_id: 7, data: vec![1; bytes].into(), ..Default::default() }
    }

    #[test]
    fn waiting_messages_go_out_together_after_one_wake() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let (outbox, kept) = (Outbox::default(), Arc::new(()));
        assert!(outbox.poll_take(&mut context).is_pending());
        let mut expected = Vec::new();
        for bytes in [3, 0, 70_000] {
            let message = message(bytes);
            outbox.push(&message, Some(Arc::clone(&kept)));
            expected.push(0);
            expected.extend_from_slice(&(message.encoded_len() as u32).to_be_bytes());
            expected.extend_from_slice(&message.encode_to_vec());
        }
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert_eq!(Arc::strong_count(&kept), 4);
        let Poll::Ready(Some(bytes)) = outbox.poll_take(&mut context) else { panic!("nothing") };
        assert!(bytes == expected);
        // The values that they held are released.
        assert_eq!(Arc::strong_count(&kept), 1);
        assert!(outbox.poll_take(&mut context).is_pending());
        outbox.close();
        assert_eq!(woken.0.load(Ordering::Relaxed), 2);
        outbox.push(&message(3), Some(Arc::clone(&kept)));
        assert_eq!(outbox.poll_take(&mut context), Poll::Ready(None));
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[test]
    fn frame_has_a_longest_size_and_the_last_comes_before_the_end() {
        let mut context = Context::from_waker(Waker::noop());
        let outbox = Outbox::<()>::default();
        (0..10).for_each(|_| outbox.push(&message(60_000), None));
        outbox.close();
        let mut sizes = Vec::new();
        while let Poll::Ready(Some(bytes)) = outbox.poll_take(&mut context) {
            sizes.push(bytes.len());
        }
        assert_eq!(sizes.len(), 3);
        assert!(sizes.iter().all(|size| *size <= Outbox::<()>::FRAME));
        assert_eq!(sizes.iter().sum::<usize>(), 10 * (5 + message(60_000).encoded_len()));
    }
}
