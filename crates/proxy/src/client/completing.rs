//! Futures of requests to the server that run to completion even if they are dropped.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;

/// A future that moves to a task of its own when it is dropped before completion. Until then it
/// needs no task.
pub(super) struct Completing<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    work: Option<Pin<Box<F>>>,
    runtime: Handle,
}

impl<F> Completing<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    /// Wraps `work`, which continues on `runtime` if it is dropped.
    pub(super) fn new(runtime: Handle, work: F) -> Self {
        Self { work: Some(Box::pin(work)), runtime }
    }
}

impl<F> Future for Completing<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let done = std::task::ready!(work.as_mut().poll(context));
        self.work = None;
        Poll::Ready(done)
    }
}

impl<F> Drop for Completing<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            drop(self.runtime.spawn(work));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn dropped_work_is_completed() {
        let (go, goes) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel();
        let work = Completing::new(Handle::current(), async move {
            goes.await.unwrap();
            end.send(7).unwrap();
        });
        let mut work = Box::pin(work);
        tokio::select! {
            biased;
            () = work.as_mut() => panic!("nothing has told it to go on"),
            () = std::future::ready(()) => {}
        }
        drop(work);
        go.send(()).unwrap();
        assert_eq!(ended.await, Ok(7));
    }

    #[tokio::test]
    async fn awaited_work_gives_its_result() {
        assert_eq!(Completing::new(Handle::current(), async { 7 }).await, 7);
    }
}
