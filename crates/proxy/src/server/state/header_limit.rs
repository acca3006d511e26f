//! Limit on the bytes of names in the header of the state's file.

/// Returns the number of bytes of names in the state that clients may have by that many handles, at
/// most one of `parts` of what the header of the file has room for.
pub(crate) fn most_name_bytes(handles: usize, parts: usize) -> usize {
    /// Most of the 128 MiB that the header may have with all else that it says.
    const HEADER: usize = 126 << 20;
    /// Bytes for a handle: a name of usual length and its owner.
    const EACH: usize = 128;
    /// Bytes that few handles have, too, so that names may be long.
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
