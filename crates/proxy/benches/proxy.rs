//! The proxy over the loopback: the handshake; bulk transfers in turns with the same bytes over a
//! plain TCP connection; round trips of small arrays in turns with those of a bare echo of tonic.
//!
//! `SERDES_BENCH_MIB` is the size of a large array in MiB (64 by default), `SERDES_BENCH_TURNS` the
//! number of turns (11), `SERDES_BENCH_ROUND_TRIPS` how many small ones a turn has (400),
//! `SERDES_BENCH_ONLY` one of `handshake`, `bulk` and `small`.

mod loopback;

use std::{env, future::Future, hint::black_box, sync::Arc, time::Instant};

use bytes::Bytes;
use criterion::Criterion;
use serdes::ifrt::{DType, DeviceId, Shape};
use serdes_proxy::{Client, Ranges, Server, negotiate};
use serdes_stream_executor::Plugin;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    task::JoinSet,
};

use loopback::{echo, echoed, median, processor_seconds};

/// Sends the bytes to a listener that reads them and answers with one.
async fn tcp(bytes: &Bytes) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    let size = bytes.len();
    let reader = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut memory = vec![0; size];
        stream.read_exact(&mut memory).await.expect("all bytes");
        stream.write_all(&[1]).await.expect("an answer");
        memory
    });
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(bytes).await.expect("all bytes");
    stream.read_exact(&mut [0]).await.expect("an answer");
    black_box(reader.await.expect("the reader"));
}

/// Seconds that work takes.
async fn timed(work: impl Future<Output = ()>) -> f64 {
    let begin = Instant::now();
    work.await;
    begin.elapsed().as_secs_f64()
}

/// Each kind of transfer in turn, so that what else the machine does disturbs all alike; prints the
/// ratios of the medians.
async fn in_turns(client: &Client, shape: &Shape, bytes: &Bytes, turns: usize) {
    let mut times: [Vec<f64>; 3] = [const { Vec::new() }; 3];
    let mut work = [0.0; 3];
    for _ in 0..turns {
        let begin = processor_seconds();
        times[0].push(timed(tcp(bytes)).await);
        let end_of_tcp = processor_seconds();
        let mut array = None;
        let put = async {
            let put = client.put(DType::U8, shape, DeviceId(0), bytes.clone()).await;
            array = Some(put.expect("an array"));
        };
        times[1].push(timed(put).await);
        let end_of_put = processor_seconds();
        let array = array.expect("an array");
        let get = async {
            black_box(client.get(&array).await.expect("the bytes"));
        };
        times[2].push(timed(get).await);
        work[0] += end_of_tcp - begin;
        work[1] += end_of_put - end_of_tcp;
        work[2] += processor_seconds() - end_of_put;
    }
    let [tcp, put, get] = times.map(median);
    let speed = bytes.len() as f64 / f64::from(1 << 30);
    println!(
        "medians of {turns}: TCP {:.2} GiB/s; put {:.2} GiB/s, {:.2} of TCP; get {:.2} GiB/s, {:.2} of TCP",
        speed / tcp,
        speed / put,
        tcp / put,
        speed / get,
        tcp / get,
    );
    let [tcp, put, get] = work;
    println!(
        "processor time of TCP for each second of it: put {:.2}, get {:.2}",
        tcp / put,
        tcp / get,
    );
}

/// Round trips a second of `work`, of which `lanes` go on at a time.
async fn round_trips<F: Future<Output = ()> + Send + 'static>(
    count: usize,
    lanes: usize,
    work: impl Fn() -> F + Clone + Send + 'static,
) -> f64 {
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..lanes {
        let work = work.clone();
        tasks.spawn(async move {
            for _ in 0..count / lanes {
                work().await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    (count / lanes * lanes) as f64 / begin.elapsed().as_secs_f64()
}

/// Small arrays put and got, in turns with echoes of the same bytes: one at a time, and many.
async fn small(client: &Client, turns: usize, count: usize) {
    const BYTES: usize = 1 << 10;
    let bytes = Bytes::from(vec![7; BYTES]);
    let shape = Shape::new([BYTES as i64]).expect("a shape");
    let channel = echo().await;
    let array = client.put(DType::U8, &shape, DeviceId(0), bytes.clone()).await.expect("an array");
    let array = Arc::new(array);
    for lanes in [1, 16] {
        let mut rates = [const { Vec::new() }; 3];
        let mut work = [0.0; 3];
        for _ in 0..=turns {
            let (own, sent) = (channel.clone(), bytes.clone());
            let echo = move || {
                let (own, sent) = (own.clone(), sent.clone());
                async move { echoed(&own, sent).await }
            };
            let (own, sent, of) = (client.clone(), bytes.clone(), shape.clone());
            let put = move || {
                let (own, sent, of) = (own.clone(), sent.clone(), of.clone());
                async move {
                    black_box(own.put(DType::U8, &of, DeviceId(0), sent).await.expect("an array"));
                }
            };
            let (own, from) = (client.clone(), Arc::clone(&array));
            let get = move || {
                let (own, from) = (own.clone(), Arc::clone(&from));
                async move {
                    black_box(own.get(&from).await.expect("the bytes"));
                }
            };
            let begin = processor_seconds();
            rates[0].push(round_trips(count, lanes, echo).await);
            let end_of_echo = processor_seconds();
            rates[1].push(round_trips(count, lanes, put).await);
            let end_of_put = processor_seconds();
            rates[2].push(round_trips(count, lanes, get).await);
            work[0] += end_of_echo - begin;
            work[1] += end_of_put - end_of_echo;
            work[2] += processor_seconds() - end_of_put;
        }
        // Ratios within a turn: what else the machine does changes from turn to turn.
        let ratio = |kind: usize| {
            median(rates[kind].iter().zip(&rates[0]).skip(1).map(|(of, echo)| of / echo).collect())
        };
        println!(
            "{BYTES} bytes, {lanes} at a time, medians of {turns}: echo {:.0}/s; put {:.0}/s, {:.2} of echo; get {:.0}/s, {:.2} of echo",
            median(rates[0].clone()),
            median(rates[1].clone()),
            ratio(1),
            median(rates[2].clone()),
            ratio(2),
        );
        let [echo, put, get] = work;
        println!(
            "processor time of the echo for each second of it: put {:.2}, get {:.2}",
            echo / put,
            echo / get,
        );
    }
}

/// The handshake, with its connection.
fn handshakes(runtime: &Runtime, address: &str, turns: usize) {
    let mut criterion = Criterion::default().configure_from_args();
    criterion.bench_function("proxy/handshake", |bencher| {
        bencher.iter(|| {
            runtime.block_on(negotiate(address, Ranges::supported())).expect("an agreement")
        });
    });
    criterion.final_summary();
    let mut handshakes = Vec::new();
    for _ in 0..turns * 20 {
        let shaken = async {
            black_box(negotiate(address, Ranges::supported()).await.expect("an agreement"));
        };
        handshakes.push(runtime.block_on(timed(shaken)));
    }
    println!("handshake, with its connection: p50 {:.3} ms", median(handshakes) * 1e3);
}

fn main() {
    let number =
        |name, default| env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (mebibytes, turns) = (number("SERDES_BENCH_MIB", 64), number("SERDES_BENCH_TURNS", 11));
    let round_trips = number("SERDES_BENCH_ROUND_TRIPS", 400);
    let only = env::var("SERDES_BENCH_ONLY").ok();
    let asked = |part| only.as_deref().is_none_or(|only| only == part);
    let runtime = Runtime::new().expect("a runtime");
    let server = Server::builder(&Plugin::host()).build().expect("a server");
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a listener");
    let address = listener.local_addr().expect("an address").to_string();
    runtime.spawn(async move { server.serve(listener, std::future::pending()).await });
    if asked("handshake") {
        handshakes(&runtime, &address, turns);
    }
    let bytes = Bytes::from(vec![7; mebibytes << 20]);
    let shape = Shape::new([bytes.len() as i64]).expect("a shape");
    runtime.block_on(async {
        let client = Client::connect(&address).await.expect("a client");
        if asked("bulk") {
            in_turns(&client, &shape, &bytes, turns).await;
        }
        if asked("small") {
            small(&client, turns, round_trips).await;
        }
    });
}
