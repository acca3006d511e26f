//! Drops values on a thread of the host.

use std::sync::{Mutex, PoisonError, mpsc};

/// A value that is always dropped on a thread of the host: callbacks run on a plug-in's thread, and
/// the last handle of a client must not be destroyed there.
#[derive(Debug)]
pub(super) struct DropOnHostThread<T: Send + 'static> {
    held: Option<T>,
    thread: mpsc::Sender<Box<dyn Send>>,
}

/// The thread that drops the values; started on first use.
static THREAD: Mutex<Option<mpsc::Sender<Box<dyn Send>>>> = Mutex::new(None);

impl<T: Send + 'static> DropOnHostThread<T> {
    /// Wraps a value. Returns it unchanged if no thread can be started.
    pub(super) fn new(held: T) -> Result<Self, T> {
        let mut running = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_none() {
            let (sender, receiver) = mpsc::channel::<Box<dyn Send>>();
            let thread = std::thread::Builder::new().name("serdes-pjrt-drop".to_owned());
            if thread.spawn(move || receiver.into_iter().for_each(drop)).is_ok() {
                *running = Some(sender);
            }
        }
        match &*running {
            Some(thread) => Ok(Self { held: Some(held), thread: thread.clone() }),
            None => Err(held),
        }
    }
}

impl<T: Send + 'static> Drop for DropOnHostThread<T> {
    fn drop(&mut self) {
        if let Some(held) = self.held.take()
            && let Err(mpsc::SendError(held)) = self.thread.send(Box::new(held))
        {
            // The thread is gone because the process is ending.
            std::mem::forget(held);
        }
    }
}
