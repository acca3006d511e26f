//! The nodes whose inputs were all visited: the lowest number comes first.
//!
//! Depends on numbers, but not on edges.

/// Bits in a word.
const WORD: usize = u64::BITS as usize;

/// A set of numbers below a bound, as bits. Each word of a higher level has a bit for every word
/// below that is not empty, up to a single word: the lowest number is found in one step per level,
/// and a million numbers take 127 KB.
#[derive(Debug)]
pub(super) struct Ready {
    /// The levels, from the numbers to the single word.
    levels: Vec<Vec<u64>>,
}

impl Ready {
    /// Returns an empty set for numbers below `bound`.
    pub(super) fn below(bound: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = bound.div_ceil(WORD).max(1);
        loop {
            levels.push(vec![0_u64; words]);
            if words == 1 {
                return Self { levels };
            }
            words = words.div_ceil(WORD);
        }
    }

    /// Inserts a number.
    pub(super) fn insert(&mut self, number: u32) {
        let mut position = number as usize;
        for level in &mut self.levels {
            let Some(word) = level.get_mut(position / WORD) else { return };
            let was_empty = *word == 0;
            *word |= 1 << (position % WORD);
            if !was_empty {
                return;
            }
            position /= WORD;
        }
    }

    /// Removes and returns the lowest number.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let mut position = 0;
        for level in self.levels.iter().rev() {
            let word = level.get(position).copied().filter(|word| *word != 0)?;
            position = position * WORD + word.trailing_zeros() as usize;
        }
        let mut left = position;
        for level in &mut self.levels {
            let Some(word) = level.get_mut(left / WORD) else { break };
            *word &= !(1 << (left % WORD));
            if *word != 0 {
                break;
            }
            left /= WORD;
        }
        u32::try_from(position).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_number_comes_out_first() {
        for bound in [0, 1, 64, 65, 4096, 4097, 300_000] {
            let mut ready = Ready::below(bound);
            assert_eq!(ready.pop(), None);
            let numbers: std::collections::BTreeSet<u32> =
                (0..bound as u32).filter(|number| number % 7 < 2 || number % 4096 == 0).collect();
            for number in numbers.iter().rev() {
                ready.insert(*number);
            }
            for number in &numbers {
                assert_eq!(ready.pop(), Some(*number));
                // A node that is added with a lower number is next.
                if number % 3 == 1 {
                    ready.insert(number - 1);
                    assert_eq!(ready.pop(), Some(number - 1));
                }
            }
            assert_eq!(ready.pop(), None);
        }
    }
}
