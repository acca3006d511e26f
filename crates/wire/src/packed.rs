//! Packed repeated numbers, the part of a message that grows with the number of devices.
//!
//! Two implementations give the same results, and are tested against each other: a scalar one in
//! safe code, and one with the vector instructions of AVX2, chosen at run time if the processor has
//! them. They accept the same as prost: varints of up to 10 bytes, of which a 32-bit number takes
//! the low bits.
//!
//! The module knows numbers and bytes. It does not depend on messages or versions.

#![allow(unsafe_code, reason = "vector instructions for the packed lists of large device lists")]

use std::sync::atomic::{AtomicU8, Ordering};

use super::varint;

/// The implementation that reads and writes packed numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Implementation {
    /// One number at a time, in safe code.
    Scalar,
    /// Up to 32 numbers at a time, with the instructions of AVX2.
    Avx2,
}

/// 0: not chosen yet; 1: scalar; 2: AVX2.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

impl Implementation {
    /// Returns the fastest implementation that this processor can run.
    pub fn fastest() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Scalar
    }

    /// Returns the implementation in use: the fastest, unless another was [chosen](Self::choose).
    #[inline]
    pub fn in_use() -> Self {
        match CHOSEN.load(Ordering::Relaxed) {
            0 => Self::fastest().choose(),
            2 => Self::Avx2,
            _ => Self::Scalar,
        }
    }

    /// Selects this implementation for the whole process, for measurements. If the processor cannot
    /// run it, selects the scalar one. Returns the implementation in use.
    pub fn choose(self) -> Self {
        let chosen = if self == Self::Scalar { self } else { Self::fastest() };
        let number = if chosen == Self::Avx2 { 2 } else { 1 };
        CHOSEN.store(number, Ordering::Relaxed);
        chosen
    }
}

/// The error of a packed list that ends inside a number, or has one that does not fit 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a packed list ends inside of a number, or holds a number of more than 64 bits")]
pub struct MalformedList;

/// A number that is packed as a varint.
pub trait PackedNumber: Copy + Default + private::Sealed {
    /// Returns the number with these low bits.
    fn from_bits(bits: u64) -> Self;
    /// Returns the bits of the varint: a negative number has its sign in all 64.
    fn to_bits(self) -> u64;
    /// Returns the total size of all varints in bytes.
    fn packed_len(values: &[Self]) -> usize;
}

mod private {
    pub trait Sealed {
        #[cfg(target_arch = "x86_64")]
        const WIDE: bool;
    }

    impl Sealed for i32 {
        #[cfg(target_arch = "x86_64")]
        const WIDE: bool = false;
    }

    impl Sealed for i64 {
        #[cfg(target_arch = "x86_64")]
        const WIDE: bool = true;
    }
}

impl PackedNumber for i32 {
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits as Self
    }

    #[inline(always)]
    fn to_bits(self) -> u64 {
        i64::from(self).cast_unsigned()
    }

    fn packed_len(values: &[Self]) -> usize {
        // Comparisons instead of a bit count, so that the compiler can use vector instructions. A
        // block keeps the sum in 32 bits.
        let length = |value: &Self| {
            let bits = value.cast_unsigned();
            1 + u32::from(bits >= 1 << 7)
                + u32::from(bits >= 1 << 14)
                + u32::from(bits >= 1 << 21)
                + u32::from(bits >= 1 << 28)
                + 5 * u32::from(*value < 0)
        };
        values.chunks(1 << 16).map(|block| block.iter().map(length).sum::<u32>() as usize).sum()
    }
}

impl PackedNumber for i64 {
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits.cast_signed()
    }

    #[inline(always)]
    fn to_bits(self) -> u64 {
        self.cast_unsigned()
    }

    fn packed_len(values: &[Self]) -> usize {
        values.iter().map(|value| varint::len(value.cast_unsigned())).sum()
    }
}

/// Returns the number of varints in `bytes`, which is the number of bytes that end one.
#[inline]
pub fn count(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| usize::from(*byte < 0x80)).sum()
}

#[inline(always)]
fn take(bytes: &mut &[u8]) -> Result<u64, MalformedList> {
    varint::checked(bytes).ok_or(MalformedList)
}

/// Reads the packed list `bytes` and appends it to `values`.
///
/// Allocates at most for as many numbers as the bytes hold.
///
/// # Errors
/// [`MalformedList`]; the numbers before the wrong one have been appended.
pub fn decode<T: PackedNumber>(bytes: &[u8], values: &mut Vec<T>) -> Result<(), MalformedList> {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= avx2::BLOCK && Implementation::in_use() == Implementation::Avx2 {
        // SAFETY: `in_use` only gives AVX2 where `fastest` found that the processor has it.
        return unsafe { avx2::decode(bytes, values) };
    }
    decode_scalar(bytes, values)
}

/// Like [`decode`], one number at a time.
///
/// # Errors
/// As [`decode`].
pub fn decode_scalar<T: PackedNumber>(
    mut bytes: &[u8],
    values: &mut Vec<T>,
) -> Result<(), MalformedList> {
    values.reserve(count(bytes));
    while let Some((word, rest)) = bytes.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        match word & 0x8080_8080_8080_8080 {
            // Eight numbers of one byte each.
            0 => {
                let number = |index: u32| T::from_bits(word >> (8 * index) & 0xff);
                let low = [number(0), number(1), number(2), number(3)];
                let high = [number(4), number(5), number(6), number(7)];
                values.extend_from_slice(&low);
                values.extend_from_slice(&high);
                bytes = rest;
            }
            // Four numbers of two bytes each: the low byte gives 7 bits, the high byte the next 7.
            0x0080_0080_0080_0080 => {
                let joined = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
                let number = |index: u32| T::from_bits(joined >> (16 * index) & 0xffff);
                values.extend_from_slice(&[number(0), number(1), number(2), number(3)]);
                bytes = rest;
            }
            _ => values.push(T::from_bits(take(&mut bytes)?)),
        }
    }
    while !bytes.is_empty() {
        values.push(T::from_bits(take(&mut bytes)?));
    }
    Ok(())
}

/// Writes `values` as a packed list to the start of `out`, and returns the number of bytes, which
/// is [`PackedNumber::packed_len`].
///
/// Returns `None` if `out` is too short.
pub fn encode<T: PackedNumber>(values: &[T], out: &mut [u8]) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if values.len() >= avx2::LANES && !T::WIDE && Implementation::in_use() == Implementation::Avx2 {
        // SAFETY: `in_use` only gives AVX2 where `fastest` found that the processor has it.
        return unsafe { avx2::encode(values, out) };
    }
    encode_scalar(values, out)
}

/// Like [`encode`], one number at a time.
pub fn encode_scalar<T: PackedNumber>(values: &[T], out: &mut [u8]) -> Option<usize> {
    let mut length = 0;
    let mut fours = values.chunks_exact(4);
    for four in &mut fours {
        let [a, b, c, d] = four else { break };
        // Written out, here and below: `map` of an array compiles to several calls for each four
        // numbers.
        let bits = [a.to_bits(), b.to_bits(), c.to_bits(), d.to_bits()];
        let [a, b, c, d] = bits;
        if (a | b | c | d) < 0x80 {
            // Four numbers of one byte each.
            let word = (a | b << 8 | c << 16 | d << 24) as u32;
            *out.get_mut(length..)?.first_chunk_mut()? = word.to_le_bytes();
            length += 4;
        } else if (a | b | c | d) < 0x4000 && a.min(b).min(c).min(d) >= 0x80 {
            // Four numbers of two bytes each.
            let joined = a | b << 16 | c << 32 | d << 48;
            let low = joined & 0x007f_007f_007f_007f;
            let high = (joined & 0x3f80_3f80_3f80_3f80) << 1;
            let word = low | high | 0x0080_0080_0080_0080;
            *out.get_mut(length..)?.first_chunk_mut()? = word.to_le_bytes();
            length += 8;
        } else {
            for bits in bits {
                length += varint::put(out.get_mut(length..)?, bits)?;
            }
        }
    }
    for value in fours.remainder() {
        length += varint::put(out.get_mut(length..)?, value.to_bits())?;
    }
    Some(length)
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_and_si128, _mm_loadu_si128, _mm_or_si128, _mm_packus_epi16,
        _mm_packus_epi32, _mm_set1_epi16, _mm_slli_epi16, _mm_storel_epi64, _mm_storeu_si128,
        _mm256_and_si256, _mm256_castsi256_si128, _mm256_cmpgt_epi32, _mm256_cvtepu8_epi32,
        _mm256_cvtepu8_epi64, _mm256_cvtepu16_epi32, _mm256_cvtepu16_epi64,
        _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set1_epi16, _mm256_set1_epi32, _mm256_srli_epi16, _mm256_storeu_si256,
        _mm256_testz_si256,
    };

    use super::{MalformedList, PackedNumber, count, take, varint};

    /// Bytes that are read at a time.
    pub(super) const BLOCK: usize = 32;
    /// Numbers that are written at a time.
    pub(super) const LANES: usize = 8;
    /// The number of numbers that are read one by one if lengths are mixed, before the next block
    /// is tried.
    const MIXED: usize = 8;

    /// Appends the packed list.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) fn decode<T: PackedNumber>(
        bytes: &[u8],
        values: &mut Vec<T>,
    ) -> Result<(), MalformedList> {
        values.reserve(count(bytes));
        let mut rest = bytes;
        while let Some(block) = rest.first_chunk::<BLOCK>() {
            // SAFETY: `block` is a reference to 32 bytes, and the load may be unaligned.
            let loaded = unsafe { _mm256_loadu_si256(block.as_ptr().cast::<__m256i>()) };
            let continued = _mm256_movemask_epi8(loaded).cast_unsigned();
            if continued == 0 {
                // 32 numbers of one byte each.
                append_bytes(block, values);
                rest = rest.get(BLOCK..).unwrap_or_default();
            } else if continued == 0x5555_5555 {
                // 16 numbers of two bytes each: the low byte gives 7 bits, the high byte the next
                // 7.
                let low = _mm256_and_si256(loaded, _mm256_set1_epi16(0x007f));
                let high = _mm256_and_si256(loaded, _mm256_set1_epi16(0x7f00));
                append_words(_mm256_or_si256(low, _mm256_srli_epi16::<1>(high)), values);
                rest = rest.get(BLOCK..).unwrap_or_default();
            } else {
                for _ in 0..MIXED {
                    // A block of 32 bytes has at least four numbers, but may have fewer than eight.
                    if rest.is_empty() {
                        break;
                    }
                    values.push(T::from_bits(take(&mut rest)?));
                }
            }
        }
        while !rest.is_empty() {
            values.push(T::from_bits(take(&mut rest)?));
        }
        Ok(())
    }

    /// Appends 32 bytes as numbers.
    #[target_feature(enable = "avx2")]
    fn append_bytes<T: PackedNumber>(block: &[u8; BLOCK], values: &mut Vec<T>) {
        values.reserve(BLOCK);
        let length = values.len();
        let mut out = values.spare_capacity_mut().as_mut_ptr();
        let step = if T::WIDE { 4 } else { 8 };
        for start in (0..BLOCK).step_by(step) {
            let mut eight = [0; 16];
            let taken = block.get(start..start + step).unwrap_or_default();
            if let Some(place) = eight.get_mut(..step) {
                place.copy_from_slice(taken);
            }
            // SAFETY: `eight` is 16 bytes long, and the load may be unaligned.
            let few = unsafe { _mm_loadu_si128(eight.as_ptr().cast::<__m128i>()) };
            let wide = if T::WIDE { _mm256_cvtepu8_epi64(few) } else { _mm256_cvtepu8_epi32(few) };
            // SAFETY: 32 numbers of spare capacity were reserved; the loop stores `step` of them,
            // each time 32 bytes (4 of 8 bytes, or 8 of 4: `WIDE` says which `T` is), and runs 32 /
            // `step` times.
            unsafe {
                _mm256_storeu_si256(out.cast::<__m256i>(), wide);
                out = out.add(step);
            }
        }
        // SAFETY: the loop stored 32 numbers behind the `length` that were there, within the
        // capacity; i32 and i64 may hold any bits.
        unsafe { values.set_len(length + BLOCK) };
    }

    /// Appends 16 words as numbers.
    #[target_feature(enable = "avx2")]
    fn append_words<T: PackedNumber>(words: __m256i, values: &mut Vec<T>) {
        const WORDS: usize = BLOCK / 2;
        values.reserve(WORDS);
        let length = values.len();
        let out = values.spare_capacity_mut().as_mut_ptr().cast::<__m256i>();
        let halves = [_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words)];
        if T::WIDE {
            let mut quarters = [[0_u16; 8]; 4];
            for (pair, half) in quarters.chunks_exact_mut(2).zip(halves) {
                let mut all = [0_u16; 8];
                // SAFETY: `all` is 16 bytes long, and the store may be unaligned.
                unsafe { _mm_storeu_si128(all.as_mut_ptr().cast::<__m128i>(), half) };
                for (quarter, four) in pair.iter_mut().zip(all.chunks_exact(4)) {
                    for (place, word) in quarter.iter_mut().zip(four) {
                        *place = *word;
                    }
                }
            }
            for (index, quarter) in quarters.iter().enumerate() {
                // SAFETY: `quarter` is 16 bytes long, and the load may be unaligned.
                let four = unsafe { _mm_loadu_si128(quarter.as_ptr().cast::<__m128i>()) };
                // SAFETY: 16 numbers of 8 bytes of spare capacity were reserved, that is 4 stores
                // of 32 bytes.
                unsafe { _mm256_storeu_si256(out.add(index), _mm256_cvtepu16_epi64(four)) };
            }
        } else {
            for (index, half) in halves.into_iter().enumerate() {
                // SAFETY: 16 numbers of 4 bytes of spare capacity were reserved, that is 2 stores
                // of 32 bytes.
                unsafe { _mm256_storeu_si256(out.add(index), _mm256_cvtepu16_epi32(half)) };
            }
        }
        // SAFETY: the stores filled 16 numbers behind the `length` that were there, within the
        // capacity; i32 and i64 may hold any bits.
        unsafe { values.set_len(length + WORDS) };
    }

    /// Writes the packed list of 32-bit numbers.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) fn encode<T: PackedNumber>(values: &[T], out: &mut [u8]) -> Option<usize> {
        // Wide numbers would be loaded as pairs of narrow ones.
        if T::WIDE {
            return super::encode_scalar(values, out);
        }
        let mut length = 0;
        let mut blocks = values.chunks_exact(LANES);
        for block in &mut blocks {
            // SAFETY: `chunks_exact` gives 8 numbers, of 4 bytes each since `T` is not wide, and
            // the load may be unaligned.
            let loaded = unsafe { _mm256_loadu_si256(block.as_ptr().cast::<__m256i>()) };
            let low = _mm256_castsi256_si128(loaded);
            let high = _mm256_extracti128_si256::<1>(loaded);
            let place = out.get_mut(length..)?;
            if _mm256_testz_si256(loaded, _mm256_set1_epi32(!0x7f)) == 1 {
                // All below 128: 8 numbers of one byte each.
                let words = _mm_packus_epi32(low, high);
                let place: &mut [u8; 8] = place.first_chunk_mut()?;
                // SAFETY: `place` is 8 bytes long, which is what is stored.
                unsafe {
                    _mm_storel_epi64(
                        place.as_mut_ptr().cast::<__m128i>(),
                        _mm_packus_epi16(words, words),
                    );
                }
                length += 8;
            } else if _mm256_testz_si256(loaded, _mm256_set1_epi32(!0x3fff)) == 1
                && _mm256_movemask_epi8(_mm256_cmpgt_epi32(loaded, _mm256_set1_epi32(0x7f))) == -1
            {
                // All in 128..16384: 8 numbers of two bytes each.
                let words = _mm_packus_epi32(low, high);
                let first = _mm_and_si128(words, _mm_set1_epi16(0x7f));
                let second = _mm_and_si128(_mm_slli_epi16::<1>(words), _mm_set1_epi16(0x7f00));
                let both = _mm_or_si128(_mm_or_si128(first, second), _mm_set1_epi16(0x80));
                let place: &mut [u8; 16] = place.first_chunk_mut()?;
                // SAFETY: `place` is 16 bytes long, which is what is stored.
                unsafe { _mm_storeu_si128(place.as_mut_ptr().cast::<__m128i>(), both) };
                length += 16;
            } else {
                for value in block {
                    length += varint::put(out.get_mut(length..)?, value.to_bits())?;
                }
            }
        }
        for value in blocks.remainder() {
            length += varint::put(out.get_mut(length..)?, value.to_bits())?;
        }
        Some(length)
    }
}

#[cfg(test)]
mod tests;
