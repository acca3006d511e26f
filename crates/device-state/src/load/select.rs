//! Selects tensors by patterns of their names.

use super::{Reader, Tensor};
use crate::Error;

impl Reader {
    /// Returns the tensors whose names match one of `patterns`, or all if there is no pattern, in
    /// the order of the file. In a pattern `*` matches any text, `?` any character, `[a-z]` and
    /// `[!a-z]` one of the listed characters or any other.
    ///
    /// # Errors
    /// [`Error::NoSuchTensor`] for a pattern without a match; an error for a spec that cannot be
    /// decoded.
    pub fn select<S: AsRef<str>>(&self, patterns: &[S]) -> Result<Vec<Tensor>, Error> {
        let mut tensors = self.tensors_in_file_order()?;
        if patterns.is_empty() {
            return Ok(tensors);
        }
        let mut used = vec![false; patterns.len()];
        tensors.retain(|tensor| {
            let mut chosen = false;
            for (pattern, used) in patterns.iter().zip(&mut used) {
                if matches(pattern.as_ref(), tensor.name()) {
                    (chosen, *used) = (true, true);
                }
            }
            chosen
        });
        match patterns.iter().zip(&used).find(|(_, used)| !**used) {
            None => Ok(tensors),
            Some((pattern, _)) => {
                Err(Error::NoSuchTensor { name: pattern.as_ref().to_owned(), count: self.len() })
            }
        }
    }
}

/// Returns true if `name` matches one of `patterns`, in the notation of [`Reader::select`].
pub fn matches_any<S: AsRef<str>>(patterns: &[S], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern.as_ref(), name))
}

/// Returns true if `name` matches `pattern`. The time is at most proportional to the product of
/// their lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Position to resume after the last `*` if the rest does not match here.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(_) => {
                name.get(n).zip(pattern.get(p..)).and_then(|(found, rest)| one(rest, *found))
            }
            None if n == name.len() => return true,
            None => None,
        };
        match (step, retry) {
            (Some(length), _) => (p, n) = (p + length, n + 1),
            (None, Some((after, from))) if from < name.len() => {
                retry = Some((after, from + 1));
                (p, n) = (after, from + 1);
            }
            (None, _) => return false,
        }
    }
}

/// Returns the length of the pattern's first element if it matches `found`.
fn one(pattern: &[char], found: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '[' => {
            let end = pattern.iter().skip(2).position(|c| *c == ']').map(|end| end + 2);
            // A `[` without an end matches itself.
            let Some(end) = end else { return (found == '[').then_some(1) };
            let negated = matches!(pattern.get(1), Some('!' | '^'));
            let set = pattern.get(1 + usize::from(negated)..end)?;
            let mut inside = false;
            let mut rest = set;
            while let [first, others @ ..] = rest {
                if let [low, '-', high, tail @ ..] = rest {
                    inside |= (low..=high).contains(&&found);
                    rest = tail;
                } else {
                    inside |= *first == found;
                    rest = others;
                }
            }
            (inside != negated).then_some(end + 1)
        }
        literal => (*literal == found).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("a", "ab", false),
            ("dense/*", "dense/kernel", true),
            ("dense/*", "dense", false),
            ("*/kernel", "a/b/kernel", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
            ("layer?", "layer1", true),
            ("layer?", "layer", false),
            ("layer[0-3]", "layer2", true),
            ("layer[0-3]", "layer4", false),
            ("layer[!0-3]", "layer4", true),
            ("layer[", "layer[", true),
            ("[]]", "]", true),
            ("ü*", "über", true),
            ("a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern:?} on {name:?}");
        }
    }
}
