//! What the lock knows of the lines.

use crate::Registry;

/// What the lock looks at in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineFormats {
    /// The name of the line.
    pub name: String,
    /// The protobuf packages whose messages belong to it.
    pub packages: Vec<String>,
    /// The numbers that are not withdrawn, each with the formats that changed.
    pub entries: Vec<(i32, Vec<String>)>,
    /// Those of the formats whose code is gone, each with the number of its entry.
    pub removed: Vec<(i32, String)>,
}

impl LineFormats {
    /// The lines of a registry.
    pub fn of_registry(registry: &Registry) -> Vec<Self> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let entries = |line: &crate::LineRecord| {
            let used = line.entries.iter().filter(|entry| !entry.withdrawn);
            used.map(|entry| (entry.number, owned(entry.formats))).collect()
        };
        let removed = |line: &crate::LineRecord| {
            let entries = line.entries.iter();
            entries
                .flat_map(|entry| {
                    entry.removed.iter().map(|format| (entry.number, (*format).to_owned()))
                })
                .collect()
        };
        let lines = registry.lines.iter();
        lines
            .map(|line| Self {
                name: line.name.to_owned(),
                packages: owned(line.packages),
                entries: entries(line),
                removed: removed(line),
            })
            .collect()
    }

    /// The lines of a versions.toml.
    #[cfg(feature = "parse")]
    pub fn of_declarations(declarations: &crate::Declarations) -> Vec<Self> {
        let lines = declarations.lines.iter();
        lines
            .map(|line| {
                let used = line.entries.iter().filter(|entry| !entry.withdrawn);
                Self {
                    name: line.name.clone(),
                    packages: line.packages.clone(),
                    entries: used.map(|entry| (entry.number, entry.formats.clone())).collect(),
                    removed: line
                        .entries
                        .iter()
                        .flat_map(|entry| {
                            entry.removed.iter().map(|format| (entry.number, format.clone()))
                        })
                        .collect(),
                }
            })
            .collect()
    }

    /// The current number.
    pub(super) fn newest(&self) -> Option<i32> {
        self.entries.last().map(|(number, _)| *number)
    }
}
