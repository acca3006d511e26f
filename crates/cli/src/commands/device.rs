//! The device of a command, from a plug-in of either interface.

use std::path::Path;

use serdes_pjrt::{Client, MemorySpace, PjrtError, PjrtPlugin, Value};
use serdes_stream_executor::{Device, Plugin, with_time_limit};

use super::plugin_opening;
use crate::{
    arguments::DeviceArguments, failure::Failure, plugin_argument::PluginArgument, terminal::count,
};

/// An open device of a plug-in.
pub(crate) enum OpenDevice {
    /// A device of a StreamExecutor plug-in.
    StreamExecutor(Plugin, Device),
    /// A device of a PJRT client: its default memory.
    Pjrt(MemorySpace),
}

impl OpenDevice {
    /// Returns the name of the platform as the plug-in gives it.
    pub(crate) fn platform_name(&self) -> String {
        match self {
            Self::StreamExecutor(plugin, _) => plugin.platform().name().to_owned(),
            Self::Pjrt(space) => space.client().platform_name().to_owned(),
        }
    }
}

/// Opens the plug-in and the device of the arguments.
pub(crate) fn open(arguments: &DeviceArguments) -> Result<OpenDevice, Failure> {
    let ordinal = usize::try_from(arguments.device)
        .map_err(|_| Failure::new("--device: an ordinal is 0 or more"))?;
    let layout = arguments.layout.as_deref();
    let opened = match PluginArgument::parse(&arguments.plugin)? {
        PluginArgument::StreamExecutor(name) => {
            let plugin = plugin_opening::open(&name, layout)?;
            let device = plugin.device(ordinal).map_err(plugin_opening::failure)?;
            OpenDevice::StreamExecutor(plugin, device)
        }
        PluginArgument::Pjrt { path, options } => {
            let client = open_client(&path, options, layout)?;
            OpenDevice::Pjrt(memory_space(&client, ordinal)?)
        }
    };
    #[cfg(target_os = "linux")]
    crate::process_settings::put_back();
    Ok(opened)
}

/// Loads a PJRT plug-in and creates a client of it.
pub(crate) fn open_client(
    path: &Path,
    options: Vec<(String, Value)>,
    layout: Option<&str>,
) -> Result<Client, Failure> {
    if layout.is_some() {
        return Err(Failure::new(format_args!(
            "--layout names a layout of the StreamExecutor interface, and {} is a PJRT plug-in",
            path.display()
        )));
    }
    let file = path.to_path_buf();
    let created = with_time_limit(plugin_opening::OPENING_LIMIT, move || {
        PjrtPlugin::load(file)?.create_client(&options)
    });
    created.map_err(plugin_opening::failure)?.map_err(failure)
}

/// Returns the default memory of the device with this ordinal among the addressable devices.
fn memory_space(client: &Client, ordinal: usize) -> Result<MemorySpace, Failure> {
    let devices = client.addressable_devices().map_err(failure)?;
    let Some(device) = devices.get(ordinal) else {
        return Err(Failure::new(format_args!(
            "--device {ordinal}: {} has {}, the first of which is 0",
            client.platform_name(),
            count(devices.len() as u64, "device")
        )));
    };
    MemorySpace::of(device).map_err(failure)
}

/// Converts an error of a PJRT plug-in: a refused plug-in is an answer, everything else a failure.
pub(crate) fn failure(error: PjrtError) -> Failure {
    match error {
        PjrtError::NotAPlugin { .. }
        | PjrtError::BadTable { .. }
        | PjrtError::OtherMajor { .. }
        | PjrtError::TooOld { .. } => Failure::no(error),
        error => Failure::of(error),
    }
}
