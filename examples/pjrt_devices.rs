//! Prints the devices of a PJRT plug-in, and checks that arrays of every type come back unchanged.
//!
//! ```sh
//! cargo run --example pjrt_devices -- xla_cpu_pjrt.so jaxlib-0.9.1
//! ```

use std::{env, error::Error};

use serdes_pjrt::{Client, Device, ElementType, Framework, HostArray, PjrtPlugin, Target};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().ok_or("give the path of a plug-in, and a framework")?;

    // This runs no code of the file.
    let version = serdes_pjrt::inspect(&path)?.version;
    println!("code: {:?}", version.map(|found| (found.minor.to_string(), found.struct_size)));

    let plugin = PjrtPlugin::load(&path)?;
    println!("version: {}, table of {} bytes", plugin.minor(), plugin.struct_size());
    let extensions = plugin.extensions().iter();
    let extensions: Vec<_> = extensions.map(|found| (found.number, found.struct_size)).collect();
    println!("extensions: {extensions:?}");
    println!("missing: {:?}", plugin.missing_functions().collect::<Vec<_>>());
    println!("warnings: {:?}", plugin.warnings());
    println!("attributes: {:?}", plugin.attributes());
    if let Some(name) = arguments.next() {
        let framework = Framework::named(&name).ok_or("no release of that name is known")?;
        let fit = framework.fit(&plugin.version());
        println!("{name}: {:?}", fit.reasons().iter().map(ToString::to_string).collect::<Vec<_>>());
    }

    let client = plugin.create_client(&[])?;
    println!("platform: {} {}", client.platform_name(), client.platform_version());
    for device in client.addressable_devices()? {
        let memories = device.memories()?;
        let kinds: Result<Vec<_>, _> = memories.iter().map(serdes_pjrt::Memory::kind).collect();
        println!("device {}: {} {:?}", device.id()?, device.debug_string()?, kinds?);
    }
    let device = client.addressable_devices()?.into_iter().next().ok_or("there is no device")?;
    println!("types: {}", round_trips(&client, &device)?);
    // Not every plug-in can do these, so their errors are printed.
    let in_pieces = in_pieces(&client, &device).map_err(|error| error.to_string());
    println!("in pieces: {in_pieces:?}");
    let of_one_manager = of_one_manager(&client, &device).map_err(|error| error.to_string());
    println!("of one manager: {of_one_manager:?}");
    println!("memory that comes later: {}", memory_later(&client, &device)?);
    let devices = client.topology().and_then(|topology| Ok(topology.devices()?.len()));
    println!("topology: {:?}", devices.map_err(|error| error.to_string()));
    println!("statistics: {:?}", device.memory_statistics()?);
    Ok(())
}

/// Returns the number of types that come back unchanged. Fails if one comes back changed.
fn round_trips(client: &Client, device: &Device) -> Result<usize, Box<dyn Error>> {
    let mut known = 0;
    for &element_type in ElementType::ALL {
        if element_type.number_in(client.minor()).is_none() {
            continue;
        }
        // Zeros and ones are values of every type.
        let bytes = 6 * element_type.host_bytes();
        let data: Vec<u8> = (0..bytes).map(|at| u8::from(at % 3 == 0)).collect();
        let array = HostArray::new(element_type, &[2, 3]);
        let buffer = client.put(&array, &data, Target::Device(device))?;
        if buffer.read()? != data {
            return Err(format!("{element_type} came back otherwise").into());
        }
        let copy = buffer.copy_to(Target::Device(device))?;
        let mut raw = vec![0; copy.device_bytes()?];
        copy.read_raw(0, &mut raw)?;
        let is_packed = raw.len() < bytes;
        if !is_packed && raw != data {
            return Err(format!("{element_type}: its bytes on the device are others").into());
        }
        known += 1;
    }
    Ok(known)
}

/// Returns the number of types that come back unchanged in pieces: three pieces to the device, from
/// memory that is mapped if possible, and two pieces back.
fn in_pieces(client: &Client, device: &Device) -> Result<usize, Box<dyn Error>> {
    let mut known = 0;
    for &element_type in ElementType::ALL {
        if element_type.number_in(client.minor()).is_none() || element_type.may_be_packed() {
            continue;
        }
        let bytes = 12 * element_type.host_bytes();
        let target = Target::Device(device);
        // Dropping an unfinished transfer must do no harm.
        drop(client.create_for_transfer(element_type, &[3, 4], target)?);
        let mut array = client.create_for_transfer(element_type, &[3, 4], target)?;
        let mut on_their_way = Vec::new();
        for (piece, offset) in (0..bytes).step_by(bytes / 3).enumerate() {
            let mut memory = client.allocate_host(bytes / 3)?;
            // Zeros and ones are values of every type.
            memory.fill(u8::from(piece == 1));
            on_their_way.push(array.begin_write(offset, bytes / 3, piece == 2, memory)?);
        }
        for transfer in on_their_way {
            transfer.wait()?;
        }
        let buffer = array.into_buffer()?;
        let is_row_major = buffer.is_row_major()? && buffer.device_bytes()? == bytes;
        let halves = [0, bytes / 2].map(|offset| {
            let memory = client.allocate_host(bytes / 2)?;
            buffer.begin_read_raw(offset, bytes / 2, memory)
        });
        let mut read = Vec::new();
        for half in halves {
            read.extend_from_slice(&half?.wait()?);
        }
        let expected: Vec<u8> = (0..bytes).map(|at| u8::from(at / (bytes / 3) == 1)).collect();
        if !is_row_major || read != expected || buffer.read()? != expected {
            return Err(format!("{element_type} came back otherwise in pieces").into());
        }
        known += 1;
    }
    Ok(known)
}

/// Sends an array of every type through one transfer manager, with their pieces interleaved.
fn of_one_manager(client: &Client, device: &Device) -> Result<usize, Box<dyn Error>> {
    let known = ElementType::ALL.iter().copied();
    let known = known.filter(|of| of.number_in(client.minor()).is_some() && !of.may_be_packed());
    let arrays: Vec<(ElementType, &[i64])> = known.map(|of| (of, &[2, 4][..])).collect();
    let mut incoming = client.create_all_for_transfer(&arrays, Target::Device(device))?;
    // Zeros and ones are values of every type.
    for half in [1, 0] {
        for array in &mut incoming {
            let bytes = array.host_bytes() / 2;
            array.write(half * bytes, &vec![half as u8; bytes], half == 0)?;
        }
    }
    for array in incoming {
        let bytes = array.host_bytes();
        let expected: Vec<u8> = (0..bytes).map(|at| u8::from(at >= bytes / 2)).collect();
        if array.into_buffer()?.read()? != expected {
            return Err("an array of several came back otherwise".into());
        }
    }
    Ok(arrays.len())
}

/// Checks that a raw read accepts its memory after it began, and is cancelled if it gets none.
fn memory_later(client: &Client, device: &Device) -> Result<String, Box<dyn Error>> {
    let data: Vec<u8> = (0..100).collect();
    let array = HostArray::new(ElementType::U8, &[100]);
    let buffer = client.put(&array, &data, Target::Device(device))?;
    let read = match buffer.begin_read_raw_later(10, 80) {
        Err(error) if error.is_unsupported() => return Ok("absent".to_owned()),
        read => read?,
    };
    drop(buffer.begin_read_raw_later(0, 100)?);
    let memory = read.into_memory(client.allocate_host(80)?)?.wait()?;
    Ok((memory[..] == data[10..90]).to_string())
}
