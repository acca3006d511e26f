//! Compares the needs of a state with the resources of devices, without moving data.

use serdes_pjrt::{Client, ElementType, MemorySpace, PjrtError};
use serdes_stream_executor::{Device, Error, Plugin};

use super::needs::Needs;

/// Resources that devices offer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Free bytes on each device of this process, in order; `None` if a device does not report
    /// them.
    pub free: Vec<Option<u64>>,
    /// Number of devices of all processes.
    pub devices: usize,
    /// Supported element types; `None` if the devices take bytes of any type.
    pub types: Option<Vec<&'static str>>,
}

impl Offer {
    /// Returns the offer of a StreamExecutor plug-in.
    ///
    /// # Errors
    /// The error of [`Plugin::device`] for the first device that does not open.
    pub fn of_plugin(plugin: &Plugin) -> Result<Self, Error> {
        let devices = plugin.device_count();
        let free = (0..devices).map(|ordinal| plugin.device(ordinal).map(|one| free_of(&one)));
        Ok(Self { free: free.collect::<Result<_, _>>()?, devices, types: None })
    }

    /// Returns the offer of a client of a PJRT plug-in: its version determines the types.
    ///
    /// # Errors
    /// The error of the plug-in if it cannot list its memory spaces or devices.
    pub fn of_client(client: &Client) -> Result<Self, PjrtError> {
        let spaces = client.memory_spaces()?;
        let minor = client.minor();
        let types = ElementType::ALL.iter().filter(|known| known.number_in(minor).is_some());
        Ok(Self {
            free: spaces.iter().map(free_of_space).collect(),
            devices: client.devices()?.len(),
            types: Some(types.map(|known| known.name()).collect()),
        })
    }

    fn has_type(&self, name: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&name))
    }
}

/// Returns the free bytes of a device, if its plug-in reports them.
fn free_of(device: &Device) -> Option<u64> {
    if let Ok(Some(usage)) = device.memory_usage() {
        return u64::try_from(usage.free).ok();
    }
    let stats = device.allocator_stats().ok()??;
    left(stats.bytes_limit?, stats.bytes_in_use)
}

/// Returns the free bytes of a memory space, if its plug-in reports them.
fn free_of_space(space: &MemorySpace) -> Option<u64> {
    let stats = space.device().memory_statistics().ok()??;
    left(stats.bytes_limit?, stats.bytes_in_use)
}

/// Returns the unused part of a limit in bytes; `None` for inconsistent numbers.
fn left(limit: i64, in_use: i64) -> Option<u64> {
    u64::try_from(limit.checked_sub(in_use)?).ok()
}

/// Needed and offered memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Number of the device; `None` if there are too few devices.
    pub device: Option<usize>,
    /// Id of the device that the state was saved from.
    pub saved_from: i32,
    /// Needed bytes.
    pub needed: u64,
    /// Free bytes; `None` if the device does not report them.
    pub offered: Option<u64>,
}

impl Memory {
    /// Returns true if the memory suffices; `None` if the device is missing or does not report its
    /// memory.
    #[must_use]
    pub fn fits(self) -> Option<bool> {
        self.offered.map(|offered| self.needed <= offered)
    }
}

/// Comparison of the needs of a state with the offer of devices.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Needs of the state.
    pub needs: Needs,
    /// Offer of the devices.
    pub offer: Offer,
    /// Memory of each device that the state uses, compared in order with the offered devices.
    pub memory: Vec<Memory>,
    /// Memory of one device that holds all arrays unsharded.
    pub one: Memory,
}

impl Fit {
    /// Compares needs and offer; `ordinal` is the device for all arrays unsharded.
    #[must_use]
    pub fn of(needs: Needs, offer: Offer, ordinal: usize) -> Self {
        let memory = needs.devices.iter().enumerate();
        let memory = memory.map(|(at, (saved_from, needed))| Memory {
            device: (at < offer.devices).then_some(at),
            saved_from: *saved_from,
            needed: *needed,
            offered: offer.free.get(at).copied().flatten(),
        });
        let one = Memory {
            device: Some(ordinal),
            saved_from: 0,
            needed: needs.bytes,
            offered: offer.free.get(ordinal).copied().flatten(),
        };
        Self { memory: memory.collect(), one, needs, offer }
    }

    /// Returns the needed types that are not offered.
    #[must_use]
    pub fn missing_types(&self) -> Vec<&'static str> {
        let types = self.needs.types.iter().copied();
        types.filter(|name| !self.offer.has_type(name)).collect()
    }

    /// Returns true if all types are offered.
    #[must_use]
    pub fn has_types(&self) -> bool {
        self.missing_types().is_empty()
    }

    /// Returns true if there are as many devices as the state uses.
    #[must_use]
    pub fn has_mesh(&self) -> bool {
        self.needs.devices.len() <= self.offer.devices
    }

    /// Returns false if a device has too little memory; `None` if none has too little but one does
    /// not report it.
    #[must_use]
    pub fn has_memory(&self) -> Option<bool> {
        let mut there = self.memory.iter().filter(|one| one.device.is_some());
        if there.clone().any(|one| one.fits() == Some(false)) {
            return Some(false);
        }
        there.all(|one| one.fits().is_some()).then_some(true)
    }

    /// Returns true if no mismatch is known.
    #[must_use]
    pub fn is_yes(&self) -> bool {
        self.has_types() && self.has_mesh() && self.has_memory() != Some(false)
    }

    /// Returns true if the state fits unsharded on one device, but not as it was saved.
    #[must_use]
    pub fn fits_one_device_alone(&self) -> bool {
        !self.is_yes() && self.has_types() && self.one.fits() == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(needs: &[(i32, u64)], free: &[Option<u64>]) -> Fit {
        let needs = Needs {
            tensors: 1,
            bytes: needs.iter().map(|(_, bytes)| bytes).sum(),
            types: ["BF16", "F32"].into(),
            devices: needs.iter().copied().collect(),
            ..Needs::default()
        };
        let offer = Offer { free: free.to_vec(), devices: free.len(), types: None };
        Fit::of(needs, offer, 0)
    }

    #[test]
    fn each_device_is_judged_by_its_own_bytes() {
        let even = fit(&[(4, 10), (7, 10)], &[Some(10), Some(10)]);
        assert!(even.is_yes());
        // They do not all fit on one device.
        assert_eq!(even.one.fits(), Some(false));
        let uneven = fit(&[(4, 10), (7, 11)], &[Some(10), Some(10)]);
        assert_eq!((uneven.has_memory(), uneven.is_yes()), (Some(false), false));
        assert_eq!(uneven.memory[1].device, Some(1));
    }

    #[test]
    fn memory_that_is_unknown_is_no_refusal() {
        let untold = fit(&[(0, 10), (1, 10)], &[Some(10), None]);
        assert_eq!((untold.has_memory(), untold.is_yes()), (None, true));
        assert_eq!(fit(&[(0, 10), (1, 10)], &[Some(9), None]).has_memory(), Some(false));
    }

    #[test]
    fn too_few_devices_are_a_refusal_and_one_may_do() {
        let few = fit(&[(0, 10), (1, 10)], &[Some(20)]);
        assert!(!few.has_mesh() && !few.is_yes());
        assert_eq!(few.memory[1].device, None);
        assert!(few.fits_one_device_alone());
        assert!(!fit(&[(0, 10), (1, 10)], &[Some(19)]).fits_one_device_alone());
    }

    #[test]
    fn types_that_the_version_of_a_plug_in_lacks_are_named() {
        let mut found = fit(&[(0, 1)], &[None]);
        assert!(found.has_types());
        found.offer.types = Some(vec!["F32"]);
        assert_eq!((found.missing_types(), found.is_yes()), (vec!["BF16"], false));
    }
}
