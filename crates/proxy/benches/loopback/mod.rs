//! Baseline and clock of the proxy's benchmarks: a bare echo of tonic over the loopback, and the
//! time of all processors.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    hint::black_box,
    net::SocketAddr,
};

use bytes::Bytes;
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::time::{ClockId, clock_gettime};
use tokio::net::TcpListener;
use tonic::{
    client::Grpc,
    codegen::http::{Request, uri::PathAndQuery},
    server::UnaryService,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

/// Seconds of processors that this process has used: both ends of all that is measured are in it,
/// and what else the machine does is not.
pub(crate) fn processor_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// The one in the middle of them; none of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A client of the server at an address.
pub(crate) async fn connect(address: SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    endpoint.tcp_nodelay(true).connect().await.expect("a connection")
}

/// The smallest service that tonic serves: it answers with the bytes that it was sent.
struct Echo;

impl UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = Ready<Result<tonic::Response<Bytes>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        ready(Ok(tonic::Response::new(request.into_inner())))
    }
}

/// A client of an echo.
pub(crate) async fn echo() -> Channel {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let connecting = connect(listener.local_addr().expect("an address"));
    let serving = async {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a connection");
        stream
    };
    let (channel, stream) = tokio::join!(connecting, serving);
    tokio::spawn(async move {
        let service = service_fn(|request: Request<Incoming>| async {
            let codec = ProstCodec::<Bytes, Bytes>::default();
            let answer = tonic::server::Grpc::new(codec).unary(Echo, request).await;
            Ok::<_, Infallible>(answer)
        });
        let http = http2::Builder::new(TokioExecutor::new());
        drop(http.serve_connection(TokioIo::new(stream), service).await);
    });
    channel
}

/// Sends bytes to the echo, and waits for them.
pub(crate) async fn echoed(channel: &Channel, bytes: Bytes) {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.expect("a connection");
    let codec = ProstCodec::<Bytes, Bytes>::default();
    let path = PathAndQuery::from_static("/serdes.bench.Echo/Echo");
    let answer = grpc.unary(tonic::Request::new(bytes), path, codec).await;
    black_box(answer.expect("an answer"));
}
