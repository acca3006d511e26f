//! The rules that involve more than one value.

use super::{
    declaration::{Declarations, LayoutFamilyDeclaration, LineDeclaration, ProductDeclaration},
    error::Defect,
    formats,
    positions::Positions,
    table::Walk,
};
use crate::{Date, newest_of_age, record::parse_release};

pub(super) fn check(walk: &mut Walk<'_>, declarations: &Declarations, places: &Positions) {
    let mut names: Vec<&str> = Vec::new();
    let mut types: Vec<&str> = Vec::new();
    for (line, (place, entries)) in declarations.lines.iter().zip(&places.lines) {
        walk.enter_line(Some(format!("line {}", line.name)));
        unique_name(walk, *place, &mut names, &line.name);
        if let Some(rust_type) = &line.rust_type {
            type_name(walk, *place, &mut types, rust_type);
        }
        check_entries(walk, line, declarations.as_of, entries);
        check_minimum(walk, line, declarations.as_of, *place);
        check_removed(walk, line, declarations.as_of, entries);
        formats::check(walk, line, entries);
        formats::check_embedded(walk, line, &declarations.lines, entries);
        check_bounds(walk, line, declarations.as_of, *place);
    }
    let mut names: Vec<&str> = Vec::new();
    for (product, (place, releases)) in declarations.products.iter().zip(&places.products) {
        walk.enter_line(Some(format!("product {}", product.name)));
        unique_name(walk, *place, &mut names, &product.name);
        check_releases(walk, declarations, product, releases);
    }
    let mut names: Vec<&str> = Vec::new();
    for (family, (place, layouts)) in declarations.layouts.iter().zip(&places.layouts) {
        walk.enter_line(Some(format!("layouts {}", family.name)));
        unique_name(walk, *place, &mut names, &family.name);
        check_layouts(walk, family, *place, layouts);
    }
}

fn unique_name<'d>(walk: &mut Walk<'_>, place: usize, names: &mut Vec<&'d str>, name: &'d str) {
    let mut bytes = name.bytes();
    let well_formed = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if !well_formed {
        let (found, expected) = (name.to_owned(), "lower_snake_case, for example device_state");
        walk.report(place, Defect::BadName { key: "name".to_owned(), found, expected });
    }
    if names.contains(&name) {
        walk.report(place, Defect::Duplicate { key: "name", found: name.to_owned() });
    }
    names.push(name);
}

fn type_name<'d>(walk: &mut Walk<'_>, place: usize, types: &mut Vec<&'d str>, name: &'d str) {
    let mut bytes = name.bytes();
    let well_formed = bytes.next().is_some_and(|byte| byte.is_ascii_uppercase())
        && bytes.all(|byte| byte.is_ascii_alphanumeric())
        && name != "Self";
    if !well_formed {
        let (found, expected) = (name.to_owned(), "a Rust type name, for example DeviceState");
        walk.report(place, Defect::BadName { key: "type".to_owned(), found, expected });
    }
    if types.contains(&name) {
        walk.report(place, Defect::Duplicate { key: "type", found: name.to_owned() });
    }
    types.push(name);
}

fn check_entries(walk: &mut Walk<'_>, line: &LineDeclaration, as_of: Date, places: &[usize]) {
    let mut previous: Option<(i32, Date)> = None;
    for (entry, place) in line.entries.iter().zip(places) {
        walk.enter_entry(Some(format!("entry {}", entry.number)));
        let (number, introduced) = (entry.number, entry.introduced);
        if let Some((previous_number, previous_day)) = previous {
            if number <= previous_number {
                let defect =
                    Defect::NumberGoesBackwards { found: number, previous: previous_number };
                walk.report(*place, defect);
            }
            if introduced < previous_day {
                let defect =
                    Defect::DateGoesBackwards { found: introduced, previous: previous_day };
                walk.report(*place, defect);
            }
        }
        previous = Some((number, introduced));
        if introduced > as_of {
            walk.report(*place, Defect::DateAfterAsOf { found: introduced, as_of });
        }
        if let Some((base, day)) = line.counts_days_from
            && number >= base
            && let Some(expected) = day.plus_days(i64::from(number) - i64::from(base))
            && expected != introduced
        {
            walk.report(*place, Defect::DateDoesNotFitNumber { found: introduced, expected });
        }
        if entry.min_consumer > number {
            let min_consumer = entry.min_consumer;
            walk.report(*place, Defect::MinConsumerAboveNumber { min_consumer, number });
        }
    }
    walk.enter_entry(None);
}

fn check_minimum(walk: &mut Walk<'_>, line: &LineDeclaration, as_of: Date, place: usize) {
    let minimum = line.minimum;
    let Some(first) = line.entries.first() else {
        return walk.report(place, Defect::NoEntries);
    };
    let Some(entry) = line.entries.iter().find(|entry| entry.number == minimum) else {
        return walk.report(place, Defect::MinimumIsNotAnEntry { minimum });
    };
    if entry.withdrawn {
        walk.report(place, Defect::MinimumIsWithdrawn { minimum });
    }
    let age = as_of.days_since(entry.introduced);
    let window_days = line.window_days;
    if entry.number != first.number && age < window_days {
        walk.report(place, Defect::MinimumIsTooYoung { minimum, age, as_of, window_days });
    }
}

/// Checks that a build does not refuse the data that it writes.
fn check_bounds(walk: &mut Walk<'_>, line: &LineDeclaration, as_of: Date, place: usize) {
    let Some(current) = line.current(as_of) else { return };
    let with = line.bad_consumers_with.iter().flat_map(|(_, consumers)| consumers);
    let with = with.map(|found| ("bad_consumers_with", *found));
    for (key, found) in line.bad_consumers.iter().map(|found| ("bad_consumers", *found)).chain(with)
    {
        if found == current {
            walk.report(place, Defect::BadConsumerIsCurrent { key, current });
        } else if !line.entries.iter().any(|entry| entry.number == found) {
            walk.report(place, Defect::BadConsumerIsNotAnEntry { key, found });
        }
    }
    let min_producer = line.min_producer;
    if min_producer > current {
        walk.report(place, Defect::MinProducerAboveCurrent { min_producer, current });
    }
}

fn check_removed(walk: &mut Walk<'_>, line: &LineDeclaration, as_of: Date, places: &[usize]) {
    let (minimum, window_days) = (line.minimum, line.window_days);
    // The minimum must not hide an old selection here: only the age counts.
    let dated = line.entries.iter().map(|entry| entry.dated());
    let week_4_old = newest_of_age(dated, i32::MIN, as_of, window_days);
    // A minimum that is not an entry is a defect of its own.
    let bounds = line.entries.iter().any(|entry| entry.number == minimum);
    for (at, (entry, place)) in line.entries.iter().zip(places).enumerate() {
        walk.enter_entry(Some(format!("entry {}", entry.number)));
        for format in &entry.formats {
            let last = line.last_use(at, format).unwrap_or(entry.number);
            let removed = entry.removed.contains(format);
            let format = format.clone();
            if removed && entry.withdrawn {
                // No version of the line writes it, and none has to read it.
                continue;
            }
            if !removed {
                // No type writes the formats of a withdrawn number.
                if bounds && last < minimum && !entry.withdrawn {
                    walk.report(*place, Defect::KeptBelowMinimum { format, last, minimum });
                }
            } else if let Some(week_4_old) = week_4_old.filter(|number| *number <= last) {
                let defect = Defect::RemovedWhileSelected { format, last, week_4_old, window_days };
                walk.report(*place, defect);
            } else if minimum <= last {
                walk.report(*place, Defect::RemovedAboveMinimum { format, last, minimum });
            }
        }
        for format in entry.removed.iter().filter(|format| !entry.formats.contains(format)) {
            walk.report(*place, Defect::RemovedIsNotAFormat { format: format.clone() });
        }
    }
    walk.enter_entry(None);
}

fn check_releases(
    walk: &mut Walk<'_>,
    declarations: &Declarations,
    product: &ProductDeclaration,
    places: &[usize],
) {
    let mut previous: Option<&str> = None;
    for (release, place) in product.releases.iter().zip(places) {
        walk.enter_entry(Some(format!("release {}", release.version)));
        let parsed = parse_release(&release.version);
        if parsed.is_none_or(|(_, _, patch)| patch.is_none()) {
            let found = release.version.clone();
            let expected = "MAJOR.MINOR.PATCH, for example 2.21.0";
            walk.report(*place, Defect::BadName { key: "version".to_owned(), found, expected });
        }
        if let Some(previous) = previous
            && parsed <= parse_release(previous)
        {
            let (found, previous) = (release.version.clone(), previous.to_owned());
            walk.report(*place, Defect::ReleaseGoesBackwards { found, previous });
        }
        previous = Some(&release.version);
        if release.date > declarations.as_of {
            let (found, as_of) = (release.date, declarations.as_of);
            walk.report(*place, Defect::DateAfterAsOf { found, as_of });
        }
        for (name, number) in &release.numbers {
            let (line, number) = (name.clone(), *number);
            match declarations.line(name) {
                None => walk.report(*place, Defect::ReleaseOfUnknownLine { line }),
                Some(found) if !found.entries.iter().any(|entry| entry.number == number) => {
                    walk.report(*place, Defect::ReleaseNumberIsNotAnEntry { line, number });
                }
                Some(_) => {}
            }
        }
    }
    walk.enter_entry(None);
}

fn check_layouts(
    walk: &mut Walk<'_>,
    family: &LayoutFamilyDeclaration,
    place: usize,
    places: &[usize],
) {
    if parse_release(&family.version).is_none_or(|(_, _, patch)| patch.is_none()) {
        let found = family.version.clone();
        let expected = "MAJOR.MINOR.PATCH, for example 0.0.1";
        walk.report(place, Defect::BadName { key: "version".to_owned(), found, expected });
    }
    let mut names: Vec<&str> = Vec::new();
    for (layout, place) in family.layouts.iter().zip(places) {
        walk.enter_entry(Some(format!("layout {}", layout.name)));
        if names.contains(&layout.name.as_str()) {
            walk.report(*place, Defect::Duplicate { key: "name", found: layout.name.clone() });
        }
        names.push(&layout.name);
        for (name, size) in &layout.struct_sizes {
            if *size == 0 {
                let (key, found) = (name.clone(), size.to_string());
                walk.report(*place, Defect::OutOfRange { key, found, expected: "1..2147483647" });
            }
        }
    }
    walk.enter_entry(None);
}
