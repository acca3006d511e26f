//! Shardings, and the meshes whose axes they name.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    flatbuffer::{ReadError, Table},
    profile::ReaderProfile,
    refusal::{Refusal, Result},
};
use crate::{excerpt::excerpt, release::Deserializer, rule::Rule};

const PLACE: &str = "a sharding";
const MESH: &str = "a mesh";

/// Types of axes.
const EXPLICIT: i8 = 2;
const MANUAL: i8 = 3;

/// Parts of a device kind that identify its platform, used if nothing else does.
const DEVICE_KINDS: [&str; 5] = ["cpu", "tpu", "nvidia", "tesla", "amd"];

#[derive(Clone, Debug)]
pub(super) enum Sharding {
    Unspecified,
    /// An `xla.OpSharding`.
    Hlo,
    Named(Arc<NamedSharding>),
}

#[derive(Debug)]
pub(super) struct NamedSharding {
    /// Smallest number of dimensions of a value with this sharding.
    pub(super) partitioned: usize,
    /// The text that describes it; empty if it is not kept.
    text: Arc<str>,
}

#[derive(Debug)]
pub(super) struct Mesh<'a> {
    /// Names and types of the axes, sorted by name.
    axes: Vec<(&'a str, i8)>,
    /// The text that describes it; empty if it is not kept.
    text: String,
    pub(super) has_device_platform: bool,
}

/// Approximate limit on the length of descriptions, in bytes.
const LONGEST: usize = 512;

impl Sharding {
    pub(super) fn text(&self) -> Option<Arc<str>> {
        match self {
            Self::Unspecified => None,
            Self::Hlo => Some("an HloSharding".into()),
            Self::Named(sharding) => Some(Arc::clone(&sharding.text)),
        }
    }
}

/// Reads the sharding of an argument or a result.
pub(super) fn read(
    sharding: Table<'_, '_>,
    meshes: &[Mesh<'_>],
    profile: &ReaderProfile<'_>,
    place: &'static str,
) -> Result<Sharding> {
    if profile.deserializer < Deserializer::Named {
        return match Refusal::at(sharding.i8(0), place)? {
            0 => Ok(Sharding::Unspecified),
            1 => Refusal::at(sharding.needed_numbers(1, 1), place).map(|_| Sharding::Hlo),
            kind => {
                let message = format!("{place} are of kind {kind}, and this release takes 0 and 1");
                let rule = if kind > 1 { Rule::TooNew } else { Rule::Corrupt };
                Err(Refusal::new(rule, kind.to_string(), "0..1", message, place))
            }
        };
    }
    if let Some(named) = Refusal::at(sharding.table(2), place)? {
        return read_named(named, meshes, profile).map(|named| Sharding::Named(Arc::new(named)));
    }
    if Refusal::at(sharding.vector_is_there(1), place)? {
        if profile.deserializer >= Deserializer::Expiring && !profile.is_lenient {
            return Err(Refusal::expired("a sharding that is an HloSharding"));
        }
        Refusal::at(sharding.needed_numbers(1, 1), place)?;
        return Ok(Sharding::Hlo);
    }
    Ok(Sharding::Unspecified)
}

pub(super) fn read_named(
    sharding: Table<'_, '_>,
    meshes: &[Mesh<'_>],
    profile: &ReaderProfile<'_>,
) -> Result<NamedSharding> {
    Refusal::at(sharding.keep(32), PLACE)?;
    let of_file;
    let mesh = if meshes.is_empty() {
        let mesh = Refusal::at(sharding.needed_table(0), PLACE)?;
        of_file = read_mesh(mesh, profile)?;
        &of_file
    } else {
        let index = Refusal::at(sharding.u32(3), PLACE)?;
        let mesh = meshes.get(usize::try_from(index).unwrap_or(usize::MAX));
        mesh.ok_or_else(|| Refusal::index(PLACE, "meshes"))?
    };
    let (partitions, reduced, unreduced) = Refusal::at(read_spec(sharding), PLACE)?;
    Refusal::at(sharding.string(2), PLACE)?;
    check(mesh, &partitions, reduced.iter().chain(&unreduced), profile)?;
    let used = partitions.iter().rposition(|axes| !axes.is_empty());
    let mut text = String::new();
    if profile.is_lenient {
        add_axes(&mut text, partitions.iter().map(Vec::as_slice));
        text += " of ";
        text += &mesh.text;
        for (name, axes) in [(", reduced ", &reduced), (", unreduced ", &unreduced)] {
            if !axes.is_empty() {
                text += name;
                add_axes(&mut text, [axes.as_slice()].into_iter());
            }
        }
    }
    let partitioned = used.map_or(0, |last| last.saturating_add(1));
    Ok(NamedSharding { partitioned, text: text.into() })
}

/// Adds the axes of each dimension to a description, up to its limit.
fn add_axes<'s>(text: &mut String, dimensions: impl Iterator<Item = &'s [&'s str]>) {
    for (number, axes) in dimensions.enumerate() {
        text.push_str(if number > 0 { "][" } else { "[" });
        for axis in axes {
            if text.len() >= LONGEST {
                return;
            }
            text.push_str(excerpt(axis, LONGEST));
            text.push(' ');
        }
        if text.ends_with(' ') {
            text.pop();
        }
    }
    text.push(']');
}

type Spec<'a> = (Vec<Vec<&'a str>>, Vec<&'a str>, Vec<&'a str>);

/// Returns the axes of each dimension, and the reduced and unreduced ones.
fn read_spec<'a>(sharding: Table<'_, 'a>) -> std::result::Result<Spec<'a>, ReadError> {
    let spec = sharding.needed_table(1)?;
    let list = spec.vector(0)?;
    let mut partitions = Vec::new();
    for index in 0..list.len() {
        partitions.push(list.table(index)?.vector(0)?.strings()?);
    }
    Ok((partitions, spec.vector(1)?.strings()?, spec.vector(2)?.strings()?))
}

/// Checks that a mesh has the axes that a sharding names, each at most once.
fn check<'a>(
    mesh: &Mesh<'_>,
    partitions: &[Vec<&'a str>],
    reductions: impl Iterator<Item = &'a &'a str>,
    profile: &ReaderProfile<'_>,
) -> Result<()> {
    if profile.is_lenient {
        return Ok(());
    }
    let mut seen = BTreeSet::new();
    for axis in partitions.iter().flatten() {
        let is_there = mesh.types_of(axis).next().is_some();
        if !is_there || !seen.insert(*axis) {
            let what = if is_there { "twice" } else { "which the mesh does not have" };
            let message = format!("a sharding names the axis {axis}, {what}");
            let expected = "axes of the mesh, each at most once";
            return Err(Refusal::new(Rule::Corrupt, *axis, expected, message, PLACE));
        }
    }
    let takes_manual = profile.deserializer < Deserializer::Tables;
    let mut seen = BTreeSet::new();
    for axis in reductions.filter(|axis| seen.insert(**axis)) {
        let fits = |of: i8| of == EXPLICIT || (of == MANUAL && takes_manual);
        if !mesh.types_of(axis).any(fits) {
            let message = format!(
                "a sharding is reduced or unreduced along {axis}, which is no explicit axis of the mesh"
            );
            let expected = "explicit axes of the mesh";
            return Err(Refusal::new(Rule::Corrupt, *axis, expected, message, PLACE));
        }
    }
    Ok(())
}

impl Mesh<'_> {
    /// Returns the types of the axes with that name.
    fn types_of(&self, name: &str) -> impl Iterator<Item = i8> {
        let first = self.axes.partition_point(|(other, _)| *other < name);
        let rest = self.axes.get(first..).unwrap_or_default();
        rest.iter().take_while(move |(other, _)| *other == name).map(|(_, of)| *of)
    }
}

pub(super) fn read_mesh<'a>(mesh: Table<'_, 'a>, profile: &ReaderProfile<'_>) -> Result<Mesh<'a>> {
    Refusal::at(mesh.keep(96), MESH)?;
    let sizes = Refusal::at(mesh.vector(0), MESH)?;
    let names = Refusal::at(mesh.vector(1), MESH)?;
    let types = Refusal::at(mesh.vector(2), MESH)?;
    let counts = (names.len(), types.len(), sizes.len());
    if (counts.0 != counts.1 || counts.0 != counts.2) && !profile.is_lenient {
        let found = format!("{} names, {} types and {} sizes", counts.0, counts.1, counts.2);
        let message = format!("a mesh has {found} of axes");
        return Err(Refusal::new(Rule::Corrupt, found, "as many of each", message, MESH));
    }
    let (mut axes, mut text) = (Vec::new(), "[".to_owned());
    for index in 0..counts.0.min(counts.1).min(counts.2) {
        let size = Refusal::at(sizes.u32(index), MESH)?;
        let name = Refusal::at(names.string(index), MESH)?;
        let of = Refusal::at(types.i8(index), MESH)?;
        if !(1..=3).contains(&of) && !profile.is_lenient {
            let message =
                format!("an axis of a mesh is of type {of}, and this release knows 1 to 3");
            let rule = if of > 3 { Rule::TooNew } else { Rule::Corrupt };
            return Err(Refusal::new(rule, of.to_string(), "1..3", message, MESH));
        }
        axes.push((name, of));
        if profile.is_lenient && text.len() < LONGEST {
            let comma = if index > 0 { ", " } else { "" };
            let name = excerpt(name, LONGEST);
            text += &format!("{comma}{name}={size}");
        }
    }
    text.push(']');
    axes.sort_unstable();
    let has_device_platform = read_device(mesh, profile)?;
    Ok(Mesh { axes, text, has_device_platform })
}

/// Reads the optional device of a mesh; returns true if it names its platform.
fn read_device(mesh: Table<'_, '_>, profile: &ReaderProfile<'_>) -> Result<bool> {
    if profile.deserializer < Deserializer::NamedWithDevice {
        return Ok(false);
    }
    let place = "the device of a mesh";
    let Some(device) = Refusal::at(mesh.table(3), place)? else { return Ok(false) };
    let kind = Refusal::at(device.needed_string(0), place)?;
    Refusal::at(device.u32(1), place)?;
    if profile.deserializer < Deserializer::Leaves {
        return Ok(false);
    }
    let platform = Refusal::at(device.string(2), place)?;
    let lower = kind.to_lowercase();
    if platform.is_none_or(str::is_empty)
        && !DEVICE_KINDS.iter().any(|word| lower.contains(word))
        && !profile.is_lenient
    {
        let message = format!(
            "the device of a mesh is of the kind {kind}, which says nothing of its platform"
        );
        let expected = "a platform, or a kind with cpu, tpu, nvidia, tesla or amd in it";
        return Err(Refusal::new(Rule::Corrupt, kind, expected, message, place));
    }
    Ok(platform.is_some())
}
