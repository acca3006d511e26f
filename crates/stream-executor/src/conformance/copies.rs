//! Synchronous and asynchronous copies in three directions, and fills.

use super::behaviour::{Behaviour, Failure, Verdict, first_device, pattern, same_bytes};
use crate::plugin::Plugin;

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "sync_memcpy_htod",
        demand: "bytes arrive on the device when the call returns, of several sizes",
        run: sync_memcpy_htod,
    },
    Behaviour {
        name: "sync_memcpy_dtoh",
        demand: "bytes arrive on the host when the call returns, and none beside them",
        run: sync_memcpy_dtoh,
    },
    Behaviour {
        name: "sync_memcpy_dtod",
        demand: "bytes are copied on the device when the call returns",
        run: sync_memcpy_dtod,
    },
    Behaviour {
        name: "memcpy_htod",
        demand: "a stream copies bytes to the device",
        run: memcpy_htod,
    },
    Behaviour {
        name: "memcpy_dtoh",
        demand: "a stream copies bytes to the host",
        run: memcpy_dtoh,
    },
    Behaviour {
        name: "memcpy_dtod",
        demand: "a stream copies bytes on the device",
        run: memcpy_dtod,
    },
    Behaviour {
        name: "memcpy_zero_bytes",
        demand: "copies of 0 bytes do nothing",
        run: memcpy_zero_bytes,
    },
    Behaviour {
        name: "memcpy_parts",
        demand: "parts at odd offsets are copied, and nothing beside them",
        run: memcpy_parts,
    },
    Behaviour { name: "memcpy_large", demand: "8 MiB go there and back", run: memcpy_large },
    Behaviour {
        name: "memcpy_between_devices",
        demand: "a device copies from another one of the plug-in",
        run: memcpy_between_devices,
    },
    Behaviour {
        name: "mem_zero",
        demand: "a range is filled with zeros, and nothing beside it",
        run: mem_zero,
    },
    Behaviour {
        name: "memset",
        demand: "a range is filled with a byte, and nothing beside it",
        run: memset,
    },
    Behaviour {
        name: "memset32",
        demand: "a range is filled with a 32-bit pattern, and nothing beside it",
        run: memset32,
    },
    Behaviour {
        name: "fill_zero_bytes",
        demand: "fills of 0 bytes do nothing",
        run: fill_zero_bytes,
    },
];

const SIZES: [usize; 6] = [1, 3, 64, 4095, 65_536, 1_000_003];

fn sync_memcpy_htod(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    for size in SIZES {
        let bytes = pattern(size, 5);
        let memory = device.upload(&bytes)?;
        same_bytes("bytes copied there and back", &device.download(&memory)?, &bytes)?;
    }
    Ok(format!("{} sizes", SIZES.len()))
}

fn sync_memcpy_dtoh(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let bytes = pattern(100_000, 6);
    let memory = device.upload(&bytes)?;
    for size in [1usize, 64, 99_999] {
        let mut host = vec![0xee; size + 64];
        device.copy_to_host(&memory, 0, &mut host[..size])?;
        same_bytes("bytes copied to the host", &host[..size], &bytes[..size])?;
        same_bytes("bytes behind the copy", &host[size..], &[0xee; 64])?;
    }
    same_bytes("the source after copies", &device.download(&memory)?, &bytes)?;
    Ok("nothing beside the target was touched".to_owned())
}

fn sync_memcpy_dtod(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    for size in SIZES {
        let bytes = pattern(size, 7);
        let (source, target) = (device.upload(&bytes)?, device.allocate(size as u64)?);
        device.copy_on_device(&source, 0, &target, 0, size as u64)?;
        same_bytes("bytes copied on the device", &device.download(&target)?, &bytes)?;
    }
    Ok(format!("{} sizes", SIZES.len()))
}

fn memcpy_htod(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    for size in SIZES {
        let bytes = pattern(size, 8);
        let memory = device.allocate(size as u64)?;
        let mut host = device.allocate_host(size)?;
        host.copy_from_slice(&bytes);
        stream.copy_to_device(host, size, &memory, 0)?.wait()?;
        same_bytes("bytes copied to the device", &device.download(&memory)?, &bytes)?;
    }
    Ok(format!("{} sizes", SIZES.len()))
}

fn memcpy_dtoh(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    for size in SIZES {
        let bytes = pattern(size, 9);
        let memory = device.upload(&bytes)?;
        let host = device.allocate_host(size)?;
        let host = stream.copy_to_host(&memory, 0, size, host)?.wait()?;
        same_bytes("bytes copied to the host", &host, &bytes)?;
    }
    Ok(format!("{} sizes", SIZES.len()))
}

fn memcpy_dtod(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    for size in SIZES {
        let bytes = pattern(size, 10);
        let (source, target) = (device.upload(&bytes)?, device.allocate(size as u64)?);
        stream.copy_on_device(&source, 0, &target, 0, size as u64)?;
        stream.synchronize()?;
        same_bytes("bytes copied on the device", &device.download(&target)?, &bytes)?;
    }
    Ok(format!("{} sizes", SIZES.len()))
}

fn memcpy_zero_bytes(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    let memory = device.upload(b"unchanged")?;
    stream.copy_nothing(&memory)?;
    stream.synchronize()?;
    same_bytes("memory after copies of nothing", &device.download(&memory)?, b"unchanged")?;
    Ok("copies of 0 bytes in both directions do nothing".to_owned())
}

fn memcpy_parts(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    let mut expected = pattern(10_000, 11);
    let memory = device.upload(&expected)?;
    for (offset, size) in [(0usize, 1usize), (1, 3), (4_097, 1_000), (9_999, 1)] {
        let part = pattern(size, offset as u8);
        let mut host = device.allocate_host(size)?;
        host.copy_from_slice(&part);
        stream.copy_to_device(host, size, &memory, offset as u64)?.wait()?;
        expected[offset..offset + size].copy_from_slice(&part);
        let host = device.allocate_host(size)?;
        let host = stream.copy_to_host(&memory, offset as u64, size, host)?.wait()?;
        same_bytes("a part read back", &host, &part)?;
    }
    same_bytes("all of the memory", &device.download(&memory)?, &expected)?;
    Ok("parts at odd offsets".to_owned())
}

fn memcpy_large(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let size = 8 << 20;
    let bytes = pattern(size, 12);
    let memory = device.upload(&bytes)?;
    let stream = device.create_stream()?;
    let host = device.allocate_host(size)?;
    let host = stream.copy_to_host(&memory, 0, size, host)?.wait()?;
    same_bytes("8 MiB", &host, &bytes)?;
    Ok("8 MiB there and back".to_owned())
}

fn memcpy_between_devices(plugin: &Plugin) -> Verdict {
    if plugin.device_count() < 2 {
        return Err(Failure::Unsupported("the plug-in has one device".to_owned()));
    }
    let (first, second) = (plugin.device(0)?.directly(), plugin.device(1)?.directly());
    let bytes = pattern(100_000, 13);
    let source = first.upload(&bytes)?;
    let target = second.allocate(bytes.len() as u64)?;
    let stream = second.create_stream()?;
    stream.copy_on_device(&source, 0, &target, 0, bytes.len() as u64)?;
    stream.synchronize()?;
    same_bytes("bytes copied to the other device", &second.download(&target)?, &bytes)?;
    Ok("device 0 to device 1".to_owned())
}

fn mem_zero(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    let mut expected = pattern(10_000, 14);
    let memory = device.upload(&expected)?;
    stream.mem_zero(&memory, 100, 5_001)?;
    stream.synchronize()?;
    expected[100..5_101].fill(0);
    same_bytes("memory after mem_zero", &device.download(&memory)?, &expected)?;
    Ok("the range and nothing else".to_owned())
}

fn memset(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    let mut expected = pattern(10_000, 15);
    let memory = device.upload(&expected)?;
    stream.memset(&memory, 3, 4_000, 0xa5)?;
    stream.synchronize()?;
    expected[3..4_003].fill(0xa5);
    same_bytes("memory after memset", &device.download(&memory)?, &expected)?;
    Ok("the range and nothing else".to_owned())
}

fn memset32(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    let mut expected = pattern(10_000, 16);
    let memory = device.upload(&expected)?;
    stream.memset32(&memory, 64, 4_000, 0x0102_0304)?;
    stream.synchronize()?;
    for word in expected[64..4_064].chunks_exact_mut(4) {
        word.copy_from_slice(&0x0102_0304u32.to_ne_bytes());
    }
    same_bytes("memory after memset32", &device.download(&memory)?, &expected)?;
    Ok("the range and nothing else".to_owned())
}

fn fill_zero_bytes(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let stream = device.create_stream()?;
    let memory = device.upload(b"unchanged")?;
    stream.fill_nothing(&memory)?;
    stream.synchronize()?;
    same_bytes("memory after fills of nothing", &device.download(&memory)?, b"unchanged")?;
    Ok("fills of 0 bytes do nothing".to_owned())
}
