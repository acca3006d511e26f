//! One tensor of an open state.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serdes::ifrt::{ArraySpec, DType, DeviceId};

use super::{
    open_state::OpenState,
    spec::{KnownSpec, check_piece, decode_spec},
};
use crate::{
    Error,
    format::{index::PieceEntry, role::Role},
    shards::check_tiling,
};

/// Device and size of a saved piece.
#[derive(Clone, Copy, Debug)]
pub struct PieceOfDevice {
    /// Id of the device.
    pub device: i32,
    /// Length of the piece in bytes.
    pub bytes: u64,
}

/// One tensor of an open state.
#[derive(Clone)]
pub struct Tensor {
    pub(super) state: Arc<OpenState>,
    pub(super) number: u32,
    pub(crate) spec: u32,
    pub(super) first_piece: u32,
    pub(super) piece_count: u32,
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor").field("name", &self.name()).field("spec", self.spec()).finish()
    }
}

impl Tensor {
    /// Returns its name.
    pub fn name(&self) -> &str {
        self.state.index.name(self.number)
    }

    /// Returns the element type, shape and sharding.
    pub fn spec(&self) -> &ArraySpec {
        static NONE: OnceLock<ArraySpec> = OnceLock::new();
        // Decoded by `check` before the tensor was returned.
        let known = self.state.specs.get(self.spec as usize).and_then(OnceLock::get);
        known.map(|known| &known.spec).unwrap_or_else(|| {
            NONE.get_or_init(|| {
                let sharding = serdes::ifrt::SingleDeviceSharding::new(DeviceId(0));
                ArraySpec::new(DType::Invalid, serdes::ifrt::Shape::scalar(), sharding)
            })
        })
    }

    /// Returns the number and the bytes of the tensor's spec, which tensors with the same bytes
    /// share.
    pub fn spec_bytes(&self) -> (u32, &[u8]) {
        (self.spec, self.state.index.spec(self.spec))
    }

    /// Returns the length of its data in bytes, all shards together.
    pub fn bytes(&self) -> u64 {
        self.pieces().map(|(_, piece)| piece.data_bytes).sum()
    }

    /// Returns the device and the bytes of each of its pieces.
    pub fn piece_devices(&self) -> impl Iterator<Item = PieceOfDevice> {
        let index = &self.state.index;
        self.pieces().map(|(_, piece)| PieceOfDevice {
            device: index.placement(piece.placement).map_or(0, |placement| placement.device),
            bytes: piece.data_bytes,
        })
    }

    /// Returns the number and entry of each of its pieces.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (u32, PieceEntry)> {
        let index = &self.state.index;
        (self.first_piece..self.first_piece.saturating_add(self.piece_count))
            .filter_map(|number| Some((number, index.piece(number)?)))
    }

    /// Decodes the spec, and compares it with the lengths of the pieces.
    pub(super) fn check(&self) -> Result<(), Error> {
        let state = &self.state;
        let Some(slot) = state.specs.get(self.spec as usize) else { return Ok(()) };
        let known = match slot.get() {
            Some(known) => known,
            None => {
                let spec = decode_spec(self.name(), state.index.spec(self.spec))?;
                slot.get_or_init(|| KnownSpec::new(spec))
            }
        };
        let spec = &known.spec;
        for (_, piece) in self.pieces() {
            let domain = state.index.placement(piece.placement).and_then(|p| p.domain.as_ref());
            if domain.is_none() && known.whole_bytes == Some(piece.data_bytes) {
                if self.piece_count == 1 {
                    return Ok(());
                }
                continue;
            }
            check_piece(self.name(), spec, domain, piece.data_bytes)?;
        }
        // A part of a state need not have the whole array.
        if self.is_whole() || matches!(state.header.role, Role::Part(_)) {
            return Ok(());
        }
        let domains: Vec<_> = self
            .pieces()
            .filter_map(|(_, piece)| state.index.placement(piece.placement))
            .map(|placement| placement.domain.clone())
            .collect();
        check_tiling(spec, &domains).map_err(|reason| {
            let place = format!("shards of {:?}", self.name());
            Error::corrupt(&place, reason, "each element in one shard".to_owned())
        })
    }

    /// Checks that the array is complete; a part of a state may lack shards.
    pub(super) fn check_complete(&self) -> Result<(), Error> {
        if self.is_whole() || self.state.part().is_none() {
            return Ok(());
        }
        let index = &self.state.index;
        let placements = self.pieces().filter_map(|(_, piece)| index.placement(piece.placement));
        let domains: Vec<_> = placements.map(|placement| placement.domain.clone()).collect();
        check_tiling(self.spec(), &domains).map_err(|reason| Error::shards(self.name(), reason))
    }

    /// Returns true if one piece holds the whole tensor.
    pub(super) fn is_whole(&self) -> bool {
        let index = &self.state.index;
        self.piece_count == 1
            && self.pieces().all(|(_, piece)| {
                index.placement(piece.placement).is_some_and(|place| place.domain.is_none())
            })
    }
}
