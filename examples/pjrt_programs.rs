//! Compiles a program for the devices of a PJRT plug-in, runs it, loads it again from its own
//! bytes, and runs it once more.
//!
//! ```sh
//! cargo run --example pjrt_programs -- xla_cpu_pjrt.so program.json
//! ```
//!
//! The file has the program and its arguments for each device, and the output is such a line too:
//! `{"code": "<hex>", "replicas": 4, "partitions": 1, "gives": [0], "arguments": [[{"type": "F32",
//! "dims": [2], "data": "<hex>"}, ...], ...], "custom_calls": [{"target": "f", "platform": "Host",
//! "library": "f.so", "symbol": "f"}]}`.

use std::{env, error::Error, fmt::Write as _, fs};

use serde_json::{Value, json};
use serdes_pjrt::{
    Argument, Buffer, Client, CompileOptions, ElementType, ExecuteOptions, HostArray,
    LoadedExecutable, PjrtPlugin, Program, ProgramFormat, Target,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().ok_or("give the path of a plug-in, and a program")?;
    let program = fs::read(arguments.next().ok_or("give a program")?)?;
    let program: Value = serde_json::from_slice(&program)?;

    let plugin = PjrtPlugin::load(&path)?;
    for call in list(&program["custom_calls"]) {
        let text = |name: &str| call[name].as_str().ok_or("a custom call is not whole");
        plugin.register_custom_call(
            text("target")?,
            text("platform")?,
            text("library")?,
            text("symbol")?,
        )?;
    }
    let client = plugin.create_client(&[])?;
    let count = |name: &str| program[name].as_u64().and_then(|count| u32::try_from(count).ok());
    let (replicas, partitions) = (count("replicas"), count("partitions"));
    let options = CompileOptions::new(replicas.unwrap_or(1), partitions.unwrap_or(1))?;
    let code = of_hex(program["code"].as_str().ok_or("there is no code")?)?;
    let loaded = client.compile(&Program::new(&code, ProgramFormat::Mlir), &options)?;
    let first = run(&client, &loaded, &program)?;
    let bytes = loaded.executable().serialize()?;
    let again = run(&client, &client.load_serialized(&bytes, None)?, &program)?;

    // Compiled without a client, and then loaded into it.
    let topology = client.topology()?;
    let compiled = topology.compile(&Program::new(&code, ProgramFormat::Mlir), &options);
    let ahead = match compiled.and_then(|compiled| client.load(&compiled)) {
        Ok(loaded) if run(&client, &loaded, &program)? == first => "same".to_owned(),
        Ok(_) => "other outputs".to_owned(),
        Err(error) if error.is_unsupported() => "UNIMPLEMENTED".to_owned(),
        Err(error) => error.to_string(),
    };

    let executable = loaded.executable();
    let count = |shardings: Option<Vec<Vec<u8>>>| shardings.map(|shardings| shardings.len());
    let shardings = executable
        .parameter_shardings()
        .and_then(|parameters| Ok([count(parameters), count(executable.output_shardings()?)]));
    let types: Vec<_> = executable.output_types()?.iter().map(|found| found.name()).collect();
    println!(
        "{}",
        json!({
            "name": executable.name()?,
            "devices": loaded.device_assignment().ok(),
            "types": types,
            "dims": executable.output_dims()?,
            "kinds": executable.output_memory_kinds().ok(),
            "output_layouts": executable.output_layouts().ok(),
            "parameter_layouts": executable.parameter_layouts().ok(),
            "fingerprint": executable.fingerprint().map(|text| !text.is_empty()).ok(),
            "costs": executable.cost_analysis().map(|costs| costs.len()).ok(),
            "arguments": executable.memory().map(|memory| memory.arguments).ok(),
            "optimised": executable.optimized_program().map(|found| found.format).ok(),
            "same_when_loaded_again": first == again,
            "outputs": first.outputs,
            "given": first.kept_is_there,
            "ahead": ahead,
            "shardings": shardings.ok(),
        })
    );
    Ok(())
}

/// Result of a run.
#[derive(PartialEq)]
struct Run {
    /// The outputs of each device.
    outputs: Vec<Vec<String>>,
    /// True if the arguments that were not donated still exist.
    kept_is_there: bool,
}

fn run(client: &Client, loaded: &LoadedExecutable, program: &Value) -> Result<Run, Box<dyn Error>> {
    let none = Vec::new();
    let gives = program["gives"].as_array().unwrap_or(&none);
    let mut buffers = Vec::new();
    for (device, arrays) in loaded.addressable_devices().iter().zip(list(&program["arguments"])) {
        let target = Target::Device(device);
        let put = list(&arrays)
            .iter()
            .map(|array| put(client, array, target))
            .collect::<Result<Vec<_>, _>>();
        buffers.push(put?);
    }
    // The run consumes donated buffers; kept ones are checked after it.
    let mut kept: Vec<Vec<Option<Buffer>>> = Vec::new();
    let mut given: Vec<Vec<Option<Buffer>>> = Vec::new();
    for list in buffers {
        let split = list.into_iter().enumerate().map(|(at, buffer)| {
            let is_given = gives.iter().any(|index| index.as_u64() == Some(at as u64));
            if is_given { (None, Some(buffer)) } else { (Some(buffer), None) }
        });
        let (of_kept, of_given) = split.unzip();
        kept.push(of_kept);
        given.push(of_given);
    }
    let arguments = kept.iter().zip(&mut given).map(|(kept, given)| {
        let pairs = kept.iter().zip(given);
        pairs.filter_map(|(kept, given)| match kept {
            Some(buffer) => Some(Argument::Kept(buffer)),
            None => given.take().map(Argument::Given),
        })
    });
    let arguments = arguments.map(Iterator::collect).collect();
    let execution = loaded.execute(arguments, &ExecuteOptions::new())?;
    execution.wait()?;
    let outputs = execution.outputs().iter().map(|outputs| {
        outputs.iter().map(|output| Ok(to_hex(&output.read()?))).collect::<Result<Vec<_>, _>>()
    });
    let outputs = outputs.collect::<Result<Vec<_>, serdes_pjrt::PjrtError>>()?;
    let mut kept_is_there = true;
    for buffer in kept.iter().flatten().flatten() {
        kept_is_there &= !buffer.is_deleted()?;
    }
    Ok(Run { outputs, kept_is_there })
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn put(client: &Client, array: &Value, target: Target<'_>) -> Result<Buffer, Box<dyn Error>> {
    let name = array["type"].as_str().ok_or("an argument has no type")?;
    let element_type = ElementType::of_name(name).ok_or("an argument has an unknown type")?;
    let dims = array["dims"].as_array().ok_or("an argument has no dimensions")?;
    let dims: Vec<i64> = dims.iter().filter_map(Value::as_i64).collect();
    let data = of_hex(array["data"].as_str().ok_or("an argument has no data")?)?;
    Ok(client.put(&HostArray::new(element_type, &dims), &data, target)?)
}

fn of_hex(text: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let digits: Vec<char> = text.chars().collect();
    let bytes =
        digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16));
    Ok(bytes.collect::<Result<_, _>>()?)
}

fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
