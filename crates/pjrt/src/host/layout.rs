//! Layouts of arrays in the memory of devices.

use std::ffi::{c_char, c_int};

use serdes_abi::pjrt::{ElementType, args::*};
use serdes_library_file::printable;

use super::{
    border::{Table, list, owned_bytes, pointer},
    buffer::{Buffer, of_buffer},
    client::Client,
    element_type::number_of,
    host_array::{HostArray, MOST_DIMENSIONS},
};
use crate::PjrtError;

/// The layout of an array in the memory of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryLayout {
    /// An order of the dimensions, with tiles.
    Tiled {
        /// The dimensions, the fastest first.
        minor_to_major: Vec<i64>,
        /// The tiles, the outermost first; none if elements are contiguous.
        tiles: Vec<Vec<i64>>,
    },
    /// The distance in bytes between neighbours in each dimension.
    Strides(Vec<i64>),
}

/// The numbers of the kinds in C.
const TILED: c_int = 0;
const STRIDES: c_int = 1;

impl MemoryLayout {
    /// Returns true if an array of these dimensions has the same dense, row-major layout as on the
    /// host: the last dimension changes fastest, and elements of `element_bytes` bytes are
    /// contiguous.
    #[must_use]
    pub fn is_row_major(&self, dims: &[i64], element_bytes: usize) -> bool {
        match self {
            Self::Tiled { minor_to_major, tiles } => {
                let expected = (0..dims.len() as i64).rev();
                tiles.is_empty() && minor_to_major.iter().copied().eq(expected)
            }
            Self::Strides(strides) => {
                let mut expected = element_bytes as i64;
                let mut dense = strides.len() == dims.len();
                for (&stride, &dim) in strides.iter().zip(dims).rev() {
                    dense &= stride == expected || dim <= 1;
                    expected = expected.saturating_mul(dim.max(1));
                }
                dense
            }
        }
    }
}

impl Buffer {
    /// Returns the layout of the array on the device.
    ///
    /// # Errors
    /// The plug-in's errors; [`PjrtError::BadAnswer`] for an unknown kind of layout, or one with
    /// too many dimensions or tiles.
    pub fn layout(&self) -> Result<MemoryLayout, PjrtError> {
        const CALL: &str = "PJRT_Buffer_GetMemoryLayout";
        let found = of_buffer!(self.handle(), PJRT_Buffer_GetMemoryLayout_Args)?.layout;
        let bad = |what, found: String, expected| {
            Err(PjrtError::BadAnswer { call: CALL, what, found, expected })
        };
        let value = &found.value;
        if value.minor_to_major_size > MOST_DIMENSIONS || value.num_tiles > MOST_DIMENSIONS {
            let counts = format!("{} and {} tiles", value.minor_to_major_size, value.num_tiles);
            return bad("the dimensions of a layout", counts, "254 at most of either");
        }
        // SAFETY: both kinds have a list of numbers here, which belongs to the buffer.
        let order =
            unsafe { list(CALL, "a layout", value.minor_to_major, value.minor_to_major_size) }?;
        match found.r#type {
            STRIDES => Ok(MemoryLayout::Strides(order.to_vec())),
            TILED => {
                // SAFETY: the plug-in declares this number of tiles; the list belongs to the
                // buffer.
                let ranks = unsafe { list(CALL, "tiles", value.tile_dim_sizes, value.num_tiles) }?;
                let total = ranks.iter().try_fold(0_usize, |sum, &rank| sum.checked_add(rank));
                let Some(total) = total.filter(|&total| total <= MOST_DIMENSIONS) else {
                    return bad("the dimensions of tiles", format!("{ranks:?}"), "254 at most");
                };
                // SAFETY: the dimensions of all tiles are in one list, which belongs to the buffer.
                let mut rest = unsafe { list(CALL, "tiles", value.tile_dims, total) }?;
                let tiles = ranks.iter().map(|&rank| {
                    // The length of the list is the sum of the ranks.
                    let (tile, after) = rest.split_at(rank.min(rest.len()));
                    rest = after;
                    tile.to_vec()
                });
                let tiles = tiles.collect();
                Ok(MemoryLayout::Tiled { minor_to_major: order.to_vec(), tiles })
            }
            other => bad("the kind of a layout", other.to_string(), "0 or 1"),
        }
    }

    /// Returns true if the layout on the device is dense and row-major, so that raw bytes are the
    /// array's values; false if the plug-in does not report it.
    ///
    /// # Errors
    /// As [`Self::dims`] and [`Self::element_type`].
    pub fn is_row_major(&self) -> Result<bool, PjrtError> {
        let (dims, element_type) = (self.dims()?, self.element_type()?);
        let dense = !element_type.may_be_packed();
        let layout = self.layout();
        Ok(dense && layout.is_ok_and(|found| found.is_row_major(&dims, element_type.host_bytes())))
    }

    /// Returns the layout on the device in XLA's notation (`{1,0}`), from the extension of layouts.
    ///
    /// # Errors
    /// [`PjrtError::NotInExtensions`] if the plug-in does not have the extension; else as the
    /// plug-in's.
    pub fn layout_text(&self) -> Result<String, PjrtError> {
        let (table, raw) = (self.handle().client().table(), self.handle().raw());
        // SAFETY: the buffer is alive.
        let found = unsafe {
            table.ask_extension(|call: &mut PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args| {
                call.buffer = raw;
            })
        }?;
        // SAFETY: a successful call returns ownership of this layout.
        unsafe { layout_text(table, "PJRT_Layouts_PJRT_Buffer_MemoryLayout", found.layout, true) }
    }
}

impl Client {
    /// Returns the default layout of arrays with this type and these dimensions on the client's
    /// devices, in XLA's notation.
    ///
    /// # Errors
    /// As [`Buffer::layout_text`]; [`PjrtError::InvalidArgument`] for a type that its version does
    /// not know, or invalid dimensions.
    pub fn default_layout_text(
        &self,
        element_type: ElementType,
        dims: &[i64],
    ) -> Result<String, PjrtError> {
        HostArray::new(element_type, dims).extent()?;
        let number = number_of(element_type, self.minor())?;
        let (table, raw) = (self.handle().table(), self.handle().raw());
        // SAFETY: the client is alive, and the dimensions are valid for the call.
        let found = unsafe {
            table.ask_extension(|call: &mut PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args| {
                call.client = raw;
                call.r#type = number;
                (call.dims, call.num_dims) = (dims.as_ptr(), dims.len());
            })
        }?;
        let call = "PJRT_Layouts_PJRT_Client_GetDefaultLayout";
        // SAFETY: a successful call returns ownership of this layout.
        unsafe { layout_text(table, call, found.layout, true) }
    }
}

/// Returns the text of a layout that a plug-in returned, and destroys the layout if it is owned.
///
/// # Safety
/// It is NULL, or alive and of this plug-in; the caller owns it if the last argument says so.
pub(super) unsafe fn layout_text(
    table: &Table,
    call: &'static str,
    layout: *mut PJRT_Layouts_MemoryLayout,
    is_owned: bool,
) -> Result<String, PjrtError> {
    let layout = pointer(call, "a layout", layout)?.as_ptr();
    // SAFETY: the layout is alive.
    let found = unsafe {
        table.ask_extension(|call: &mut PJRT_Layouts_MemoryLayout_Serialize_Args| {
            call.layout = layout;
        })
    };
    let text = found.and_then(|found| {
        let bytes: (*const c_char, usize) = (found.serialized_bytes, found.serialized_bytes_size);
        let (owner, deleter) = (found.serialized_layout, found.serialized_layout_deleter);
        let call = "PJRT_Layouts_MemoryLayout_Serialize";
        // SAFETY: a successful call returns this number of bytes and their owner.
        unsafe { owned_bytes(call, "a layout", bytes, owner, deleter) }
    });
    if is_owned {
        // SAFETY: the layout is alive, is owned, and is not used any more. An error has no
        // consequence.
        let _ = unsafe {
            table.ask_extension(|call: &mut PJRT_Layouts_MemoryLayout_Destroy_Args| {
                call.layout = layout;
            })
        };
    }
    text.map(|bytes| printable(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_layout_has_no_tiles_and_the_last_dimension_fastest() {
        let tiled = |minor_to_major: &[i64], tiles: &[&[i64]]| MemoryLayout::Tiled {
            minor_to_major: minor_to_major.to_vec(),
            tiles: tiles.iter().map(|tile| tile.to_vec()).collect(),
        };
        assert!(tiled(&[1, 0], &[]).is_row_major(&[2, 3], 4));
        assert!(tiled(&[], &[]).is_row_major(&[], 4));
        assert!(!tiled(&[0, 1], &[]).is_row_major(&[2, 3], 4));
        assert!(!tiled(&[1, 0], &[&[8, 128]]).is_row_major(&[2, 3], 4));
        assert!(!tiled(&[1], &[]).is_row_major(&[2, 3], 4));
        let strides = |strides: &[i64]| MemoryLayout::Strides(strides.to_vec());
        assert!(strides(&[12, 4]).is_row_major(&[2, 3], 4));
        assert!(strides(&[99, 4]).is_row_major(&[1, 3], 4));
        assert!(!strides(&[4, 8]).is_row_major(&[2, 3], 4));
        assert!(!strides(&[4]).is_row_major(&[2, 3], 4));
        assert!(!strides(&[16, 4]).is_row_major(&[2, 3], 4));
    }
}
