//! What arrays are made of.

use std::fmt;

macro_rules! element_types {
    ($($variant:ident $number:literal $name:literal $host_bytes:literal $device_bits:literal;)*) => {
        /// The type of an array's elements, with its number in the C API (`PJRT_Buffer_Type`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ElementType {
            $(
                #[doc = concat!("`", $name, "`.")]
                $variant = $number,
            )*
        }

        impl ElementType {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The type of that number.
            #[must_use]
            pub const fn of_number(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Its name in the C API, without a prefix: `F8E4M3FN`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// How many bytes an element takes in memory of the host: at least one.
            #[must_use]
            pub const fn host_bytes(self) -> usize {
                match self {
                    $(Self::$variant => $host_bytes,)*
                }
            }

            /// How many bits an element takes in memory of a device: 1, 2 or 4 where several lie in
            /// a byte, the first of them in its lowest bits.
            #[must_use]
            pub const fn device_bits(self) -> usize {
                match self {
                    $(Self::$variant => $device_bits,)*
                }
            }
        }
    };
}

// Tokens (23) are not here: they have no data.
element_types! {
    Pred 1 "PRED" 1 8;
    S8 2 "S8" 1 8;
    S16 3 "S16" 2 16;
    S32 4 "S32" 4 32;
    S64 5 "S64" 8 64;
    U8 6 "U8" 1 8;
    U16 7 "U16" 2 16;
    U32 8 "U32" 4 32;
    U64 9 "U64" 8 64;
    F16 10 "F16" 2 16;
    F32 11 "F32" 4 32;
    F64 12 "F64" 8 64;
    BF16 13 "BF16" 2 16;
    C64 14 "C64" 8 64;
    C128 15 "C128" 16 128;
    F8E5M2 16 "F8E5M2" 1 8;
    F8E4M3FN 17 "F8E4M3FN" 1 8;
    F8E4M3B11FNUZ 18 "F8E4M3B11FNUZ" 1 8;
    F8E5M2FNUZ 19 "F8E5M2FNUZ" 1 8;
    F8E4M3FNUZ 20 "F8E4M3FNUZ" 1 8;
    S4 21 "S4" 1 4;
    U4 22 "U4" 1 4;
    S2 24 "S2" 1 2;
    U2 25 "U2" 1 2;
    F8E4M3 26 "F8E4M3" 1 8;
    F8E3M4 27 "F8E3M4" 1 8;
    F8E8M0FNU 28 "F8E8M0FNU" 1 8;
    F4E2M1FN 29 "F4E2M1FN" 1 4;
    S1 30 "S1" 1 1;
    U1 31 "U1" 1 1;
    F6E2M3FN 32 "F6E2M3FN" 1 8;
    F6E3M2FN 33 "F6E3M2FN" 1 8;
}

impl ElementType {
    /// Its number in the C API.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// Whether a device keeps several in a byte.
    #[must_use]
    pub const fn is_packed(self) -> bool {
        self.device_bits() < 8
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use serdes_abi::pjrt::{Minor, enumeration};

    use super::*;

    #[test]
    fn every_type_of_the_history_but_tokens_is_here_under_its_number() {
        let history = enumeration("PJRT_Buffer_Type").unwrap();
        for value in history.values(Minor::NEWEST) {
            let name = value.name.strip_prefix("PJRT_Buffer_Type_").unwrap();
            let found = ElementType::of_number(value.value);
            if ["INVALID", "TOKEN"].contains(&name) {
                assert_eq!(found, None, "{name}");
            } else {
                let found = found.unwrap();
                assert_eq!((found.name(), found.number()), (name, value.value));
            }
        }
    }

    #[test]
    fn a_type_takes_as_many_bits_on_a_device_as_in_the_host_unless_it_is_packed() {
        for &element_type in ElementType::ALL {
            let (host, device) = (element_type.host_bytes() * 8, element_type.device_bits());
            assert!(host == device || (host == 8 && [1, 2, 4].contains(&device)), "{element_type}");
        }
    }
}
