//! Events: waits, callbacks, and use from several threads at once.

use std::{
    ffi::c_void,
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicPtr, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serdes_abi::pjrt::args::{
    Arguments, PJRT_Buffer_ReadyEvent_Args, PJRT_Error, PJRT_Event_OnReady_Args,
};
use serdes_library_file::conformance::{Failure, Verdict, expect, failed, pattern, same_bytes};

use super::{
    buffers::wait,
    subject::{Behaviour, Subject},
};
use crate::{ElementType, HostArray, Target};

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "pjrt_ready_event",
        demand: "an array says when its data is there, and then is ready",
        run: ready,
    },
    Behaviour {
        name: "pjrt_on_ready",
        demand: "a callback is called once when its event happens, without an error",
        run: on_ready,
    },
    Behaviour {
        name: "pjrt_threads",
        demand: "several threads use one client at once, and each gets its own bytes",
        run: threads,
    },
];

fn ready(subject: &Subject) -> Verdict {
    let buffer = subject.put(&HostArray::new(ElementType::F32, &[4096]), &pattern(1 << 14, 13))?;
    let Some(event) = buffer.ready()? else { return Ok("it is there at once".to_owned()) };
    event.wait()?;
    expect("whether the event has happened after it was waited for", event.is_ready()?, true)?;
    Ok("waited for".to_owned())
}

/// The number of calls, and the error of each.
#[derive(Debug)]
struct Called {
    times: AtomicUsize,
    error: AtomicPtr<PJRT_Error>,
}

/// Leaks the record, so that it is still valid if a plug-in calls too late.
fn kept(called: Called) -> &'static Called {
    static KEPT: Mutex<Vec<&'static Called>> = Mutex::new(Vec::new());
    let called: &'static Called = Box::leak(Box::new(called));
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(called);
    called
}

/// The callback that the plug-in calls.
unsafe extern "C" fn called(error: *mut PJRT_Error, argument: *mut c_void) {
    // SAFETY: the argument is a `Called` that is never freed.
    let called = unsafe { &*argument.cast::<Called>() };
    if !error.is_null() {
        called.error.store(error, Ordering::SeqCst);
    }
    called.times.fetch_add(1, Ordering::SeqCst);
}

/// The time limit of a callback that has nothing to wait for.
const LIMIT: Duration = Duration::from_secs(10);
/// The time to wait for an unexpected second call.
const AFTER: Duration = Duration::from_millis(50);

fn on_ready(subject: &Subject) -> Verdict {
    let buffer = subject.put(&HostArray::new(ElementType::F32, &[4096]), &pattern(1 << 14, 14))?;
    let mut of_buffer = PJRT_Buffer_ReadyEvent_Args::new();
    of_buffer.buffer = buffer.raw();
    // SAFETY: the buffer is alive.
    unsafe { subject.slots.call_with(&mut of_buffer) }?;
    if of_buffer.event.is_null() {
        return Ok("there is no event to be called for".to_owned());
    }
    let state = kept(Called { times: AtomicUsize::new(0), error: AtomicPtr::new(ptr::null_mut()) });
    let mut arguments = PJRT_Event_OnReady_Args::new();
    arguments.event = of_buffer.event;
    arguments.callback = Some(called);
    arguments.user_arg = ptr::from_ref(state).cast_mut().cast();
    // SAFETY: the event is alive, and the argument of the callback is never freed.
    unsafe { subject.slots.call_with(&mut arguments) }?;
    let begin = Instant::now();
    while state.times.load(Ordering::SeqCst) == 0 && begin.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(AFTER);
    wait(subject, of_buffer.event)?;
    subject
        .plugin
        .taken("PJRT_Event_OnReady", state.error.load(Ordering::SeqCst))
        .map_err(|error| Failure::Failed(format!("it is called with an error: {error}")))?;
    expect("how often it is called", state.times.load(Ordering::SeqCst), 1)?;
    Ok("once".to_owned())
}

fn threads(subject: &Subject) -> Verdict {
    const THREADS: u8 = 4;
    const ROUNDS: u8 = 25;
    let (client, devices) = subject.devices()?;
    let work = |thread: u8| -> Result<(), Failure> {
        let device = &devices[usize::from(thread) % devices.len()];
        for round in 0..ROUNDS {
            let data = pattern(4096, thread.wrapping_mul(ROUNDS).wrapping_add(round));
            let array = HostArray::new(ElementType::U8, &[4096]);
            let buffer = client.put(&array, &data, Target::Device(device))?;
            same_bytes("what a thread reads", &buffer.read()?, &data)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => failed("a thread ended early"),
        })
    })?;
    Ok(format!("{THREADS} threads, {ROUNDS} arrays each"))
}
