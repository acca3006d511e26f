//! Array specs straight to bytes and back, without a message in between.
//!
//! Messages are the reference: what is written here is byte for byte what they encode to, and whatever is not plain here (an
//! error, a newer format, an encoding that writers do not use) is `None`, upon which the caller reads the message.

use smallvec::SmallVec;

use super::{
    ArraySpec, ConcreteEvenSharding, DType, DeserializeShardingOptions, DeviceId, DeviceList,
    HloSharding, MemoryKind, OpaqueSharding, PjRtLayout, Shape, Sharding, SingleDeviceSharding,
    xla::{OpSharding, PlainFields, TileAssignment},
};
use crate::{
    codec::{DeserializeOptions, EncodeError, FromProto, Registered, ToProto},
    proto::xla::ifrt::DTypeProto,
    version::SerDesVersion,
    wire::{
        BackwardWriter, Dialect, Field, FieldValue, WireReader,
        packed::{self, PackedNumber},
        varint,
    },
};

/// The bytes that an array spec takes besides its device ids, about.
const SPEC_BYTES: usize = 192;

/// Room for a spec over `devices` devices of a few digits each.
pub(super) fn capacity_of(spec: &ArraySpec) -> usize {
    SPEC_BYTES + 2 * spec.sharding().devices().len()
}

/// Writes the fields of the spec, all of which are at format 0 at every version.
pub(super) fn write_array_spec(
    spec: &ArraySpec,
    version: SerDesVersion,
    out: &mut BackwardWriter,
) -> Result<(), EncodeError> {
    // Asked first and in the order of the message: what follows goes from the end to the start.
    spec.can_serialize_at(version)?;
    if let Some(layout) = spec.layout() {
        out.bytes(4, layout.to_text().as_bytes());
    }
    out.message(3, |out| write_sharding(spec.sharding(), version, out))?;
    out.message(2, |out| write_shape(spec.shape(), out))?;
    let dtype = spec.dtype().to_proto(version)?;
    out.message(1, |out| {
        out.number(2, dtype.version_number);
        out.number(1, dtype.kind);
        Ok(())
    })
}

fn write_shape(shape: &Shape, out: &mut BackwardWriter) -> Result<(), EncodeError> {
    out.packed_from_last(1, shape.dims().iter().rev().copied());
    Ok(())
}

pub(super) fn write_devices(
    devices: &DeviceList,
    out: &mut BackwardWriter,
) -> Result<(), EncodeError> {
    let ids = devices.ids();
    let mut few = [0_i32; 32];
    match few.get_mut(..ids.len()) {
        Some(few) => {
            for (place, id) in few.iter_mut().zip(ids) {
                *place = id.0;
            }
            out.packed(1, few);
        }
        None => out.packed(1, &ids.iter().map(|id| id.0).collect::<Vec<_>>()),
    }
    Ok(())
}

fn write_memory_kind(field: u32, memory_kind: &MemoryKind, out: &mut BackwardWriter) {
    if let Some(name) = memory_kind.name() {
        out.bytes(field, name.as_bytes());
    }
}

/// Writes the envelope with the sharding in it.
fn write_sharding(
    sharding: &Sharding,
    version: SerDesVersion,
    out: &mut BackwardWriter,
) -> Result<(), EncodeError> {
    out.message(1, |out| {
        match sharding {
            // Without any field the data is empty, and an empty data is absent.
            Sharding::SingleDevice(sharding)
                if sharding.device().0 == 0 && !sharding.memory_kind().is_set() => {}
            Sharding::SingleDevice(sharding) => out.message::<EncodeError>(2, |out| {
                write_memory_kind(2, sharding.memory_kind(), out);
                out.number(1, sharding.device().0);
                Ok(())
            })?,
            Sharding::Opaque(sharding) => out.message(2, |out| {
                write_memory_kind(2, sharding.memory_kind(), out);
                out.message(1, |out| write_devices(sharding.devices(), out))
            })?,
            Sharding::ConcreteEven(sharding) => out.message(2, |out| {
                out.number(5, i32::from(sharding.is_fully_replicated()));
                write_memory_kind(4, sharding.memory_kind(), out);
                let shape = sharding.shape();
                let shard_shape = sharding.shard_shape(shape).map_err(|error| {
                    EncodeError::invalid_value("ConcreteEvenSharding", error.to_string())
                })?;
                out.message(3, |out| write_shape(&shard_shape, out))?;
                out.message(2, |out| write_shape(shape, out))?;
                out.message(1, |out| write_devices(sharding.devices(), out))
            })?,
            Sharding::Hlo(sharding) => out.message(2, |out| {
                write_memory_kind(3, sharding.memory_kind(), out);
                out.message(2, |out| write_op_sharding(sharding.op_sharding(), out))?;
                out.message(1, |out| write_devices(sharding.devices(), out))
            })?,
            other => out.bytes(2, other.to_serialized(version)?.data()),
        }
        out.bytes(1, sharding.type_name().as_bytes());
        Ok(())
    })
}

fn write_op_sharding(sharding: &OpSharding, out: &mut BackwardWriter) -> Result<(), EncodeError> {
    use prost::Message as _;

    let Some(plain) = sharding.plain() else {
        out.raw(&sharding.proto().encode_to_vec());
        return Ok(());
    };
    if let Some((reshape, transpose)) = plain.tiles.and_then(TileAssignment::iota_parts) {
        out.packed(10, transpose);
        out.packed(9, reshape);
    }
    out.packed(8, plain.subgroups);
    out.number(6, i32::from(plain.replicates_last));
    if let Some(tiles) = plain.tiles {
        out.packed(4, tiles.listed_devices().unwrap_or_default());
        out.packed(3, tiles.dimensions());
    }
    out.number(1, plain.kind);
    Ok(())
}

/// The fields of `bytes`; errors end in the message, so that they need no name.
fn fields(bytes: &[u8]) -> WireReader<'_> {
    WireReader::new(Dialect::Prost, bytes)
}

/// The next field, or the end.
fn next<'a>(reader: &mut WireReader<'a>) -> Option<Option<Field<'a>>> {
    reader.next_field().ok()
}

/// Sets what has not been set: writers write no field twice.
fn set<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// The spec of `bytes`, if it is written as real writers do, at format 0 throughout.
pub(super) fn read_array_spec(bytes: &[u8], options: &DeserializeOptions) -> Option<ArraySpec> {
    let (mut dtype, mut shape, mut sharding, mut layout) = (None, None, None, None);
    let mut reader = fields(bytes);
    while let Some(field) = next(&mut reader)? {
        match (field.number, field.value) {
            (1, FieldValue::Bytes(bytes)) => set(&mut dtype, bytes)?,
            (2, FieldValue::Bytes(bytes)) => set(&mut shape, bytes)?,
            (3, FieldValue::Bytes(bytes)) => set(&mut sharding, bytes)?,
            (4, FieldValue::Bytes(bytes)) => set(&mut layout, bytes)?,
            _ => return None,
        }
    }
    let dtype = read_dtype(dtype?, options)?;
    let shape = read_shape(shape?)?;
    let sharding = read_sharding(sharding?, options)?;
    let spec = ArraySpec::new(dtype, shape, sharding);
    Some(match layout {
        Some(text) => spec.with_layout(PjRtLayout::from_text(text).ok()?),
        None => spec,
    })
}

fn read_dtype(bytes: &[u8], options: &DeserializeOptions) -> Option<DType> {
    let mut proto = DTypeProto::default();
    match bytes {
        [] => {}
        [0x08, kind] if *kind < 0x80 => proto.kind = i32::from(*kind),
        _ => return None,
    }
    DType::from_proto(&proto, options).ok()
}

fn read_shape(bytes: &[u8]) -> Option<Shape> {
    let mut reader = fields(bytes);
    let Some(field) = next(&mut reader)? else { return Some(Shape::scalar()) };
    let (1, FieldValue::Bytes(mut list), None) = (field.number, field.value, next(&mut reader)?)
    else {
        return None;
    };
    // Arrays of more dimensions are none of the hot path.
    let mut dims = [0; 8];
    let mut rank = 0;
    while !list.is_empty() {
        *dims.get_mut(rank)? = i64::from_bits(varint::checked(&mut list)?);
        rank += 1;
    }
    Shape::new(dims.get(..rank)?).ok()
}

fn read_devices(bytes: &[u8], options: &DeserializeOptions) -> Option<DeviceList> {
    let mut ids = Vec::new();
    let mut reader = fields(bytes);
    if let Some(field) = next(&mut reader)? {
        let (1, FieldValue::Bytes(list), None) = (field.number, field.value, next(&mut reader)?)
        else {
            return None;
        };
        packed::decode::<i32>(list, &mut ids).ok()?;
    }
    let sharding: &DeserializeShardingOptions = options.get()?;
    sharding.devices().device_list(ids.into_iter().map(DeviceId).collect()).ok()
}

fn read_sharding(bytes: &[u8], options: &DeserializeOptions) -> Option<Sharding> {
    let mut reader = fields(bytes);
    let (1, FieldValue::Bytes(serialized)) = next(&mut reader)?.map(|f| (f.number, f.value))?
    else {
        return None;
    };
    if next(&mut reader)?.is_some() {
        return None;
    }
    let (mut name, mut data) = (None, None);
    let mut reader = fields(serialized);
    while let Some(field) = next(&mut reader)? {
        match (field.number, field.value) {
            (1, FieldValue::Bytes(bytes)) => set(&mut name, bytes)?,
            (2, FieldValue::Bytes(bytes)) => set(&mut data, bytes)?,
            _ => return None,
        }
    }
    let (name, data) = (name?, data?);
    if name == HloSharding::TYPE_NAME.as_bytes() {
        read_hlo(data, options).map(Sharding::Hlo)
    } else if name == SingleDeviceSharding::TYPE_NAME.as_bytes() {
        read_single_device(data, options).map(Sharding::SingleDevice)
    } else if name == ConcreteEvenSharding::TYPE_NAME.as_bytes() {
        read_concrete_even(data, options).map(Sharding::ConcreteEven)
    } else if name == OpaqueSharding::TYPE_NAME.as_bytes() {
        let [devices, memory_kind] = read_parts(data)?;
        let memory_kind = read_memory_kind(memory_kind)?;
        let devices = read_devices(devices?, options)?;
        Some(Sharding::Opaque(OpaqueSharding::new(devices, memory_kind)))
    } else {
        None
    }
}

/// The fields 1 to `N`, all of which are messages, strings or bytes.
fn read_parts<const N: usize>(bytes: &[u8]) -> Option<[Option<&[u8]>; N]> {
    let mut parts = [None; N];
    let mut reader = fields(bytes);
    while let Some(field) = next(&mut reader)? {
        let FieldValue::Bytes(bytes) = field.value else { return None };
        let index = usize::try_from(field.number).ok()?.checked_sub(1)?;
        set(parts.get_mut(index)?, bytes)?;
    }
    Some(parts)
}

fn read_memory_kind(name: Option<&[u8]>) -> Option<MemoryKind> {
    match name {
        Some(name) => Some(MemoryKind::new(std::str::from_utf8(name).ok()?)),
        None => Some(MemoryKind::unset()),
    }
}

fn read_single_device(bytes: &[u8], options: &DeserializeOptions) -> Option<SingleDeviceSharding> {
    let (mut device, mut memory_kind) = (None, None);
    let mut reader = fields(bytes);
    while let Some(field) = next(&mut reader)? {
        match (field.number, field.value) {
            (1, FieldValue::Varint(id)) => set(&mut device, DeviceId(i32::from_bits(id)))?,
            (2, FieldValue::Bytes(name)) => set(&mut memory_kind, name)?,
            _ => return None,
        }
    }
    // The reader of the message keeps more of the device than its id.
    let sharding: &DeserializeShardingOptions = options.get()?;
    let devices = sharding.devices().device_list(vec![device.unwrap_or_default()]).ok()?;
    if !devices.is_fully_addressable() {
        return None;
    }
    let device = *devices.ids().first()?;
    let memory_kind = read_memory_kind(memory_kind)?;
    Some(SingleDeviceSharding::new(device).with_memory_kind(memory_kind))
}

fn read_concrete_even(bytes: &[u8], options: &DeserializeOptions) -> Option<ConcreteEvenSharding> {
    let (mut devices, mut shape, mut shard_shape) = (None, None, None);
    let (mut memory_kind, mut replicated) = (None, None);
    let mut reader = fields(bytes);
    while let Some(field) = next(&mut reader)? {
        match (field.number, field.value) {
            (1, FieldValue::Bytes(bytes)) => set(&mut devices, bytes)?,
            (2, FieldValue::Bytes(bytes)) => set(&mut shape, bytes)?,
            (3, FieldValue::Bytes(bytes)) => set(&mut shard_shape, bytes)?,
            (4, FieldValue::Bytes(bytes)) => set(&mut memory_kind, bytes)?,
            (5, FieldValue::Varint(flag)) => set(&mut replicated, flag != 0)?,
            _ => return None,
        }
    }
    if options.is_strict() {
        return None;
    }
    let memory_kind = read_memory_kind(memory_kind)?;
    let (shape, shard_shape) = (read_shape(shape?)?, read_shape(shard_shape?)?);
    let devices = read_devices(devices?, options)?;
    let replicated = replicated.unwrap_or_default();
    Some(ConcreteEvenSharding::new_lenient(devices, memory_kind, shape, shard_shape, replicated))
}

fn read_hlo(bytes: &[u8], options: &DeserializeOptions) -> Option<HloSharding> {
    if options.is_strict() {
        return None;
    }
    let [devices, op_sharding, memory_kind] = read_parts(bytes)?;
    let op_sharding = read_op_sharding(op_sharding?)?;
    let memory_kind = read_memory_kind(memory_kind)?;
    HloSharding::new(read_devices(devices?, options)?, memory_kind, op_sharding).ok()
}

fn read_op_sharding(bytes: &[u8]) -> Option<OpSharding> {
    let mut plain = PlainFields::default();
    let mut seen = 0_u32;
    let mut reader = fields(bytes);
    while let Some(field) = next(&mut reader)? {
        let bit = 1_u32.checked_shl(field.number)?;
        if seen & bit != 0 {
            return None;
        }
        seen |= bit;
        match (field.number, field.value) {
            (1, FieldValue::Varint(kind)) => plain.kind = i32::from_bits(kind),
            (3, FieldValue::Bytes(list)) => read_few(list, &mut plain.dimensions)?,
            (4, FieldValue::Bytes(list)) => packed::decode(list, &mut plain.devices).ok()?,
            (6, FieldValue::Varint(flag)) => plain.replicates_last = flag != 0,
            (8, FieldValue::Bytes(list)) => read_few(list, &mut plain.subgroups)?,
            (9, FieldValue::Bytes(list)) => read_few(list, &mut plain.iota_reshape_dims)?,
            (10, FieldValue::Bytes(list)) => read_few(list, &mut plain.iota_transpose_perm)?,
            _ => return None,
        }
    }
    OpSharding::of_fields(plain)
}

/// Reads a packed list that is short as a rule.
fn read_few<T: PackedNumber>(mut list: &[u8], few: &mut SmallVec<[T; 4]>) -> Option<()>
where
    [T; 4]: smallvec::Array<Item = T>,
{
    while !list.is_empty() {
        few.push(T::from_bits(varint::checked(&mut list)?));
    }
    Some(())
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;
