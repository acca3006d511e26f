//! Tests of programs that call functions of the proxy's client: the client asks for calls, answers
//! them, and disconnects during one.

use std::future::Future;

use bytes::Bytes;
use serdes::{
    codec::{StatusCode, ToProto as _},
    ifrt::{
        HostCallbackArgument, XlaHostCallback,
        xla::{self, PrimitiveType},
    },
    proto::{
        tensorflow::StatusProto,
        xla::ifrt::{
            Serialized,
            proxy::{
                CheckValueReadyRequest, CompileRequest, CompileResponse, CopyToHostBufferRequest,
                IfrtRequest, LoadedExecutableDestructRequest, LoadedExecutableExecuteRequest,
                LoadedHostCallbackPollRequest, LoadedHostCallbackReturnRequest, RequestMetadata,
                ifrt_request::Request, ifrt_response::Response,
                loaded_host_callback_return_request::Result as Returned,
            },
        },
    },
    version::SerDesVersion,
};
use serdes_proxy::{Limits, LocalSession, Ranges, Server};

use super::{plugins::Library, served_array::four_bytes_on_each};

type Answer = Result<Response, (StatusCode, String)>;

/// A client of a server over a test plug-in, whose devices are 7 and 8.
struct Served {
    session: LocalSession,
    _server: Server,
}

impl Served {
    fn new(library: &Library, limits: Limits) -> Self {
        let client = library.load().unwrap().create_client(&[]).unwrap();
        let server = Server::builder(&client).limits(limits).build().unwrap();
        let session = server.local_session(Ranges::supported()).unwrap();
        Self { session, _server: server }
    }

    /// Sends a request; the returned future resolves to its answer, which may take long.
    fn begin(&mut self, request: Request) -> impl Future<Output = Answer> + Send + use<> {
        let request_metadata = Some(RequestMetadata { op_id: 1, ..Default::default() });
        let answer = self.session.begin(IfrtRequest { request_metadata, request: Some(request) });
        async move {
            let answer = answer.await;
            match answer.response_metadata.unwrap().status {
                Some(StatusProto { code, message, .. }) => {
                    Err((StatusCode::from_number(code).unwrap(), message))
                }
                None => Ok(answer.response.unwrap()),
            }
        }
    }

    async fn ask(&mut self, request: Request) -> Answer {
        self.begin(request).await
    }

    /// Puts four bytes on each of the two devices.
    async fn put(&mut self, handle: u64, bytes: [u8; 8]) {
        self.session.store(handle, Bytes::copy_from_slice(&bytes)).await.unwrap();
        self.ask(four_bytes_on_each(handle)).await.unwrap();
    }

    async fn get(&mut self, array_handle: u64) -> Result<Bytes, (StatusCode, String)> {
        let request = CopyToHostBufferRequest {
            array_handle,
            host_buffer_handle: 1000 + array_handle,
            byte_strides: None,
        };
        self.ask(Request::CopyToHostBufferRequest(request)).await?;
        Ok(self.session.look_up(1000 + array_handle).await.unwrap())
    }

    /// Compiles a program that sends its argument to a function and adds up the results.
    async fn compile(&mut self, result_bytes: i64) -> CompileResponse {
        self.try_compile(result_bytes).await.unwrap()
    }

    async fn try_compile(
        &mut self,
        result_bytes: i64,
    ) -> Result<CompileResponse, (StatusCode, String)> {
        let value = |type_name: &str, data: &[u8]| {
            let data = Bytes::copy_from_slice(data);
            Some(Serialized { type_name: format!("xla::ifrt::{type_name}"), data })
        };
        let argument = |channel_id, bytes: i64| HostCallbackArgument {
            channel_id,
            shape: xla::Shape::array(PrimitiveType::U8, [bytes]),
        };
        let callback = XlaHostCallback::new([argument(1, 4)], [argument(2, result_bytes)]);
        let request = CompileRequest {
            program: value("XlaProgram", b"outputs 1 donates -1 talks"),
            // One replica of two partitions.
            compile_options: value("XlaCompileOptions", &[0x0a, 6, 0x1a, 4, 0x20, 1, 0x28, 2]),
            host_callbacks: vec![callback.to_bytes(SerDesVersion::current()).unwrap()],
        };
        match self.ask(Request::CompileRequest(request)).await? {
            Response::CompileResponse(answer) => Ok(answer),
            other => panic!("another answer: {other:?}"),
        }
    }

    fn execute(&mut self, handle: u64, result: u64) -> impl Future<Output = Answer> + Send + use<> {
        self.begin(Request::LoadedExecutableExecuteRequest(LoadedExecutableExecuteRequest {
            loaded_executable_handle: handle,
            args_handles: vec![1],
            result_array_handle: vec![result],
            ..Default::default()
        }))
    }

    /// Waits for the next call of a function.
    fn poll(
        &mut self,
        function: u64,
        operands: u64,
    ) -> impl Future<Output = Result<Option<u64>, (StatusCode, String)>> + Send + use<> {
        let answer =
            self.begin(Request::LoadedHostCallbackPollRequest(LoadedHostCallbackPollRequest {
                loaded_host_callback_handle: function,
                operand_host_buffer_handle: operands,
            }));
        async move {
            match answer.await? {
                Response::LoadedHostCallbackPollResponse(answer) => {
                    Ok(answer.host_callback_execution_handle)
                }
                other => panic!("another answer: {other:?}"),
            }
        }
    }

    async fn give(&mut self, call: u64, result: Returned) -> Result<(), (StatusCode, String)> {
        let request = LoadedHostCallbackReturnRequest {
            host_callback_execution_handle: call,
            result: Some(result),
        };
        self.ask(Request::LoadedHostCallbackReturnRequest(request)).await.map(drop)
    }
}

const BYTES: [u8; 8] = [1, 2, 3, 4, 11, 12, 13, 14];

#[tokio::test]
async fn a_program_calls_a_function_of_its_client_on_each_device() {
    for minor in [29, 81, 106] {
        let library = Library::new(minor, &["MODULE"]);
        let mut served = Served::new(&library, Limits::default());
        let compiled = served.compile(8).await;
        let [function] = compiled.loaded_host_callback_handles[..] else { panic!("{compiled:?}") };
        served.put(1, BYTES).await;
        for turn in 0..2 {
            let (result, first) = (10 + turn, 100 * (turn + 1));
            // The client asks before there is a call, and the program waits for the answer.
            let asked = tokio::spawn(served.poll(function, first));
            let executed = tokio::spawn(served.execute(compiled.loaded_executable_handle, result));
            let call = asked.await.unwrap().unwrap().unwrap();
            assert_eq!(served.session.look_up(first).await.unwrap()[..], BYTES[..4]);
            assert!(!executed.is_finished());
            let sums = |first: u8| Bytes::copy_from_slice(&[first, 1, 1, 0, 0, 0, 0, 0]);
            served.session.store(first + 1, sums(3)).await.unwrap();
            served.give(call, Returned::ResultHostBufferHandle(first + 1)).await.unwrap();
            // Each call is answered once.
            let (code, _) =
                served.give(call, Returned::ResultHostBufferHandle(first + 1)).await.unwrap_err();
            assert_eq!(code, StatusCode::NotFound);
            // The results may arrive after the message that announces them.
            let call = served.poll(function, first + 2).await.unwrap().unwrap();
            assert_eq!(served.session.look_up(first + 2).await.unwrap()[..], BYTES[4..]);
            let given = served.begin(Request::LoadedHostCallbackReturnRequest(
                LoadedHostCallbackReturnRequest {
                    host_callback_execution_handle: call,
                    result: Some(Returned::ResultHostBufferHandle(first + 3)),
                },
            ));
            let given = tokio::spawn(given);
            served.session.store(first + 3, sums(8)).await.unwrap();
            given.await.unwrap().unwrap();
            executed.await.unwrap().unwrap();
            assert_eq!(served.get(result).await.unwrap()[..], [6, 7, 8, 9, 21, 22, 23, 24]);
        }
        // A poll after the last call gets the end.
        let last = tokio::spawn(served.poll(function, 900));
        let request = LoadedExecutableDestructRequest {
            loaded_executable_handle: compiled.loaded_executable_handle,
            ..Default::default()
        };
        served.ask(Request::LoadedExecutableDestructRequest(request)).await.unwrap();
        assert_eq!(last.await.unwrap(), Ok(None), "0.{minor}");
        assert_eq!(served.poll(function, 901).await.unwrap_err().0, StatusCode::NotFound);
        drop(served);
        assert!(library.is_empty_soon());
    }
}

#[tokio::test]
async fn the_words_of_a_function_that_fails_are_those_of_the_results() {
    let library = Library::new(106, &["MODULE"]);
    let mut served = Served::new(&library, Limits::default());
    served.put(1, BYTES).await;
    let compiled = served.compile(8).await;
    let (program, function) =
        (compiled.loaded_executable_handle, compiled.loaded_host_callback_handles[0]);
    let words = "ValueError: an unwanted value";
    let error = StatusProto { code: 2, message: words.to_owned(), ..Default::default() };
    // The same for results of another length than announced.
    for (at, result, part) in [
        (0, Returned::Error(error), words),
        (1, Returned::ResultHostBufferHandle(51), "3 bytes; expected 8"),
        (2, Returned::Error(StatusProto::default()), "neither results nor an error"),
    ] {
        let executed = tokio::spawn(served.execute(program, 20 + at));
        let call = served.poll(function, 100 + at).await.unwrap().unwrap();
        if at == 1 {
            served.session.store(51, Bytes::from_static(b"abc")).await.unwrap();
        }
        assert_eq!(served.give(call, result).await.is_ok(), at != 1);
        assert!(executed.await.unwrap().unwrap_err().1.contains(part), "{part}");
        let request = CheckValueReadyRequest { value_handles: vec![20 + at] };
        let (_, found) = served.ask(Request::CheckValueReadyRequest(request)).await.unwrap_err();
        assert!(found.contains(part), "{found}");
    }
    // The session continues, and so do its other objects.
    assert_eq!(served.get(1).await.unwrap()[..], BYTES);
}

#[tokio::test]
async fn a_client_that_goes_in_the_middle_of_a_call_keeps_no_program() {
    let library = Library::new(106, &["MODULE"]);
    let mut served = Served::new(&library, Limits::default());
    served.put(1, BYTES).await;
    let compiled = served.compile(8).await;
    let executed = tokio::spawn(served.execute(compiled.loaded_executable_handle, 2));
    let function = compiled.loaded_host_callback_handles[0];
    assert!(served.poll(function, 100).await.unwrap().is_some());
    drop(served);
    assert!(executed.await.unwrap().unwrap_err().1.contains("has gone"));
    assert!(library.is_empty_soon());
}

#[tokio::test]
async fn a_program_waits_for_its_client_no_longer_than_it_may() {
    let library = Library::new(106, &["MODULE"]);
    let mut limits = Limits::default();
    limits.set("callback-seconds", "0.05").unwrap();
    let mut served = Served::new(&library, limits);
    served.put(1, BYTES).await;
    let program = served.compile(8).await.loaded_executable_handle;
    let (_, words) = served.execute(program, 2).await.unwrap_err();
    assert!(words.contains("`callback-seconds`"), "{words}");
    drop(served);

    // The client no longer waits for its program, which cannot be stopped: the call ends later.
    let mut limits = Limits::default();
    limits.set("execution-seconds", "0.05").unwrap();
    let mut served = Served::new(&library, limits);
    served.put(1, BYTES).await;
    let compiled = served.compile(8).await;
    let (code, words) = served.execute(compiled.loaded_executable_handle, 2).await.unwrap_err();
    assert_eq!(code, StatusCode::DeadlineExceeded);
    assert!(words.contains("`execution-seconds`"), "{words}");
    assert_eq!(served.get(2).await.unwrap_err(), (code, words));
    drop(served);
    assert!(library.is_empty_soon());
}

#[tokio::test]
async fn functions_never_outnumber_requests_that_can_wait() {
    let library = Library::new(106, &["MODULE"]);
    let mut limits = Limits::default();
    limits.set("session-requests", "4").unwrap();
    let mut served = Served::new(&library, limits);
    let first = served.compile(8).await;
    served.compile(8).await;
    let (code, words) = served.try_compile(8).await.unwrap_err();
    assert_eq!(code, StatusCode::ResourceExhausted);
    assert!(words.contains("`session-requests`"), "{words}");
    let request = LoadedExecutableDestructRequest {
        loaded_executable_handle: first.loaded_executable_handle,
        ..Default::default()
    };
    served.ask(Request::LoadedExecutableDestructRequest(request)).await.unwrap();
    served.compile(8).await;
}
