//! Encoding of shardings. Nearly all are read and written without a message; for the others the
//! message is kept.

use bytes::Bytes;
use prost::Message as _;
use smallvec::SmallVec;

use super::{
    OpSharding, OpShardingType,
    parts::{Parts, tiles_of},
};
use crate::{
    codec::{self, DecodeError, fields::Fields},
    ifrt::xla::TileAssignment,
    wire::BackwardWriter,
};

/// The fields of a message that has no fields besides those of [`Parts`].
#[derive(Debug, Default, PartialEq, Eq)]
struct PlainFields {
    kind: i32,
    dimensions: SmallVec<[i64; 4]>,
    devices: Vec<i64>,
    replicates_last: bool,
    subgroups: SmallVec<[i32; 4]>,
    iota_reshape_dims: SmallVec<[i64; 4]>,
    iota_transpose_perm: SmallVec<[i32; 4]>,
}

impl PlainFields {
    /// Returns the fields of `message`; `None` if there are others, or if it is malformed.
    fn read(message: &[u8]) -> Option<Self> {
        let mut plain = Self::default();
        let mut fields = Fields::new("xla.OpSharding", message);
        while let Some((number, value)) = fields.next().ok()? {
            let known = match number {
                1 => value.number().map(|kind| plain.kind = kind),
                3 => value.few(|size| plain.dimensions.push(size)),
                4 => value.many(&mut plain.devices),
                6 => value.truth().map(|truth| plain.replicates_last = truth),
                8 => value.few(|kind| plain.subgroups.push(kind)),
                9 => value.few(|size| plain.iota_reshape_dims.push(size)),
                10 => value.few(|axis| plain.iota_transpose_perm.push(axis)),
                _ => return None,
            };
            known.ok()?;
        }
        Some(plain)
    }
}

impl Parts {
    pub(super) fn write(&self, out: &mut BackwardWriter) {
        let tiles = self.tiles.as_ref();
        if let Some((reshape, transpose)) = tiles.and_then(TileAssignment::iota_parts) {
            out.packed(10, transpose);
            out.packed(9, reshape);
        }
        out.packed(8, &self.subgroups);
        out.number(6, i32::from(self.replicates_last));
        if let Some(tiles) = tiles {
            out.packed(4, tiles.listed_devices().unwrap_or_default());
            out.packed(3, tiles.dimensions());
        }
        out.number(1, self.kind.number());
    }

    /// Returns the parts, if they describe all of these fields.
    fn of_fields(fields: PlainFields) -> Option<Self> {
        let kind = OpShardingType::from_number(fields.kind)?;
        match kind {
            OpShardingType::Tiled => {
                // The parts never produce a list together with a transposition.
                let transposed = !fields.iota_transpose_perm.is_empty();
                if transposed && fields.iota_reshape_dims.is_empty() {
                    return None;
                }
                let iota = (&fields.iota_reshape_dims[..], &fields.iota_transpose_perm[..]);
                let tiles = tiles_of(&fields.dimensions, fields.devices, iota).ok()?;
                Self::tiled(tiles, fields.replicates_last, fields.subgroups).ok()
            }
            OpShardingType::Maximal | OpShardingType::Tuple => None,
            _ => {
                let alone = PlainFields { kind: fields.kind, ..PlainFields::default() };
                (fields == alone).then(|| Self { kind, ..Self::default() })
            }
        }
    }
}

impl OpSharding {
    /// Writes the fields.
    pub(in crate::ifrt) fn write(&self, out: &mut BackwardWriter) {
        match self.beyond_parts() {
            Some(message) => out.raw(&message.encode_to_vec()),
            None => self.0.parts.write(out),
        }
    }

    /// Returns the sharding in the bytes of a message; errors name the enclosing `type_name`.
    pub(in crate::ifrt) fn read(
        type_name: &'static str,
        message: &[u8],
    ) -> Result<Self, DecodeError> {
        if let Some(parts) = PlainFields::read(message).and_then(Parts::of_fields) {
            return Ok(Self::of_parts(parts));
        }
        let message = codec::parse(type_name, Bytes::copy_from_slice(message))?;
        Self::from_proto(type_name, message)
    }
}
