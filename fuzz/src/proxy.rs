//! Requests of a hostile client.

use std::{cell::RefCell, time::Duration};

use bytes::Bytes;
use serdes_proxy::{Limits, Ranges, Server};
use serdes_stream_executor::{LayoutChoice, Plugin};

thread_local! {
    static RUNTIME: RefCell<(tokio::runtime::Runtime, Server)> = RefCell::new({
        let plugin = Plugin::open("host:devices=2,memory=1048576", LayoutChoice::Detect).expect("the embedded plug-in");
        let mut limits = Limits::default();
        limits.session_host_bytes = 1 << 20;
        limits.session_array_bytes = 1 << 20;
        limits.handles_per_session = 1000;
        limits.host_buffer_timeout = Duration::from_millis(1);
        let server = Server::builder(&plugin).limits(limits).build().expect("a server");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        (runtime, server)
    });
}

/// Sends requests, each preceded by its length in two bytes (little endian); host buffers up to 8
/// exist. Every request must be answered, and nothing may be left after the session.
pub fn proxy_requests(data: &[u8]) {
    RUNTIME.with_borrow(|(runtime, server)| {
        runtime.block_on(async {
            let mut session = server.local_session(Ranges::supported()).expect("a session");
            for handle in 1..=8 {
                session.store(handle, Bytes::from(vec![handle as u8; 24])).await.expect("room");
            }
            let mut rest = Bytes::copy_from_slice(data);
            while rest.len() > 2 {
                let head = rest.split_to(2);
                let length = usize::from(u16::from_le_bytes([head[0], head[1]])).min(rest.len());
                if let Ok(answer) = session.request_bytes(rest.split_to(length)).await {
                    let failed =
                        answer.response_metadata.is_some_and(|metadata| metadata.status.is_some());
                    assert_ne!(failed, answer.response.is_some(), "either a status or a body");
                }
            }
        });
        let left = server.metrics();
        assert_eq!([left.sessions, left.arrays, left.shards, left.host_buffers], [0; 4]);
    });
}
