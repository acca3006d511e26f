//! The formats of each type of a line, collected from the entries that name it.

use super::{
    declaration::{EntryDeclaration, LineDeclaration},
    error::Defect,
    table::Walk,
};

/// The formats of one type, collected from the entries of its line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeDeclaration {
    /// The name in `formats`.
    pub name: String,
    /// The requests from which another format is granted, ascending, each with the number that data
    /// records.
    pub granted: Vec<(i32, i32)>,
    /// The recorded numbers that are read, ascending.
    pub read: Vec<i32>,
    /// The features without a format of their own: name, and the first request that is granted
    /// each.
    pub features: Vec<(String, i32)>,
}

impl LineDeclaration {
    /// Returns the types that the entries name under `formats`, in order of their first occurrence.
    pub fn types(&self) -> Vec<TypeDeclaration> {
        let mut types: Vec<TypeDeclaration> = Vec::new();
        for entry in &self.entries {
            for name in &entry.formats {
                if !types.iter().any(|found| found.name == *name) {
                    types.push(self.type_of(name));
                }
            }
        }
        types
    }

    fn type_of(&self, name: &str) -> TypeDeclaration {
        let mut found = TypeDeclaration { name: name.to_owned(), ..TypeDeclaration::default() };
        for entry in &self.entries {
            let names = |list: &[String]| list.iter().any(|listed| listed == name);
            if names(&entry.formats) && !names(&entry.removed) {
                let recorded = entry.recorded(name);
                if !entry.withdrawn {
                    found.granted.push((entry.number, recorded));
                }
                found.read.push(recorded);
            }
            if names(&entry.also_read) {
                found.read.push(entry.number);
            }
            let features = entry.features.iter().filter(|(of, _)| of == name);
            found.features.extend(features.map(|(_, feature)| (feature.clone(), entry.number)));
        }
        found.read.sort_unstable();
        found.read.dedup();
        found
    }
}

impl EntryDeclaration {
    /// Returns the number that data of this type records in the format of this entry.
    fn recorded(&self, name: &str) -> i32 {
        let other = self.recorded_as.iter().find(|(of, _)| of == name);
        other.map_or(self.number, |(_, number)| *number)
    }
}

/// Reports types in the entries of a line that do not exist.
pub(super) fn check(walk: &mut Walk<'_>, line: &LineDeclaration, places: &[usize]) {
    for (at, (entry, place)) in line.entries.iter().zip(places).enumerate() {
        walk.enter_entry(Some(format!("entry {}", entry.number)));
        let earlier = || line.entries.iter().take(at);
        for (format, recorded) in &entry.recorded_as {
            let (format, recorded) = (format.clone(), *recorded);
            if !entry.formats.contains(&format) {
                walk.report(*place, Defect::RecordedAsIsNotAFormat { format });
            } else if !earlier().any(|entry| entry.number == recorded) {
                let number = entry.number;
                walk.report(*place, Defect::RecordedAsIsNotEarlier { format, recorded, number });
            }
        }
        for format in &entry.also_read {
            if entry.formats.contains(format) || !earlier().any(|e| e.formats.contains(format)) {
                walk.report(*place, Defect::AlsoReadIsNotAFormat { format: format.clone() });
            }
        }
        for (format, _) in &entry.features {
            let known =
                entry.formats.contains(format) || earlier().any(|e| e.formats.contains(format));
            if !known {
                walk.report(*place, Defect::FeatureOfUnknownFormat { format: format.clone() });
            }
        }
    }
    walk.enter_entry(None);
}

/// Reports invalid embedded versions: of a line of the file that has no such entry, of the line
/// itself, or going back.
pub(super) fn check_embedded(
    walk: &mut Walk<'_>,
    line: &LineDeclaration,
    lines: &[LineDeclaration],
    places: &[usize],
) {
    let mut newest: Vec<(&str, i32)> = Vec::new();
    for (entry, place) in line.entries.iter().zip(places) {
        walk.enter_entry(Some(format!("entry {}", entry.number)));
        for (name, number) in &entry.embeds {
            let (embedded, number) = (name.clone(), *number);
            if embedded == line.name {
                walk.report(*place, Defect::EmbedsItself);
                continue;
            }
            let here = lines.iter().find(|line| line.name == embedded);
            if here.is_some_and(|line| !line.entries.iter().any(|entry| entry.number == number)) {
                let embedded = embedded.clone();
                walk.report(*place, Defect::EmbeddedIsNotAnEntry { embedded, number });
            }
            match newest.iter_mut().find(|(line, _)| *line == name.as_str()) {
                Some((_, previous)) if *previous > number => {
                    let previous = *previous;
                    walk.report(*place, Defect::EmbeddedGoesBack { embedded, number, previous });
                }
                Some((_, previous)) => *previous = number,
                None => newest.push((name, number)),
            }
        }
    }
    walk.enter_entry(None);
}
