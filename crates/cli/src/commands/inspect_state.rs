//! `serdes inspect` of a device state: its writer, its readers, and the placement of its arrays.

use std::{borrow::Cow, collections::BTreeMap};

use serdes::version::{Date, DeviceState, Ifrt, Line, LineRecord, registry};
use serdes_check::{AxisSummary, Inspection, StateSummary};

use crate::{
    failure::Failure,
    terminal::{Terminal, bytes, count, shown},
};

/// Prints the facts about a state besides its tensors.
pub(super) fn show(
    inspection: &Inspection,
    state: &StateSummary,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    show_builds(inspection, terminal)?;
    show_places(state, terminal)
}

/// Prints the build that wrote a state, and the builds that read it.
fn show_builds(inspection: &Inspection, terminal: &mut Terminal) -> Result<(), Failure> {
    let recorded = |type_name: &str| {
        let nested = inspection.nested.iter().find(|nested| nested.type_name == type_name);
        nested.and_then(|nested| i32::try_from(nested.recorded?).ok())
    };
    let detail = |key: &str| inspection.details.get(key);
    let container = Numbered::of::<DeviceState>("container version");
    let specs = Numbered::of::<Ifrt>("IFRT SerDes version");
    if let Some(versions) = &inspection.versions {
        let writer = detail("written by").map_or("an unknown build", String::as_str);
        let producer = container.dated(versions.producer);
        terminal.fact("written by", format_args!("{} ({producer})", shown(writer)))?;
        let layout = recorded(DeviceState::NAME).filter(|layout| *layout != versions.producer);
        if let Some(layout) = layout {
            terminal.fact("laid out as", container.dated(layout))?;
        }
        let needs: Vec<_> =
            [(&container, Some(versions.min_consumer)), (&specs, recorded(Ifrt::NAME))]
                .into_iter()
                .filter_map(|(line, number)| Some((line, number?)))
                .collect();
        terminal.fact("read by", readers(&needs))?;
        if !versions.bad_consumers.is_empty() {
            let numbers: Vec<_> = versions.bad_consumers.iter().map(i32::to_string).collect();
            terminal.fact(
                "not read by",
                format_args!("builds of {} {}", container.title, numbers.join(", ")),
            )?;
        }
    }
    match detail("requested").and_then(|number| number.parse().ok()) {
        Some(requested) => terminal.fact("saved at", specs.dated(requested)),
        None => Ok(()),
    }
}

/// Returns the builds that support all of these versions, by day if each number is known.
fn readers(needs: &[(&Numbered, i32)]) -> String {
    let versions: Vec<String> =
        needs.iter().map(|(line, number)| format!("{} {number}", line.title)).collect();
    let versions = versions.join(", ");
    let days: Option<Vec<Date>> = needs.iter().map(|(line, number)| line.day(*number)).collect();
    match days.and_then(|days| days.into_iter().max()) {
        Some(day) => format!("builds from {day} on ({versions})"),
        None => format!("builds newer than this one ({versions})"),
    }
}

/// A line of versions, with its name in the text output.
struct Numbered {
    title: &'static str,
    line: Option<&'static LineRecord>,
}

impl Numbered {
    fn of<L: Line>(title: &'static str) -> Self {
        Self { title, line: registry().line(L::NAME) }
    }

    /// Returns the day on which a number was introduced; `None` if this build does not know it.
    fn day(&self, number: i32) -> Option<Date> {
        Some(self.line?.entry(number)?.introduced)
    }

    /// Returns a number with its day.
    fn dated(&self, number: i32) -> String {
        match self.day(number) {
            Some(day) => format!("{} {number} of {day}", self.title),
            None => format!("{} {number}, which this build does not know", self.title),
        }
    }
}

/// Prefix of the metadata keys of the Python package: JSON objects with the names of all leaves of
/// a tree.
const OF_THE_PACKAGE: &str = "serdes_ml.";

/// Prefix of the metadata keys with which a server records the owner of an array, followed by the
/// array's name.
const OF_A_SERVER: &str = "serdes.state.owner/";

/// Prints the owners of a server's arrays, one line per session.
fn show_owners(state: &StateSummary, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut sessions: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (key, owner) in &state.metadata {
        let Some(name) = key.strip_prefix(OF_A_SERVER) else { continue };
        let session = name.split_once('/').map_or(name, |(session, _)| session);
        *sessions.entry((session, owner)).or_default() += 1;
    }
    for ((session, owner), arrays) in sessions {
        let arrays = count(arrays, "array");
        terminal.fact("owner", format_args!("{arrays} of {}: {}", shown(session), shown(owner)))?;
    }
    Ok(())
}

/// Returns the first characters of a text.
fn beginning(text: &str) -> Cow<'_, str> {
    const SHOWN: usize = 100;
    if text.chars().nth(SHOWN).is_none() {
        return text.into();
    }
    text.chars().take(SHOWN).chain(['…']).collect::<String>().into()
}

/// Prints the devices of a state, and the placement of its arrays.
fn show_places(state: &StateSummary, terminal: &mut Terminal) -> Result<(), Failure> {
    if let Some(part) = &state.part {
        terminal.fact("part", format_args!("{} of {} of {}", part.number, part.count, part.id))?;
    }
    if state.parts > 0 {
        terminal.fact("parts", state.parts)?;
    }
    for (key, value) in state.metadata.iter().filter(|(key, _)| !key.starts_with(OF_A_SERVER)) {
        let value =
            if key.starts_with(OF_THE_PACKAGE) { beginning(value) } else { Cow::from(value) };
        terminal.fact("metadata", format_args!("{} = {}", shown(key), shown(&value)))?;
    }
    show_owners(state, terminal)?;
    terminal.fact("pieces", state.pieces)?;
    for device in &state.devices {
        let pieces = count(device.pieces, "piece");
        let size = bytes(device.bytes);
        terminal.fact("device", format_args!("{}: {pieces}, {size}", device.id))?;
    }
    for mesh in &state.meshes {
        let axis = |axis: &AxisSummary| match &axis.name {
            Some(name) => format!("{}={}", shown(name), axis.size),
            None => axis.size.to_string(),
        };
        let axes: Vec<String> = mesh.axes.iter().map(axis).collect();
        let devices = count(mesh.devices.len() as u64, "device");
        terminal.fact("mesh", format_args!("{} of {devices}", axes.join(" x ")))?;
    }
    for sharding in &state.shardings {
        let tensors = count(sharding.tensors, "tensor");
        terminal.fact("sharding", format_args!("{tensors}: {}", shown(&sharding.sharding)))?;
    }
    Ok(())
}
