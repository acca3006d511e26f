//! Lists that grow by a quarter instead of doubling: they make up most of the memory of a check,
//! and are empty for most graphs.

/// Adds a value to a list. If it is full, it grows by a quarter of its length; short lists double.
#[inline]
pub fn push<T>(list: &mut Vec<T>, value: T) {
    /// Length below which a list counts as short.
    const LEAST: usize = 16;
    if list.len() == list.capacity() {
        match list.len() {
            ..LEAST => list.reserve(1),
            length => list.reserve_exact((length / 4).max(LEAST)),
        }
    }
    list.push(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_leaves_at_most_a_quarter_free() {
        let mut list = Vec::new();
        for value in 0..10_000_u32 {
            push(&mut list, value);
            let free = list.capacity() - list.len();
            assert!(free < (list.len() / 4).max(16), "{free} of {}", list.len());
        }
        assert!(list.into_iter().eq(0..10_000));
    }
}
