//! Values that are there already or on their way.

use serdes::codec::Status;
use tokio::sync::watch;

use crate::status::status;

type State<T> = Option<Result<T, Status>>;

/// A value, there already or on its way, or why it will never be there. Clones are the same value.
#[derive(Clone, Debug)]
pub(crate) struct Promised<T>(watch::Receiver<State<T>>);

/// Who owes a value. Dropping it without a word makes the value fail; of two words the first
/// counts.
#[derive(Clone, Debug)]
pub(crate) struct Promise<T>(watch::Sender<State<T>>);

impl<T: Clone> Promised<T> {
    /// Returns a value that is to come.
    pub(crate) fn coming() -> (Promise<T>, Self) {
        let (sender, receiver) = watch::channel(None);
        (Promise(sender), Self(receiver))
    }

    /// Returns a value that is there, or has failed.
    pub(crate) fn known(result: Result<T, Status>) -> Self {
        Self(watch::channel(Some(result)).1)
    }

    /// Returns the value, or why it will never be there; `None` if it has not arrived.
    pub(crate) fn now(&self) -> Option<Result<T, Status>> {
        self.0.borrow().clone()
    }

    /// Returns the value, once it is there.
    ///
    /// # Errors
    /// Why it will never be there.
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
