//! Arrays that are put onto a device and read: shapes, strides, and the plug-in's use of host
//! memory.

use serdes_abi::pjrt::args::{
    Arguments, PJRT_Buffer_Destroy_Args, PJRT_Client_BufferFromHostBuffer_Args,
};
use serdes_library_file::conformance::{Verdict, expect, failed, pattern, same_bytes};

use super::{
    buffers::wait,
    subject::{Behaviour, Subject},
};
use crate::{ElementType, HostArray, HostBufferSemantics, PjrtError, Target};

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "pjrt_put",
        demand: "an array comes back from the device as it went",
        run: put,
    },
    Behaviour {
        name: "pjrt_shapes",
        demand: "scalars, empty arrays and arrays of many dimensions come back",
        run: shapes,
    },
    Behaviour {
        name: "pjrt_strides",
        demand: "strides say where the elements are on the host, transposed or repeated",
        run: strides,
    },
    Behaviour {
        name: "pjrt_only_during_call",
        demand: "memory that is lent for the call may be written to after it",
        run: only_during_call,
    },
    Behaviour {
        name: "pjrt_until_transfer_completes",
        demand: "memory that is lent until the transfer completes may be freed when it has",
        run: |subject| given(subject, HostBufferSemantics::ImmutableUntilTransferCompletes),
    },
    Behaviour {
        name: "pjrt_zero_copy",
        demand: "memory that is given for the life of the array is used or copied",
        run: |subject| given(subject, HostBufferSemantics::ImmutableZeroCopy),
    },
    Behaviour {
        name: "pjrt_mutable_zero_copy",
        demand: "memory that is given to be written to is used or copied",
        run: |subject| given(subject, HostBufferSemantics::MutableZeroCopy),
    },
    Behaviour {
        name: "pjrt_unknown_type",
        demand: "an array of a type that it does not know is refused",
        run: unknown_type,
    },
];

fn put(subject: &Subject) -> Verdict {
    let (client, devices) = subject.devices()?;
    let dims = [37, 113];
    let data = pattern(37 * 113 * 4, 1);
    let array = HostArray::new(ElementType::U32, &dims);
    for device in &devices {
        let buffer = client.put(&array, &data, Target::Device(device))?;
        same_bytes("what was read", &buffer.read()?, &data)?;
    }
    Ok(format!("{} bytes on each of {} devices", data.len(), devices.len()))
}

fn shapes(subject: &Subject) -> Verdict {
    for dims in [&[][..], &[1], &[0], &[3, 0, 5], &[1, 1, 1], &[2, 1, 3, 1, 2, 1, 2, 3]] {
        let count: i64 = dims.iter().product();
        let data = pattern(usize::try_from(count).unwrap_or_default() * 2, 2);
        let array = HostArray::new(ElementType::S16, dims);
        let buffer = subject.put(&array, &data)?;
        expect("the dimensions", buffer.dims()?.as_slice(), dims)?;
        same_bytes(&format!("what was read of {dims:?}"), &buffer.read()?, &data)?;
    }
    Ok("six shapes".to_owned())
}

fn strides(subject: &Subject) -> Verdict {
    let data = pattern(6 * 4, 3);
    let element = |index: usize| &data[4 * index..4 * index + 4];
    for (dims, strides, order) in [
        ([2, 3], [12, 4], [0, 1, 2, 3, 4, 5]),
        ([3, 2], [4, 12], [0, 3, 1, 4, 2, 5]),
        ([2, 3], [0, 4], [0, 1, 2, 0, 1, 2]),
        ([2, 3], [4, 0], [0, 0, 0, 1, 1, 1]),
    ] {
        let array = HostArray::new(ElementType::S32, &dims).with_byte_strides(&strides);
        let read = match subject.put(&array, &data) {
            Ok(buffer) => buffer.read()?,
            Err(failure) => return Err(failure),
        };
        let expected: Vec<u8> = order.iter().flat_map(|&index| element(index)).copied().collect();
        same_bytes(&format!("strides {strides:?} of {dims:?}"), &read, &expected)?;
    }
    Ok("dense, transposed, and repeated both ways".to_owned())
}

fn only_during_call(subject: &Subject) -> Verdict {
    let (client, devices) = subject.devices()?;
    let dims = [1 << 16];
    let original = pattern(1 << 16, 4);
    let mut data = original.clone();
    let array = HostArray::new(ElementType::U8, &dims);
    let buffer = client.put(&array, &data, Target::Device(&devices[0]))?;
    data.fill(0xa5);
    same_bytes("what was read after the host's memory changed", &buffer.read()?, &original)?;
    Ok("the array keeps what it was".to_owned())
}

fn given(subject: &Subject, semantics: HostBufferSemantics) -> Verdict {
    let (client, devices) = subject.devices()?;
    let dims = [1 << 14];
    let data = pattern(1 << 16, 5);
    let array = HostArray::new(ElementType::F32, &dims);
    for _ in 0..3 {
        let target = Target::Device(&devices[0]);
        let buffer = match client.put_owned(&array, data.clone(), semantics, target) {
            Err(error @ PjrtError::InvalidArgument { .. }) => {
                return Err(super::subject::unsupported(error));
            }
            buffer => buffer?,
        };
        same_bytes("what was read", &buffer.read()?, &data)?;
    }
    Ok("three arrays of 64 KiB".to_owned())
}

/// Calls the plug-in directly, because the host never passes such a type.
fn unknown_type(subject: &Subject) -> Verdict {
    /// A number that is not an element type in any version.
    const UNKNOWN: i32 = 1000;
    let (client, devices) = subject.devices()?;
    let (data, dims) = ([0_u64; 8], [2_i64]);
    let mut arguments = PJRT_Client_BufferFromHostBuffer_Args::new();
    arguments.client = client.raw();
    arguments.data = data.as_ptr().cast();
    arguments.r#type = UNKNOWN;
    (arguments.dims, arguments.num_dims) = (dims.as_ptr(), dims.len());
    arguments.device = devices[0].raw();
    // SAFETY: the handles are alive, the dimension exists, and there is more data than any two
    // elements need; a plug-in that accepts it may not keep any of it, since it is lent for the
    // call.
    match unsafe { subject.slots.call_with(&mut arguments) } {
        Ok(()) if arguments.buffer.is_null() => {
            wait(subject, arguments.done_with_host_buffer)?;
            failed("it succeeds, and the array is NULL")
        }
        Ok(()) => {
            let mut destroyed = PJRT_Buffer_Destroy_Args::new();
            destroyed.buffer = arguments.buffer;
            // SAFETY: it was created just now, and has no other user.
            unsafe { subject.slots.call_with(&mut destroyed) }?;
            wait(subject, arguments.done_with_host_buffer)?;
            failed(format!("an array of type {UNKNOWN} is made"))
        }
        Err(PjrtError::Status { message, .. }) => Ok(format!("it is refused: {message}")),
        Err(error) => Err(error.into()),
    }
}
