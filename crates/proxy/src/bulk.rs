//! Bulk data in gRPC messages: writes and reads messages with one bytes field without copying the
//! bytes.
//!
//! tonic copies each message into its own buffer when it writes it, and each frame when it reads
//! one. For arrays these copies are most of the work, because one costs about as much as the
//! transfer through the kernel.
//!
//! The module implements gRPC framing and one protobuf field. It does not depend on sessions or
//! arrays.

use std::{
    convert::Infallible,
    future::poll_fn,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body::Frame;
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint},
};
use serdes::{
    codec::Status,
    proto::xla::ifrt::proxy::{
        GrpcHostBufferLookupResponse, GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse,
    },
};
use tokio_stream::Stream;
use tonic::{
    body::Body,
    codegen::{
        Body as _,
        http::{HeaderMap, HeaderValue},
    },
};

use super::{
    service,
    status::{from_grpc, status, to_grpc},
};

/// Size of a message's prefix in bytes: the compression flag and the length.
pub(super) const HEADER: usize = 5;

/// Number of the data field in both messages of this kind, `HostBufferStore` and
/// `HostBufferLookup`.
const DATA: u32 = 1;

/// First byte of the data field: its key.
pub(super) const DATA_KEY: u8 = (DATA as u8) << 3 | WireType::LengthDelimited as u8;

/// Largest data in bytes that are copied into the frame of the header, because a separate frame
/// costs more.
const SMALL: usize = 4 << 10;

/// Encodes a message up to its data.
fn head(bytes: usize, room: usize) -> BytesMut {
    let key = 1;
    let message = match bytes {
        // Protobuf omits an empty field.
        0 => 0,
        _ => key + encoded_len_varint(bytes as u64) + bytes,
    };
    let mut head = BytesMut::with_capacity(HEADER + message - bytes + room);
    head.put_u8(0);
    // Callers split data into parts of 1 MiB, so the length fits.
    head.put_u32(u32::try_from(message).unwrap_or(u32::MAX));
    if bytes == 0 {
        return head;
    }
    encode_key(DATA, WireType::LengthDelimited, &mut head);
    encode_varint(bytes as u64, &mut head);
    head
}

/// A body of messages with one bytes field each.
pub(super) struct DataMessages<S> {
    parts: Pin<Box<S>>,
    /// Data of the message whose header has been sent.
    data: Option<Bytes>,
    end: End,
}

/// Kind of the end of a body.
#[derive(PartialEq, Eq)]
enum End {
    /// End of a request.
    Plain,
    /// End of an answer, with the status of the call.
    Status,
    Over,
}

impl<S: Stream<Item = Result<Bytes, Status>> + Send + 'static> DataMessages<S> {
    /// Creates the body of a request. An error ends it.
    pub(super) fn request(parts: S) -> Body {
        Body::new(Self { parts: Box::pin(parts), data: None, end: End::Plain })
    }

    /// Creates the body of an answer, which ends with a status: the first error, or OK.
    pub(super) fn answer(parts: S) -> Body {
        Body::new(Self { parts: Box::pin(parts), data: None, end: End::Status })
    }

    /// Returns the end of the body when called first, then `None`.
    fn ended(&mut self, status: Option<&Status>) -> Option<Result<Frame<Bytes>, tonic::Status>> {
        match (std::mem::replace(&mut self.end, End::Over), status) {
            (End::Over, _) | (End::Plain, None) => None,
            (End::Plain, Some(status)) => Some(Err(to_grpc(status))),
            (End::Status, status) => Some(ending(status)),
        }
    }
}

/// Returns the end of an answer: an error, or OK.
pub(super) fn ending(status: Option<&Status>) -> Result<Frame<Bytes>, tonic::Status> {
    let mut trailers = HeaderMap::with_capacity(1);
    match status {
        None => {
            trailers.insert(service::GRPC_STATUS, HeaderValue::from_static("0"));
        }
        Some(status) => to_grpc(status).add_header(&mut trailers)?,
    }
    Ok(Frame::trailers(trailers))
}

impl<S: Stream<Item = Result<Bytes, Status>> + Send + 'static> http_body::Body for DataMessages<S> {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(data) = self.data.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if self.end == End::Over {
            return Poll::Ready(None);
        }
        let part = std::task::ready!(self.parts.as_mut().poll_next(context));
        Poll::Ready(match part {
            Some(Ok(data)) if data.len() <= SMALL => {
                let mut message = head(data.len(), data.len());
                message.extend_from_slice(&data);
                Some(Ok(Frame::data(message.freeze())))
            }
            Some(Ok(data)) => {
                let head = head(data.len(), 0).freeze();
                self.data = Some(data);
                Some(Ok(Frame::data(head)))
            }
            Some(Err(status)) => self.ended(Some(&status)),
            None => self.ended(None),
        })
    }

    /// If the end is known early, the last data frame also ends the request, and no empty frame
    /// follows.
    fn is_end_stream(&self) -> bool {
        match self.end {
            End::Plain => self.data.is_none() && self.parts.size_hint().1 == Some(0),
            End::Status => false,
            End::Over => true,
        }
    }
}

/// A body of one message.
struct OneMessage(Option<Bytes>);

/// Creates the body of a request with one message.
pub(super) fn one_message(message: &impl Message) -> Body {
    let length = message.encoded_len();
    let mut framed = BytesMut::with_capacity(HEADER + length);
    framed.put_u8(0);
    // Our messages without data are never too long.
    framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode_raw(&mut framed);
    Body::new(OneMessage(Some(framed.freeze())))
}

impl http_body::Body for OneMessage {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|message| Ok(Frame::data(message))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}

/// Bytes of a body, in arrival order.
pub(super) struct BodyBytes {
    body: Body,
    trailers: Option<HeaderMap>,
    /// Bytes that have arrived and were not taken yet.
    pub(super) rest: Bytes,
}

impl BodyBytes {
    pub(super) const fn new(body: Body) -> Self {
        Self { body, trailers: None, rest: Bytes::new() }
    }

    /// Waits until there are bytes in `rest`. Returns false at the end of the body.
    ///
    /// # Errors
    /// The error that the transport reports.
    pub(super) async fn wait(&mut self) -> Result<bool, Status> {
        while self.rest.is_empty() {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await;
            let Some(frame) = frame else { return Ok(false) };
            match frame.map_err(|error| from_grpc(&error))?.into_data() {
                Ok(data) => self.rest = data,
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
        }
        Ok(true)
    }

    /// Takes at most `most` of the arrived bytes.
    pub(super) fn take(&mut self, most: usize) -> Bytes {
        self.rest.split_to(self.rest.len().min(most))
    }
}

/// Reader for the data of messages with one bytes field, in parts as they arrive.
pub(super) struct DataParts<M> {
    bytes: BodyBytes,
    /// Remaining data bytes of the current message.
    left: usize,
    /// Maximum length of a message.
    most: usize,
    message: PhantomData<fn() -> M>,
}

impl<M: DataMessage> DataParts<M> {
    pub(super) const fn new(body: Body, most: usize) -> Self {
        Self { bytes: BodyBytes::new(body), left: 0, most, message: PhantomData }
    }

    /// Returns the next part; `None` after the end of a successful call. Only messages with fields
    /// other than their data are copied.
    ///
    /// # Errors
    /// The status of the call; an error of the transport; INTERNAL for a body of other messages;
    /// RESOURCE_EXHAUSTED for a message that is too long.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if self.left > 0 {
                self.more().await?;
                let part = self.bytes.take(self.left);
                self.left -= part.len();
                return Ok(Some(part));
            }
            if !self.bytes.wait().await? {
                return self.over().map(|()| None);
            }
            let length = self.length().await?;
            if let Some(data) = self.begin(length).await? {
                return Ok(Some(data));
            }
        }
    }

    /// Returns the status of the call from its trailers.
    fn over(&self) -> Result<(), Status> {
        let found = self.bytes.trailers.as_ref().and_then(tonic::Status::from_header_map);
        match found {
            Some(found) if found.code() == tonic::Code::Ok => Ok(()),
            Some(found) => Err(from_grpc(&found)),
            None => Err(status!(Unavailable, "the answer broke off before the status of its call")),
        }
    }

    /// Reads the length of the next message.
    async fn length(&mut self) -> Result<usize, Status> {
        let mut header = [0; HEADER];
        for byte in &mut header {
            *byte = self.byte().await?;
        }
        let [compressed, length @ ..] = header;
        if compressed != 0 {
            return Err(status!(
                Internal,
                "a message begins with {compressed}; expected 0, because nothing was asked for compressed"
            ));
        }
        match u32::from_be_bytes(length) as usize {
            length if length <= self.most => Ok(length),
            length => Err(status!(
                ResourceExhausted,
                "a message of {length} bytes; the most that is taken is {}",
                self.most
            )),
        }
    }

    /// Begins a message of this length: sets the number of data bytes that follow, or reads a
    /// message with other fields completely and returns its data.
    async fn begin(&mut self, length: usize) -> Result<Option<Bytes>, Status> {
        if length == 0 {
            return Ok(None);
        }
        let mut head = vec![self.byte().await?];
        let (mut data, mut shift) = (0_u64, 0);
        while head.first() == Some(&DATA_KEY) && head.len() < length && shift < 35 {
            let byte = self.byte().await?;
            head.push(byte);
            data |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                if head.len() as u64 + data == length as u64 {
                    self.left = length - head.len();
                    return Ok(None);
                }
                break;
            }
        }
        while head.len() < length {
            self.more().await?;
            head.extend_from_slice(&self.bytes.take(length - head.len()));
        }
        let message = M::decode(Bytes::from(head)).map_err(|error| {
            status!(Internal, "the bytes of a message are none that this call has: {error}")
        })?;
        Ok(Some(message.into_data()))
    }

    /// # Errors
    /// INTERNAL at the end of the body.
    async fn more(&mut self) -> Result<(), Status> {
        let more = self.bytes.wait().await?;
        more.then_some(()).ok_or_else(|| status!(Internal, "the body ends within a message"))
    }

    async fn byte(&mut self) -> Result<u8, Status> {
        self.more().await?;
        Ok(self.bytes.take(1).first().copied().unwrap_or_default())
    }
}

/// A message that may carry the data of a host buffer.
pub(crate) trait DataMessage: Message + Default {
    /// Returns the data.
    fn into_data(self) -> Bytes;
}

impl DataMessage for GrpcHostBufferLookupResponse {
    fn into_data(self) -> Bytes {
        self.data
    }
}

impl DataMessage for GrpcHostBufferStoreRequest {
    fn into_data(self) -> Bytes {
        self.data
    }
}

impl DataMessage for GrpcHostBufferStoreResponse {
    fn into_data(self) -> Bytes {
        Bytes::new()
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt as _;

    use super::*;
    use serdes::codec::StatusCode;

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
        bytes.extend_from_slice(message);
        bytes
    }

    fn message(data: &[u8]) -> Vec<u8> {
        framed(&GrpcHostBufferStoreRequest { data: Bytes::copy_from_slice(data) }.encode_to_vec())
    }

    /// Returns the data and the trailers of a body.
    async fn all(mut body: Body) -> Result<(Vec<Bytes>, Option<HeaderMap>), tonic::Status> {
        let (mut data, mut trailers) = (Vec::new(), None);
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            match frame?.into_data() {
                Ok(bytes) => data.push(bytes),
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        Ok((data, trailers))
    }

    /// Returns a body of these bytes in frames of `size` bytes, and a status.
    fn body(bytes: &[u8], size: usize, status: Option<tonic::Status>) -> Body {
        struct Written(std::collections::VecDeque<Frame<Bytes>>);
        impl http_body::Body for Written {
            type Data = Bytes;
            type Error = std::convert::Infallible;
            fn poll_frame(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
                Poll::Ready(self.0.pop_front().map(Ok))
            }
        }
        let data = bytes.chunks(size).map(|bytes| Frame::data(Bytes::copy_from_slice(bytes)));
        let trailers = status.map(|status| {
            let mut trailers = HeaderMap::new();
            status.add_header(&mut trailers).unwrap();
            Frame::trailers(trailers)
        });
        Body::new(Written(data.chain(trailers).collect()))
    }

    async fn read(body: Body) -> Result<Vec<u8>, Status> {
        let mut parts = DataParts::<GrpcHostBufferLookupResponse>::new(body, 1 << 20);
        let mut read = Vec::new();
        while let Some(part) = parts.next().await? {
            read.extend_from_slice(&part);
        }
        Ok(read)
    }

    #[tokio::test]
    async fn data_messages_equal_the_generated_type_without_a_copy() {
        let sent: Vec<Bytes> =
            [0, 1, 100, SMALL, SMALL + 1, 1 << 20].map(|size| vec![7; size].into()).to_vec();
        let expected: Vec<u8> = sent.iter().flat_map(|data| message(data)).collect();
        let parts = || tokio_stream::iter(sent.clone()).map(Ok);
        let (request, trailers) = all(DataMessages::request(parts())).await.unwrap();
        assert_eq!(request.concat(), expected);
        assert!(trailers.is_none());
        for large in &sent[4..] {
            assert!(request.iter().any(|bytes| bytes.as_ptr() == large.as_ptr()));
        }
        let (answer, trailers) = all(DataMessages::answer(parts())).await.unwrap();
        assert_eq!(answer.concat(), expected);
        assert_eq!(trailers.unwrap()["grpc-status"], "0");
    }

    #[tokio::test]
    async fn request_ends_with_its_data_and_answer_with_its_status() {
        let parts = || tokio_stream::iter([100, SMALL + 1].map(|size| Ok(vec![7; size].into())));
        for (mut body, frames, ends) in [
            (DataMessages::request(parts()), 3, true),
            (DataMessages::answer(parts()), 3, false),
            (DataMessages::request(tokio_stream::empty()), 0, true),
            (
                one_message(&GrpcHostBufferStoreRequest { data: Bytes::from_static(b"abc") }),
                1,
                true,
            ),
        ] {
            for left in (0..frames).rev() {
                assert!(!body.is_end_stream());
                let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
                let data = frame.unwrap().unwrap().into_data().unwrap();
                assert!(left > 0 || frames != 1 || data == message(b"abc"));
            }
            assert_eq!(body.is_end_stream(), ends);
        }
    }

    #[tokio::test]
    async fn an_error_is_the_status_of_an_answer_and_breaks_a_request_off() {
        let parts = || {
            let parts = [Ok(Bytes::from_static(b"abc")), Err(status!(DataLoss, "it is gone"))];
            tokio_stream::iter(parts)
        };
        let (data, trailers) = all(DataMessages::answer(parts())).await.unwrap();
        assert_eq!(data.concat(), message(b"abc"));
        let found = tonic::Status::from_header_map(&trailers.unwrap()).unwrap();
        assert_eq!((found.code(), found.message()), (tonic::Code::DataLoss, "it is gone"));
        assert_eq!(all(DataMessages::request(parts())).await.unwrap_err().message(), "it is gone");
    }

    #[tokio::test]
    async fn data_is_read_however_it_is_cut() {
        let large = vec![5; 200_000];
        let mut bytes = [message(b"abc"), message(b""), message(&large)].concat();
        // A field that a newer server may add, before and after the data; data in two parts, of
        // which the last counts.
        bytes.extend(framed(b"\x10\x07\x0a\x02de"));
        bytes.extend(framed(b"\x0a\x02fg\x10\x07"));
        bytes.extend(framed(b"\x0a\x01x\x0a\x02hi"));
        let expected = [b"abc", &large[..], b"defghi"].concat();
        for size in [1, 2, 3, 5, 7, 4096, 65_536, bytes.len()] {
            let body = body(&bytes, size, Some(tonic::Status::ok("")));
            assert_eq!(read(body).await.unwrap(), expected, "{size}");
        }
    }

    #[tokio::test]
    async fn invalid_or_cut_message_is_an_error() {
        let whole = message(b"abc");
        let ok = || Some(tonic::Status::ok(""));
        for (bytes, status, code) in [
            (&whole[..], None, StatusCode::Unavailable),
            (&whole[..], Some(tonic::Status::not_found("none")), StatusCode::NotFound),
            (&whole[..4], ok(), StatusCode::Internal),
            (&whole[..7], ok(), StatusCode::Internal),
            (&[1, 0, 0, 0, 0], ok(), StatusCode::Internal),
            (&[0, 0, 0x20, 0, 0], ok(), StatusCode::ResourceExhausted),
            (&[0, 0, 0, 0, 1, 0xff], ok(), StatusCode::Internal),
            // A length of data beyond the end of the message, and an unterminated length.
            (&[0, 0, 0, 0, 3, 0x0a, 9, 1], ok(), StatusCode::Internal),
            (&[0, 0, 0, 0, 6, 0x0a, 255, 255, 255, 255, 255], ok(), StatusCode::Internal),
        ] {
            let error = read(body(bytes, 64, status)).await.unwrap_err();
            assert_eq!(error.code(), code, "{bytes:?}: {}", error.message());
        }
    }
}
