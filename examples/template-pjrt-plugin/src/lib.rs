//! Devices with 64 MiB of memory each. `cargo build --release` makes `libtemplate_pjrt_plugin.so`,
//! which JAX and `serdes` load.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use serdes_plugin::{HostSource, HostTarget, Result, Status, pjrt};

const TOTAL: u64 = 64 << 20;

struct Template;

impl pjrt::Plugin for Template {
    type Client = Client;

    /// Creates the client. `jax` passes options on: `register_plugin(…, options={"devices": 4})`.
    fn create_client(options: &pjrt::Options) -> Result<Client> {
        options.only(&["devices"])?;
        let devices = options.integer("devices")?.unwrap_or(1);
        let devices = usize::try_from(devices).ok().filter(|devices| (1..=64).contains(devices));
        let devices = devices.ok_or_else(|| Status::invalid_argument("1 to 64 devices"))?;
        Ok(Client { devices })
    }
}

struct Client {
    devices: usize,
}

impl pjrt::Client for Client {
    type Device = Device;

    fn platform_name(&self) -> &str {
        "template"
    }
    fn platform_version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }
    fn devices(&self) -> Result<Vec<Device>> {
        Ok((0..self.devices).map(|_| Device::default()).collect())
    }
}

#[derive(Default)]
struct Device {
    /// The number of bytes in use.
    used: Arc<AtomicU64>,
}

impl pjrt::Device for Device {
    type Memory = Memory;

    fn kind(&self) -> &str {
        "template"
    }
    fn memories(&self) -> Result<Vec<Memory>> {
        Ok(vec![Memory { used: Arc::clone(&self.used) }])
    }
}

struct Memory {
    used: Arc<AtomicU64>,
}

impl pjrt::Memory for Memory {
    type Buffer = Buffer;

    fn kind(&self) -> &str {
        "device"
    }
    fn allocate(&self, size: u64) -> Result<Buffer> {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(size).filter(|used| *used <= TOTAL)
        });
        taken.map_err(|_| Status::resource_exhausted(format!("no {size} bytes are left")))?;
        Ok(Buffer { bytes: Mutex::new(vec![0; size as usize]), used: Arc::clone(&self.used) })
    }
}

/// Memory that the SDK writes, reads and copies on its own threads. A driver would be called here.
struct Buffer {
    bytes: Mutex<Vec<u8>>,
    used: Arc<AtomicU64>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes.lock().unwrap().len() as u64, Ordering::Relaxed);
    }
}

impl pjrt::Buffer for Buffer {
    fn write(&self, offset: u64, source: &HostSource) -> Result<()> {
        let start = offset as usize;
        source.read(&mut self.bytes.lock().unwrap()[start..start + source.len()])
    }
    fn read(&self, offset: u64, target: &mut HostTarget) -> Result<()> {
        let start = offset as usize;
        target.write(&self.bytes.lock().unwrap()[start..start + target.len()])
    }
}

serdes_plugin::export_pjrt!(Template);
