//! Encoding of plans, whose mappings each have six lists of numbers.

use std::borrow::Cow;

use super::{DevicesByOutput, InputDevices, Interval, Mapping, RemapPlan, mappings::Mappings};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats,
        fields::{Fields, Joined},
        wire_format::{Encoded, WireFormat, described_by_bytes, read_all, write_all},
    },
    ifrt::{ArraySpec, DeserializeShardingOptions, DeviceList, IfrtError},
    proto::xla::ifrt::RemapPlanProto,
    version::SerDesVersion,
    wire::{
        BackwardWriter,
        packed::{self, PackedNumber as _},
        varint,
    },
};

const FORMATS: Formats = Formats::of("RemapPlan");

/// The first format in which a plan is written as input devices; older ones have mappings.
const BY_DEVICES: i32 = FORMATS.number(6);

/// The approximate size in bytes of an encoded mapping.
const MAPPING_BYTES: usize = 32;

described_by_bytes! {
    /// Below version 6, writes format 0 with mappings, which are derived from the input devices if
    /// there are none. The input devices that the plan was made with are written too, as real
    /// builds do. Since version 6, writes format 6 with input devices only: those that the plan was
    /// made with, and for other outputs those derived from its mappings. A plan whose mappings and
    /// devices contradict each other is refused at every version, because old readers use the
    /// mappings and new readers the devices.
    ToProto,
    /// Accepts 0 to 6, as upstream does; in strict mode only the formats 0 and 6, and only plans
    /// that are [valid](RemapPlan::validate). Lists of a mapping that differ in length are
    /// INTERNAL. Needs [`DeserializeShardingOptions`].
    FromProto for RemapPlan as RemapPlanProto
}

impl WireFormat for RemapPlan {
    const NAME: &'static str = "RemapPlan";

    fn capacity(&self) -> usize {
        let specs = self.input_specs.iter().chain(&self.output_specs).map(ArraySpec::capacity);
        specs.sum::<usize>() + MAPPING_BYTES * self.mappings.len()
    }

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        let number = FORMATS.for_request(version)?;
        let mut specs = self.input_specs.iter().chain(&self.output_specs);
        specs.try_for_each(|spec| spec.can_write(version))?;
        self.mappings_to_write(number, version)?;
        let devices = self.devices_to_write(number)?;
        let mut inputs = devices.iter().flat_map(|devices| devices.values().flatten());
        inputs.try_for_each(|input| input.devices.can_write(version))
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        let number = FORMATS.for_request(version)?;
        if let Some(devices) = self.devices_to_write(number)? {
            for (out_array, inputs) in devices.iter().rev() {
                out.message(5, |out| write_output(*out_array, inputs, version, out))?;
            }
        }
        out.number(4, number);
        if let Some(mappings) = self.mappings_to_write(number, version)? {
            for mapping in mappings.iter().rev() {
                out.nested(3, |out| write_mapping(mapping, out));
            }
        }
        write_all(2, &self.output_specs, version, out)?;
        write_all(1, &self.input_specs, version, out)
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut inputs, mut outputs, mut devices) = (Vec::new(), Vec::new(), Vec::new());
        let (mut mappings, mut unequal, mut recorded) = (Mappings::default(), None, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => inputs.push(value.bytes()?),
                2 => outputs.push(value.bytes()?),
                3 => {
                    let lengths = read_mapping(value.bytes()?, &mut mappings)?;
                    unequal = unequal.or(lengths);
                }
                4 => recorded = value.number()?,
                5 => devices.push(value.bytes()?),
                _ => {}
            }
        }
        check_recorded(recorded, options)?;
        let (inputs, outputs): (Vec<_>, Vec<_>) =
            (read_all(message, inputs, options)?, read_all(message, outputs, options)?);
        let mut plan = Self { mappings, ..Self::new(inputs, outputs) };
        if let Some(lengths) = unequal {
            return Err(lengths.error());
        }
        for output in devices {
            plan.read_output(message.part(output), options)?;
        }
        if options.is_strict() {
            plan.validate().map_err(|error| error.decoding(Self::NAME))?;
        }
        Ok(plan)
    }
}

fn check_recorded(number: i32, options: &DeserializeOptions) -> Result<(), DecodeError> {
    let oldest = FORMATS.oldest().unwrap_or_default();
    if !options.is_strict() && (oldest..=BY_DEVICES).contains(&number) {
        return Ok(());
    }
    FORMATS.check_recorded(number).map(drop)
}

fn not_convertible(error: IfrtError) -> EncodeError {
    EncodeError::invalid_value(RemapPlan::NAME, error.to_string())
}

impl RemapPlan {
    /// Returns the mappings that a message in the format `number` carries.
    ///
    /// # Errors
    /// If the devices cannot be expressed as mappings, or if there are no shards: readers treat a
    /// plan without mappings as unfinished.
    fn mappings_to_write(
        &self,
        number: i32,
        version: SerDesVersion,
    ) -> Result<Option<Cow<'_, Mappings>>, EncodeError> {
        if number >= BY_DEVICES {
            return Ok(None);
        }
        let mappings = self.mappings_or_converted().map_err(not_convertible)?;
        if mappings.len() == 0 && !self.input_devices.is_empty() {
            return Err(EncodeError::unsupported_at_version(
                Self::NAME,
                "a plan in which no output takes a shard",
                version,
                BY_DEVICES,
            ));
        }
        Ok(Some(mappings))
    }

    /// Returns the input devices that a message in the format `number` carries.
    fn devices_to_write(
        &self,
        number: i32,
    ) -> Result<Option<Cow<'_, DevicesByOutput>>, EncodeError> {
        if number >= BY_DEVICES {
            return self.input_devices().map(Some).map_err(not_convertible);
        }
        if self.input_devices.is_empty() {
            return Ok(None);
        }
        if self.mappings.len() != 0 {
            // Fails if mappings and devices contradict each other.
            self.input_devices().map_err(not_convertible)?;
        }
        Ok(Some(Cow::Borrowed(&self.input_devices)))
    }

    /// Reads the shards that an output takes from its inputs.
    fn read_output(
        &mut self,
        message: Encoded<'_>,
        options: &DeserializeOptions,
    ) -> Result<(), DecodeError> {
        let (mut out_array, mut inputs) = (0, Vec::new());
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => out_array = value.number()?,
                2 => inputs.push(read_input(message.part(value.bytes()?), options)?),
                _ => {}
            }
        }
        match self.input_devices.insert(out_array, inputs) {
            None => Ok(()),
            Some(_) => Err(DecodeError::invalid_value(
                Self::NAME,
                format!("output {out_array} has two entries of input devices; expected one"),
            )),
        }
    }
}

fn write_output(
    out_array: i32,
    inputs: &[InputDevices],
    version: SerDesVersion,
    out: &mut BackwardWriter,
) -> Result<(), EncodeError> {
    for input in inputs.iter().rev() {
        out.message(2, |out| {
            out.message(2, |out| input.devices.write(version, out))?;
            out.number(1, input.in_array);
            Ok::<(), EncodeError>(())
        })?;
    }
    out.number(1, out_array);
    Ok(())
}

fn read_input(
    message: Encoded<'_>,
    options: &DeserializeOptions,
) -> Result<InputDevices, DecodeError> {
    let (mut in_array, mut devices) = (0, Joined::default());
    let mut fields = Fields::new(RemapPlan::NAME, message.bytes());
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => in_array = value.number()?,
            2 => devices.add(value.bytes()?),
            _ => {}
        }
    }
    let devices = DeviceList::read(message.part(devices.bytes()), options)?;
    Ok(InputDevices { in_array, devices })
}

fn write_mapping(mapping: Mapping<'_>, out: &mut BackwardWriter) {
    for (field, intervals) in [(6, mapping.to), (3, mapping.from)] {
        let last_first = || intervals.iter().rev();
        out.packed_from_last(field + 2, last_first().map(|interval| interval.step));
        out.packed_from_last(field + 1, last_first().map(|interval| interval.end));
        out.packed_from_last(field, last_first().map(|interval| interval.start));
    }
    out.number(2, mapping.out_array);
    out.number(1, mapping.in_array);
}

/// The differing lengths of the six lists of a mapping.
struct Unequal([usize; 6]);

impl Unequal {
    fn error(&self) -> DecodeError {
        let found = self.0;
        DecodeError::inconsistent(
            RemapPlan::NAME,
            format!(
                "the six lists of a mapping have {found:?} numbers; expected the same number in each"
            ),
        )
    }
}

/// Reads a mapping into `mappings`, unless its lists differ in length.
fn read_mapping(message: &[u8], mappings: &mut Mappings) -> Result<Option<Unequal>, DecodeError> {
    let (mut in_array, mut out_array) = (0, 0);
    let (mut lists, mut in_pieces) = ([&[][..]; 6], false);
    let mut fields = Fields::new(RemapPlan::NAME, message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => in_array = value.number()?,
            2 => out_array = value.number()?,
            _ => {
                let Some(list) = list_of(number, &mut lists) else { continue };
                match value.packed() {
                    Some(packed) if list.is_empty() => *list = packed,
                    _ => in_pieces = true,
                }
                in_pieces |= take_following(number, &mut fields, &mut lists);
            }
        }
    }
    let joined;
    if in_pieces {
        joined = join_lists(message)?;
        lists = joined.each_ref().map(Joined::bytes);
    }
    let count = packed::count(lists[0]);
    if lists.iter().any(|list| list.len() < count) {
        return unequal(lists);
    }
    let (from, to) = mappings.start_mapping(count);
    let mut rest = lists;
    let [from_start, from_end, from_step, to_start, to_end, to_step] = &mut rest;
    for (intervals, [start, end, step]) in
        [(from, [from_start, from_end, from_step]), (to, [to_start, to_end, to_step])]
    {
        for _ in 0..count {
            let next = |list| varint::checked(list).map(i64::from_bits);
            let (Some(start), Some(end), Some(step)) = (next(start), next(end), next(step)) else {
                return unequal(lists);
            };
            intervals.push(Interval::new(start, end, step));
        }
    }
    if rest.iter().any(|list| !list.is_empty()) {
        return unequal(lists);
    }
    mappings.end_mapping(in_array, out_array);
    Ok(None)
}

/// Returns the list for the field with this number.
fn list_of<T>(number: u32, lists: &mut [T; 6]) -> Option<&mut T> {
    (number as usize).checked_sub(3).and_then(|at| lists.get_mut(at))
}

/// Takes the lists that follow the list `number` in the order in which writers write them, as long
/// as they are short; returns true if one of them had been read before.
#[inline]
fn take_following<'a>(number: u32, fields: &mut Fields<'a>, lists: &mut [&'a [u8]; 6]) -> bool {
    for next in number + 1.. {
        let Some(list) = list_of(next, lists) else { break };
        match fields.take_short(next as u8) {
            Some(packed) if list.is_empty() => *list = packed,
            Some(_) => return true,
            None => break,
        }
    }
    false
}

/// Returns the lists of a mapping in which some come in pieces, or are not packed. No known writer
/// does this.
#[cold]
fn join_lists(message: &[u8]) -> Result<[Joined<'_>; 6], DecodeError> {
    let mut lists: [Joined<'_>; 6] = Default::default();
    let mut fields = Fields::new(RemapPlan::NAME, message);
    while let Some((number, value)) = fields.next()? {
        if let Some(list) = list_of(number, &mut lists) {
            value.piece_of(list)?;
        }
    }
    Ok(lists)
}

/// Returns the lengths of a mapping's lists if they differ. Fails if one cannot be read as a list.
#[cold]
fn unequal(lists: [&[u8]; 6]) -> Result<Option<Unequal>, DecodeError> {
    for list in lists {
        packed::decode::<i64>(list, &mut Vec::new())
            .map_err(|error| DecodeError::malformed(RemapPlan::NAME, error.to_string()))?;
    }
    Ok(Some(Unequal(lists.map(packed::count))))
}
