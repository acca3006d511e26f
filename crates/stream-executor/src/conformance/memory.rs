//! Allocation of device, host and unified memory, and the plug-in's statistics.

use std::ptr;

use serdes_abi::SP_DeviceMemoryBase;

use super::behaviour::{
    Behaviour, Failure, Verdict, expect, failed, first_device, pattern, same_bytes,
};
use crate::{border::StructMemory, device::Device, error::Error, plugin::Plugin};

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "allocate",
        demand: "allocate writes address, size and struct_size, for odd sizes too",
        run: allocate,
    },
    Behaviour {
        name: "deallocate",
        demand: "what is freed can be had again: a thousand times 64 KiB",
        run: deallocate,
    },
    Behaviour {
        name: "deallocate_null",
        demand: "freeing memory whose address is NULL does nothing",
        run: deallocate_null,
    },
    Behaviour {
        name: "allocate_zero_bytes",
        demand: "asking for 0 bytes gives NULL or an address, and no crash",
        run: allocate_zero_bytes,
    },
    Behaviour {
        name: "allocate_alignment",
        demand: "device memory is aligned to 64 bytes at least, as TensorFlow needs it",
        run: allocate_alignment,
    },
    Behaviour {
        name: "allocations_are_apart",
        demand: "32 allocations keep their own bytes",
        run: allocations_are_apart,
    },
    Behaviour {
        name: "out_of_memory",
        demand: "asking for 2^60 bytes gives NULL, and the device works on",
        run: out_of_memory,
    },
    Behaviour {
        name: "host_memory",
        demand: "host_memory_allocate gives memory that can be written to its end",
        run: host_memory,
    },
    Behaviour {
        name: "unified_memory",
        demand: "a platform that says it has unified memory gives some",
        run: unified_memory,
    },
    Behaviour {
        name: "allocator_stats",
        demand: "statistics follow an allocation, or are not available (false)",
        run: allocator_stats,
    },
    Behaviour {
        name: "memory_usage",
        demand: "free bytes are no more than all bytes, or not available (false)",
        run: memory_usage,
    },
];

/// Returns the struct that `allocate` fills in for `bytes` bytes.
fn raw_allocate(device: &Device, bytes: u64) -> Result<SP_DeviceMemoryBase, Failure> {
    let filled = StructMemory::new(SP_DeviceMemoryBase::STRUCT_SIZE);
    let memory = filled.as_ptr::<SP_DeviceMemoryBase>();
    let calls = device.calls();
    // SAFETY: the device is alive, and the memory of the struct zeroed and longer than the struct.
    unsafe { calls.allocate(bytes, memory) }?;
    // SAFETY: it holds a whole struct, whose fields hold any bytes.
    Ok(unsafe { memory.read() })
}

/// Frees memory of [`raw_allocate`]; returns the struct after `deallocate`.
fn raw_deallocate(device: &Device, base: SP_DeviceMemoryBase) -> SP_DeviceMemoryBase {
    let filled = StructMemory::new(SP_DeviceMemoryBase::STRUCT_SIZE);
    let memory = filled.as_ptr::<SP_DeviceMemoryBase>();
    let calls = device.calls();
    // SAFETY: it holds the struct; the memory came from `raw_allocate` or is NULL, and is no longer
    // used.
    unsafe {
        memory.write(base);
        calls.deallocate(memory);
        memory.read()
    }
}

fn allocate(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    for bytes in [1, 7, 4096, 1_000_003] {
        let base = raw_allocate(&device, bytes)?;
        if base.opaque.is_null() {
            return failed(format!("allocate gave NULL for {bytes} bytes"));
        }
        let (size, struct_size) = (base.size, base.struct_size);
        raw_deallocate(&device, base);
        if size < bytes {
            return failed(format!("SP_DeviceMemoryBase.size is {size} after {bytes} bytes"));
        }
        if struct_size == 0 {
            return failed("SP_DeviceMemoryBase.struct_size is 0 after allocate");
        }
    }
    Ok("address and size are written".to_owned())
}

fn deallocate(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let before = device.memory_usage()?;
    for _ in 0..1000 {
        let base = raw_allocate(&device, 1 << 16)?;
        if base.opaque.is_null() {
            return failed("allocate gave NULL for 65536 bytes");
        }
        raw_deallocate(&device, base);
    }
    let after = device.memory_usage()?;
    if let (Some(before), Some(after)) = (before, after)
        && after.total == before.total
        && before.free - after.free > 500 << 16
    {
        return failed(format!(
            "1000 times 64 KiB allocated and freed cost {} bytes of free memory",
            before.free - after.free
        ));
    }
    Ok("1000 times 64 KiB allocated and freed".to_owned())
}

fn deallocate_null(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    raw_deallocate(
        &device,
        SP_DeviceMemoryBase {
            struct_size: SP_DeviceMemoryBase::STRUCT_SIZE,
            ext: ptr::null_mut(),
            opaque: ptr::null_mut(),
            size: 0,
            payload: 0,
        },
    );
    Ok("nothing happens".to_owned())
}

fn allocate_zero_bytes(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let base = raw_allocate(&device, 0)?;
    let given = if base.opaque.is_null() { "NULL" } else { "an address" };
    raw_deallocate(&device, base);
    Ok(format!("0 bytes gave {given}"))
}

fn allocate_alignment(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let mut alignment = u64::MAX;
    for bytes in [1, 64, 100, 4096, 65_537] {
        let memory = device.allocate(bytes)?;
        let own = 1 << memory.address().trailing_zeros().min(20);
        alignment = alignment.min(own);
        if own < 64 {
            return failed(format!(
                "{bytes} bytes at {:#x}, which is aligned to {own}; TensorFlow asks for 64",
                memory.address()
            ));
        }
    }
    Ok(format!("at least {alignment} bytes"))
}

fn allocations_are_apart(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let mut memories = Vec::new();
    for index in 0..32u8 {
        memories.push((index, device.upload(&pattern(1000 + usize::from(index), index))?));
    }
    for (index, memory) in &memories {
        let expected = pattern(1000 + usize::from(*index), *index);
        same_bytes("memory written before others", &device.download(memory)?, &expected)?;
    }
    Ok("32 allocations keep their own bytes".to_owned())
}

fn out_of_memory(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    // More than any device has, and not a size that overflows when it is rounded up.
    let bytes = 1 << 60;
    match device.allocate(bytes) {
        Err(Error::OutOfMemory { .. }) => {}
        Err(other) => return Err(other.into()),
        Ok(_) => return failed(format!("allocate gave an address for {bytes} bytes")),
    }
    let memory = device.upload(b"still working")?;
    same_bytes("memory after a failed allocation", &device.download(&memory)?, b"still working")?;
    Ok("NULL for 2^60 bytes, and memory for less afterwards".to_owned())
}

fn host_memory(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let mut pinned = true;
    for bytes in [1usize, 4096, 1 << 20] {
        let mut memory = device.allocate_host(bytes)?;
        pinned &= memory.is_pinned();
        memory.fill(0x5a);
        expect("the last byte", memory[bytes - 1], 0x5a)?;
    }
    if pinned {
        Ok("allocated, written and freed".to_owned())
    } else {
        Err(Failure::Unsupported("the plug-in has no host_memory_allocate".to_owned()))
    }
}

fn unified_memory(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    if !plugin.platform().supports_unified_memory() {
        return Err(Failure::Unsupported("the platform does not support it".to_owned()));
    }
    let mut memory = device.allocate_unified(10_000)?;
    let bytes = pattern(10_000, 3);
    memory.copy_from_slice(&bytes);
    same_bytes("unified memory", &memory, &bytes)?;
    Ok("allocated, written, read and freed".to_owned())
}

fn allocator_stats(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let Some(before) = device.allocator_stats()? else {
        return Err(Failure::Unsupported("not available (false)".to_owned()));
    };
    let memory = device.allocate(1 << 16)?;
    let Some(during) = device.allocator_stats()? else {
        return failed("available before an allocation, and not after it");
    };
    drop(memory);
    if during.num_allocs < before.num_allocs || during.bytes_in_use < 0 {
        return failed(format!(
            "{} allocations and {} bytes in use before an allocation, {} and {} after it",
            before.num_allocs, before.bytes_in_use, during.num_allocs, during.bytes_in_use
        ));
    }
    if during.bytes_limit.is_some_and(|limit| limit < during.bytes_in_use) {
        return failed(format!(
            "{} bytes are in use, more than the limit of {}",
            during.bytes_in_use,
            during.bytes_limit.unwrap_or_default()
        ));
    }
    Ok(format!("{} bytes in use, {} allocations", during.bytes_in_use, during.num_allocs))
}

fn memory_usage(plugin: &Plugin) -> Verdict {
    let device = first_device(plugin)?;
    let Some(usage) = device.memory_usage()? else {
        return Err(Failure::Unsupported("not available (false)".to_owned()));
    };
    if usage.free < 0 || usage.total < usage.free {
        return failed(format!("{} bytes free of {}", usage.free, usage.total));
    }
    Ok(format!("{} bytes free of {}", usage.free, usage.total))
}
