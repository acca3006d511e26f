//! Plans as bytes. The message is the reference; both ways also go without one, because a plan has as many lists of numbers as it has
//! mappings, six times.

use std::borrow::Cow;

use bytes::Bytes;

use super::{DevicesByOutput, InputDevices, Interval, Mapping, RemapPlan, mappings::Mappings};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, ToProto, decode_message,
    },
    ifrt::{ArraySpec, DeserializeShardingOptions, DeviceList, IfrtError, direct},
    proto::xla::ifrt::{
        RemapPlanProto,
        remap_plan_proto::{
            InputDevices as InputDevicesProto, InputDevicesForOutput, MappingProto,
        },
    },
    version::SerDesVersion,
    wire::{
        BackwardWriter, Dialect, FieldValue, WireReader,
        packed::{self, PackedNumber},
        varint,
    },
};

const FORMATS: Formats = Formats::of("RemapPlan");

/// From this format on a plan is written as input devices, before as mappings.
const BY_DEVICES: i32 = FORMATS.number(6);

fn not_convertible(error: IfrtError) -> EncodeError {
    EncodeError::invalid_value(RemapPlan::NAME, error.to_string())
}

/// Below version 6, writes format 0 with mappings, which are made from the input devices if there are none; the input devices that
/// the plan was made with are written beside them, as real builds do. From version 6 on, writes format 6 with input devices only: those that the plan
/// was made with, and for the outputs without such, those that its mappings give. A plan whose mappings and devices contradict each
/// other is refused at every version, because old readers follow the ones and new readers the others.
impl ToProto for RemapPlan {
    type Proto = RemapPlanProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        let version_number = FORMATS.for_request(version)?;
        let specs = |specs: &[ArraySpec]| -> Result<Vec<_>, EncodeError> {
            specs.iter().map(|spec| spec.to_proto(version)).collect()
        };
        let mut proto = RemapPlanProto {
            input_specs: specs(&self.input_specs)?,
            output_specs: specs(&self.output_specs)?,
            version_number,
            ..Default::default()
        };
        if version_number < BY_DEVICES {
            let mappings = self.mappings_to_write(version)?;
            proto.mappings = mappings.iter().map(mapping_to_proto).collect();
        }
        if let Some(devices) = self.devices_to_write(version_number).map_err(not_convertible)? {
            let entries = devices.iter().map(|(out_array, inputs)| {
                let inputs = inputs.iter().map(|input| {
                    Ok(InputDevicesProto {
                        in_array: input.in_array,
                        device_list: Some(input.devices.to_proto(version)?),
                    })
                });
                Ok(InputDevicesForOutput {
                    out_array: *out_array,
                    input_devices: inputs.collect::<Result<_, EncodeError>>()?,
                })
            });
            proto.input_devices_for_output = entries.collect::<Result<_, EncodeError>>()?;
        }
        Ok(proto)
    }

    fn to_bytes(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
        let number = FORMATS.for_request(version)?;
        let specs = self.input_specs.iter().chain(&self.output_specs);
        // Asked first and in the order of the message: what follows goes from the end to the start.
        specs.clone().try_for_each(|spec| spec.can_serialize_at(version))?;
        let capacity = specs.map(direct::capacity_of).sum::<usize>() + 32 * self.mappings.len();
        let mut out = BackwardWriter::with_capacity(capacity);
        if let Some(devices) = self.devices_to_write(number).map_err(not_convertible)? {
            write_input_devices(&devices, &mut out)?;
        }
        out.number(4, number);
        if number < BY_DEVICES {
            let mappings = self.mappings_to_write(version)?;
            for mapping in mappings.iter().rev() {
                out.message(3, |out| write_mapping(mapping, out))?;
            }
        }
        for (field, specs) in [(2, &self.output_specs), (1, &self.input_specs)] {
            for spec in specs.iter().rev() {
                out.message(field, |out| direct::write_array_spec(spec, version, out))?;
            }
        }
        Ok(out.finish())
    }
}

impl RemapPlan {
    /// What messages below version 6 say.
    ///
    /// # Errors
    /// If the devices cannot be said as mappings, or there is no shard to say it of: readers take a plan without mappings for unfinished.
    fn mappings_to_write(&self, version: SerDesVersion) -> Result<Cow<'_, Mappings>, EncodeError> {
        let mappings = self.mappings_or_converted().map_err(not_convertible)?;
        if mappings.len() == 0 && !self.input_devices.is_empty() {
            return Err(EncodeError::unsupported_at_version(
                Self::NAME,
                "a plan in which no output takes a shard",
                version,
                BY_DEVICES,
            ));
        }
        Ok(mappings)
    }
}

fn mapping_to_proto(mapping: Mapping<'_>) -> MappingProto {
    let list = |intervals: &[Interval], number: fn(&Interval) -> i64| {
        intervals.iter().map(number).collect()
    };
    MappingProto {
        in_array: mapping.in_array,
        out_array: mapping.out_array,
        from_start: list(mapping.from, |interval| interval.start),
        from_end: list(mapping.from, |interval| interval.end),
        from_step: list(mapping.from, |interval| interval.step),
        to_start: list(mapping.to, |interval| interval.start),
        to_end: list(mapping.to, |interval| interval.end),
        to_step: list(mapping.to, |interval| interval.step),
    }
}

fn write_mapping(mapping: Mapping<'_>, out: &mut BackwardWriter) -> Result<(), EncodeError> {
    for (field, intervals) in [(6, mapping.to), (3, mapping.from)] {
        let last_first = || intervals.iter().rev();
        out.packed_from_last(field + 2, last_first().map(|interval| interval.step));
        out.packed_from_last(field + 1, last_first().map(|interval| interval.end));
        out.packed_from_last(field, last_first().map(|interval| interval.start));
    }
    out.number(2, mapping.out_array);
    out.number(1, mapping.in_array);
    Ok(())
}

fn write_input_devices(
    devices: &DevicesByOutput,
    out: &mut BackwardWriter,
) -> Result<(), EncodeError> {
    for (out_array, inputs) in devices.iter().rev() {
        out.message(5, |out| {
            for input in inputs.iter().rev() {
                out.message(2, |out| {
                    out.message(2, |out| direct::write_devices(&input.devices, out))?;
                    out.number(1, input.in_array);
                    Ok::<(), EncodeError>(())
                })?;
            }
            out.number(1, *out_array);
            Ok::<(), EncodeError>(())
        })?;
    }
    Ok(())
}

/// Accepts 0 to 6, as upstream; in strict mode only the formats 0 and 6, and only plans that are [valid](RemapPlan::validate). Lists of a
/// mapping that have not the same length are INTERNAL. Needs [`DeserializeShardingOptions`].
impl FromProto for RemapPlan {
    type Proto = RemapPlanProto;
    const NAME: &'static str = "RemapPlan";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        Self::check_options(options)?;
        check_recorded(proto.version_number, options)?;
        let specs =
            |specs: &[crate::proto::xla::ifrt::ArraySpecProto]| -> Result<Vec<_>, DecodeError> {
                specs.iter().map(|spec| ArraySpec::from_proto(spec, options)).collect()
            };
        let mut plan = Self::new(specs(&proto.input_specs)?, specs(&proto.output_specs)?);
        for mapping in &proto.mappings {
            read_mapping_proto(mapping, &mut plan.mappings)?;
        }
        for output in &proto.input_devices_for_output {
            plan.read_output(output, options)?;
        }
        plan.checked(options)
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }

    fn from_bytes(bytes: Bytes, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        Self::check_options(options)?;
        if bytes.len() as u64 <= options.maximum_bytes()
            && let Some(plan) = read_plan(&bytes, options)
        {
            return plan.checked(options);
        }
        // Not plain, or wrong: the message says which.
        Self::from_owned_proto(decode_message(Self::NAME, bytes, options)?, options)
    }
}

fn check_recorded(number: i32, options: &DeserializeOptions) -> Result<(), DecodeError> {
    let oldest = FORMATS.oldest().unwrap_or_default();
    if !options.is_strict() && (oldest..=BY_DEVICES).contains(&number) {
        return Ok(());
    }
    FORMATS.check_recorded(number).map(drop)
}

impl RemapPlan {
    /// The input devices that a message of the format `number` carries.
    fn devices_to_write(&self, number: i32) -> Result<Option<Cow<'_, DevicesByOutput>>, IfrtError> {
        if number >= BY_DEVICES {
            return self.input_devices().map(Some);
        }
        if self.input_devices.is_empty() {
            return Ok(None);
        }
        if self.mappings.len() != 0 {
            // Fails if the two contradict each other.
            self.input_devices()?;
        }
        Ok(Some(Cow::Borrowed(&self.input_devices)))
    }

    fn checked(self, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        if options.is_strict() {
            self.validate()
                .map_err(|error| DecodeError::invalid_value(Self::NAME, error.to_string()))?;
        }
        Ok(self)
    }

    fn read_output(
        &mut self,
        output: &InputDevicesForOutput,
        options: &DeserializeOptions,
    ) -> Result<(), DecodeError> {
        let inputs = output.input_devices.iter().map(|input| {
            let list = input.device_list.clone().unwrap_or_default();
            let devices = DeviceList::from_owned_proto(list, options)?;
            Ok(InputDevices { in_array: input.in_array, devices })
        });
        let inputs = inputs.collect::<Result<_, DecodeError>>()?;
        match self.input_devices.insert(output.out_array, inputs) {
            None => Ok(()),
            Some(_) => Err(DecodeError::invalid_value(
                Self::NAME,
                format!(
                    "output {} has two entries of input devices; expected one",
                    output.out_array
                ),
            )),
        }
    }
}

fn unequal(found: [usize; 6]) -> DecodeError {
    DecodeError::inconsistent(
        RemapPlan::NAME,
        format!(
            "the six lists of a mapping have {found:?} numbers; expected the same number in each"
        ),
    )
}

fn read_mapping_proto(proto: &MappingProto, mappings: &mut Mappings) -> Result<(), DecodeError> {
    let lists = [
        &proto.from_start,
        &proto.from_end,
        &proto.from_step,
        &proto.to_start,
        &proto.to_end,
        &proto.to_step,
    ];
    let count = proto.from_start.len();
    if lists.iter().any(|list| list.len() != count) {
        return Err(unequal(lists.map(Vec::len)));
    }
    let (from, to) = mappings.start_mapping(count);
    for (intervals, [start, end, step]) in [
        (from, [&proto.from_start, &proto.from_end, &proto.from_step]),
        (to, [&proto.to_start, &proto.to_end, &proto.to_step]),
    ] {
        for (((place, start), end), step) in intervals.iter_mut().zip(start).zip(end).zip(step) {
            *place = Interval::new(*start, *end, *step);
        }
    }
    mappings.end_mapping(proto.in_array, proto.out_array);
    Ok(())
}

/// The plan of `bytes`, if it is written as real writers do.
fn read_plan(bytes: &Bytes, options: &DeserializeOptions) -> Option<RemapPlan> {
    let mut plan = RemapPlan::default();
    let mut number = None;
    let mut reader = WireReader::new(Dialect::Prost, bytes);
    while let Some(field) = reader.next_field().ok()? {
        match (field.number, field.value) {
            (1 | 2, FieldValue::Bytes(spec)) => {
                let spec = direct::read_array_spec(spec, options)?;
                let specs =
                    if field.number == 1 { &mut plan.input_specs } else { &mut plan.output_specs };
                specs.push(spec);
            }
            (3, FieldValue::Bytes(mapping)) => read_mapping(mapping, &mut plan.mappings)?,
            (4, FieldValue::Varint(found)) if number.is_none() => {
                number = Some(i32::from_bits(found));
            }
            (5, FieldValue::Bytes(output)) => {
                let output = bytes.slice_ref(output);
                let output = <InputDevicesForOutput as prost::Message>::decode(output).ok()?;
                plan.read_output(&output, options).ok()?;
            }
            _ => return None,
        }
    }
    check_recorded(number.unwrap_or_default(), options).ok()?;
    Some(plan)
}

fn read_mapping(bytes: &[u8], mappings: &mut Mappings) -> Option<()> {
    let mut arrays = [0_i32; 2];
    let mut lists: [&[u8]; 6] = [&[]; 6];
    let mut seen = 0_u32;
    let mut reader = WireReader::new(Dialect::Prost, bytes);
    while let Some(field) = reader.next_field().ok()? {
        let bit = 1_u32.checked_shl(field.number)?;
        if seen & bit != 0 {
            return None;
        }
        seen |= bit;
        match (field.number as usize, field.value) {
            (array @ 1..=2, FieldValue::Varint(index)) => {
                *arrays.get_mut(array - 1)? = i32::from_bits(index);
            }
            (list @ 3..=8, FieldValue::Bytes(bytes)) => *lists.get_mut(list - 3)? = bytes,
            _ => return None,
        }
    }
    let count = packed::count(lists[0]);
    let (from, to) = mappings.start_mapping(count);
    let [from_start, from_end, from_step, to_start, to_end, to_step] = &mut lists;
    for (intervals, [start, end, step]) in
        [(from, [from_start, from_end, from_step]), (to, [to_start, to_end, to_step])]
    {
        for interval in intervals {
            interval.start = i64::from_bits(varint::checked(start)?);
            interval.end = i64::from_bits(varint::checked(end)?);
            interval.step = i64::from_bits(varint::checked(step)?);
        }
    }
    if lists.iter().any(|rest| !rest.is_empty()) {
        return None;
    }
    let [in_array, out_array] = arrays;
    mappings.end_mapping(in_array, out_array);
    Some(())
}
