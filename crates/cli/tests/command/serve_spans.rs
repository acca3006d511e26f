//! Tests that `serdes serve` sends its spans to an OpenTelemetry collector (feature
//! `opentelemetry`); the test's collector counts them.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serdes::ifrt::{DType, DeviceId, Shape};
use serdes_proxy::Client;
use tokio::net::TcpListener;
use tonic::{codegen::http::Request, server::UnaryService};
use tonic_prost::ProstCodec;

/// Fields of `ExportTraceServiceRequest` of the collector's protocol that are read.
#[derive(Clone, PartialEq, prost::Message)]
struct Export {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Exported {}

fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.as_ref()?.text.as_deref()
}

/// A collector that keeps the requests that it receives.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Export>>>);

impl UnaryService<Export> for Collector {
    type Response = Exported;
    type Future = Ready<Result<tonic::Response<Exported>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<Export>) -> Self::Future {
        self.0.lock().unwrap().push(request.into_inner());
        ready(Ok(tonic::Response::new(Exported {})))
    }
}

impl Collector {
    /// Starts to listen, and returns the address.
    async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let own = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let own = own.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let own = own.clone();
                    async move {
                        let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
                        assert_eq!(request.uri().path(), path);
                        let codec = ProstCodec::<Exported, Export>::default();
                        Ok::<_, Infallible>(
                            tonic::server::Grpc::new(codec).unary(own, request).await,
                        )
                    }
                });
                let http = http2::Builder::new(TokioExecutor::new());
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        format!("http://{address}")
    }

    fn spans(&self) -> Vec<Span> {
        let exports = self.0.lock().unwrap();
        let resources = exports.iter().flat_map(|export| &export.resource_spans);
        resources.flat_map(|resource| &resource.scope_spans).flat_map(|s| s.spans.clone()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_and_requests_come_to_the_collector_as_spans() {
    let collector = Collector::default();
    let endpoint = collector.listen().await;
    let mut server = Command::new(env!("CARGO_BIN_EXE_serdes"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
        .env_remove("OTEL_SERVICE_NAME")
        .env_remove("RUST_LOG")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").unwrap();
    for _ in 0..2 {
        let client = Client::connect(address).await.unwrap();
        let shape = Shape::new([3]).unwrap();
        let array = client.put(DType::U8, &shape, DeviceId(0), vec![1, 2, 3]).await.unwrap();
        assert_eq!(client.get(&array).await.unwrap()[..], [1, 2, 3]);
        client.wait(&array).await.unwrap();
    }
    // Unsent spans are sent when the server stops.
    let pid = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let ended = tokio::task::spawn_blocking(move || server.wait().unwrap()).await.unwrap();
    assert!(ended.success(), "{ended}");

    let spans = collector.spans();
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let (sessions, requests) = (named("session"), named("request"));
    assert_eq!(sessions.len(), 2, "{spans:?}");
    let kinds: Vec<_> =
        requests.iter().filter_map(|span| attribute(&span.attributes, "kind")).collect();
    for kind in [
        "InitRequest",
        "MakeArrayFromHostBufferRequest",
        "CopyToHostBufferRequest",
        "CheckValueReadyRequest",
    ] {
        assert_eq!(kinds.iter().filter(|found| **found == kind).count(), 2, "{kind} in {kinds:?}");
    }
    // A request on the stream is a part of its session.
    for request in &requests {
        let is_on_stream = attribute(&request.attributes, "kind") == Some("CheckValueReadyRequest");
        let parent = sessions.iter().find(|session| session.span_id == request.parent_span_id);
        assert!(!is_on_stream || parent.is_some_and(|of| of.trace_id == request.trace_id));
    }
    let exports = collector.0.lock().unwrap();
    let resource = exports[0].resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(attribute(&resource.attributes, "service.name"), Some("serdes"));
}
