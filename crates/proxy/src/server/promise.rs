//! Values that are available or pending.

use serdes::codec::Status;
use tokio::sync::watch;

use crate::status::status;

type State<T> = Option<Result<T, Status>>;

/// A value that is available, pending or failed. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Promised<T>(watch::Receiver<State<T>>);

/// The sender of a value. If it is dropped unfulfilled the value fails; only the first result
/// counts.
#[derive(Clone, Debug)]
pub(crate) struct Promise<T>(watch::Sender<State<T>>);

impl<T: Clone> Promised<T> {
    /// Creates a pending value.
    pub(crate) fn coming() -> (Promise<T>, Self) {
        let (sender, receiver) = watch::channel(None);
        (Promise(sender), Self(receiver))
    }

    /// Creates a value that is available or has failed.
    pub(crate) fn known(result: Result<T, Status>) -> Self {
        Self(watch::channel(Some(result)).1)
    }

    /// Returns the value or the reason for its failure; `None` if it is pending.
    pub(crate) fn now(&self) -> Option<Result<T, Status>> {
        self.0.borrow().clone()
    }

    /// Waits for the value.
    ///
    /// # Errors
    /// The reason why the value failed.
    pub(crate) async fn wait(&self) -> Result<T, Status> {
        let mut receiver = self.0.clone();
        let state = receiver.wait_for(Option::is_some).await;
        let state = state.ok().and_then(|state| state.clone());
        state.unwrap_or_else(|| Err(status!(Cancelled, "the session ended before it was done")))
    }
}

impl<T> Promise<T> {
    pub(crate) fn keep(self, result: Result<T, Status>) {
        self.0.send_if_modified(|state| {
            let is_first = state.is_none();
            if is_first {
                *state = Some(result);
            }
            is_first
        });
    }
}
