//! Cost of the proxy for running a program, over the loopback: a small program against the
//! plug-in's own time and a bare round trip of gRPC, a large one against the plug-in's own time, in
//! turns.
//!
//! `SERDES_BENCH_PJRT_PLUGIN` is the path of a PJRT plug-in, with options of its client as
//! `serdes serve --plugin` takes them: the other ones are not looked for. `SERDES_BENCH_TURNS` is
//! the number of turns (11), `SERDES_BENCH_CALLS` how many calls of the small program a turn has
//! (200), `SERDES_BENCH_SIZE` how long a side of the large program's matrices is (1024).
//!
//! Targets: (small through the proxy - the plug-in's own) / round trip at most 2; large through the
//! proxy / the plug-in's own at most 1.05.

mod loopback;

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use bytes::Bytes;
use serdes::{
    proto::xla::ifrt::{
        Serialized,
        proxy::{
            CheckValueReadyRequest, CompileRequest, DestructArrayRequest, GrpcIfrtSessionMetadata,
            IfrtProxyVersion, IfrtRequest, IfrtResponse, LoadedExecutableExecuteRequest,
            RequestMetadata, ifrt_request::Request, ifrt_response::Response,
        },
    },
    version::SerDesVersion,
};
use serdes_pjrt::{
    Argument, Client, CompileOptions, ElementType, ExecuteOptions, HostArray, LoadedExecutable,
    PjrtPlugin, Program, ProgramFormat, Target,
};
use serdes_proxy::Server;
use tokio::{net::TcpListener, runtime::Runtime, sync::mpsc};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{
    Streaming, client::Grpc, codegen::http::uri::PathAndQuery, metadata::MetadataValue,
    transport::Channel,
};
use tonic_prost::ProstCodec;

use loopback::{connect, echo, echoed, median, processor_seconds};

type Failure = Box<dyn Error + Send + Sync>;

/// A session as a client of JAX has one: requests go out without waiting, answers come by number.
struct Session {
    requests: mpsc::UnboundedSender<IfrtRequest>,
    answers: Streaming<IfrtResponse>,
    op_id: u64,
    handle: u64,
}

impl Session {
    async fn open(channel: &Channel) -> Result<Self, Failure> {
        let version = SerDesVersion::current().number();
        let version =
            IfrtProxyVersion { protocol_version: 25, ifrt_serdes_version_number: version };
        let metadata =
            GrpcIfrtSessionMetadata { version: Some(version), initialization_data: None };
        let (requests, outgoing) = mpsc::unbounded_channel();
        let mut call = tonic::Request::new(UnboundedReceiverStream::new(outgoing));
        let value = MetadataValue::from_bytes(&prost::Message::encode_to_vec(&metadata));
        call.metadata_mut().insert_bin("ifrt-proxy-grpc-ifrt-session-metadata-bin", value);
        let mut grpc = Grpc::new(channel.clone());
        grpc.ready().await?;
        let codec = ProstCodec::<IfrtRequest, IfrtResponse>::default();
        let path = PathAndQuery::from_static("/xla.ifrt.proxy.GrpcIfrtService/IfrtSession");
        let answers = grpc.streaming(call, path, codec).await?.into_inner();
        Ok(Self { requests, answers, op_id: 0, handle: 0 })
    }

    fn send(&mut self, request: Request) -> Result<u64, Failure> {
        self.op_id += 1;
        let metadata = RequestMetadata { op_id: self.op_id, ..Default::default() };
        let request = IfrtRequest { request_metadata: Some(metadata), request: Some(request) };
        self.requests.send(request)?;
        Ok(self.op_id)
    }

    /// The answer of that number; what others say is that nothing went wrong.
    async fn answer(&mut self, op_id: u64) -> Result<Response, Failure> {
        loop {
            let answer = self.answers.message().await?.ok_or("the session is over")?;
            let metadata = answer.response_metadata.unwrap_or_default();
            if let Some(status) = metadata.status.filter(|status| status.code != 0) {
                return Err(status.message.into());
            }
            if metadata.op_id == op_id {
                return Ok(answer.response.ok_or("an answer without a body")?);
            }
        }
    }

    async fn ask(&mut self, request: Request) -> Result<Response, Failure> {
        let op_id = self.send(request)?;
        self.answer(op_id).await
    }

    fn new_handle(&mut self) -> u64 {
        self.handle += 1;
        self.handle
    }

    async fn compile(&mut self, text: &str) -> Result<u64, Failure> {
        let value = |type_name: &str, data: &[u8]| {
            let data = Bytes::copy_from_slice(data);
            Some(Serialized { type_name: format!("xla::ifrt::{type_name}"), data })
        };
        let request = CompileRequest {
            program: value("XlaProgram", text.as_bytes()),
            // One replica of one partition.
            compile_options: value("XlaCompileOptions", &[0x0a, 6, 0x1a, 4, 0x20, 1, 0x28, 1]),
            host_callbacks: Vec::new(),
        };
        match self.ask(Request::CompileRequest(request)).await? {
            Response::CompileResponse(answer) => Ok(answer.loaded_executable_handle),
            _ => Err("another answer than of a compilation".into()),
        }
    }

    fn run(&mut self, program: u64, arguments: &[u64], result: u64) -> Result<(), Failure> {
        let request = LoadedExecutableExecuteRequest {
            loaded_executable_handle: program,
            args_handles: arguments.to_vec(),
            result_array_handle: vec![result],
            ..Default::default()
        };
        self.send(Request::LoadedExecutableExecuteRequest(request)).map(drop)
    }

    /// Runs a program and waits for its result, as `jax.block_until_ready(f(a))` does: the request
    /// and the question follow each other at once.
    async fn call(&mut self, program: u64, argument: u64) -> Result<(), Failure> {
        let result = self.new_handle();
        self.run(program, &[argument], result)?;
        let ready = CheckValueReadyRequest { value_handles: vec![result] };
        let ready = self.send(Request::CheckValueReadyRequest(ready))?;
        let gone = DestructArrayRequest { array_handle: vec![result] };
        self.send(Request::DestructArrayRequest(gone))?;
        self.answer(ready).await.map(drop)
    }
}

/// A program of which the argument of others is made, so that no data is sent.
fn zeros(size: u64) -> String {
    let of = format!("tensor<{size}x{size}xf32>");
    format!(
        "module @zeros {{ func.func public @main() -> {of} {{ %a = stablehlo.constant dense<0.0> : {of} return %a : {of} }} }}"
    )
}

/// A program of square matrices, which gives `%b`.
fn program(size: u64, body: &str) -> String {
    let of = format!("tensor<{size}x{size}xf32>");
    let body = body.replace("OF", &of);
    format!(
        "module @bench {{ func.func public @main(%a: {of}) -> {of} {{ {body} return %b : {of} }} }}"
    )
}

const ADD: &str = "%b = stablehlo.add %a, %a : OF";
const MULTIPLY: &str =
    "%b = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (OF, OF) -> OF";

/// A program on the plug-in itself.
struct Own {
    loaded: LoadedExecutable,
    argument: serdes_pjrt::Buffer,
}

impl Own {
    fn new(client: &Client, text: &str, size: u64) -> Result<Self, Failure> {
        let program = Program::new(text.as_bytes(), ProgramFormat::Mlir);
        let loaded = client.compile(&program, &CompileOptions::new(1, 1)?)?;
        let device = loaded.addressable_devices().first().ok_or("a program without a device")?;
        let dims = [size as i64, size as i64];
        let data = vec![0; (size * size * 4) as usize];
        let array = HostArray::new(ElementType::F32, &dims);
        let argument = client.put(&array, &data, Target::Device(device))?;
        Ok(Self { loaded, argument })
    }

    fn call(&self) -> Result<(), Failure> {
        let arguments = vec![vec![Argument::Kept(&self.argument)]];
        self.loaded.execute(arguments, &ExecuteOptions::new())?.wait()?;
        Ok(())
    }
}

/// Times of one kind of call, in all turns.
#[derive(Default)]
struct Times {
    /// Seconds of a call, of each turn.
    wall: Vec<f64>,
    /// Times of all processors.
    processor: Vec<f64>,
}

impl Times {
    fn note(&mut self, calls: usize, took: Duration, processor: f64) {
        self.wall.push(took.as_secs_f64() / calls as f64);
        self.processor.push(processor / calls as f64);
    }

    fn medians(self) -> (f64, f64) {
        (median(self.wall), median(self.processor))
    }
}

macro_rules! timed {
    ($times:expr, $calls:expr, $call:expr) => {
        let (begin, processor) = (Instant::now(), processor_seconds());
        for _ in 0..$calls {
            $call;
        }
        $times.note($calls, begin.elapsed(), processor_seconds() - processor);
    };
}

async fn measure(client: Client, turns: usize, calls: usize, size: u64) -> Result<(), Failure> {
    let server = Server::builder(&client).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
    let channel = connect(address).await;
    let mut session = Session::open(&channel).await?;
    let echo = echo().await;
    for (name, size, calls, text) in
        [("small", 4, calls, program(4, ADD)), ("large", size, 3, program(size, MULTIPLY))]
    {
        let own = Own::new(&client, &text, size)?;
        let handle = session.compile(&text).await?;
        let zeros = session.compile(&zeros(size)).await?;
        let argument = session.new_handle();
        session.run(zeros, &[], argument)?;
        let [mut bare, mut alone, mut proxied]: [Times; 3] = Default::default();
        for _ in 0..=turns {
            timed!(bare, calls.max(20), echoed(&echo, Bytes::from_static(&[7; 64])).await);
            timed!(alone, calls, own.call()?);
            timed!(proxied, calls, session.call(handle, argument).await?);
        }
        let (bare, alone, proxied) = (bare.medians(), alone.medians(), proxied.medians());
        for (what, of) in [("wall", 0), ("processor", 1)] {
            let pick = |times: (f64, f64)| if of == 0 { times.0 } else { times.1 };
            let (bare, alone, proxied) = (pick(bare), pick(alone), pick(proxied));
            println!(
                "{name}, {what} time, medians of {turns}: round trip {:.1} us, plug-in {:.1} us, proxy {:.1} us; (proxy - plug-in) / round trip {:.2}; proxy / plug-in {:.3}",
                bare * 1e6,
                alone * 1e6,
                proxied * 1e6,
                (proxied - alone) / bare,
                proxied / alone,
            );
        }
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let Ok(plugin) = env::var("SERDES_BENCH_PJRT_PLUGIN") else {
        println!("SERDES_BENCH_PJRT_PLUGIN names no plug-in: nothing was measured");
        return Ok(());
    };
    let number =
        |name, default| env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (turns, calls) = (number("SERDES_BENCH_TURNS", 11), number("SERDES_BENCH_CALLS", 200));
    let size = number("SERDES_BENCH_SIZE", 1024) as u64;
    let client = PjrtPlugin::load(&plugin)?.create_client(&[])?;
    Runtime::new()?.block_on(measure(client, turns, calls, size))
}
