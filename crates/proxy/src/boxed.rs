//! Futures whose code is generated in this crate.

use std::pin::Pin;

/// A boxed future, returned by functions that other crates await.
///
/// The code of an `async fn` is generated in the crate that awaits it, together with everything
/// that it awaits in turn: each program would compile HTTP/2, gRPC and TLS again. A function that
/// is not async and returns the future as a trait object is compiled once, in this crate.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
