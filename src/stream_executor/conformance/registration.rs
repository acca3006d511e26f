//! Registration, devices, and what they say of themselves.

use super::{Behaviour, Failure, Verdict, expect, failed, first_device};
use crate::stream_executor::plugin::Plugin;

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    ("registration", registration),
    ("platform_name", platform_name),
    ("struct_sizes", struct_sizes),
    ("required_functions", required_functions),
    ("device_count", device_count),
    ("create_device", create_device),
    ("device_description", device_description),
];

fn registration(plugin: &Plugin) -> Verdict {
    let report = plugin.report();
    match report.reasons.first() {
        None => Ok(format!("layout {}", plugin.layout().name)),
        Some(reason) => failed(reason.to_string()),
    }
}

fn platform_name(plugin: &Plugin) -> Verdict {
    let platform = plugin.platform();
    Ok(format!("{} of type {}", platform.name(), platform.device_type()))
}

/// Sizes that no header has are accepted when a plug-in is loaded, and are wrong all the same.
fn struct_sizes(plugin: &Plugin) -> Verdict {
    for &(name, size) in &plugin.report().struct_sizes {
        let Some(structure) = plugin.layout().structure(name) else { continue };
        // Shorter structs are older headers'; longer ones newer.
        let known =
            structure.fields.iter().any(|field| field.end() == size) || size == structure.size_of;
        if size < structure.struct_size && !known {
            return failed(format!("{name}.struct_size is {size}, where no field of it ends"));
        }
        if size > 2048 {
            return failed(format!(
                "{name}.struct_size is {size}; {} is {}",
                structure.struct_size_macro, structure.struct_size
            ));
        }
    }
    Ok("every size is one that a header gives".to_owned())
}

fn required_functions(plugin: &Plugin) -> Verdict {
    let report = plugin.report();
    if let Some(missing) = report.missing_required.first() {
        return failed(format!("{missing} is missing"));
    }
    Ok(if report.missing_optional.is_empty() {
        "all functions are there".to_owned()
    } else {
        format!("without the optional {}", report.missing_optional.join(", "))
    })
}

fn device_count(plugin: &Plugin) -> Verdict {
    let report = plugin.report();
    match report.warnings.iter().find(|warning| warning.contains("device")) {
        Some(warning) => failed(warning.clone()),
        None => Ok(format!("{} device(s)", plugin.device_count())),
    }
}

fn create_device(plugin: &Plugin) -> Verdict {
    if plugin.device_count() == 0 {
        return failed("there is no device to try anything on");
    }
    let count = plugin.device_count().min(64);
    for ordinal in 0..count {
        let device = plugin.device(ordinal)?;
        let expected = i32::try_from(ordinal)
            .map_err(|_| Failure::Failed("more devices than a C int counts".to_owned()))?;
        expect("SP_Device.ordinal", device.written_ordinal(), expected)?;
    }
    Ok(format!("{count} device(s) made"))
}

fn device_description(plugin: &Plugin) -> Verdict {
    let description = first_device(plugin)?.description();
    if description.gflops.is_some_and(|gflops| gflops.is_nan()) {
        return failed("get_gflops gave no number");
    }
    Ok(format!(
        "name {:?}, vendor {:?}, PCI {:?}, NUMA node {}, bandwidth {:?}, gflops {:?}",
        description.hardware_name,
        description.device_vendor,
        description.pci_bus_id,
        description.numa_node,
        description.memory_bandwidth,
        description.gflops
    ))
}
