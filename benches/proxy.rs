//! The proxy over the loopback: the handshake, and bulk transfers in turns with the same bytes over
//! a plain TCP connection.
//!
//! `SERDES_BENCH_MIB` is the size of an array in MiB (64 by default), `SERDES_BENCH_TURNS` the
//! number of turns (11).

use std::{
    env,
    hint::black_box,
    time::{Duration, Instant},
};

use bytes::Bytes;
use criterion::Criterion;
use serdes::{
    ifrt::{DType, DeviceId, Shape},
    proxy::{Client, Ranges, Server, negotiate},
    stream_executor::Plugin,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};

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

async fn timed(work: impl Future<Output = ()>) -> Duration {
    let begin = Instant::now();
    work.await;
    begin.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64)
}

/// Each kind of transfer in turn, so that what else the machine does disturbs all alike; prints the
/// ratios of the medians.
async fn in_turns(client: &Client, shape: &Shape, bytes: &Bytes, turns: usize) {
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..turns {
        times[0].push(timed(tcp(bytes)).await);
        let mut array = None;
        let put = async {
            let put = client.put(DType::U8, shape, DeviceId(0), bytes.clone()).await;
            array = Some(put.expect("an array"));
        };
        times[1].push(timed(put).await);
        let array = array.expect("an array");
        let get = async {
            black_box(client.get(&array).await.expect("the bytes"));
        };
        times[2].push(timed(get).await);
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
}

fn main() {
    let number =
        |name, default| env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (mebibytes, turns) = (number("SERDES_BENCH_MIB", 64), number("SERDES_BENCH_TURNS", 11));
    let runtime = Runtime::new().expect("a runtime");
    let mut criterion = Criterion::default().configure_from_args();
    let server = Server::builder(&Plugin::host()).build().expect("a server");
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a listener");
    let address = listener.local_addr().expect("an address").to_string();
    runtime.spawn(async move { server.serve(listener, std::future::pending()).await });

    criterion.bench_function("proxy/handshake", |bencher| {
        bencher.iter(|| {
            runtime.block_on(negotiate(&address, Ranges::supported())).expect("an agreement")
        });
    });
    criterion.final_summary();
    let mut handshakes = Vec::new();
    for _ in 0..turns * 20 {
        let shaken = async {
            black_box(negotiate(&address, Ranges::supported()).await.expect("an agreement"));
        };
        handshakes.push(runtime.block_on(timed(shaken)));
    }
    println!("handshake, with its connection: p50 {:.3} ms", median(handshakes) * 1e3);

    let bytes = Bytes::from(vec![7; mebibytes << 20]);
    let shape = Shape::new([bytes.len() as i64]).expect("a shape");
    runtime.block_on(async {
        let client = Client::connect(&address).await.expect("a client");
        in_turns(&client, &shape, &bytes, turns).await;
    });
}
