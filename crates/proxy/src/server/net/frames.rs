//! The messages of a call's body. Memory is allocated as bytes arrive: the announced length of a
//! message is not trusted.

use std::{marker::PhantomData, time::Duration};

use bytes::{Buf as _, Bytes};
use prost::Message;
use serdes::codec::Status;
use tonic::body::Body;

use crate::{
    bulk::{BodyBytes, DATA_KEY, DataMessage, HEADER},
    server::{
        budget::{Permit, Quota},
        deadline::within,
        limits::Limits,
    },
    status::status,
};

/// Limits on the size of a message and on its times.
#[derive(Clone)]
pub(crate) struct Terms {
    /// Quota for the memory of received bytes; `None` for calls with few bytes.
    pub(crate) quota: Option<Quota>,
    /// Bytes of a message that do not count for the quota: every call may have them.
    pub(crate) free: usize,
    /// Longest pause within a message.
    pub(crate) idle: Duration,
    /// Longest wait for the quota.
    pub(crate) room: Duration,
}

impl Terms {
    /// Creates the limits of messages that count for `quota`.
    pub(crate) fn of(quota: &Quota, limits: &Limits) -> Self {
        /// Bytes of a message that do not count for the quota: otherwise a small request could
        /// deadlock while it waits for memory that it would free.
        const FREE: usize = 64 << 10;
        Self {
            quota: Some(quota.clone()),
            free: FREE,
            idle: limits.idle_timeout,
            room: limits.host_buffer_timeout,
        }
    }
}

/// A message with the permit for its bytes.
#[derive(Debug)]
pub(crate) struct Received<M> {
    pub(crate) message: M,
    pub(crate) room: Option<Permit>,
}

/// The messages of a body.
pub(crate) struct Messages<M> {
    bytes: BodyBytes,
    terms: Terms,
    message: PhantomData<fn() -> M>,
}

impl<M: Message + Default> Messages<M> {
    pub(crate) fn new(body: Body, terms: Terms) -> Self {
        Self { bytes: BodyBytes::new(body), terms, message: PhantomData }
    }

    /// Waits for the first byte of a message; returns false at the end.
    ///
    /// # Errors
    /// The error that the transport reports.
    pub(crate) async fn begin(&mut self) -> Result<bool, Status> {
        self.bytes.wait().await
    }

    /// Returns the next message; `None` at the end. `most` computes its maximum size from the bytes
    /// that have arrived. There is no time limit until the message [begins](Self::begin).
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED for a message that is too long or exceeds the quota; DEADLINE_EXCEEDED
    /// for one that stalls; INVALID_ARGUMENT for invalid bytes; UNIMPLEMENTED for a compressed one;
    /// errors of the transport.
    #[expect(clippy::indexing_slicing, reason = "so much is there, the line before says")]
    pub(crate) async fn next(
        &mut self,
        most: impl Fn(&[u8]) -> (&'static str, u64),
    ) -> Result<Option<Received<M>>, Status> {
        if !self.begin().await? {
            return Ok(None);
        }
        let length = self.header().await?;
        let mut assembling = Assembling { length, bytes: Vec::new(), room: None };
        let whole = loop {
            if assembling.bytes.is_empty() && self.bytes.rest.len() >= length {
                // The message arrived complete, and is not copied.
                assembling.check(&self.bytes.rest[..length], &most)?;
                break self.bytes.rest.split_to(length);
            }
            let missing = length - assembling.bytes.len();
            let piece = self.bytes.take(missing);
            assembling.push(&piece, &self.terms, &most).await?;
            if assembling.bytes.len() == length {
                break std::mem::take(&mut assembling.bytes).into();
            }
            self.arriving().await?;
        };
        let message = M::decode(whole).map_err(no_message)?;
        Ok(Some(Received { message, room: assembling.room }))
    }

    /// Reads the length of the next message.
    async fn header(&mut self) -> Result<usize, Status> {
        let mut header = [0; HEADER];
        let mut filled = 0;
        loop {
            let piece = self.bytes.rest.len().min(HEADER - filled);
            if let Some(target) = header.get_mut(filled..filled + piece) {
                self.bytes.rest.copy_to_slice(target);
            }
            filled += piece;
            if filled == HEADER {
                break;
            }
            self.arriving().await?;
        }
        let [compressed, length @ ..] = header;
        match compressed {
            0 => {}
            1 => {
                return Err(status!(
                    Unimplemented,
                    "the message is compressed; this server takes none that are"
                ));
            }
            other => {
                return Err(status!(Internal, "a message begins with {other}; expected 0 or 1"));
            }
        }
        Ok(u32::from_be_bytes(length) as usize)
    }

    /// Waits for more bytes of a started message.
    async fn arriving(&mut self) -> Result<(), Status> {
        let idle = self.terms.idle;
        let more = within(idle, "the rest of a message", self.bytes.wait()).await?;
        more.then_some(()).ok_or_else(|| status!(Internal, "the body ends within a message"))
    }
}

impl<M: DataMessage> Messages<M> {
    /// Returns the data of the next message, which usually has no other field: like
    /// [`next`](Self::next), but long pieces are returned without copying.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub(crate) async fn next_data(
        &mut self,
        limit: &'static str,
        most: u64,
    ) -> Result<Option<Received<Vec<Bytes>>>, Status> {
        if !self.begin().await? {
            return Ok(None);
        }
        let length = self.header().await?;
        check(length, limit, most)?;
        let mut gathering = Gathering::default();
        while gathering.bytes < length {
            self.arriving().await?;
            let piece = self.bytes.take(length - gathering.bytes);
            gathering.push(piece, length, &self.terms).await?;
        }
        let Gathering { mut pieces, tail, room, .. } = gathering;
        if !tail.is_empty() {
            pieces.push(tail.into());
        }
        let message = match without_head(&mut pieces, length) {
            true => pieces,
            // A message of a newer build, with other fields.
            false => {
                let message = M::decode(Bytes::from(pieces.concat())).map_err(no_message)?;
                vec![message.into_data()]
            }
        };
        Ok(Some(Received { message, room }))
    }
}

/// The bytes of a message, in the pieces in which they arrived.
#[derive(Default)]
struct Gathering {
    pieces: Vec<Bytes>,
    /// Short pieces, joined: each would keep its receive buffer alive and cost a call of its own.
    tail: Vec<u8>,
    bytes: usize,
    /// Bytes that the permit covers.
    paid: usize,
    room: Option<Permit>,
}

impl Gathering {
    /// Minimum size in bytes of a piece that is kept as it arrived; also the minimum step of a
    /// permit.
    const LONG: usize = 64 << 10;

    async fn push(&mut self, piece: Bytes, length: usize, terms: &Terms) -> Result<(), Status> {
        let before = self.bytes;
        self.bytes += piece.len();
        let due = self.bytes.saturating_sub(terms.free).saturating_sub(self.paid);
        if let Some(quota) = terms.quota.as_ref().filter(|_| due > 0) {
            let most = length.saturating_sub(terms.free).saturating_sub(self.paid);
            let step = due.max(Self::LONG).min(most);
            let more = quota.take_within(step as u64, terms.room).await?;
            self.paid += step;
            match &mut self.room {
                Some(room) => room.add(more),
                room => *room = Some(more),
            }
        }
        if piece.len() >= Self::LONG || self.bytes == length && self.tail.is_empty() {
            if !self.tail.is_empty() {
                self.pieces.push(std::mem::take(&mut self.tail).into());
            }
            self.pieces.push(piece);
            return Ok(());
        }
        let needed = self.tail.len() + piece.len();
        if needed > self.tail.capacity() {
            let left = length - before + self.tail.len();
            let new = needed.max(self.tail.capacity().saturating_mul(4)).max(Self::LONG).min(left);
            self.tail.try_reserve_exact(new - self.tail.len()).map_err(|_| {
                status!(ResourceExhausted, "the host has no {new} bytes left for a message")
            })?;
        }
        self.tail.extend_from_slice(&piece);
        Ok(())
    }
}

/// Removes the bytes before the data of a message of `length` bytes; returns false, and changes
/// nothing, if it has other fields than data.
fn without_head(pieces: &mut Vec<Bytes>, length: usize) -> bool {
    if length == 0 {
        return true;
    }
    let mut first = pieces.iter().flat_map(|piece| piece.iter().copied());
    if first.next() != Some(DATA_KEY) {
        return false;
    }
    let (mut data, mut head) = (0_u64, 1);
    loop {
        let Some(byte) = first.next() else { return false };
        data |= u64::from(byte & 0x7f) << (7 * (head - 1));
        head += 1;
        if byte < 0x80 {
            break;
        }
        // Longer heads do not occur.
        if head > 5 {
            return false;
        }
    }
    if data != (length - head) as u64 {
        return false;
    }
    drop(first);
    while let Some(piece) = pieces.first_mut().filter(|_| head > 0) {
        let off = piece.len().min(head);
        piece.advance(off);
        head -= off;
        if piece.is_empty() {
            pieces.remove(0);
        }
    }
    true
}

/// # Errors
/// RESOURCE_EXHAUSTED.
fn check(length: usize, limit: &str, most: u64) -> Result<(), Status> {
    if length as u64 > most {
        return Err(status!(
            ResourceExhausted,
            "a message of {length} bytes is more than the limit `{limit}` of this server allows ({most})"
        ));
    }
    Ok(())
}

fn no_message(error: prost::DecodeError) -> Status {
    status!(InvalidArgument, "the bytes of a message are none that this call has: {error}")
}

/// A message of which some bytes are missing.
struct Assembling {
    length: usize,
    bytes: Vec<u8>,
    room: Option<Permit>,
}

impl Assembling {
    /// Initial capacity in bytes.
    const FIRST: usize = 64 << 10;

    /// # Errors
    /// RESOURCE_EXHAUSTED.
    fn check(
        &self,
        bytes: &[u8],
        most: &impl Fn(&[u8]) -> (&'static str, u64),
    ) -> Result<(), Status> {
        let (limit, most) = most(bytes);
        check(self.length, limit, most)
    }

    /// Appends bytes. The capacity grows fourfold at a time, however long the message is announced
    /// to be.
    async fn push(
        &mut self,
        piece: &[u8],
        terms: &Terms,
        most: &impl Fn(&[u8]) -> (&'static str, u64),
    ) -> Result<(), Status> {
        let (old, needed) = (self.bytes.capacity(), self.bytes.len() + piece.len());
        if needed > old {
            self.check(if self.bytes.is_empty() { piece } else { &self.bytes }, most)?;
            let new = needed.max(old.saturating_mul(4)).max(Self::FIRST).min(self.length);
            let (paid, due) = (old.saturating_sub(terms.free), new.saturating_sub(terms.free));
            if let Some(quota) = terms.quota.as_ref().filter(|_| due > paid) {
                let more = quota.take_within((due - paid) as u64, terms.room).await?;
                match &mut self.room {
                    Some(room) => room.add(more),
                    room => *room = Some(more),
                }
            }
            self.bytes.try_reserve_exact(new - self.bytes.len()).map_err(|_| {
                status!(ResourceExhausted, "the host has no {new} bytes left for a message")
            })?;
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }
}

/// Returns the only message of a call.
///
/// # Errors
/// As [`Messages::next`]; INVALID_ARGUMENT if there is no message.
pub(crate) async fn only<M: Message + Default>(body: Body, idle: Duration) -> Result<M, Status> {
    /// More bytes than any of these calls needs.
    const MOST: u64 = 64 << 10;
    let terms = Terms { quota: None, free: usize::MAX, idle, room: idle };
    let mut messages = Messages::new(body, terms);
    let first = messages.next(|_| ("bytes of a call with one message", MOST));
    let first = within(idle, "the message of a call", first).await?;
    first
        .map(|received| received.message)
        .ok_or_else(|| status!(InvalidArgument, "the call has no message; expected one"))
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

    use tokio::sync::mpsc;

    use super::*;
    use crate::server::budget::Budget;
    use serdes::{codec::StatusCode, proto::xla::ifrt::proxy::GrpcHostBufferStoreRequest as Chunk};

    /// A body that is written by a test.
    struct Written(mpsc::UnboundedReceiver<Bytes>);

    impl tonic::codegen::Body for Written {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
            self.0.poll_recv(context).map(|bytes| Some(Ok(http_body::Frame::data(bytes?))))
        }
    }

    fn messages(quota: &Quota) -> (mpsc::UnboundedSender<Bytes>, Messages<Chunk>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let limit = Duration::from_millis(100);
        let quota = Some(quota.clone());
        let terms = Terms { quota, free: 1 << 10, idle: limit, room: limit };
        (sender, Messages::new(Body::new(Written(receiver)), terms))
    }

    fn quota(bytes: u64) -> Quota {
        Quota::new(vec![Budget::bytes("test-bytes", bytes)], None)
    }

    fn framed(data: &[u8]) -> Vec<u8> {
        let message = Chunk { data: Bytes::copy_from_slice(data) }.encode_to_vec();
        let mut bytes = vec![0];
        bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&message);
        bytes
    }

    const fn most(_: &[u8]) -> (&'static str, u64) {
        ("test-message-bytes", 1 << 30)
    }

    #[tokio::test]
    async fn messages_are_read_however_they_are_cut() {
        let sent = [&b""[..], b"abc", &[7; 200_000]];
        let whole: Vec<u8> = sent.iter().flat_map(|data| framed(data)).collect();
        for size in [1, 2, 3, 5, 6, 11, 4096, 65_536, whole.len()] {
            let (sender, mut messages) = messages(&quota(1 << 20));
            whole
                .chunks(size)
                .for_each(|bytes| sender.send(Bytes::copy_from_slice(bytes)).unwrap());
            drop(sender);
            for data in sent {
                let received = messages.next(most).await.unwrap().unwrap();
                assert_eq!(received.message.data, data, "{size}");
            }
            assert!(messages.next(most).await.unwrap().is_none());
        }
    }

    #[tokio::test]
    async fn frames_are_read_in_any_pieces_and_long_ones_not_copied() {
        let sent = [&b""[..], b"abc", &[7; 200_000]];
        let mut whole: Vec<u8> = sent.iter().flat_map(|data| framed(data)).collect();
        // A field that a newer client may add; data in two parts, of which the last counts.
        for message in [&b"\x10\x07\x0a\x02de"[..], b"\x0a\x01x\x0a\x02hi"] {
            whole.extend_from_slice(&[0, 0, 0, 0, message.len() as u8]);
            whole.extend_from_slice(message);
        }
        for size in [1, 2, 3, 5, 6, 11, 4096, 65_536, 100_000, whole.len()] {
            let (sender, mut messages) = messages(&quota(1 << 20));
            let mut long = Vec::new();
            for bytes in whole.chunks(size) {
                let bytes = Bytes::copy_from_slice(bytes);
                long.push(bytes.as_ptr_range());
                sender.send(bytes).unwrap();
            }
            drop(sender);
            for (at, data) in [&sent[..], &[b"de", b"hi"]].concat().into_iter().enumerate() {
                let received = messages.next_data("test", 1 << 30).await.unwrap().unwrap();
                assert_eq!(received.message.concat(), data, "{size}");
                if at == 2 && size >= 65_536 {
                    let piece = received.message.iter().find(|piece| piece.len() >= 65_536);
                    let start = piece.unwrap().as_ptr();
                    assert!(long.iter().any(|range| range.contains(&start)), "{size}");
                }
            }
            assert!(messages.next_data("test", 1 << 30).await.unwrap().is_none());
        }
    }

    #[tokio::test]
    async fn data_waits_for_room_and_ends_with_the_name_of_the_limit() {
        for piece in [1_000, 100_000] {
            let quota = quota(1 << 20);
            let (sender, mut messages) = messages(&quota);
            for bytes in framed(&vec![1; 900_000]).chunks(piece) {
                sender.send(Bytes::copy_from_slice(bytes)).unwrap();
            }
            let held = quota.take_now(500_000).unwrap();
            let error = messages.next_data("test-message-bytes", 1 << 30).await.unwrap_err();
            assert_eq!(error.code(), StatusCode::ResourceExhausted);
            assert!(error.message().contains("`test-bytes`"), "{}", error.message());
            drop(held);
            assert!(quota.take_now(1 << 20).is_ok());
        }
        let (sender, mut messages) = messages(&quota(1 << 20));
        sender.send(framed(&[1; 100]).into()).unwrap();
        let error = messages.next_data("test-message-bytes", 50).await.unwrap_err();
        assert!(error.message().contains("`test-message-bytes`"), "{}", error.message());
    }

    #[tokio::test]
    async fn no_memory_and_no_room_is_taken_for_bytes_that_have_not_come() {
        let quota = quota(1 << 20);
        let (sender, mut messages) = messages(&quota);
        // 511 MiB are announced, but only a few bytes arrive.
        sender.send(Bytes::from_static(&[0, 0x1f, 0xf0, 0, 0])).unwrap();
        sender.send(Bytes::from_static(&[7; 1000])).unwrap();
        let reading = messages.next(most);
        tokio::pin!(reading);
        let waited = tokio::time::timeout(Duration::from_millis(20), &mut reading).await;
        assert!(waited.is_err());
        assert!(quota.take_now((1 << 20) - (64 << 10)).is_ok());
        // Then nothing more arrives.
        assert_eq!(reading.await.unwrap_err().code(), StatusCode::DeadlineExceeded);
        assert!(quota.take_now(1 << 20).is_ok());
    }

    #[tokio::test]
    async fn a_message_waits_for_room_and_ends_with_the_name_of_the_limit() {
        let quota = quota(1 << 20);
        let (sender, mut messages) = messages(&quota);
        sender.send(framed(&vec![1; 900_000]).into_iter().take(400_000).collect()).unwrap();
        sender.send(vec![2; 100_000].into()).unwrap();
        let held = quota.take_now(500_000).unwrap();
        let error = messages.next(most).await.unwrap_err();
        assert_eq!(error.code(), StatusCode::ResourceExhausted);
        assert!(error.message().contains("`test-bytes`"), "{}", error.message());
        drop(held);
        assert!(quota.take_now(1 << 20).is_ok());
    }

    #[tokio::test]
    async fn message_too_long_compressed_or_cut_is_refused() {
        let read = async |bytes: &'static [u8]| {
            let (sender, mut messages) = messages(&quota(1 << 20));
            sender.send(Bytes::from_static(bytes)).unwrap();
            drop(sender);
            messages.next(|_| ("test-message-bytes", 10)).await.unwrap_err()
        };
        let long = read(&[0, 0, 0, 0, 11, 1]).await;
        assert_eq!(long.code(), StatusCode::ResourceExhausted);
        assert!(long.message().contains("`test-message-bytes`"), "{}", long.message());
        assert_eq!(read(&[1, 0, 0, 0, 0]).await.code(), StatusCode::Unimplemented);
        assert_eq!(read(&[9, 0, 0, 0, 0]).await.code(), StatusCode::Internal);
        assert_eq!(read(&[0, 0, 0, 0, 5, 1]).await.code(), StatusCode::Internal);
        assert_eq!(read(&[0, 0]).await.code(), StatusCode::Internal);
        assert_eq!(read(&[0, 0, 0, 0, 1, 0xff]).await.code(), StatusCode::InvalidArgument);
    }
}
