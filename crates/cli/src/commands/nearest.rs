//! Suggests the name that was probably meant.

/// Maximum length in characters of a compared name: a longer one is not a misspelling.
const LONGEST: usize = 80;

/// Returns the name that is nearest to the given one, if one is near: case, underscores and hyphens
/// do not count, and a quarter of its characters may differ.
pub(crate) fn nearest<'n>(
    found: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let found = plain(found);
    if found.len() > LONGEST {
        return None;
    }
    let near = names.into_iter().filter_map(|name| {
        let known = plain(name);
        let distance = strsim::osa_distance(&known, &found);
        (distance <= known.len() / 4).then_some((distance, name))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

fn plain(name: &str) -> String {
    name.replace(['_', '-', ' '], "").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_right_is_found() {
        let names = ["MatMul", "MatMulAll", "Add", "memcpy_dtoh", "memcpy_dtod"];
        let meant = |found: &str| nearest(found, names);
        assert_eq!(meant("matmul"), Some("MatMul"));
        assert_eq!(meant("mat_mull"), Some("MatMul"));
        assert_eq!(meant("memcpy_dthh"), Some("memcpy_dtoh"));
        assert_eq!(meant("memcpy-dtdo"), Some("memcpy_dtod"));
        assert_eq!(meant("Sub"), None);
        assert_eq!(meant(""), None);
        assert_eq!(meant(&"MatMul".repeat(20)), None);
    }
}
