//! Many threads, many streams, much work: checks the order that the C API promises, and that all
//! bytes are correct.

use std::thread;

use super::behaviour::{Behaviour, Failure, Verdict, first_device, pattern, same_bytes};
use crate::plugin::Plugin;

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "concurrent_allocations",
        demand: "8 threads allocate at once, each its own memory",
        run: concurrent_allocations,
    },
    Behaviour {
        name: "concurrent_copies",
        demand: "8 threads copy at once, each by its own stream",
        run: concurrent_copies,
    },
    Behaviour {
        name: "ordering_in_a_stream",
        demand: "writes and reads of one stream come in order",
        run: ordering_in_a_stream,
    },
    Behaviour {
        name: "ordering_across_streams",
        demand: "streams that wait for each other in a ring keep the order",
        run: ordering_across_streams,
    },
    Behaviour {
        name: "copies_in_flight",
        demand: "many copies are under way at once and all arrive",
        run: copies_in_flight,
    },
];

/// Runs `work` on eight threads at once.
fn on_threads(work: impl Fn(u8) -> Result<(), Failure> + Sync) -> Result<(), Failure> {
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|index| {
                scope.spawn({
                    let work = &work;
                    move || work(index)
                })
            })
            .collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    for result in results {
        match result {
            Ok(result) => result?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    Ok(())
}

fn concurrent_allocations(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    on_threads(|index| {
        for round in 0..50usize {
            let bytes = pattern(100 + round * 37, index);
            let memory = device.upload(&bytes)?;
            same_bytes("memory of one of eight threads", &device.download(&memory)?, &bytes)?;
        }
        Ok(())
    })?;
    Ok("8 threads, 50 allocations each".to_owned())
}

fn concurrent_copies(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    on_threads(|index| {
        let stream = device.create_stream()?;
        let bytes = pattern(200_000, index);
        let memory = device.allocate(bytes.len() as u64)?;
        for _ in 0..4 {
            let mut host = device.allocate_host(bytes.len())?;
            host.copy_from_slice(&bytes);
            let host = stream.copy_to_device(host, bytes.len(), &memory, 0)?.wait()?;
            let host = stream.copy_to_host(&memory, 0, bytes.len(), host)?.wait()?;
            same_bytes("a copy of one of eight threads", &host, &bytes)?;
        }
        Ok(())
    })?;
    Ok("8 threads with a stream each".to_owned())
}

fn ordering_in_a_stream(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    let size = 50_000;
    let memory = device.allocate(size as u64)?;
    let mut copies = Vec::new();
    for round in 0..32u8 {
        let mut host = device.allocate_host(size)?;
        host.fill(round);
        drop(stream.copy_to_device(host, size, &memory, 0)?);
        let host = device.allocate_host(size)?;
        copies.push(stream.copy_to_host(&memory, 0, size, host)?);
    }
    for (round, copy) in (0..32u8).zip(copies) {
        same_bytes("a copy in a row of copies", &copy.wait()?, &vec![round; size])?;
    }
    Ok("32 times a write and a read, in order".to_owned())
}

fn ordering_across_streams(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let streams: Vec<_> = (0..4).map(|_| device.create_stream()).collect::<Result<_, _>>()?;
    let size = 20_000;
    let memory = device.allocate(size as u64)?;
    let mut copies = Vec::new();
    // A ring: each stream waits for the one before it, writes and reads.
    for round in 0..32usize {
        let stream = &streams[round % 4];
        if round > 0 {
            let event = device.create_event()?;
            streams[(round - 1) % 4].record(&event)?;
            stream.wait_for(&event)?;
        }
        let mut host = device.allocate_host(size)?;
        host.fill(round as u8);
        drop(stream.copy_to_device(host, size, &memory, 0)?);
        let host = device.allocate_host(size)?;
        copies.push(stream.copy_to_host(&memory, 0, size, host)?);
    }
    for (round, copy) in copies.into_iter().enumerate() {
        same_bytes("a copy in a ring of streams", &copy.wait()?, &vec![round as u8; size])?;
    }
    Ok("4 streams in a ring, 32 rounds".to_owned())
}

fn copies_in_flight(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let bytes = pattern(1 << 20, 30);
    let memory = device.upload(&bytes)?;
    let stream = device.create_stream()?;
    let chunk = 10_007;
    let mut copies = Vec::new();
    for (index, part) in bytes.chunks(chunk).enumerate() {
        let host = device.allocate_host(chunk)?;
        copies
            .push((stream.copy_to_host(&memory, (index * chunk) as u64, part.len(), host)?, part));
    }
    let count = copies.len();
    // Waits for the last one first: the others are then done, too.
    for (copy, part) in copies.into_iter().rev() {
        same_bytes("a chunk", &copy.wait()?[..part.len()], part)?;
    }
    Ok(format!("{count} at once"))
}
