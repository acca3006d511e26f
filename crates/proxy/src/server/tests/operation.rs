//! Tests of the operation of a server: health, metrics, graceful stop; and that these listeners
//! give untrusted clients nothing else.

use std::time::{Duration, Instant};

use serdes::{
    codec::StatusCode,
    ifrt::{DType, DeviceId, Shape},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tonic::{Code, Request as Call, Streaming, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;

use super::{
    access::Caller,
    network::{Running, channel, plugin, test},
};
use crate::{
    Client, ClientOptions, ProxyError, Ranges, check_health,
    health::{CheckRequest, CheckResponse, Health},
    negotiate,
    server::{Limits, Server, Tokens},
    service,
};

const SHORT: Duration = Duration::from_millis(300);
/// Longer than any successful step takes.
const LONG: Duration = Duration::from_secs(20);

fn limits() -> Limits {
    Limits { stop_timeout: Duration::from_secs(2), ..Limits::default() }
}

async fn serving(limits: Limits) -> Running {
    Running::start(Server::builder(&plugin()).limits(limits).build().unwrap()).await
}

async fn check(address: &str, name: &str) -> Result<Health, Code> {
    let codec: ProstCodec<CheckRequest, CheckResponse> = ProstCodec::default();
    let path = PathAndQuery::from_static(service::HEALTH_CHECK);
    let call = Call::new(CheckRequest { service: name.to_owned() });
    let answer = channel(address).await.unary(call, path, codec).await;
    answer.map(|answer| answer.into_inner().health()).map_err(|status| status.code())
}

async fn watch(address: &str, name: &str) -> Result<Streaming<CheckResponse>, Code> {
    let codec: ProstCodec<CheckRequest, CheckResponse> = ProstCodec::default();
    let path = PathAndQuery::from_static(service::HEALTH_WATCH);
    let call = Call::new(CheckRequest { service: name.to_owned() });
    let answer = channel(address).await.server_streaming(call, path, codec).await;
    answer.map(tonic::Response::into_inner).map_err(|status| status.code())
}

async fn next(stream: &mut Streaming<CheckResponse>) -> Result<Option<Health>, Code> {
    let message = tokio::time::timeout(LONG, stream.message()).await.unwrap();
    message.map(|message| message.map(|it| it.health())).map_err(|status| status.code())
}

/// Serves the metrics of a server; returns the address.
async fn metrics_of(running: &Running) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = running.server.clone();
    tokio::spawn(async move { server.serve_metrics(listener).await });
    address
}

/// Returns everything that a listener answers to these bytes until it closes the connection.
async fn raw(address: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(LONG, stream.read_to_end(&mut answer)).await.unwrap();
    // A reset connection sends nothing more.
    drop(read);
    String::from_utf8_lossy(&answer).into_owned()
}

async fn page(address: &str) -> String {
    raw(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await
}

#[test]
fn health_is_told_without_a_token_and_nothing_else_is() {
    test(|| async {
        let tokens = Tokens::parse("the-token-of-this-test").unwrap();
        let running =
            Running::start(Server::builder(&plugin()).tokens(tokens).build().unwrap()).await;
        assert_eq!(check(&running.address, "").await, Ok(Health::Serving));
        assert_eq!(check(&running.address, service::NAME).await, Ok(Health::Serving));
        assert_eq!(check(&running.address, "somebody.Else").await, Err(Code::NotFound));
        let options = ClientOptions::default().with_token("not the token, and not sent");
        assert_eq!(check_health(&running.address, &options).await.unwrap(), Health::Serving);
        let caller = Caller { server: &running.address, from: "127.0.0.1", token: None };
        assert_eq!(caller.get_version().await, Err(Code::Unauthenticated));
        running.stop().await.unwrap();
    });
}

#[test]
fn health_watch_reports_draining_and_stop() {
    test(|| async {
        let running = serving(Limits { drain_timeout: LONG, ..limits() }).await;
        let mut watched = watch(&running.address, "").await.unwrap();
        let mut unknown = watch(&running.address, "somebody.Else").await.unwrap();
        assert_eq!(next(&mut watched).await, Ok(Some(Health::Serving)));
        assert_eq!(next(&mut unknown).await, Ok(Some(Health::UnknownService)));
        let client = Client::connect(&running.address).await.unwrap();
        let stopped = running.ask_to_stop();
        assert_eq!(next(&mut watched).await, Ok(Some(Health::NotServing)));
        drop(client);
        assert_eq!(next(&mut watched).await, Err(Code::Unavailable));
        stopped.await.unwrap().unwrap();
    });
}

#[test]
fn health_watches_count_apart_from_calls_of_clients() {
    test(|| async {
        let running = serving(Limits { health_calls: 3, peer_health_calls: 2, ..limits() }).await;
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(watch(&running.address, "").await.unwrap());
        }
        assert_eq!(watch(&running.address, "").await.err(), Some(Code::ResourceExhausted));
        assert_eq!(check(&running.address, "").await, Err(Code::ResourceExhausted));
        // Clients' calls still work.
        negotiate(&running.address, Ranges::supported()).await.unwrap();
        drop(held);
        while check(&running.address, "").await != Ok(Health::Serving) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        running.stop().await.unwrap();
    });
}

#[test]
fn asking_for_the_health_keeps_no_connection_open() {
    test(|| async {
        let running = serving(Limits { handshake_timeout: SHORT, ..limits() }).await;
        let mut grpc = channel(&running.address).await;
        let codec: ProstCodec<CheckRequest, CheckResponse> = ProstCodec::default();
        let path = PathAndQuery::from_static(service::HEALTH_CHECK);
        let call = Call::new(CheckRequest { service: String::new() });
        grpc.unary(call, path, codec).await.unwrap();
        let since = Instant::now();
        while running.server.metrics().connections > 0 {
            assert!(since.elapsed() < LONG, "the connection is still there");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        running.stop().await.unwrap();
    });
}

#[test]
fn the_page_of_metrics_says_what_there_is() {
    test(|| async {
        let running = serving(limits()).await;
        let address = metrics_of(&running).await;
        let client = Client::connect(&running.address).await.unwrap();
        let shape = Shape::new([6]).unwrap();
        let array = client.put(DType::U8, &shape, DeviceId(0), &b"secret"[..]).await.unwrap();
        client.get(&array).await.unwrap();
        let answer = page(&address).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains("text/plain; version=0.0.4"), "{head}");
        for line in [
            "serdes_proxy_sessions 1",
            "serdes_proxy_arrays 1",
            "serdes_proxy_received_bytes_total 6",
            "serdes_proxy_sent_bytes_total 6",
            "serdes_proxy_requests_total{request=\"InitRequest\",code=\"OK\"} 1",
            "serdes_proxy_request_duration_seconds_count{request=\"CopyToHostBufferRequest\"} 1",
            "serdes_proxy_limit{limit=\"peer-sessions\"} 1024",
            "serdes_proxy_draining 0",
        ] {
            assert!(body.lines().any(|found| found == line), "{line}\n{body}");
        }
        assert!(!body.contains("127.0.0.1") && !body.contains("secret"), "{body}");
        let head = raw(&address, b"HEAD /metrics HTTP/1.0\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.") && head.ends_with("\r\n\r\n"), "{head}");
        drop((client, array));
        running.stop().await.unwrap();
    });
}

#[test]
fn the_door_of_the_metrics_gives_nothing_else() {
    test(|| async {
        let running = serving(limits()).await;
        let address = metrics_of(&running).await;
        let long = [b"GET /metrics HTTP/1.1\r\nx: ", &[b'a'; 100_000][..], b"\r\n\r\n"].concat();
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], "404"),
            (b"GET /metrics/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
            (b"GET /%2e%2e/etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
            (b"GET http://other/etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", "405"),
            (b"GARBAGE\r\n\r\n", "400"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"),
            (&long, "431"),
        ] {
            let answer = raw(&address, request).await;
            let shown = String::from_utf8_lossy(request.get(..40).unwrap_or(request)).into_owned();
            // Bytes that are not a request may get no answer.
            let expected = format!("HTTP/1.1 {status} ");
            let fits = answer.starts_with(&expected) || status >= "400" && answer.is_empty();
            assert!(fits, "{shown:?}: {answer}");
            assert!(!answer.contains("root:") && !answer.contains("serdes_proxy_sessions"));
        }
        // More connections than the limit, all of them silent.
        let mut silent = Vec::new();
        for _ in 0..200 {
            silent.push(TcpStream::connect(&address).await.unwrap());
        }
        assert!(page(&address).await.contains("serdes_proxy_sessions 0"));
        negotiate(&running.address, Ranges::supported()).await.unwrap();
        running.stop().await.unwrap();
    });
}

#[test]
fn a_server_that_drains_lets_sessions_end_and_opens_none() {
    test(|| async {
        let running = serving(Limits { drain_timeout: LONG, ..limits() }).await;
        let metrics = metrics_of(&running).await;
        let address = running.address.clone();
        let client = Client::connect(&address).await.unwrap();
        let stopped = running.ask_to_stop();
        while check(&address, "").await == Ok(Health::Serving) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(page(&metrics).await.contains("serdes_proxy_draining 1"));
        for error in [
            Client::connect(&address).await.map(drop).unwrap_err(),
            negotiate(&address, Ranges::supported()).await.map(drop).unwrap_err(),
        ] {
            assert!(error.to_string().contains("about to stop"), "{error}");
        }
        // The session continues without restrictions.
        let shape = Shape::new([3]).unwrap();
        let array = client.put(DType::U8, &shape, DeviceId(0), &b"abc"[..]).await.unwrap();
        assert_eq!(client.get(&array).await.unwrap(), &b"abc"[..]);
        assert!(!stopped.is_finished());
        drop((client, array));
        // The server ends with the session, long before its time limit.
        let since = Instant::now();
        stopped.await.unwrap().unwrap();
        assert!(since.elapsed() < LONG / 2);
    });
}

#[test]
fn sessions_that_do_not_end_are_ended_when_the_time_is_up() {
    test(|| async {
        let running = serving(Limits { drain_timeout: SHORT, ..limits() }).await;
        let client = Client::connect(&running.address).await.unwrap();
        let since = Instant::now();
        running.stop().await.unwrap();
        assert!(since.elapsed() >= SHORT);
        let shape = Shape::new([1]).unwrap();
        let put = client.put(DType::U8, &shape, DeviceId(0), &b"x"[..]).await;
        assert!(put.is_err());
    });
}

#[test]
fn a_session_is_open_for_no_longer_than_its_limit() {
    test(|| async {
        // Longer than connecting takes on a busy machine.
        let session_timeout = Duration::from_secs(2);
        let running = serving(Limits { session_timeout, ..limits() }).await;
        let client = Client::connect(&running.address).await.unwrap();
        let shape = Shape::new([1]).unwrap();
        let mut ended = None;
        for _ in 0..1000 {
            match client.put(DType::U8, &shape, DeviceId(0), &b"x"[..]).await {
                Ok(array) => drop(array),
                Err(error) => {
                    ended = Some(error);
                    break;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The put during which the session ended may report the end through its transfer.
        drop(ended.expect("the session goes on"));
        let error = client.put(DType::U8, &shape, DeviceId(0), &b"x"[..]).await.unwrap_err();
        let ProxyError::Status(status) = &error else { panic!("{error}") };
        assert_eq!(status.code(), StatusCode::ResourceExhausted, "{error}");
        assert!(status.message().contains("`session-seconds`"), "{error}");
        // Another session may be opened.
        drop(Client::connect(&running.address).await.unwrap());
        running.stop().await.unwrap();
    });
}
