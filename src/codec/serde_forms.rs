//! Implementations of `serde` that several types share, as macros. `no_serde_forms.rs` has the same
//! macros for builds without the feature.

/// Returns the bytes as hexadecimal digits.
pub(crate) fn to_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of hexadecimal digits, or `None` if the text is anything else.
pub(crate) fn from_text(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).map(|value| value as u8);
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect()
}

/// Implements `Serialize` and `Deserialize` for a type that is kept as a message: `$to` gives its
/// bytes, `$from` reads them with all checks. A type with versions is written at
/// [`requested`](super::at::requested).
macro_rules! serde_as_message {
    ($type:ty, $to:expr, $from:expr) => {
        /// Writes the bytes of the message as hexadecimal digits.
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let to: fn(&Self) -> Result<bytes::Bytes, $crate::codec::EncodeError> = $to;
                let bytes = to(self).map_err(serde::ser::Error::custom)?;
                serializer.serialize_str(&$crate::codec::serde_forms::to_text(&bytes))
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error as _;
                let text = String::deserialize(deserializer)?;
                let bytes = $crate::codec::serde_forms::from_text(&text)
                    .ok_or_else(|| D::Error::custom("expected pairs of hexadecimal digits"))?;
                let from: fn(bytes::Bytes) -> Result<Self, $crate::codec::DecodeError> = $from;
                from(bytes.into()).map_err(D::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_message;

/// Implements `Deserialize` for a struct of these fields, which its function `new` checks.
macro_rules! deserialize_checked {
    ($type:ident { $($field:ident: $kind:ty),+ $(,)? }) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                struct Unchecked {
                    $($field: $kind,)+
                }
                let Unchecked { $($field),+ } = Unchecked::deserialize(deserializer)?;
                Self::new($($field),+).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use deserialize_checked;
