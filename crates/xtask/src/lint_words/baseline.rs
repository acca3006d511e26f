//! Known findings, whose number may only decrease.

use std::collections::BTreeMap;

/// Number of findings by the file's path relative to the workspace's root.
pub(crate) type Counts = BTreeMap<String, usize>;

/// The comparison of the counts of a run with the baseline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Files with more findings than are known: path, findings, known.
    pub(crate) grown: Vec<(String, usize, usize)>,
    /// Files with fewer findings than are known: path, findings, known.
    pub(crate) shrunk: Vec<(String, usize, usize)>,
}

impl Comparison {
    /// Compares each file of both sides; a missing file counts as one without findings.
    pub(crate) fn new(found: &Counts, known: &Counts) -> Self {
        let mut comparison = Self::default();
        let paths: std::collections::BTreeSet<_> = found.keys().chain(known.keys()).collect();
        for path in paths {
            let of = |counts: &Counts| counts.get(path).copied().unwrap_or_default();
            let (found, known) = (of(found), of(known));
            let row = (path.clone(), found, known);
            match found.cmp(&known) {
                std::cmp::Ordering::Greater => comparison.grown.push(row),
                std::cmp::Ordering::Less => comparison.shrunk.push(row),
                std::cmp::Ordering::Equal => {}
            }
        }
        comparison
    }
}

/// Returns the baseline without fixed findings: no count grows, and zeros are removed.
pub(crate) fn lowered(found: &Counts, known: &Counts) -> Counts {
    let lower = |(path, known): (&String, &usize)| {
        let count = found.get(path).copied().unwrap_or_default().min(*known);
        (count > 0).then(|| (path.clone(), count))
    };
    known.iter().filter_map(lower).collect()
}

/// Parses a baseline.
///
/// # Errors
///
/// If the text is no TOML, or a value is not a count.
pub(crate) fn parse(text: &str) -> Result<Counts, String> {
    let table: toml::Table = text.parse().map_err(|error| format!("not TOML: {error}"))?;
    let count = |(path, value): (String, toml::Value)| {
        let count = value.as_integer().and_then(|count| usize::try_from(count).ok());
        count
            .map(|count| (path.clone(), count))
            .ok_or_else(|| format!("`{path}` is no number of findings"))
    };
    table.into_iter().map(count).collect()
}

/// Formats a baseline.
pub(crate) fn format(counts: &Counts) -> String {
    let head = "# Known findings of `cargo xtask lint-words` per file. A count may only become \
                smaller:\n# `cargo xtask lint-words --lower` writes the smaller ones.\n";
    counts
        .iter()
        .fold(head.to_owned(), |text, (path, count)| text + &std::format!("{path:?} = {count}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rows: &[(&str, usize)]) -> Counts {
        rows.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect()
    }

    #[test]
    fn a_baseline_is_parsed_as_it_was_written() {
        let baseline = counts(&[("src/a.rs", 3), ("docs/b.md", 1)]);
        assert_eq!(parse(&format(&baseline)), Ok(baseline));
        assert!(parse("\"a.rs\" = -1").unwrap_err().contains("a.rs"));
        assert!(parse("a.rs").is_err());
    }

    #[test]
    fn a_file_without_an_entry_may_have_no_findings() {
        let comparison = Comparison::new(&counts(&[("a.rs", 1)]), &counts(&[]));
        assert_eq!(comparison.grown, [("a.rs".to_owned(), 1, 0)]);
    }

    #[test]
    fn a_count_may_shrink_and_not_grow() {
        let known = counts(&[("a.rs", 2), ("b.rs", 2), ("c.rs", 2), ("gone.rs", 2)]);
        let found = counts(&[("a.rs", 3), ("b.rs", 2), ("c.rs", 1)]);
        let comparison = Comparison::new(&found, &known);
        assert_eq!(comparison.grown, [("a.rs".to_owned(), 3, 2)]);
        assert_eq!(comparison.shrunk, [("c.rs".to_owned(), 1, 2), ("gone.rs".to_owned(), 0, 2)]);
        assert_eq!(lowered(&found, &known), counts(&[("a.rs", 2), ("b.rs", 2), ("c.rs", 1)]));
    }
}
