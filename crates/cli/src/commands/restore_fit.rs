//! `serdes restore --dry-run`: the fit of a state with the devices of a plug-in, without a byte
//! moved.

use serde_json::{Value, json};
use serdes_device_state::Tensor;
use serdes_pjrt::{Client, ElementType, MemorySpace};
use serdes_stream_executor::Device;

use super::{
    device::{self, OpenDevice},
    plugin_opening,
    restore_needs::Needs,
    save,
};
use crate::{
    arguments::RestoreArguments,
    failure::Failure,
    status::ExitStatus,
    terminal::{BAD, GOOD, NAME, Terminal, WARN, bytes, count, json_of_path, shown_path},
};

/// Devices that are listed for people before the rest is only counted.
const LISTED: usize = 8;

/// Offer of a plug-in.
struct Offer {
    /// Bytes that are free on each device of this process, in the plug-in's order; `None` where it
    /// does not say.
    free: Vec<Option<u64>>,
    /// Devices of all processes.
    devices: usize,
    /// Element types that its version has; `None` if it takes bytes of any.
    types: Option<Vec<&'static str>>,
}

impl Offer {
    fn of(open: &OpenDevice) -> Result<Self, Failure> {
        match open {
            OpenDevice::StreamExecutor(plugin, _) => {
                let devices = plugin.device_count();
                let free = (0..devices)
                    .map(|ordinal| plugin.device(ordinal).map(|device| free_of(&device)));
                let free = free.collect::<Result<_, _>>().map_err(plugin_opening::failure)?;
                Ok(Self { free, devices, types: None })
            }
            OpenDevice::Pjrt(space) => Self::of_client(space.client()),
        }
    }

    fn of_client(client: &Client) -> Result<Self, Failure> {
        let spaces = client.memory_spaces().map_err(device::failure)?;
        let minor = client.minor();
        let types = ElementType::ALL.iter().filter(|known| known.number_in(minor).is_some());
        Ok(Self {
            free: spaces.iter().map(free_of_space).collect(),
            devices: client.devices().map_err(device::failure)?.len(),
            types: Some(types.map(|known| known.name()).collect()),
        })
    }

    fn has_type(&self, name: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&name))
    }
}

/// Bytes that are free on a device, if its plug-in says so.
fn free_of(device: &Device) -> Option<u64> {
    if let Ok(Some(usage)) = device.memory_usage() {
        return u64::try_from(usage.free).ok();
    }
    let stats = device.allocator_stats().ok()??;
    let free = stats.bytes_limit?.checked_sub(stats.bytes_in_use)?;
    u64::try_from(free).ok()
}

fn free_of_space(space: &MemorySpace) -> Option<u64> {
    let stats = space.device().memory_statistics().ok()??;
    let free = stats.bytes_limit?.checked_sub(stats.bytes_in_use)?;
    u64::try_from(free).ok()
}

/// Bytes that a device needs, and those that it offers.
#[derive(Clone, Copy)]
struct Memory {
    /// The ordinal of the device; `None` if the plug-in has too few.
    device: Option<usize>,
    /// The id of the device that the state was saved from.
    saved_from: i32,
    needed: u64,
    offered: Option<u64>,
}

impl Memory {
    /// `None` if the device is not there, or does not say what it has.
    fn fits(self) -> Option<bool> {
        self.offered.map(|offered| self.needed <= offered)
    }
}

/// Comparison of the needs of a state with the offer of a plug-in.
struct Fit {
    needs: Needs,
    offer: Offer,
    memory: Vec<Memory>,
    /// All arrays as wholes on the device that `--device` names.
    one: Memory,
}

impl Fit {
    fn of(needs: Needs, offer: Offer, ordinal: usize) -> Self {
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

    /// Types that the plug-in does not have.
    fn missing_types(&self) -> Vec<&'static str> {
        let types = self.needs.types.iter().copied();
        types.filter(|name| !self.offer.has_type(name)).collect()
    }

    fn has_types(&self) -> bool {
        self.missing_types().is_empty()
    }

    fn has_mesh(&self) -> bool {
        self.needs.devices.len() <= self.offer.devices
    }

    /// False if a device has too little; `None` if one does not say what it has, and none has too
    /// little.
    fn has_memory(&self) -> Option<bool> {
        let mut there = self.memory.iter().filter(|one| one.device.is_some());
        if there.clone().any(|one| one.fits() == Some(false)) {
            return Some(false);
        }
        there.all(|one| one.fits().is_some()).then_some(true)
    }

    fn is_yes(&self) -> bool {
        self.has_types() && self.has_mesh() && self.has_memory() != Some(false)
    }

    fn object(&self, arguments: &RestoreArguments, platform: &str) -> Value {
        let device = |one: &Memory| {
            json!({
                "device": one.device,
                "saved_from": one.saved_from,
                "needed": one.needed,
                "offered": one.offered,
                "fits": one.fits(),
            })
        };
        let devices: Vec<_> = self.memory.iter().map(device).collect();
        json!({
            "path": json_of_path(&arguments.file),
            "dry_run": true,
            "plugin": platform,
            "fits": self.is_yes(),
            "tensors": self.needs.tensors,
            "bytes": self.needs.bytes,
            "host_bytes": self.needs.host_bytes,
            "types": {
                "fits": self.has_types(),
                "needed": self.needs.types,
                "offered": self.offer.types,
                "missing": self.missing_types(),
            },
            "mesh": {
                "fits": self.has_mesh(),
                "needed": self.needs.devices.len(),
                "offered": self.offer.devices,
            },
            "memory": { "fits": self.has_memory(), "devices": devices },
            "one_device": {
                "fits": self.one.fits(),
                "device": self.one.device,
                "needed": self.one.needed,
                "offered": self.one.offered,
            },
        })
    }

    fn print(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        self.print_types(terminal)?;
        let (needed, offered) = (self.needs.devices.len() as u64, self.offer.devices as u64);
        print(
            terminal,
            "mesh",
            Some(self.has_mesh()),
            format_args!("{} needed, {offered} offered", count(needed, "device")),
        )?;
        self.print_memory(terminal)?;
        if self.needs.host_bytes > 0 {
            let strings = bytes(self.needs.host_bytes);
            terminal.fact("on the host", format_args!("{strings} of strings"))?;
        }
        Ok(())
    }

    fn print_types(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let needed: Vec<_> = self.needs.types.iter().copied().collect();
        let offered = match &self.offer.types {
            None => "any offered".to_owned(),
            Some(_) if self.has_types() => "all offered".to_owned(),
            Some(types) => format!(
                "not offered: {}; offered: {}",
                self.missing_types().join(", "),
                types.join(", ")
            ),
        };
        let needed = if needed.is_empty() { "none".to_owned() } else { needed.join(", ") };
        print(terminal, "types", Some(self.has_types()), format_args!("{needed} needed, {offered}"))
    }

    /// Prints the memory of each device, those with the least room first.
    fn print_memory(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut there: Vec<_> = self.memory.iter().filter(|one| one.device.is_some()).collect();
        there.sort_by_key(|one| {
            i128::from(one.offered.unwrap_or(u64::MAX)) - i128::from(one.needed)
        });
        for one in there.iter().take(LISTED) {
            print(terminal, "memory", one.fits(), words(one))?;
        }
        match there.len().checked_sub(LISTED) {
            Some(more) if more > 0 => {
                let more = count(more as u64, "device");
                terminal.fact("memory", format_args!("{more} more, with more room"))
            }
            _ => Ok(()),
        }
    }

    /// The way onto one device, if the state fits there and not as it was saved.
    fn hint(&self) -> Option<String> {
        (!self.is_yes() && self.has_types() && self.one.fits() == Some(true))
            .then(|| format!("`serdes restore` without --dry-run puts whole arrays onto one device, which fits: {}", words(&self.one)))
    }
}

/// Both values of a device's memory.
fn words(one: &Memory) -> String {
    let device = one.device.map_or_else(String::new, |device| format!("device {device}: "));
    let offered = match one.offered {
        Some(offered) => format!("{} free", bytes(offered)),
        None => "the plug-in does not say how much is free".to_owned(),
    };
    format!("{device}{} needed, {offered}", bytes(one.needed))
}

/// A line of the answer.
fn print(
    terminal: &mut Terminal,
    label: &str,
    fits: Option<bool>,
    values: impl std::fmt::Display,
) -> Result<(), Failure> {
    let (style, word) = match fits {
        Some(true) => (GOOD, "fits"),
        Some(false) => (BAD, "does not fit"),
        None => (WARN, "unknown"),
    };
    terminal.fact(label, format_args!("{style}{word}{style:#}: {values}"))
}

/// Answers if the tensors fit the devices of the plug-in, as they were saved.
pub(super) fn answer(
    arguments: &RestoreArguments,
    tensors: &[Tensor],
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let open = device::open(&arguments.device)?;
    let ordinal = usize::try_from(arguments.device.device).unwrap_or_default();
    let fit = Fit::of(Needs::of(tensors), Offer::of(&open)?, ordinal);
    let platform = open.platform_name();
    say(&fit, arguments, &platform, terminal)?;
    let status = if fit.is_yes() { ExitStatus::Success } else { ExitStatus::Negative };
    save::done(status);
    Ok(status)
}

/// Prints the answer.
fn say(
    fit: &Fit,
    arguments: &RestoreArguments,
    platform: &str,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.object(&fit.object(arguments, platform));
    }
    let (style, word) = if fit.is_yes() { (GOOD, "fits") } else { (BAD, "does not fit") };
    terminal.line(format_args!(
        "{NAME}{}{NAME:#} {style}{word}{style:#} {platform}: {}, {}",
        shown_path(&arguments.file),
        count(fit.needs.tensors, "tensor"),
        bytes(fit.needs.bytes)
    ))?;
    fit.print(terminal)?;
    if let Some(hint) = fit.hint() {
        terminal.note(hint);
    }
    Ok(())
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
        // Not as wholes on one of them.
        assert_eq!(even.one.fits(), Some(false));
        let uneven = fit(&[(4, 10), (7, 11)], &[Some(10), Some(10)]);
        assert_eq!((uneven.has_memory(), uneven.is_yes()), (Some(false), false));
        assert_eq!(uneven.memory[1].device, Some(1));
    }

    #[test]
    fn memory_that_nobody_tells_is_no_refusal() {
        let untold = fit(&[(0, 10), (1, 10)], &[Some(10), None]);
        assert_eq!((untold.has_memory(), untold.is_yes()), (None, true));
        assert_eq!(fit(&[(0, 10), (1, 10)], &[Some(9), None]).has_memory(), Some(false));
    }

    #[test]
    fn too_few_devices_are_a_refusal_and_one_may_do() {
        let few = fit(&[(0, 10), (1, 10)], &[Some(20)]);
        assert!(!few.has_mesh() && !few.is_yes());
        assert_eq!(few.memory[1].device, None);
        assert!(few.hint().unwrap().contains("device 0: 20 B needed, 20 B free"));
        assert_eq!(fit(&[(0, 10), (1, 10)], &[Some(19)]).hint(), None);
    }

    #[test]
    fn types_that_the_version_of_a_plug_in_lacks_are_named() {
        let mut found = fit(&[(0, 1)], &[None]);
        assert!(found.has_types());
        found.offer.types = Some(vec!["F32"]);
        assert_eq!((found.missing_types(), found.is_yes()), (vec!["BF16"], false));
    }
}
