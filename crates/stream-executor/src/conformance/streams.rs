//! Streams, events, timers, and waits for them.

use std::time::{Duration, Instant};

use super::behaviour::{
    Behaviour, Failure, Verdict, counted, expect, failed, first_device, pattern, same_bytes,
};
use crate::{
    device::{Device, EventStatus, Stream},
    error::Error,
    plugin::Plugin,
};

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "create_stream",
        demand: "a stream can be made, waited for and destroyed",
        run: create_stream,
    },
    Behaviour { name: "many_streams", demand: "16 streams are there at once", run: many_streams },
    Behaviour {
        name: "destroy_stream_with_work",
        demand: "work of a stream is done before its end",
        run: destroy_stream_with_work,
    },
    Behaviour { name: "stream_status", demand: "a stream without work is OK", run: stream_status },
    Behaviour {
        name: "stream_dependency",
        demand: "a stream that depends on another sees what that has written",
        run: stream_dependency,
    },
    Behaviour {
        name: "stream_dependency_on_itself",
        demand: "a stream that is to wait for itself does not hang",
        run: stream_dependency_on_itself,
    },
    Behaviour {
        name: "create_event",
        demand: "16 events can be made and destroyed",
        run: create_event,
    },
    Behaviour {
        name: "record_event",
        demand: "an event is complete when its stream is done",
        run: record_event,
    },
    Behaviour {
        name: "event_recorded_twice",
        demand: "an event can be recorded and waited for again",
        run: event_recorded_twice,
    },
    Behaviour {
        name: "wait_for_event",
        demand: "a stream that waits for an event sees what was written before it",
        run: wait_for_event,
    },
    Behaviour {
        name: "event_status",
        demand: "an event is pending or complete, and complete in the end",
        run: event_status,
    },
    Behaviour {
        name: "block_host_for_event",
        demand: "an event is complete when the call returns",
        run: block_host_for_event,
    },
    Behaviour {
        name: "block_host_until_done",
        demand: "a stream is done when the call returns",
        run: block_host_until_done,
    },
    Behaviour {
        name: "block_until_done_by_event",
        demand: "an event behind a stream's work can stand in for block_host_until_done",
        run: block_until_done_by_event,
    },
    Behaviour {
        name: "synchronize_all_activity",
        demand: "all streams of the device are done when the call returns",
        run: synchronize_all_activity,
    },
    Behaviour {
        name: "create_timer",
        demand: "two timers can be made and destroyed",
        run: create_timer,
    },
    Behaviour {
        name: "timer_start_stop",
        demand: "a timer is started and stopped by a stream",
        run: timer_start_stop,
    },
    Behaviour {
        name: "timer_nanoseconds",
        demand: "a timer measures the work between, in nanoseconds",
        run: timer_nanoseconds,
    },
    Behaviour {
        name: "timer_used_twice",
        demand: "a timer can be used again",
        run: timer_used_twice,
    },
];

fn create_stream(plugin: &Plugin) -> Verdict {
    let stream = first_device(plugin)?.create_stream()?;
    stream.synchronize()?;
    Ok("made, waited for and destroyed".to_owned())
}

fn many_streams(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let streams: Vec<_> = (0..16).map(|_| device.create_stream()).collect::<Result<_, _>>()?;
    for stream in &streams {
        stream.synchronize()?;
    }
    Ok("16 at once".to_owned())
}

fn destroy_stream_with_work(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let bytes = pattern(1 << 20, 1);
    let memory = device.allocate(bytes.len() as u64)?;
    let stream = device.create_stream()?;
    let mut host = device.allocate_host(bytes.len())?;
    host.copy_from_slice(&bytes);
    drop(stream.copy_to_device(host, bytes.len(), &memory, 0)?);
    drop(stream);
    same_bytes("a copy of a stream that is gone", &device.download(&memory)?, &bytes)?;
    Ok("the work was done before the end of the stream".to_owned())
}

fn stream_status(plugin: &Plugin) -> Verdict {
    let stream = first_device(plugin)?.create_stream()?;
    stream.status()?;
    Ok("OK without work".to_owned())
}

/// Gives a stream work before the operation under test, so that a plug-in that does not wait for
/// the stream is detected even if copies are fast. If the plug-in runs no host functions, which
/// another behaviour reports, detection depends on chance.
fn keep_busy(stream: &Stream) {
    let pause = || {
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    };
    drop(stream.host_callback(pause));
}

/// Lets one stream read the data that another has written, 16 times; `order` makes the one wait for
/// the other.
fn reads_behind(
    device: &Device,
    what: &str,
    mut order: impl FnMut(&Stream, &Stream) -> Result<(), Error>,
) -> Result<(), Failure> {
    let (first, second) = (device.create_stream()?, device.create_stream()?);
    for round in 0..16u8 {
        let bytes = pattern(1 << 18, round);
        let memory = device.allocate(bytes.len() as u64)?;
        let mut host = device.allocate_host(bytes.len())?;
        host.copy_from_slice(&bytes);
        keep_busy(&first);
        let up = first.copy_to_device(host, bytes.len(), &memory, 0)?;
        order(&first, &second)?;
        let host = device.allocate_host(bytes.len())?;
        let down = second.copy_to_host(&memory, 0, bytes.len(), host)?.wait()?;
        up.wait()?;
        same_bytes(what, &down, &bytes)?;
    }
    Ok(())
}

fn stream_dependency(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    reads_behind(&device, "what a dependent stream read", |first, second| {
        second.wait_for_stream(first)
    })?;
    Ok("16 times the second stream read what the first had written".to_owned())
}

fn stream_dependency_on_itself(plugin: &Plugin) -> Verdict {
    let stream = first_device(plugin)?.create_stream()?;
    // An error is acceptable; waiting forever is not.
    let answer = stream.wait_for_stream(&stream);
    let _ = stream.synchronize();
    Ok(if answer.is_ok() { "accepted" } else { "refused with an error" }.to_owned())
}

fn create_event(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let events: Vec<_> = (0..16).map(|_| device.create_event()).collect::<Result<_, _>>()?;
    drop(events);
    Ok("16 made and destroyed".to_owned())
}

fn record_event(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let (stream, event) = (device.create_stream()?, device.create_event()?);
    stream.record(&event)?;
    stream.synchronize()?;
    expect("the event of a stream that is done", event.status()?, EventStatus::Complete)?;
    Ok("complete when the stream is".to_owned())
}

fn event_recorded_twice(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let (stream, event) = (device.create_stream()?, device.create_event()?);
    for _ in 0..3 {
        stream.record(&event)?;
        event.wait()?;
    }
    Ok("recorded and waited for three times".to_owned())
}

fn wait_for_event(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    // Keeps the events until the copies around them are done.
    let mut events = Vec::new();
    reads_behind(&device, "what a stream read after an event", |first, second| {
        let event = device.create_event()?;
        first.record(&event)?;
        second.wait_for(&event)?;
        events.push(event);
        Ok(())
    })?;
    Ok("16 times the second stream read what was written before the event".to_owned())
}

fn event_status(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let (stream, event) = (device.create_stream()?, device.create_event()?);
    let memory = device.allocate(1 << 20)?;
    let host = device.allocate_host(1 << 20)?;
    let copy = stream.copy_to_host(&memory, 0, 1 << 20, host)?;
    stream.record(&event)?;
    let limit = Instant::now() + Duration::from_secs(20);
    let mut polls = 0usize;
    loop {
        polls += 1;
        match event.status()? {
            EventStatus::Complete => break,
            EventStatus::Pending if Instant::now() < limit => std::thread::yield_now(),
            EventStatus::Pending => return failed("pending for 20 seconds after a copy of 1 MiB"),
            EventStatus::Unknown => {
                return failed("state unknown (0), expected pending or complete");
            }
            EventStatus::Error => return failed("state error (1), expected pending or complete"),
            EventStatus::Other(number) => {
                return failed(format!("state {number}, expected pending (2) or complete (3)"));
            }
        }
    }
    copy.wait()?;
    Ok(format!("complete after {}", counted(polls, "poll")))
}

fn block_host_for_event(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let (stream, event) = (device.create_stream()?, device.create_event()?);
    let memory = device.allocate(1 << 20)?;
    let host = device.allocate_host(1 << 20)?;
    let copy = stream.copy_to_host(&memory, 0, 1 << 20, host)?;
    stream.record(&event)?;
    // Waits without the host's own polling.
    event.block()?;
    expect("the event after it was waited for", event.status()?, EventStatus::Complete)?;
    copy.wait()?;
    Ok("complete when the call returns".to_owned())
}

fn block_host_until_done(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let (stream, event) = (device.create_stream()?, device.create_event()?);
    let memory = device.allocate(1 << 20)?;
    stream.read_once(&memory)?;
    stream.record(&event)?;
    stream.block_by_function()?;
    expect("an event of a stream that was waited for", event.status()?, EventStatus::Complete)?;
    Ok("the stream was done when the call returned".to_owned())
}

fn block_until_done_by_event(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    let memory = device.allocate(1 << 20)?;
    stream.read_once(&memory)?;
    stream.block_by_event()?;
    Ok("an event was recorded and waited for".to_owned())
}

fn synchronize_all_activity(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let streams = [device.create_stream()?, device.create_stream()?];
    let memory = device.allocate(1 << 20)?;
    let events = [device.create_event()?, device.create_event()?];
    let mut copies = Vec::new();
    for (stream, event) in streams.iter().zip(&events) {
        let host = device.allocate_host(1 << 20)?;
        copies.push(stream.copy_to_host(&memory, 0, 1 << 20, host)?);
        stream.record(event)?;
    }
    device.synchronize()?;
    for event in &events {
        expect("an event of a device that is done", event.status()?, EventStatus::Complete)?;
    }
    for copy in copies {
        copy.wait()?;
    }
    Ok("two streams were done when the call returned".to_owned())
}

fn create_timer(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    drop((device.create_timer()?, device.create_timer()?));
    Ok("two made and destroyed".to_owned())
}

fn timer_start_stop(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let (stream, timer) = (device.create_stream()?, device.create_timer()?);
    stream.start_timer(&timer)?;
    stream.stop_timer(&timer)?;
    stream.synchronize()?;
    Ok("started and stopped in a stream".to_owned())
}

fn timer_nanoseconds(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let (stream, timer) = (device.create_stream()?, device.create_timer()?);
    let memory = device.allocate(1 << 22)?;
    let began = Instant::now();
    stream.start_timer(&timer)?;
    stream.read_once(&memory)?;
    stream.stop_timer(&timer)?;
    stream.synchronize()?;
    let longest = began.elapsed();
    let nanoseconds = timer.nanoseconds()?;
    expect("microseconds", timer.microseconds()?, nanoseconds / 1000)?;
    // Clocks of devices differ from the host's, but not by a factor of a hundred.
    if u128::from(nanoseconds) > longest.as_nanos().saturating_mul(100).max(1_000_000_000) {
        return failed(format!("{nanoseconds} ns, and the host waited {longest:?}"));
    }
    Ok(format!("{nanoseconds} ns; the host waited {longest:?}"))
}

fn timer_used_twice(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let (stream, timer) = (device.create_stream()?, device.create_timer()?);
    for _ in 0..2 {
        stream.start_timer(&timer)?;
        stream.stop_timer(&timer)?;
        stream.synchronize()?;
        timer.nanoseconds()?;
    }
    Ok("read after each use".to_owned())
}
