use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use prost::Message as _;
use serdes::{
    codec::{Status, StatusCode},
    ifrt::DType,
    proto::xla::ifrt::proxy::{
        CheckFutureRequest, CheckValueReadyRequest, DestructArrayRequest, IfrtRequest,
        LoadedExecutableExecuteResponse, ifrt_request::Request as Body, ifrt_response::Response,
    },
};

use super::{
    Answer, Reply, begin,
    request::{Job, Request, Work, take_up},
};
use crate::{
    Ranges,
    server::{
        arrays::{Array, Buffer, Memory, Shard},
        context::Context,
        promise::{Promise, Promised},
        sessions::{Entry, Session},
        tests::session::{Client, on, server},
    },
    status::status,
};

/// A request like an execution: a program that doubles each byte of an array.
struct Execute {
    argument: u64,
    result: u64,
    /// A future that becomes ready with the result.
    ready: u64,
}

struct Doubling {
    argument: Arc<Array>,
    result: Promise<Arc<Memory>>,
    ready: Promise<()>,
}

impl Request for Execute {
    type Work = Doubling;

    fn plan(&self, _: &Context, session: &Session) -> Result<Job<Doubling>, Status> {
        let argument = session.table().array(self.argument)?;
        let [shard] = &argument.shards[..] else {
            return Err(status!(InvalidArgument, "the program runs on one device"));
        };
        let (result, buffer) = Buffer::coming();
        let shard = Shard { space: shard.space, shape: shard.shape.clone(), buffer };
        let array = Array { spec: argument.spec.clone(), shards: vec![shard] };
        session.register(self.results(), vec![array])?;
        let (ready, outcome) = Promised::coming();
        session.table().named_future(self.ready, outcome)?;
        Ok(Job::Work(Doubling { argument, result, ready }))
    }

    fn results(&self) -> &[u64] {
        std::slice::from_ref(&self.result)
    }

    fn refuse(&self, session: &Session, status: &Status) {
        drop(session.table().named_future(self.ready, Promised::known(Err(status.clone()))));
    }
}

impl Doubling {
    async fn compute(&self, session: &Arc<Session>) -> Result<Memory, Status> {
        let own = Arc::clone(session);
        let [shard] = &self.argument.shards[..] else {
            return Err(status!(Internal, "the plan was for one device"));
        };
        let (space, argument) = (shard.space, shard.buffer.wait().await?);
        session
            .blocking(move || {
                let bytes: Vec<u8> = argument.read()?.iter().map(|byte| byte * 2).collect();
                own.write(space, &bytes)
            })
            .await
    }
}

impl Work for Doubling {
    async fn run(self, session: Arc<Session>) -> Reply {
        let done = self.compute(&session).await.map(Arc::new);
        let outcome = done.as_ref().map(drop).map_err(Clone::clone);
        self.result.keep(done);
        self.ready.keep(outcome.clone());
        // An execution is answered at once; its errors are reported with the results.
        Ok(Response::LoadedExecutableExecuteResponse(LoadedExecutableExecuteResponse::default()))
    }
}

async fn reply(answer: Answer) -> Reply {
    match answer {
        Answer::Now(reply) => reply,
        Answer::Later(reply) => reply.await,
    }
}

fn check(session: &Arc<Session>, future_handle: u64) -> Answer {
    begin(session, Some(&Body::CheckFutureRequest(CheckFutureRequest { future_handle })))
}

fn code(reply: Reply) -> Result<(), StatusCode> {
    reply.map(drop).map_err(|status| status.code())
}

#[tokio::test]
async fn results_of_a_computation_are_used_before_it_has_run() {
    let mut client = Client::of(server(1).local_session(Ranges::supported()).unwrap());
    client.put(1, &[1, 2, 3], &on(&[0])).await.unwrap();
    let session = Arc::clone(client.session.session());
    let first = take_up(&Execute { argument: 1, result: 2, ready: 90 }, &session);
    let second = take_up(&Execute { argument: 2, result: 3, ready: 91 }, &session);
    let ready = check(&session, 91);
    assert!(matches!(ready, Answer::Later(_)));
    // The handle of an argument may be destroyed before the computation that uses it.
    let gone = DestructArrayRequest { array_handle: vec![1, 2] };
    assert_eq!(code(reply(begin(&session, Some(&Body::DestructArrayRequest(gone)))).await), Ok(()));
    let waiting = tokio::spawn(async move { tokio::join!(reply(ready), reply(second)) });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    reply(first).await.unwrap();
    let (ready, second) = waiting.await.unwrap();
    ready.unwrap();
    second.unwrap();
    assert_eq!(&client.get(3, 9).await.unwrap()[..], [4, 8, 12]);
    // The result is known by now, and can be asked for only once.
    assert!(matches!(check(&session, 90), Answer::Now(Ok(_))));
    assert_eq!(code(reply(check(&session, 90)).await), Err(StatusCode::NotFound));
}

#[tokio::test]
async fn errors_of_a_computation_come_with_its_results() {
    let mut client = Client::of(server(1).local_session(Ranges::supported()).unwrap());
    let session = Arc::clone(client.session.session());
    // Its data are shorter than declared.
    client.session.store(1, bytes::Bytes::from_static(b"ab")).await.unwrap();
    client.make(1, DType::U8, &[3], &on(&[0])).await.unwrap_err();
    let executed = take_up(&Execute { argument: 1, result: 2, ready: 90 }, &session);
    assert_eq!(code(reply(executed).await), Ok(()));
    assert_eq!(code(reply(check(&session, 90)).await), Err(StatusCode::InvalidArgument));
    assert_eq!(client.get(2, 9).await, Err(StatusCode::InvalidArgument));
    // A request that cannot be planned reports the error in its answer as well.
    let refused = take_up(&Execute { argument: 77, result: 3, ready: 91 }, &session);
    assert!(matches!(&refused, Answer::Now(Err(status)) if status.code() == StatusCode::NotFound));
    assert_eq!(code(reply(check(&session, 91)).await), Err(StatusCode::NotFound));
    assert_eq!(client.get(3, 9).await, Err(StatusCode::NotFound));
    client.destruct(3).await.unwrap();
}

#[tokio::test]
async fn dropped_computation_leaves_no_waiter() {
    let mut client = Client::of(server(1).local_session(Ranges::supported()).unwrap());
    client.put(1, b"a", &on(&[0])).await.unwrap();
    let session = Arc::clone(client.session.session());
    drop(take_up(&Execute { argument: 1, result: 2, ready: 90 }, &session));
    assert_eq!(code(reply(check(&session, 90)).await), Err(StatusCode::Cancelled));
    let ready = CheckValueReadyRequest { value_handles: vec![2] };
    let ready = begin(&session, Some(&Body::CheckValueReadyRequest(ready)));
    assert_eq!(code(reply(ready).await), Err(StatusCode::Cancelled));
}

/// The definitions of the messages: numbers of requests by name, and the fields of each by name.
struct Messages {
    requests: BTreeMap<String, u32>,
    fields: BTreeMap<String, BTreeMap<String, u32>>,
}

impl Messages {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = path.join("../../proto/xla/ifrt/proxy/ifrt_service.proto");
        let text = fs::read_to_string(path).unwrap();
        let mut fields: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
        let mut inside = Vec::new();
        let mut requests = BTreeMap::new();
        for line in text.lines().map(|line| line.split("//").next().unwrap().trim()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [.., "{"] => inside.push(words[1].to_owned()),
                ["}"] => drop(inside.pop()),
                [.., kind, name, "=", number] => {
                    let Ok(number) = number.trim_end_matches(';').parse() else { continue };
                    if inside == ["IfrtRequest", "request"] {
                        requests.insert(kind.to_owned(), number);
                    }
                    if let [message] = &inside[..] {
                        fields.entry(message.clone()).or_default().insert(name.to_owned(), number);
                    }
                }
                _ => {}
            }
        }
        Self { requests, fields }
    }

    /// Encodes a request with one of its fields, if any.
    fn request(&self, name: &str, field: Option<(u32, u64)>) -> Body {
        let mut body = Vec::new();
        if let Some((number, value)) = field {
            prost::encoding::fixed64::encode(number, &value, &mut body);
        }
        let mut bytes = Vec::new();
        prost::encoding::bytes::encode(self.requests[name], &body, &mut bytes);
        IfrtRequest::decode(&bytes[..]).unwrap().request.unwrap()
    }
}

#[tokio::test]
async fn every_request_is_answered_though_it_says_nothing() {
    let messages = Messages::read();
    assert!(messages.requests.len() >= 32, "{:?}", messages.requests);
    for name in messages.requests.keys() {
        let server = server(1);
        let client = Client::of(server.local_session(Ranges::supported()).unwrap());
        let answer = reply(begin(client.session.session(), Some(&messages.request(name, None))));
        let answer = tokio::time::timeout(Duration::from_secs(10), answer).await;
        if let Err(status) = answer.unwrap_or_else(|_| panic!("{name} is not answered")) {
            assert!(!status.message().is_empty(), "{name}");
            assert_ne!(status.code(), StatusCode::Internal, "{name}: {}", status.message());
        }
        assert_eq!((server.metrics().arrays, server.metrics().shards), (0, 0), "{name}");
    }
}

#[tokio::test]
async fn failed_request_leaves_its_error_under_its_results() {
    let messages = Messages::read();
    let mut tried = 0;
    for (name, fields) in &messages.fields {
        if !messages.requests.contains_key(name) {
            continue;
        }
        for (field, number) in fields {
            let makes = name.starts_with("Make") && field.starts_with("array_handle");
            let is_result = field.starts_with("result_") && !field.contains("status");
            if !makes && !is_result {
                continue;
            }
            let client = Client::of(server(1).local_session(Ranges::supported()).unwrap());
            let session = client.session.session();
            let failed =
                reply(begin(session, Some(&messages.request(name, Some((*number, 7)))))).await;
            // A handle without an entry is NOT_FOUND as well.
            let left = matches!(session.table().entry(7), Ok(Entry::Failed(_)));
            assert!(left, "{name}.{field}");
            let found = session.table().array(7).map(drop);
            assert_eq!(found.unwrap_err().code(), failed.unwrap_err().code(), "{name}.{field}");
            tried += 1;
        }
    }
    assert!(tried >= 11, "{tried}");
}
