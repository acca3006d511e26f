//! Registration, devices, and their descriptions.

use super::behaviour::{Behaviour, Failure, Verdict, counted, expect, failed, first_device};
use crate::plugin::Plugin;

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "registration",
        demand: "SE_InitPlugin leaves a platform that the host accepts",
        run: registration,
    },
    Behaviour {
        name: "platform_name",
        demand: "the platform says its name and the type of its devices",
        run: platform_name,
    },
    Behaviour {
        name: "struct_sizes",
        demand: "every struct_size is one that a published header gives, or a longer one",
        run: struct_sizes,
    },
    Behaviour {
        name: "required_functions",
        demand: "every function that hosts require is there",
        run: required_functions,
    },
    Behaviour {
        name: "device_count",
        demand: "the devices can be counted, and there is one",
        run: device_count,
    },
    Behaviour {
        name: "create_device",
        demand: "every device can be made, and keeps its ordinal",
        run: create_device,
    },
    Behaviour {
        name: "device_description",
        demand: "names, NUMA node, bandwidth and gflops of a device are readable",
        run: device_description,
    },
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

/// Checks the struct sizes: unknown ones are accepted when a plug-in is loaded, but they are wrong.
fn struct_sizes(plugin: &Plugin) -> Verdict {
    for &(name, size) in &plugin.report().struct_sizes {
        let Some(structure) = plugin.layout().structure(name) else { continue };
        // Shorter structs come from older headers, longer ones from newer headers.
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
        Some(warning) if plugin.device_count() == 0 => Err(Failure::NoHardware(warning.clone())),
        Some(warning) => failed(warning.clone()),
        None if plugin.device_count() == 0 => {
            Err(Failure::NoHardware("the plug-in counts 0 devices".to_owned()))
        }
        None => Ok(counted(plugin.device_count(), "device")),
    }
}

fn create_device(plugin: &Plugin) -> Verdict {
    let count = plugin.device_count().min(64);
    for ordinal in 0..count {
        let device = plugin.device(ordinal)?;
        let expected = i32::try_from(ordinal)
            .map_err(|_| Failure::Failed("more devices than a C int counts".to_owned()))?;
        expect("SP_Device.ordinal", device.written_ordinal(), expected)?;
    }
    Ok(format!("{} made", counted(count, "device")))
}

fn device_description(plugin: &Plugin) -> Verdict {
    let description = first_device(plugin)?.description();
    if description.gflops.is_some_and(|gflops| gflops.is_nan()) {
        return failed("get_gflops gave no number");
    }
    let text = |text: Option<String>| text.unwrap_or_else(|| "not told".to_owned());
    let number = |number: Option<String>, unit: &str| {
        number.map_or_else(|| "not told".to_owned(), |number| format!("{number} {unit}"))
    };
    let node = match description.numa_node {
        -1 => "not told".to_owned(),
        node => node.to_string(),
    };
    Ok(format!(
        "hardware {}, vendor {}, PCI bus {}, NUMA node {node}, bandwidth {}, speed {}",
        text(description.hardware_name),
        text(description.device_vendor),
        text(description.pci_bus_id),
        number(description.memory_bandwidth.map(|bytes| bytes.to_string()), "bytes/s"),
        number(description.gflops.map(|gflops| gflops.to_string()), "gflops"),
    ))
}
