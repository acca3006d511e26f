//! Exchange between one device and a function of the client: collects operands until a call is
//! complete, and holds results until the device takes them.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use bytes::Bytes;

use super::callback::{HostCallback, deadline, late};

/// Exchange between one device and a function, during one run.
///
/// All waits are on threads of the plug-in, and none is longer than the function's limit.
#[derive(Debug)]
pub(super) struct Exchange {
    callback: Arc<HostCallback>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Received bytes of each operand; `complete` has its whole value for the next call.
    arriving: Vec<Vec<u8>>,
    complete: Vec<Option<Vec<u8>>>,
    /// True while a thread waits for the client: calls are made one at a time.
    is_calling: bool,
    /// For each result, the values that the device has not taken yet.
    results: Vec<VecDeque<Bytes>>,
    /// True if a call has failed, which makes the run fail.
    has_failed: bool,
}

impl Exchange {
    /// Maximum number of untaken values of a result, after which no further call is made.
    pub(super) const AHEAD: usize = 4;

    pub(super) fn new(callback: Arc<HostCallback>) -> Self {
        let (operands, results) = (callback.operands.len(), callback.results.len());
        let state = State {
            arriving: vec![Vec::new(); operands],
            complete: vec![None; operands],
            is_calling: false,
            results: vec![VecDeque::new(); results],
            has_failed: false,
        };
        Self { callback, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a piece of an operand. The last piece of the last operand calls the function and waits
    /// for its answer.
    ///
    /// # Errors
    /// The reason for which the run must fail: the function's error, a surplus piece, or a client
    /// that does not answer.
    pub(super) fn sent(&self, operand: usize, piece: &[u8], is_last: bool) -> Result<(), String> {
        let sent = self.take(operand, piece, is_last);
        if sent.is_err() {
            self.state().has_failed = true;
            self.changed.notify_all();
        }
        sent
    }

    fn take(&self, operand: usize, piece: &[u8], is_last: bool) -> Result<(), String> {
        let mut state = self.state();
        let expected = self.callback.operands.get(operand).map_or(0, |channel| channel.bytes);
        let arriving = state.arriving.get_mut(operand).ok_or("there is no such operand")?;
        let found = arriving.len().saturating_add(piece.len());
        if found > expected || is_last && found < expected {
            return Err(format!(
                "the program sends {found} bytes as operand {operand} of a function of its client; expected {expected}"
            ));
        }
        arriving.extend_from_slice(piece);
        if !is_last {
            return Ok(());
        }
        let whole = std::mem::take(arriving);
        // The complete value belongs to a call that has not been made yet.
        let is_free = |state: &State| state.complete.get(operand).is_some_and(Option::is_none);
        let mut state = self.wait(state, is_free)?;
        if let Some(place) = state.complete.get_mut(operand) {
            *place = Some(whole);
        }
        if state.complete.iter().any(Option::is_none) {
            return Ok(());
        }
        let may_call = |state: &State| {
            !state.is_calling && state.results.iter().all(|results| results.len() < Self::AHEAD)
        };
        let mut state = self.wait(state, may_call)?;
        let operands: Vec<u8> =
            state.complete.iter_mut().filter_map(Option::take).flatten().collect();
        state.is_calling = true;
        drop(state);
        self.changed.notify_all();
        let answered = self.callback.call(operands.into());
        let mut state = self.state();
        state.is_calling = false;
        let mut rest = answered?;
        for (results, channel) in state.results.iter_mut().zip(&self.callback.results) {
            // The total length was checked when the answer arrived.
            results.push_back(rest.split_to(channel.bytes.min(rest.len())));
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits for the next value of a result; `None` if it will not come.
    pub(super) fn received(&self, result: usize) -> Option<Bytes> {
        let is_there = |state: &State| state.results.get(result).is_some_and(|of| !of.is_empty());
        let mut state = self.wait(self.state(), is_there).ok()?;
        let found = state.results.get_mut(result)?.pop_front();
        drop(state);
        self.changed.notify_all();
        found
    }

    /// Waits for a condition.
    ///
    /// # Errors
    /// The reason why the condition will not become true.
    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        is_so: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'a, State>, String> {
        let end = deadline(self.callback.limit);
        loop {
            if state.has_failed {
                return Err("a call back into the client has failed before".to_owned());
            }
            if is_so(&state) {
                return Ok(state);
            }
            let left = end
                .map_or(self.callback.limit, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(late(self.callback.limit));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;
    use serdes::{
        codec::ToProto as _,
        ifrt::{
            HostCallbackArgument, XlaHostCallback,
            xla::{PrimitiveType, Shape},
        },
        version::SerDesVersion,
    };

    /// Returns a function with operands of two bytes and one byte, and results of one byte and
    /// three bytes.
    fn exchange(limit: Duration) -> Arc<Exchange> {
        let argument = |channel_id, bytes: i64| HostCallbackArgument {
            channel_id,
            shape: Shape::array(PrimitiveType::U8, [bytes]),
        };
        let (operands, results) =
            ([argument(1, 2), argument(2, 1)], [argument(3, 1), argument(4, 3)]);
        let bytes = XlaHostCallback::new(operands, results).to_bytes(SerDesVersion::current());
        Arc::new(Exchange::new(HostCallback::read(bytes.unwrap(), limit).unwrap()))
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_function_is_called_with_all_operands_as_often_as_they_come() {
        let exchange = exchange(LONG);
        for turn in 0..3_u8 {
            let own = Arc::clone(&exchange);
            let sending = thread::spawn(move || {
                own.sent(1, &[turn], true)?;
                own.sent(0, &[7], false)?;
                own.sent(0, &[8], true)
            });
            let own = Arc::clone(&exchange);
            let receiving = thread::spawn(move || (own.received(1), own.received(0)));
            let call = exchange.callback.next().await.unwrap();
            // In the order of the operands, not in the order of arrival.
            assert_eq!(call.operands, [7, 8, turn][..]);
            call.answer(Ok(Bytes::copy_from_slice(&[turn, 1, 2, 3]))).unwrap();
            sending.join().unwrap().unwrap();
            let (second, first) = receiving.join().unwrap();
            assert_eq!(
                (first.unwrap(), second.unwrap()),
                (vec![turn].into(), vec![1, 2, 3].into())
            );
        }
    }

    #[tokio::test]
    async fn error_of_a_function_is_the_error_of_its_device() {
        let exchange = exchange(LONG);
        let own = Arc::clone(&exchange);
        let sending = thread::spawn(move || {
            own.sent(0, &[7, 8], true)?;
            own.sent(1, &[9], true)
        });
        let own = Arc::clone(&exchange);
        let receiving = thread::spawn(move || own.received(0));
        let call = exchange.callback.next().await.unwrap();
        call.answer(Err("ValueError: no".to_owned())).unwrap();
        assert_eq!(sending.join().unwrap().unwrap_err(), "ValueError: no");
        assert_eq!(receiving.join().unwrap(), None);
        assert!(exchange.sent(1, &[9], true).unwrap_err().contains("failed before"));
    }

    #[test]
    fn pieces_that_cannot_be_are_the_devices_error() {
        assert!(exchange(LONG).sent(0, &[1, 2, 3], false).unwrap_err().contains("3 bytes"));
        assert!(exchange(LONG).sent(0, &[1], true).unwrap_err().contains("expected 2"));
        assert!(exchange(LONG).sent(7, &[1], true).is_err());
    }

    #[test]
    fn neither_side_waits_for_ever() {
        let short = exchange(Duration::from_millis(10));
        assert_eq!(short.received(0), None);
        short.sent(0, &[1, 2], true).unwrap();
        // The other operand does not arrive, and this one arrives again.
        assert!(short.sent(0, &[1, 2], true).unwrap_err().contains("callback-seconds"));
        // No client answers the call.
        let short = exchange(Duration::from_millis(10));
        short.sent(0, &[1, 2], true).unwrap();
        assert!(short.sent(1, &[1], true).unwrap_err().contains("callback-seconds"));
    }
}
