//! `serdes restore --dry-run`: checks if a state fits the devices of a plug-in, without moving
//! data.

use serde_json::json;
use serdes_device_state::Tensor;
use serdes_tensors::transfers::{Fit, Memory, Needs, Offer};

use super::{
    device::{self, OpenDevice},
    plugin_opening, save,
};
use crate::{
    arguments::RestoreArguments,
    failure::Failure,
    objects,
    status::ExitStatus,
    terminal::{BAD, GOOD, NAME, Terminal, WARN, bytes, count, json_of_path, shown_path},
};

/// Maximum number of devices in the text output, after which the rest is only counted.
const LISTED: usize = 8;

/// Returns the offer of the plug-in.
fn offer(open: &OpenDevice) -> Result<Offer, Failure> {
    match open {
        OpenDevice::StreamExecutor(plugin, _) => {
            Offer::of_plugin(plugin).map_err(plugin_opening::failure)
        }
        OpenDevice::Pjrt(space) => Offer::of_client(space.client()).map_err(device::failure),
    }
}

/// Prints the parts of the answer.
fn print_parts(fit: &Fit, terminal: &mut Terminal) -> Result<(), Failure> {
    print_types(fit, terminal)?;
    let (needed, offered) = (fit.needs.devices.len() as u64, fit.offer.devices as u64);
    print(
        terminal,
        "mesh",
        Some(fit.has_mesh()),
        format_args!("{} needed, {offered} offered", count(needed, "device")),
    )?;
    print_memory(fit, terminal)?;
    if fit.needs.host_bytes > 0 {
        let strings = bytes(fit.needs.host_bytes);
        terminal.fact("on the host", format_args!("{strings} of strings"))?;
    }
    Ok(())
}

fn print_types(fit: &Fit, terminal: &mut Terminal) -> Result<(), Failure> {
    let needed: Vec<_> = fit.needs.types.iter().copied().collect();
    let offered = match &fit.offer.types {
        None => "any offered".to_owned(),
        Some(_) if fit.has_types() => "all offered".to_owned(),
        Some(types) => format!(
            "not offered: {}; offered: {}",
            fit.missing_types().join(", "),
            types.join(", ")
        ),
    };
    let needed = if needed.is_empty() { "none".to_owned() } else { needed.join(", ") };
    print(terminal, "types", Some(fit.has_types()), format_args!("{needed} needed, {offered}"))
}

/// Prints the memory of each device, those with the least room first.
fn print_memory(fit: &Fit, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut there: Vec<_> = fit.memory.iter().filter(|one| one.device.is_some()).collect();
    there.sort_by_key(|one| i128::from(one.offered.unwrap_or(u64::MAX)) - i128::from(one.needed));
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

/// Suggests one device, if the state fits there but not as it was saved.
fn hint(fit: &Fit) -> Option<String> {
    fit.fits_one_device_alone().then(|| {
        format!(
            "`serdes restore` without --dry-run puts whole arrays onto one device, which fits: {}",
            words(&fit.one)
        )
    })
}

/// Formats needed and free memory of a device.
fn words(one: &Memory) -> String {
    let device = one.device.map_or_else(String::new, |device| format!("device {device}: "));
    let offered = match one.offered {
        Some(offered) => format!("{} free", bytes(offered)),
        None => "the plug-in does not say how much is free".to_owned(),
    };
    format!("{device}{} needed, {offered}", bytes(one.needed))
}

/// Prints a line of the answer.
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

/// Checks if the tensors fit the devices of the plug-in as they were saved, and prints the result.
pub(super) fn answer(
    arguments: &RestoreArguments,
    tensors: &[Tensor],
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    let open = device::open(&arguments.device)?;
    let ordinal = usize::try_from(arguments.device.device).unwrap_or_default();
    let fit = Fit::of(Needs::of(tensors), offer(&open)?, ordinal);
    let platform = open.platform_name();
    print_fit(&fit, arguments, &platform, terminal)?;
    let status = if fit.is_yes() { ExitStatus::Success } else { ExitStatus::Negative };
    save::done(status);
    Ok(status)
}

/// Prints if the state fits, and the mismatches, as JSON or text.
fn print_fit(
    fit: &Fit,
    arguments: &RestoreArguments,
    platform: &str,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if terminal.json() {
        let mut object = objects::fit(fit);
        if let Some(fields) = object.as_object_mut() {
            fields.insert("path".to_owned(), json_of_path(&arguments.file));
            fields.insert("dry_run".to_owned(), json!(true));
            fields.insert("plugin".to_owned(), json!(platform));
        }
        return terminal.object(&object);
    }
    let (style, word) = if fit.is_yes() { (GOOD, "fits") } else { (BAD, "does not fit") };
    terminal.line(format_args!(
        "{NAME}{}{NAME:#} {style}{word}{style:#} {platform}: {}, {}",
        shown_path(&arguments.file),
        count(fit.needs.tensors, "tensor"),
        bytes(fit.needs.bytes)
    ))?;
    print_parts(fit, terminal)?;
    if let Some(hint) = hint(fit) {
        terminal.note(hint);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_has_both_values_of_the_one_device() {
        let fit = |free| {
            let devices = [(0, 10), (1, 10)].into();
            let needs = Needs { tensors: 1, bytes: 20, devices, ..Needs::default() };
            Fit::of(needs, Offer { free: vec![Some(free)], devices: 1, types: None }, 0)
        };
        let said = hint(&fit(20)).unwrap();
        assert!(said.contains("device 0: 20 B needed, 20 B free"), "{said}");
        assert_eq!(hint(&fit(19)), None);
    }
}
