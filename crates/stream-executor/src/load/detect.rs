//! Detects the layout that a plug-in was built with.
//!
//! All headers declare version 0.0.1, so the layout is detected from the sizes that the plug-in
//! wrote, and if it wrote none, from the slots that it set. If the two contradict each other,
//! nothing is called: slots of one layout hold functions with other arguments in another.

use serdes_abi::{
    Layout, RFC_257, SP_PlatformFns, SP_StreamExecutor, TENSORFLOW_2_4, TENSORFLOW_2_5,
    TENSORFLOW_2_8, TENSORFLOW_2_14, layout_named, rfc,
};

use crate::{border::StructMemory, error::Error};

/// The choice of a plug-in's layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LayoutChoice {
    /// Detected from the data that the plug-in writes when it registers.
    #[default]
    Detect,
    /// This layout, regardless of the plug-in's data.
    Named(&'static Layout),
}

impl LayoutChoice {
    /// Returns the choice of the layout with this name, such as `tensorflow-2.14` or `rfc-257`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there is none.
    pub fn named(name: &str) -> Result<Self, Error> {
        layout_named(name).map(Self::Named).ok_or_else(|| Error::InvalidArgument {
            what: "the layout",
            found: format!("`{name}`"),
            expected: "tensorflow-2.14, tensorflow-2.8, tensorflow-2.5, tensorflow-2.4 or rfc-257",
        })
    }
}

/// The end of SP_PlatformFns in the released layout; data at this offset is beyond it.
const RELEASED_END: usize = SP_PlatformFns::STRUCT_SIZE;

/// End of SP_PlatformFns in RFC #257.
const RFC_257_END: usize = rfc::SP_PlatformFns::LAYOUT.size_of;

/// No function is below the first page.
const LOWEST_ADDRESS: usize = 4096;

/// The layout that was detected from the platform's two structs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Detected {
    /// This layout; a released one may still be refined by the executor.
    Layout(&'static Layout),
    /// The sizes are those that the host preset, and the slots could be those of an older layout; a
    /// second registration with other presets shows if the plug-in writes sizes.
    Ambiguous,
    /// No known layout.
    Unknown {
        /// The contradiction, as text for people.
        found: String,
    },
}

/// Returns the layout of SP_Platform and SP_PlatformFns after `SE_InitPlugin`.
///
/// `preset` is true if the sizes may be those that the host itself preset (35 and 88); otherwise
/// the plug-in wrote both.
pub(crate) fn platform(
    platform: &StructMemory,
    functions: &StructMemory,
    preset: bool,
) -> Detected {
    let sizes = (platform.struct_size(), functions.struct_size());
    let is_set = |offset: usize| functions.read::<usize>(offset) != 0;
    // In the layouts of RFC #257 and TensorFlow 2.4 these slots hold other functions, and the last
    // one is NULL.
    let older = (16..=72).step_by(8).all(is_set) && !is_set(80);
    match sizes {
        (41, 80) => Detected::Layout(&TENSORFLOW_2_4),
        (_, 64) | (40, 96) => Detected::Layout(&RFC_257),
        (_, size) if size > RELEASED_END && !(size == RFC_257_END && older) => {
            Detected::Layout(&TENSORFLOW_2_14)
        }
        // A plug-in that writes beyond the longest older layout has a newer header, and left the
        // sizes unchanged.
        (_, RELEASED_END)
            if (16..=80).step_by(8).all(is_set)
                && functions.first_set_from(RFC_257_END).is_some() =>
        {
            Detected::Layout(&TENSORFLOW_2_14)
        }
        // A released plug-in has nothing here; an RFC plug-in has destroy_custom_allocator.
        (_, RELEASED_END) if functions.read::<usize>(RELEASED_END) >= LOWEST_ADDRESS => {
            Detected::Unknown {
                found: format!(
                    "size {RELEASED_END} of SP_PlatformFns, and a function beyond it at {RELEASED_END}"
                ),
            }
        }
        // These are the slots of a released plug-in that can create timer functions but not destroy
        // them, or of an older layout whose plug-in left one size or both as preset.
        (written, RELEASED_END | RFC_257_END) if older && preset && written != 34 => {
            Detected::Ambiguous
        }
        // RFC #257 has the device count here, and a released header a flag. These slots and this
        // size contradict a flag.
        (40, RELEASED_END) if older && platform.read::<u8>(32) != 0 => Detected::Unknown {
            found: format!(
                "size {RELEASED_END} of SP_PlatformFns, and size, contents and functions of RFC #257"
            ),
        },
        (_, RELEASED_END | RFC_257_END) => Detected::Layout(&TENSORFLOW_2_14),
        (platform, functions) => Detected::Unknown {
            found: format!("sizes {platform} of SP_Platform and {functions} of SP_PlatformFns"),
        },
    }
}

/// Returns the released layout with this size of SP_StreamExecutor, given that of SP_Platform;
/// `None` if no known header has this size.
pub(crate) fn executor(platform_size: usize, executor_size: usize) -> Option<&'static Layout> {
    let before_mem_zero = 256;
    match executor_size {
        264 => Some(&TENSORFLOW_2_5),
        size if size == before_mem_zero || size >= SP_StreamExecutor::STRUCT_SIZE => {
            Some(if platform_size == 34 { &TENSORFLOW_2_8 } else { &TENSORFLOW_2_14 })
        }
        _ => None,
    }
}

/// Returns true if an executor with the size 264 has functions beyond it. Then it has a newer
/// header, regardless of its size, and the slot of host_callback in 264-byte headers is mem_zero.
pub(crate) fn is_longer_than_264_bytes(executor: &StructMemory) -> bool {
    (264..=280).step_by(8).any(|offset| executor.read::<usize>(offset) >= LOWEST_ADDRESS)
}

/// Returns true if an executor whose size was left at 288 has a function in the slot of
/// host_callback in 264-byte headers, and nothing after it.
pub(crate) fn looks_like_264_bytes(executor: &StructMemory) -> bool {
    executor.read::<usize>(256) != 0
        && (264..=280).step_by(8).all(|offset| executor.read::<usize>(offset) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(platform: usize, functions: usize, set: &[usize]) -> (StructMemory, StructMemory) {
        let blocks = (StructMemory::new(platform), StructMemory::new(functions));
        for &offset in set {
            blocks.1.write(offset, LOWEST_ADDRESS);
        }
        blocks
    }

    fn found(platform_size: usize, functions_size: usize, set: &[usize]) -> Detected {
        let (a, b) = blocks(platform_size, functions_size, set);
        platform(&a, &b, true)
    }

    const ALL: [usize; 9] = [16, 24, 32, 40, 48, 56, 64, 72, 80];
    const UP_TO_72: [usize; 8] = [16, 24, 32, 40, 48, 56, 64, 72];

    #[test]
    fn sizes_that_were_written_decide() {
        let layout = Detected::Layout;
        assert_eq!(found(41, 80, &UP_TO_72), layout(&TENSORFLOW_2_4));
        assert_eq!(found(40, 64, &UP_TO_72), layout(&RFC_257));
        assert_eq!(found(35, 64, &UP_TO_72), layout(&RFC_257));
        assert_eq!(found(40, 96, &UP_TO_72), layout(&RFC_257));
        assert_eq!(found(35, 88, &ALL), layout(&TENSORFLOW_2_14));
        assert_eq!(found(34, 88, &ALL), layout(&TENSORFLOW_2_14));
        assert_eq!(found(34, 88, &UP_TO_72), layout(&TENSORFLOW_2_14));
        assert_eq!(found(40, 88, &ALL), layout(&TENSORFLOW_2_14));
        assert_eq!(found(99, 152, &ALL), layout(&TENSORFLOW_2_14));
        assert_eq!(found(35, 9999, &ALL), layout(&TENSORFLOW_2_14));
        // Sizes that were left unchanged, and functions beyond every older layout.
        let newer = [16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96];
        assert_eq!(found(35, 88, &newer), layout(&TENSORFLOW_2_14));
    }

    #[test]
    fn slots_decide_where_sizes_were_left() {
        assert_eq!(found(35, 88, &UP_TO_72), Detected::Ambiguous);
        // The host presets 35 and 88, not 40 or 96, so one of the two was written.
        assert_eq!(found(40, 88, &UP_TO_72), Detected::Ambiguous);
        assert_eq!(found(35, 96, &UP_TO_72), Detected::Ambiguous);
        // Timer functions are optional.
        assert_eq!(
            found(35, 88, &[16, 24, 32, 40, 48, 56, 64]),
            Detected::Layout(&TENSORFLOW_2_14)
        );
    }

    #[test]
    fn sizes_that_a_plugin_wrote_decide_over_slots() {
        for written in [34, 35, 40] {
            let (a, b) = blocks(written, 88, &UP_TO_72);
            assert_eq!(platform(&a, &b, false), Detected::Layout(&TENSORFLOW_2_14));
        }
        let (a, b) = blocks(40, 88, &UP_TO_72);
        a.write(32, 2usize);
        assert!(matches!(platform(&a, &b, false), Detected::Unknown { .. }));
    }

    #[test]
    fn contradictions_and_unknown_sizes_are_refused() {
        for (platform, functions, set) in [
            (35, 8, &ALL[..]),
            (35, 80, &ALL),
            (41, 72, &ALL),
            (35, 88, &[16, 24, 32, 40, 48, 56, 64, 72, 80, 88]),
        ] {
            let detected = found(platform, functions, set);
            assert!(matches!(detected, Detected::Unknown { .. }), "found {detected:?}");
        }
    }

    #[test]
    fn the_executor_narrows_the_released_layouts() {
        assert_eq!(executor(34, 264), Some(&TENSORFLOW_2_5));
        assert_eq!(executor(35, 264), Some(&TENSORFLOW_2_5));
        assert_eq!(executor(34, 288), Some(&TENSORFLOW_2_8));
        assert_eq!(executor(35, 288), Some(&TENSORFLOW_2_14));
        assert_eq!(executor(35, 9999), Some(&TENSORFLOW_2_14));
        assert_eq!(executor(35, 256), Some(&TENSORFLOW_2_14));
        for size in [0, 8, 200, 272, 280] {
            assert_eq!(executor(35, size), None);
        }
    }
}
