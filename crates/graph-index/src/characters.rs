//! Classifies the characters of short texts, eight at a time.
//!
//! Names and inputs make up most of a large graph, and a loop over their bytes spends more time on
//! mispredicting its end than on its work. Does not depend on the use of the texts.

/// Returns every byte of a word.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The highest bit of every byte.
const HIGH: u64 = each(0x80);

/// Calls a function with words that contain every byte of a text, some of them twice, and otherwise
/// only `filler`.
#[inline(always)]
fn words(text: &[u8], filler: u8, mut see: impl FnMut(u64)) {
    if let Some(last) = text.last_chunk() {
        for word in text.as_chunks::<8>().0 {
            see(u64::from_le_bytes(*word));
        }
        see(u64::from_le_bytes(*last));
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        see(u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last)));
    } else {
        see(text.iter().fold(each(filler), |word, byte| word << 8 | u64::from(*byte)));
    }
}

/// Returns the highest bit of every byte that is at least `low` and at most `high`, where all bytes
/// are below 128.
#[inline]
const fn within(word: u64, low: u8, high: u8) -> u64 {
    (word + each(0x80 - low)) & !(word + each(0x7f - high)) & HIGH
}

/// Returns true if all bytes are letters, digits or among `_.-/`.
#[inline]
pub fn are_of_a_name(text: &[u8]) -> bool {
    let mut all = HIGH;
    words(text, b'a', |word| {
        let low = word & !HIGH;
        let letters = within(low | each(0x20), b'a', b'z');
        // The characters from the minus sign to `9` are `-./` and the digits.
        all &= (letters | within(low, b'-', b'9') | within(low, b'_', b'_')) & !word;
    });
    all == HIGH
}

/// Facts about the bytes of an input, found before it is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// True if all bytes are ASCII.
    pub ascii: bool,
    /// True if a byte may be a colon; exact for ASCII text.
    pub colon: bool,
}

/// Examines all bytes of a text.
#[inline]
pub fn seen(text: &[u8]) -> Seen {
    let (mut high, mut other) = (0, HIGH);
    words(text, b'a', |word| {
        high |= word;
        other &= ((word ^ each(b':')) & !HIGH) + each(0x7f);
    });
    Seen { ascii: high & HIGH == 0, colon: other & HIGH != HIGH }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts_wherever_it_is() {
        for length in 0..20 {
            let letters = vec![b'n'; length];
            assert!(are_of_a_name(&letters), "{length}");
            assert_eq!(seen(&letters), Seen { ascii: true, colon: false });
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    let mut text = letters.clone();
                    text[at] = byte;
                    let of_a_name = byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte);
                    assert_eq!(are_of_a_name(&text), of_a_name, "{text:?}");
                    let found = seen(&text);
                    assert_eq!(found.ascii, byte.is_ascii(), "{text:?}");
                    assert!(!byte.is_ascii() || found.colon == (byte == b':'), "{text:?}");
                }
            }
        }
    }
}
