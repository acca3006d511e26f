//! Functions of the client that a program calls while it runs.
//!
//! A device sends each operand through a channel of its own. The last operand triggers the call:
//! the plug-in's thread that delivered it waits for the client's answer, as in the runtime for
//! which this protocol was designed, and then the device gets the results.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::{Duration, Instant},
};

use bytes::Bytes;
use serdes::{
    codec::{DeserializeOptions, FromProto as _, Status},
    ifrt::{HostCallbackArgument, XlaHostCallback},
};
use serdes_pjrt::ElementType;
use tokio::sync::Notify;

use crate::status::status;

/// The channel of one operand or result: its number in the program, and its size per call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) id: u32,
    pub(super) bytes: usize,
}

/// A function of the client, with the calls that the client has not taken yet.
#[derive(Debug)]
pub(crate) struct HostCallback {
    pub(super) operands: Vec<Channel>,
    pub(super) results: Vec<Channel>,
    /// Longest time for the client to answer a call.
    pub(super) limit: Duration,
    queue: Mutex<Queue>,
    /// Notified of a new call and of the end of all calls.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    calls: VecDeque<Call>,
    is_over: bool,
}

/// A call that waits for its answer. Dropping it reports that there will be none.
#[derive(Debug)]
pub(crate) struct Call {
    /// All operands, concatenated.
    pub(crate) operands: Bytes,
    /// Total size of the results, in bytes.
    expected: usize,
    answer: mpsc::SyncSender<Result<Bytes, String>>,
}

impl Call {
    /// Answers the call with all results, concatenated, or with the message of the function's
    /// error.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for results of a wrong length, which is also the error of the call.
    pub(crate) fn answer(self, results: Result<Bytes, String>) -> Result<(), Status> {
        let wrong = match &results {
            Ok(results) if results.len() != self.expected => Some(status!(
                InvalidArgument,
                "the results of a call back into the client have {} bytes; expected {}",
                results.len(),
                self.expected
            )),
            _ => None,
        };
        let answer = match &wrong {
            Some(status) => Err(status.message().to_owned()),
            None => results,
        };
        // The program may have stopped waiting.
        let _ = self.answer.try_send(answer);
        wrong.map_or(Ok(()), Err)
    }
}

impl HostCallback {
    /// Decodes a client's description of a function.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an invalid description, arrays of unknown length, and a function
    /// without operands, whose calls nothing would trigger; UNIMPLEMENTED for operands or results
    /// that are not row-major.
    pub(crate) fn read(bytes: Bytes, limit: Duration) -> Result<Arc<Self>, Status> {
        let callback = XlaHostCallback::from_bytes(bytes, &DeserializeOptions::new())
            .map_err(|error| error.to_status())?;
        let (operands, results) = (callback.operands(), callback.results());
        if operands.is_empty() {
            return Err(status!(
                InvalidArgument,
                "a function of the host has no operand; expected one at least, which says when it is called"
            ));
        }
        let is_own_order = callback.use_major_to_minor_data_layout();
        if let Some(other) =
            operands.iter().chain(results).find(|argument| !is_own_order && !is_row_major(argument))
        {
            return Err(status!(
                Unimplemented,
                "an operand or a result of a function of the host is {}, in the order of the device; this server has them row-major only",
                other.shape
            ));
        }
        let channels =
            |list: &[HostCallbackArgument]| list.iter().map(channel).collect::<Result<_, _>>();
        Ok(Arc::new(Self {
            operands: channels(operands)?,
            results: channels(results)?,
            limit,
            queue: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next call; `None` when there will be no more.
    pub(crate) async fn next(&self) -> Option<Call> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let mut queue = self.queue();
                if let Some(call) = queue.calls.pop_front() {
                    return Some(call);
                }
                if queue.is_over {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// Returns true if there will be no further call.
    pub(crate) fn is_over(&self) -> bool {
        self.queue().is_over
    }

    /// Ends all calls, because the program or the client is gone: calls that were not taken get no
    /// answer.
    pub(crate) fn end(&self) {
        let left = {
            let mut queue = self.queue();
            queue.is_over = true;
            std::mem::take(&mut queue.calls)
        };
        drop(left);
        self.changed.notify_waiters();
    }

    /// Calls the function, and waits for its answer.
    ///
    /// # Errors
    /// The message of the function's error, or the reason for a missing answer.
    pub(super) fn call(&self, operands: Bytes) -> Result<Bytes, String> {
        let (answer, answered) = mpsc::sync_channel(1);
        {
            let mut queue = self.queue();
            if queue.is_over {
                return Err(gone());
            }
            queue.calls.push_back(Call { operands, expected: self.result_bytes(), answer });
        }
        self.changed.notify_waiters();
        match answered.recv_timeout(self.limit) {
            Ok(answer) => answer,
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(gone()),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(late(self.limit)),
        }
    }

    /// Returns the total size of the operands, in bytes.
    pub(super) fn operand_bytes(&self) -> usize {
        self.operands.iter().map(|channel| channel.bytes).fold(0, usize::saturating_add)
    }

    pub(super) fn result_bytes(&self) -> usize {
        self.results.iter().map(|channel| channel.bytes).fold(0, usize::saturating_add)
    }
}

fn gone() -> String {
    "the client whose function the program calls has gone".to_owned()
}

/// Returns the message for a call that exceeds its time limit.
pub(super) fn late(limit: Duration) -> String {
    format!(
        "nothing came for {} seconds between a program and the function of its client that it calls, which is the limit `callback-seconds` of this server",
        limit.as_secs_f64()
    )
}

fn is_row_major(argument: &HostCallbackArgument) -> bool {
    argument.shape.layout().is_none_or(|layout| {
        layout.minor_to_major().iter().rev().enumerate().all(|(at, dim)| *dim == at as i64)
    })
}

/// # Errors
/// INVALID_ARGUMENT if an array has no fixed length.
fn channel(argument: &HostCallbackArgument) -> Result<Channel, Status> {
    let shape = &argument.shape;
    let element = shape.element_type().name();
    let element = element.and_then(|name| ElementType::of_name(&name.to_ascii_uppercase()));
    let bytes = element.and_then(|element| {
        let mut bytes = element.host_bytes();
        for dim in shape.dimensions() {
            bytes = bytes.checked_mul(usize::try_from(*dim).ok()?)?;
        }
        Some(bytes)
    });
    let bytes = bytes.filter(|bytes| *bytes <= isize::MAX as usize).ok_or_else(|| {
        status!(
            InvalidArgument,
            "an operand or a result of a function of the host is {shape}; expected an array of a known length"
        )
    })?;
    Ok(Channel { id: argument.channel_id, bytes })
}

/// Returns the end of a wait that begins now.
pub(super) fn deadline(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}

#[cfg(test)]
mod tests {
    use super::{super::host_callbacks::HostCallbacks, *};
    use serdes::{
        codec::{StatusCode, ToProto as _},
        ifrt::xla::{PrimitiveType, Shape},
        version::SerDesVersion,
    };

    fn argument(channel_id: u32, dims: &[i64]) -> HostCallbackArgument {
        HostCallbackArgument { channel_id, shape: Shape::array(PrimitiveType::F32, dims) }
    }

    fn read(callback: &XlaHostCallback) -> Result<Arc<HostCallback>, Status> {
        let bytes = callback.to_bytes(SerDesVersion::current()).unwrap();
        HostCallback::read(bytes, Duration::from_secs(20))
    }

    fn doubling() -> Arc<HostCallback> {
        read(&XlaHostCallback::new([argument(1, &[2])], [argument(2, &[2])])).unwrap()
    }

    #[test]
    fn invalid_function_is_refused() {
        let found = read(&XlaHostCallback::new([argument(1, &[2, 3]), argument(5, &[])], []));
        assert_eq!(found.unwrap().operand_bytes(), 28);
        for (callback, part) in [
            (XlaHostCallback::new([], [argument(2, &[2])]), "no operand"),
            (XlaHostCallback::new([argument(1, &[i64::MAX, 9])], []), "known length"),
            (XlaHostCallback::new([argument(1, &[-1])], []), "known length"),
            (
                XlaHostCallback::new(
                    [HostCallbackArgument { channel_id: 1, shape: Shape::tuple([]) }],
                    [],
                ),
                "known length",
            ),
        ] {
            let error = read(&callback).unwrap_err();
            assert_eq!(error.code(), StatusCode::InvalidArgument, "{}", error.message());
            assert!(error.message().contains(part), "{}", error.message());
        }
        assert!(HostCallback::read(Bytes::from_static(&[0xff; 9]), Duration::ZERO).is_err());
    }

    #[tokio::test]
    async fn caller_waits_for_the_answer_of_the_client() {
        let callback = doubling();
        let own = Arc::clone(&callback);
        let called = std::thread::spawn(move || own.call(Bytes::from_static(b"operands")));
        let call = callback.next().await.unwrap();
        assert_eq!(&call.operands[..], b"operands");
        call.answer(Ok(Bytes::from_static(b"resulted"))).unwrap();
        assert_eq!(called.join().unwrap().unwrap(), &b"resulted"[..]);

        let own = Arc::clone(&callback);
        let called = std::thread::spawn(move || own.call(Bytes::new()));
        let error =
            callback.next().await.unwrap().answer(Ok(Bytes::from_static(b"no"))).unwrap_err();
        assert!(error.message().contains("2 bytes; expected 8"), "{}", error.message());
        assert_eq!(called.join().unwrap().unwrap_err(), error.message());
    }

    #[tokio::test]
    async fn caller_of_a_gone_client_gets_an_error() {
        let callback = doubling();
        let own = Arc::clone(&callback);
        let called = std::thread::spawn(move || own.call(Bytes::new()));
        // The call is taken, but never answered.
        drop(callback.next().await.unwrap());
        assert!(called.join().unwrap().unwrap_err().contains("has gone"));
        let own = Arc::clone(&callback);
        let called = std::thread::spawn(move || own.call(Bytes::new()));
        drop(HostCallbacks::new(vec![Arc::clone(&callback)]));
        assert!(called.join().unwrap().unwrap_err().contains("has gone"));
        assert!(callback.next().await.is_none());
    }
}
