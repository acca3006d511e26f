//! The proxy over the loopback: the handshake, and bulk transfers beside the same bytes over a plain TCP connection in the same run.
//! Ratios are printed at the end: above 1 is faster than TCP.
//!
//! `SERDES_BENCH_MIB` is the size of an array in MiB (64 by default).

use std::{
    env,
    hint::black_box,
    time::{Duration, Instant},
};

use bytes::Bytes;
use criterion::{Criterion, SamplingMode, Throughput};
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

/// Runs `work` and keeps its best time.
async fn timed(best: &mut Duration, work: impl Future<Output = ()>) -> Duration {
    let begin = Instant::now();
    work.await;
    let time = begin.elapsed();
    *best = time.min(*best);
    time
}

fn main() {
    let mebibytes: usize =
        env::var("SERDES_BENCH_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(64);
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

    let bytes = Bytes::from(vec![7; mebibytes << 20]);
    let shape = Shape::new([bytes.len() as i64]).expect("a shape");
    let client = runtime.block_on(Client::connect(&address)).expect("a client");
    let mut best = [Duration::MAX; 3];
    let mut group = criterion.benchmark_group("proxy");
    group
        .sample_size(10)
        .sampling_mode(SamplingMode::Flat)
        .throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("tcp", |bencher| {
        bencher.iter_custom(|turns| {
            (0..turns).map(|_| runtime.block_on(timed(&mut best[0], tcp(&bytes)))).sum()
        });
    });
    group.bench_function("put", |bencher| {
        bencher.iter_custom(|turns| {
            let put = async || {
                let array = client
                    .put(DType::U8, &shape, DeviceId(0), bytes.clone())
                    .await
                    .expect("an array");
                black_box(array);
            };
            (0..turns).map(|_| runtime.block_on(timed(&mut best[1], put()))).sum()
        });
    });
    let array = runtime
        .block_on(client.put(DType::U8, &shape, DeviceId(0), bytes.clone()))
        .expect("an array");
    group.bench_function("get", |bencher| {
        bencher.iter_custom(|turns| {
            let get = async || {
                black_box(client.get(&array).await.expect("the bytes"));
            };
            (0..turns).map(|_| runtime.block_on(timed(&mut best[2], get()))).sum()
        });
    });
    group.finish();
    criterion.final_summary();
    let [tcp, put, get] = best.map(|time| time.as_secs_f64());
    if tcp < f64::from(u32::MAX) {
        println!("put / TCP: {:.2}   get / TCP: {:.2}", tcp / put, tcp / get);
    }
    drop((array, client));
}
