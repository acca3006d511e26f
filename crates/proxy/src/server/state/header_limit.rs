//! Returns the limit on the bytes of names in the header of the state file.

/// Returns the limit on the bytes of names in the state for clients with this number of handles, at
/// most one of `parts` parts of the header.
pub(crate) fn most_name_bytes(handles: usize, parts: usize) -> usize {
    /// Bytes of the header for names: most of its 128 MiB, which also hold all other entries.
    const HEADER: usize = 126 << 20;
    /// Bytes per handle: a name of usual length and its owner.
    const EACH: usize = 128;
    /// Minimum of bytes for few handles, so that names may be long.
    const LEAST: usize = 512 << 10;
    handles.saturating_mul(EACH).clamp(LEAST, HEADER / parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_name_bytes_stay_below_the_header_of_the_file() {
        const HEADER: usize = 128 << 20;
        for handles in [0, 1, 1 << 16, 1 << 21, usize::MAX] {
            assert!(most_name_bytes(handles, 1) < HEADER, "{handles}");
            assert!(most_name_bytes(handles, 2) < HEADER / 2, "{handles}");
        }
        assert_eq!(most_name_bytes(1 << 16, 1), 8 << 20);
    }
}
