//! Clients, their options, devices, memories, and the topology.

use std::collections::BTreeSet;

use serdes_abi::pjrt::args::{
    Arguments, PJRT_Client_Create_Args, PJRT_Client_Destroy_Args, PJRT_Client_LookupDevice_Args,
    PJRT_Client_TopologyDescription_Args, PJRT_NamedValue,
    PJRT_TopologyDescription_PlatformName_Args,
};
use serdes_library_file::conformance::{Failure, Verdict, expect, failed};

use super::subject::{Behaviour, Subject};
use crate::{Device, Memory, PjrtError, Value, host::border};

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "pjrt_client",
        demand: "a client can be created, and says the name of its platform",
        run: client,
    },
    Behaviour {
        name: "pjrt_client_after_another",
        demand: "a client can be created and destroyed beside another",
        run: another_client,
    },
    Behaviour {
        name: "pjrt_unknown_option",
        demand: "an option that it does not know is refused or passed over",
        run: unknown_option,
    },
    Behaviour {
        name: "pjrt_option_of_another_type",
        demand: "an option of another type than its own is refused or passed over",
        run: option_of_another_type,
    },
    Behaviour {
        name: "pjrt_devices",
        demand: "devices have numbers of their own, and those of this process are among all",
        run: devices,
    },
    Behaviour {
        name: "pjrt_lookup_device",
        demand: "a device is found by its number",
        run: lookup_device,
    },
    Behaviour {
        name: "pjrt_memories",
        demand: "a device's memories have kinds, and its default memory is one of them",
        run: memories,
    },
    Behaviour {
        name: "pjrt_topology",
        demand: "the topology of a client is of the client's platform",
        run: topology,
    },
];

fn client(subject: &Subject) -> Verdict {
    let client = subject.client()?;
    if client.platform_name().is_empty() {
        return failed("its platform has no name");
    }
    Ok(format!("{} ({})", client.platform_name(), client.platform_version()))
}

fn another_client(subject: &Subject) -> Verdict {
    let first = subject.client()?;
    let second = subject.plugin.create_client(&subject.options)?;
    expect("its platform", second.platform_name(), first.platform_name())?;
    drop(second);
    let devices = first.devices()?.len();
    Ok(format!("the first one has its {devices} devices still"))
}

fn unknown_option(subject: &Subject) -> Verdict {
    subject.client()?;
    let option = ("serdes_no_such_option".to_owned(), Value::Integer(1));
    let options: Vec<_> = subject.options.iter().cloned().chain([option]).collect();
    match subject.plugin.create_client(&options) {
        Ok(_) => Ok("it is passed over".to_owned()),
        Err(PjrtError::Status { message, .. }) => Ok(format!("it is refused: {message}")),
        Err(error) => Err(error.into()),
    }
}

/// Calls the plug-in directly, because the host knows the types of some options and refuses others.
fn option_of_another_type(subject: &Subject) -> Verdict {
    subject.client()?;
    let (name, text) = ("cpu_device_count", "four");
    let mut option = PJRT_NamedValue {
        struct_size: size_of::<PJRT_NamedValue>(),
        extension_start: std::ptr::null_mut(),
        name: name.as_ptr().cast(),
        name_size: name.len(),
        r#type: 0,
        value: text.as_ptr().expose_provenance() as u64,
        value_size: text.len(),
    };
    let mut arguments = PJRT_Client_Create_Args::new();
    arguments.create_options = &raw mut option;
    arguments.num_options = 1;
    // SAFETY: there is one option, a text, and everything that it points to is valid for the call.
    match unsafe { subject.slots.call_with(&mut arguments) } {
        Ok(()) if arguments.client.is_null() => failed("it succeeds, and the client is NULL"),
        Ok(()) => {
            let mut destroyed = PJRT_Client_Destroy_Args::new();
            destroyed.client = arguments.client;
            // SAFETY: it was created just now, and has no other user.
            unsafe { subject.slots.call_with(&mut destroyed) }?;
            Ok("it is passed over".to_owned())
        }
        Err(PjrtError::Status { message, .. }) => Ok(format!("it is refused: {message}")),
        Err(error) => Err(error.into()),
    }
}

fn devices(subject: &Subject) -> Verdict {
    let (client, ours) = subject.devices()?;
    let ids = |devices: &[Device]| devices.iter().map(Device::id).collect::<Result<Vec<i32>, _>>();
    let (all, ours_ids) = (ids(&client.devices()?)?, ids(&ours)?);
    let distinct: BTreeSet<i32> = all.iter().copied().collect();
    expect("different numbers of devices", distinct.len(), all.len())?;
    if let Some(strange) = ours_ids.iter().find(|id| !distinct.contains(id)) {
        return failed(format!("device {strange} of this process is not among all devices"));
    }
    for device in &ours {
        if !device.is_addressable()? {
            return failed(format!("device {} of this process is not its", device.id()?));
        }
        expect("the process of a device", device.process_index()?, client.process_index())?;
        device.local_hardware_id().map(drop).or_else(unless_unsupported)?;
        device.kind()?;
        device.debug_string()?;
    }
    Ok(format!("{} of {} are of this process, each a {}", ours.len(), all.len(), ours[0].kind()?))
}

/// Ignores the error of a missing optional function: only a behaviour that requires it fails then.
fn unless_unsupported(error: PjrtError) -> Result<(), PjrtError> {
    if error.is_unsupported() { Ok(()) } else { Err(error) }
}

fn lookup_device(subject: &Subject) -> Verdict {
    let (client, devices) = subject.devices()?;
    for device in &devices {
        let mut arguments = PJRT_Client_LookupDevice_Args::new();
        arguments.client = client.raw();
        arguments.id = device.id()?;
        // SAFETY: the client is alive.
        unsafe { subject.slots.call_with(&mut arguments) }?;
        expect("the device of that number", arguments.device, device.raw())?;
    }
    Ok(format!("{} devices", devices.len()))
}

fn memories(subject: &Subject) -> Verdict {
    let (_, devices) = subject.devices()?;
    let mut kinds = Vec::new();
    for device in &devices {
        let memories = device.memories()?;
        let Some(default) = device.default_memory()? else {
            return Err(Failure::Unsupported("it does not tell memories apart".to_owned()));
        };
        if !memories.iter().any(|memory| memory.raw() == default.raw()) {
            return failed("the default memory of a device is not among its memories");
        }
        kinds = memories.iter().map(Memory::kind).collect::<Result<_, _>>()?;
        if kinds.iter().any(String::is_empty) {
            return failed("a memory has no kind");
        }
    }
    Ok(kinds.join(", "))
}

fn topology(subject: &Subject) -> Verdict {
    let client = subject.client()?;
    let mut arguments = PJRT_Client_TopologyDescription_Args::new();
    arguments.client = client.raw();
    // SAFETY: the client is alive; it owns the topology.
    unsafe { subject.slots.call_with(&mut arguments) }?;
    if arguments.topology.is_null() {
        return failed("the topology is NULL");
    }
    let mut name = PJRT_TopologyDescription_PlatformName_Args::new();
    name.topology = arguments.topology;
    // SAFETY: the client owns the topology, and is alive.
    unsafe { subject.slots.call_with(&mut name) }?;
    let (call, start) = ("PJRT_TopologyDescription_PlatformName", name.platform_name);
    // SAFETY: the plug-in declares this length in bytes; the bytes belong to the topology.
    let name = unsafe { border::text(call, "its text", start, name.platform_name_size) }?;
    expect("its platform", name.as_str(), client.platform_name())?;
    Ok(name)
}
