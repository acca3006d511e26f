//! The element types of arrays, in one list for hosts and plug-ins.

use core::fmt;

use super::{history::enumeration, layout::Enumeration, minor::Minor};

/// Defines [`ElementType`] from one list: variant, number, name, and number of bits.
macro_rules! element_types {
    ($($variant:ident $number:literal $name:literal $bits:literal;)*) => {
        /// The type of an array's elements.
        ///
        /// Its number (`PJRT_Buffer_Type`) has been the same since version 0.5, in which two types
        /// were renumbered.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ElementType {
            $(
                #[doc = concat!("`", $name, "`.")]
                $variant = $number,
            )*
        }

        impl ElementType {
            /// All types, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the type with this number, in every version from 0.5 to the newest known
            /// one.
            #[must_use]
            pub const fn of_number(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Returns the name in the interface, without a prefix: `F8E4M3FN`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the number of bits of a value. (Booleans have 8.)
            #[must_use]
            pub const fn bits(self) -> usize {
                match self {
                    $(Self::$variant => $bits,)*
                }
            }
        }
    };
}

// Tokens (23) are excluded: they have no data, and plug-ins end the process when they get one.
element_types! {
    Pred 1 "PRED" 8;
    S8 2 "S8" 8;
    S16 3 "S16" 16;
    S32 4 "S32" 32;
    S64 5 "S64" 64;
    U8 6 "U8" 8;
    U16 7 "U16" 16;
    U32 8 "U32" 32;
    U64 9 "U64" 64;
    F16 10 "F16" 16;
    F32 11 "F32" 32;
    F64 12 "F64" 64;
    BF16 13 "BF16" 16;
    C64 14 "C64" 64;
    C128 15 "C128" 128;
    F8E5M2 16 "F8E5M2" 8;
    F8E4M3FN 17 "F8E4M3FN" 8;
    F8E4M3B11FNUZ 18 "F8E4M3B11FNUZ" 8;
    F8E5M2FNUZ 19 "F8E5M2FNUZ" 8;
    F8E4M3FNUZ 20 "F8E4M3FNUZ" 8;
    S4 21 "S4" 4;
    U4 22 "U4" 4;
    S2 24 "S2" 2;
    U2 25 "U2" 2;
    F8E4M3 26 "F8E4M3" 8;
    F8E3M4 27 "F8E3M4" 8;
    F8E8M0FNU 28 "F8E8M0FNU" 8;
    F4E2M1FN 29 "F4E2M1FN" 4;
    S1 30 "S1" 1;
    U1 31 "U1" 1;
    F6E2M3FN 32 "F6E2M3FN" 6;
    F6E3M2FN 33 "F6E3M2FN" 6;
}

const PREFIX: &str = "PJRT_Buffer_Type_";

const HISTORY: &Enumeration = match enumeration("PJRT_Buffer_Type") {
    Some(history) => history,
    None => panic!("the history has no element types"),
};

impl ElementType {
    /// Returns the number, in every version since 0.5 that knows the type; see [`Self::number_in`].
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// Returns the number in `minor`, or `None` if a plug-in of that version does not know the
    /// type: it would crash on an unknown number.
    #[must_use]
    pub fn number_in(self, minor: Minor) -> Option<i32> {
        let mut values = HISTORY.values(minor);
        let known = values.find(|value| value.name.strip_prefix(PREFIX) == Some(self.name()));
        known.map(|value| value.value)
    }

    /// Returns the type with this number in `minor`, if the type has data.
    #[must_use]
    pub fn of_number_in(number: i32, minor: Minor) -> Option<Self> {
        Self::of_name(HISTORY.name_of(number, minor)?.strip_prefix(PREFIX)?)
    }

    /// Returns the type with this name, as [`Self::name`] returns it.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == name)
    }

    /// Returns the number of bytes of an element in host memory: at least one, even if a device
    /// packs several into a byte.
    #[must_use]
    pub const fn host_bytes(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// Returns the number of bits of an element in the memory of a device that packs: 1, 2 or 4 if
    /// a byte holds several, the first of them in its lowest bits. Six bits do not divide a byte,
    /// and take a whole one.
    #[must_use]
    pub const fn device_bits(self) -> usize {
        match self.bits() {
            6 => 8,
            bits => bits,
        }
    }

    /// Returns `true` if a device that packs stores several elements in a byte.
    #[must_use]
    pub const fn is_packed(self) -> bool {
        self.device_bits() < 8
    }

    /// Returns `true` if an element has less than 8 bits: unless asked for a layout, a device may
    /// then store elements differently from the host.
    #[must_use]
    pub const fn may_be_packed(self) -> bool {
        self.bits() < 8
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_have_the_numbers_of_the_history() {
        for value in HISTORY.values(Minor::NEWEST) {
            let name = value.name.strip_prefix(PREFIX).unwrap();
            let found = ElementType::of_number(value.value);
            if ["INVALID", "TOKEN"].contains(&name) {
                assert_eq!(found, None, "{name}");
            } else {
                let found = found.unwrap();
                assert_eq!((found.name(), found.number()), (name, value.value));
            }
        }
        // 34 numbers, of which 0 is invalid and 23 is the token.
        assert_eq!(ElementType::ALL.len(), 32);
    }

    #[test]
    fn a_number_is_the_same_in_every_version_that_a_host_can_call() {
        for minor in Minor::OLDEST_SUPPORTED.number()..=Minor::NEWEST.number() + 3 {
            let minor = Minor::new(minor);
            for &found in ElementType::ALL {
                if let Some(number) = found.number_in(minor) {
                    assert_eq!(number, found.number(), "{found} in {minor}");
                    assert_eq!(ElementType::of_number_in(number, minor), Some(found), "{minor}");
                }
            }
        }
        assert_eq!(ElementType::S4.number_in(Minor::new(4)), Some(19));
        assert_eq!(ElementType::of_number_in(19, Minor::new(4)), Some(ElementType::S4));
    }

    #[test]
    fn a_type_is_unknown_before_the_minor_that_brought_it() {
        assert_eq!(ElementType::S1.number_in(Minor::new(93)), None);
        assert_eq!(ElementType::S1.number_in(Minor::new(94)), Some(30));
        assert_eq!(ElementType::F6E2M3FN.number_in(Minor::new(113)), None);
        assert_eq!(ElementType::of_number_in(32, Minor::new(113)), None);
        assert_eq!(ElementType::of_number_in(23, Minor::NEWEST), None);
    }

    #[test]
    fn element_type_has_equal_bits_on_device_and_host_unless_packed() {
        for &element_type in ElementType::ALL {
            let (host, device) = (element_type.host_bytes() * 8, element_type.device_bits());
            assert!(host == device || (host == 8 && [1, 2, 4].contains(&device)), "{element_type}");
            assert!(element_type.may_be_packed() || !element_type.is_packed(), "{element_type}");
        }
    }
}
