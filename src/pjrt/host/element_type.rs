//! What arrays are made of.

use std::fmt;

use serdes_abi::pjrt::{self, Minor};

use crate::pjrt::PjrtError;

const PREFIX: &str = "PJRT_Buffer_Type_";

macro_rules! element_types {
    ($($variant:ident $name:literal $bytes:literal;)*) => {
        /// The type of an array's elements. Its number differs between minors, its name does not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ElementType {
            $(
                #[doc = concat!("`", $name, "`.")]
                $variant,
            )*
        }

        impl ElementType {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name in the interface, without a prefix: `F8E4M3FN`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// How many bytes an element takes on the host: at least one, also where a device packs
            /// several into a byte.
            #[must_use]
            pub const fn host_bytes(self) -> usize {
                match self {
                    $(Self::$variant => $bytes,)*
                }
            }
        }
    };
}

// Tokens are not here: they have no data, and plug-ins end the process when they are given one.
element_types! {
    Pred "PRED" 1;
    S1 "S1" 1;
    S2 "S2" 1;
    S4 "S4" 1;
    S8 "S8" 1;
    S16 "S16" 2;
    S32 "S32" 4;
    S64 "S64" 8;
    U1 "U1" 1;
    U2 "U2" 1;
    U4 "U4" 1;
    U8 "U8" 1;
    U16 "U16" 2;
    U32 "U32" 4;
    U64 "U64" 8;
    F4E2M1FN "F4E2M1FN" 1;
    F6E2M3FN "F6E2M3FN" 1;
    F6E3M2FN "F6E3M2FN" 1;
    F8E3M4 "F8E3M4" 1;
    F8E4M3 "F8E4M3" 1;
    F8E4M3FN "F8E4M3FN" 1;
    F8E4M3B11FNUZ "F8E4M3B11FNUZ" 1;
    F8E4M3FNUZ "F8E4M3FNUZ" 1;
    F8E5M2 "F8E5M2" 1;
    F8E5M2FNUZ "F8E5M2FNUZ" 1;
    F8E8M0FNU "F8E8M0FNU" 1;
    F16 "F16" 2;
    F32 "F32" 4;
    F64 "F64" 8;
    BF16 "BF16" 2;
    C64 "C64" 8;
    C128 "C128" 16;
}

impl ElementType {
    /// Its number in that minor, or `None` if a plug-in of it does not know the type: one that is
    /// given a number that it does not know crashes.
    #[must_use]
    pub fn number(self, minor: Minor) -> Option<i32> {
        let known = pjrt::enumeration("PJRT_Buffer_Type")?;
        let mut values = known.values(minor);
        let found = values.find(|value| value.name.strip_prefix(PREFIX) == Some(self.name()));
        found.map(|value| value.value)
    }

    /// The type of that name, as [`Self::name`] gives it.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|found| found.name() == name)
    }

    /// Whether it has less than 8 bits, so that devices may pack several elements into a byte.
    /// (True and false have 8.)
    #[must_use]
    pub fn is_packed(self) -> bool {
        use ElementType::{F4E2M1FN, F6E2M3FN, F6E3M2FN, S1, S2, S4, U1, U2, U4};
        matches!(self, S1 | S2 | S4 | U1 | U2 | U4 | F4E2M1FN | F6E2M3FN | F6E3M2FN)
    }

    /// The type of a number that a call gave.
    ///
    /// # Errors
    /// [`PjrtError::BadAnswer`] if there is none in that minor that has data.
    pub(super) fn of_answer(
        call: &'static str,
        number: i32,
        minor: Minor,
    ) -> Result<Self, PjrtError> {
        Self::of_number(number, minor).ok_or_else(|| PjrtError::BadAnswer {
            call,
            what: "an element type",
            found: number.to_string(),
            expected: "one of its version that has data",
        })
    }

    /// The type of that number in that minor, if it has data.
    #[must_use]
    pub fn of_number(number: i32, minor: Minor) -> Option<Self> {
        let name = pjrt::enumeration("PJRT_Buffer_Type")?.name_of(number, minor)?;
        let name = name.strip_prefix(PREFIX)?;
        Self::of_name(name)
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
    fn every_type_of_the_newest_minor_but_tokens_has_a_number_and_a_way_back() {
        for minor in [29, 54, 81, 106, 114, 117].map(Minor::new) {
            for &found in ElementType::ALL {
                if let Some(number) = found.number(minor) {
                    assert_eq!(ElementType::of_number(number, minor), Some(found), "{minor}");
                }
            }
        }
        let newest = ElementType::ALL.iter().filter_map(|found| found.number(Minor::NEWEST));
        // 34 numbers, of which 0 is none, and 23 the token.
        assert_eq!(newest.count(), 32);
        assert_eq!(ElementType::of_number(23, Minor::NEWEST), None);
    }

    #[test]
    fn a_type_is_unknown_before_the_minor_that_brought_it() {
        assert_eq!(ElementType::S1.number(Minor::new(93)), None);
        assert_eq!(ElementType::S1.number(Minor::new(94)), Some(30));
        assert_eq!(ElementType::F6E2M3FN.number(Minor::new(113)), None);
        assert_eq!(ElementType::of_number(32, Minor::new(113)), None);
    }
}
