//! Masked CRC-32C checksums, as tables and bundles store them.
//!
//! Masking (rotate right by 15 bits, add a constant) avoids the weakness of computing a checksum
//! over bytes that contain checksums; TensorFlow and LevelDB mask in the same way.

const MASK_DELTA: u32 = 0xa282_ead8;

/// Returns a CRC-32C in its stored (masked) form.
pub(super) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// Returns the CRC-32C of a stored (masked) one.
pub(super) fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(MASK_DELTA).rotate_left(15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_the_check_value_is_the_standard_one() {
        assert_eq!(mask(0xe306_9283), 0xc78a_b0e5);
        assert_eq!(unmask(0xc78a_b0e5), 0xe306_9283);
        assert_eq!(mask(0), MASK_DELTA);
    }
}
