//! Opens the plug-in of the first argument (default `host`), copies bytes to its first device and
//! back, and prints the device.
//!
//! It needs no linker flags and no build script: the library provides the status functions that
//! plug-ins call.

use std::process::ExitCode;

use serdes_stream_executor::{Error, LayoutChoice, Plugin};

fn round_trip(name: &str) -> Result<String, Error> {
    let plugin = Plugin::open(name, LayoutChoice::Detect)?;
    let device = plugin.device(0)?;
    let bytes: Vec<u8> = (0..1_000_000u32).map(|index| (index * 31) as u8).collect();
    let memory = device.upload(&bytes)?;
    let stream = device.create_stream()?;
    let host = device.allocate_host(bytes.len())?;
    let host = stream.copy_to_host(&memory, 0, bytes.len(), host)?.wait()?;
    let verdict = if host[..] == bytes { "the same" } else { "different" };
    Ok(format!(
        "{} ({}): {} bytes came back {verdict}",
        plugin.platform().name(),
        plugin.layout().name,
        host.len()
    ))
}

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_else(|| "host".to_owned());
    match round_trip(&name) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
