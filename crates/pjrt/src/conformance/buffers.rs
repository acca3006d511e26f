//! Arrays on a device: their properties, copies, raw bytes, and deletion.

use serdes_abi::pjrt::args::{
    Arguments, PJRT_Buffer_DecreaseExternalReferenceCount_Args, PJRT_Buffer_Device_Args,
    PJRT_Buffer_IncreaseExternalReferenceCount_Args, PJRT_Buffer_Memory_Args,
    PJRT_Buffer_ToHostBuffer_Args, PJRT_Event_Await_Args, PJRT_Event_Destroy_Args,
};
use serdes_library_file::conformance::{Failure, Verdict, expect, failed, pattern, same_bytes};

use super::subject::{Behaviour, Subject};
use crate::{ElementType, HostArray, PjrtError, Target};

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "pjrt_buffer_facts",
        demand: "an array says its type, its dimensions, its device and its memory",
        run: facts,
    },
    Behaviour {
        name: "pjrt_read_size",
        demand: "it says how long an array is on the host, and refuses memory that is shorter",
        run: read_size,
    },
    Behaviour {
        name: "pjrt_read_raw",
        demand: "the device's bytes of an array can be read in parts",
        run: read_raw,
    },
    Behaviour {
        name: "pjrt_copy_to_device",
        demand: "an array can be copied to every device, and the copy is one of its own",
        run: copy_to_device,
    },
    Behaviour {
        name: "pjrt_copy_to_memory",
        demand: "an array can be copied to every memory of its device",
        run: copy_to_memory,
    },
    Behaviour {
        name: "pjrt_delete",
        demand: "an array can be deleted twice, says so, and is not read after it",
        run: delete,
    },
    Behaviour {
        name: "pjrt_external_references",
        demand: "references from outside can be added to an array and taken from it",
        run: external_references,
    },
];

const DIMS: [i64; 2] = [16, 24];
const BYTES: usize = 16 * 24 * 4;

fn facts(subject: &Subject) -> Verdict {
    let (client, devices) = subject.devices()?;
    for device in &devices {
        let array = HostArray::new(ElementType::F32, &DIMS);
        let buffer = client.put(&array, &pattern(BYTES, 6), Target::Device(device))?;
        expect("its type", buffer.element_type()?, ElementType::F32)?;
        expect("its dimensions", buffer.dims()?.as_slice(), &DIMS[..])?;
        if buffer.device_bytes()? < BYTES {
            return failed(format!(
                "it takes {} bytes on the device, and has {BYTES}",
                buffer.device_bytes()?
            ));
        }
        let mut on = PJRT_Buffer_Device_Args::new();
        on.buffer = buffer.raw();
        // SAFETY: the buffer is alive.
        unsafe { subject.slots.call_with(&mut on) }?;
        expect("its device", on.device, device.raw())?;
        let Some(memory) = device.default_memory()? else { continue };
        let mut within = PJRT_Buffer_Memory_Args::new();
        within.buffer = buffer.raw();
        // SAFETY: the buffer is alive.
        unsafe { subject.slots.call_with(&mut within) }?;
        expect("its memory", within.memory, memory.raw())?;
    }
    Ok(format!("F32 {DIMS:?} on {} devices", devices.len()))
}

fn read_size(subject: &Subject) -> Verdict {
    let data = pattern(BYTES, 7);
    let buffer = subject.put(&HostArray::new(ElementType::F32, &DIMS), &data)?;
    let mut arguments = PJRT_Buffer_ToHostBuffer_Args::new();
    arguments.src = buffer.raw();
    // SAFETY: the buffer is alive; without memory the function only returns the required size.
    unsafe { subject.slots.call_with(&mut arguments) }?;
    wait(subject, arguments.event)?;
    expect("its length on the host", arguments.dst_size, BYTES)?;
    // The memory fits the whole array, so that nothing is overwritten if the plug-in ignores the
    // size.
    let mut memory = vec![0_u8; BYTES];
    let mut arguments = PJRT_Buffer_ToHostBuffer_Args::new();
    arguments.src = buffer.raw();
    arguments.dst = memory.as_mut_ptr().cast();
    arguments.dst_size = BYTES - 1;
    // SAFETY: the buffer is alive, and the memory exists until the event below is done.
    match unsafe { subject.slots.call_with(&mut arguments) } {
        Err(PjrtError::Status { message, .. }) => Ok(format!("{BYTES} bytes; {message}")),
        Err(error) => Err(error.into()),
        Ok(()) => {
            wait(subject, arguments.event)?;
            failed(format!("it reads {BYTES} bytes into {} of them", BYTES - 1))
        }
    }
}

/// Waits for an event that a call returned, and destroys it.
pub(super) fn wait(
    subject: &Subject,
    event: *mut serdes_abi::pjrt::args::PJRT_Event,
) -> Result<(), Failure> {
    if event.is_null() {
        return Ok(());
    }
    let mut awaited = PJRT_Event_Await_Args::new();
    awaited.event = event;
    // SAFETY: the event is alive, and owned by this function.
    let result = unsafe { subject.slots.call_with(&mut awaited) };
    let mut destroyed = PJRT_Event_Destroy_Args::new();
    destroyed.event = event;
    // SAFETY: as above, and it is not used after this call.
    unsafe { subject.slots.call_with(&mut destroyed) }?;
    Ok(result?)
}

fn read_raw(subject: &Subject) -> Verdict {
    let data = pattern(BYTES, 8);
    let buffer = subject.put(&HostArray::new(ElementType::U32, &DIMS), &data)?;
    let mut whole = vec![0; buffer.device_bytes()?];
    buffer.read_raw(0, &mut whole)?;
    for (offset, bytes) in [(0, 1), (1, 3), (4, 64), (BYTES / 2 + 1, BYTES / 2 - 1), (BYTES, 0)] {
        let mut part = vec![0; bytes];
        buffer.read_raw(offset, &mut part)?;
        same_bytes(
            &format!("{bytes} bytes from {offset} on"),
            &part,
            &whole[offset..offset + bytes],
        )?;
    }
    let order = if whole == data { "in the host's order" } else { "in an order of its own" };
    Ok(format!("{} bytes, {order}", whole.len()))
}

fn copy_to_device(subject: &Subject) -> Verdict {
    let (_, devices) = subject.devices()?;
    let data = pattern(BYTES, 9);
    let buffer = subject.put(&HostArray::new(ElementType::F32, &DIMS), &data)?;
    for device in &devices {
        let copy = buffer.copy_to(Target::Device(device))?;
        same_bytes("the copy", &copy.read()?, &data)?;
        copy.delete()?;
        if buffer.is_deleted()? {
            return failed("the array is deleted with its copy");
        }
    }
    same_bytes("the array after its copies are gone", &buffer.read()?, &data)?;
    Ok(format!("{} devices", devices.len()))
}

fn copy_to_memory(subject: &Subject) -> Verdict {
    let (_, devices) = subject.devices()?;
    let memories = devices[0].memories()?;
    if memories.is_empty() {
        return Err(Failure::Unsupported("it does not tell memories apart".to_owned()));
    }
    let data = pattern(BYTES, 10);
    let buffer = subject.put(&HostArray::new(ElementType::F32, &DIMS), &data)?;
    let mut kinds = Vec::new();
    for memory in &memories {
        let copy = buffer.copy_to(Target::Memory(memory))?;
        same_bytes("the copy", &copy.read()?, &data)?;
        kinds.push(memory.kind()?);
    }
    Ok(kinds.join(", "))
}

fn delete(subject: &Subject) -> Verdict {
    let buffer = subject.put(&HostArray::new(ElementType::F32, &DIMS), &pattern(BYTES, 11))?;
    expect("whether a new array is deleted", buffer.is_deleted()?, false)?;
    buffer.delete()?;
    buffer.delete()?;
    expect("whether it is deleted", buffer.is_deleted()?, true)?;
    let mut memory = vec![0_u8; BYTES];
    let mut arguments = PJRT_Buffer_ToHostBuffer_Args::new();
    arguments.src = buffer.raw();
    arguments.dst = memory.as_mut_ptr().cast();
    arguments.dst_size = memory.len();
    // SAFETY: the buffer is alive, although its data is not; the memory exists until the event
    // below is done.
    let read = match unsafe { subject.slots.call_with(&mut arguments) } {
        Ok(()) => wait(subject, arguments.event),
        Err(error) => Err(error.into()),
    };
    match read {
        Ok(()) => failed("it is read after it was deleted"),
        Err(Failure::Failed(said) | Failure::Unsupported(said) | Failure::NoHardware(said)) => {
            Ok(said)
        }
    }
}

fn external_references(subject: &Subject) -> Verdict {
    let data = pattern(BYTES, 12);
    let buffer = subject.put(&HostArray::new(ElementType::F32, &DIMS), &data)?;
    let mut more = PJRT_Buffer_IncreaseExternalReferenceCount_Args::new();
    more.buffer = buffer.raw();
    // SAFETY: the buffer is alive.
    unsafe { subject.slots.call_with(&mut more) }?;
    let mut less = PJRT_Buffer_DecreaseExternalReferenceCount_Args::new();
    less.buffer = buffer.raw();
    // SAFETY: as above; the reference was added just now.
    unsafe { subject.slots.call_with(&mut less) }?;
    same_bytes("the array", &buffer.read()?, &data)?;
    Ok("one, and none again".to_owned())
}
