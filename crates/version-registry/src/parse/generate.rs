//! Generates Rust source from declarations.

use std::fmt::Write;

use super::{
    TypeDeclaration,
    declaration::{Declarations, EntryDeclaration, LineDeclaration, ProductDeclaration},
};
use crate::{Date, FOUR_WEEKS};

/// Returns Rust source that declares a type for each line with a `type`, and `REGISTRY` with the
/// whole file.
///
/// `version_path` is the path of the module that has `Line`, `Entry` and the records:
/// `::serdes::version` outside serdes itself.
pub fn generate(declarations: &Declarations, version_path: &str) -> String {
    let mut source = Source { text: String::new(), path: version_path };
    source.text.push_str("// Generated from versions.toml by serdes-version-registry.\n");
    for line in &declarations.lines {
        if let Some(rust_type) = &line.rust_type {
            source.line_type(line, rust_type, declarations.as_of);
        }
    }
    source.registry(declarations);
    source.text
}

struct Source<'p> {
    text: String,
    path: &'p str,
}

impl Source<'_> {
    /// Appends one row; writing to a string cannot fail.
    fn row(&mut self, row: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{row}");
    }

    fn line_type(&mut self, line: &LineDeclaration, rust_type: &str, as_of: Date) {
        let path = self.path;
        let doc = format!("The line `{}`: {}.", line.name, line.summary.trim_end_matches('.'));
        self.row(format_args!("\n#[doc = {doc:?}]"));
        self.row(format_args!("#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]"));
        self.row(format_args!("pub struct {rust_type};\n"));
        self.row(format_args!("impl {path}::Line for {rust_type} {{"));
        self.row(format_args!("    const NAME: &'static str = {:?};", line.name));
        self.row(format_args!("    const TITLE: &'static str = {:?};", line.title));
        self.row(format_args!("    const DATA: &'static str = {:?};", line.data));
        self.row(format_args!("    const MINIMUM: i32 = {};", line.minimum));
        self.row(format_args!("    const MIN_PRODUCER: i32 = {};", line.min_producer));
        self.row(format_args!(
            "    const BAD_CONSUMERS: &'static [i32] = &{:?};",
            line.bad_consumers
        ));
        if !line.bad_consumers_with.is_empty() {
            let with = with_consumers(line);
            self.row(format_args!(
                "    const BAD_CONSUMERS_WITH: &'static [(&'static str, &'static [i32])] = {with};"
            ));
        }
        self.row(format_args!("    const WINDOW_DAYS: i64 = {};", line.window_days));
        self.row(format_args!("    const AS_OF: {path}::Date = {};", self.date(as_of)));
        self.row(format_args!("    const ENTRIES: &'static [{path}::Entry] = &["));
        for entry in &line.entries {
            self.entry(entry);
        }
        self.row(format_args!("    ];"));
        self.types(line);
        self.row(format_args!("}}"));
    }

    /// Appends the formats of each type, collected from the entries.
    fn types(&mut self, line: &LineDeclaration) {
        let path = self.path;
        self.row(format_args!("    const TYPES: &'static [{path}::TypeFormats] = &["));
        for TypeDeclaration { name, granted, read, features } in line.types() {
            let (granted, recorded): (Vec<i32>, Vec<i32>) = granted.into_iter().unzip();
            let mut text = format!(
                "{path}::TypeFormats::new({name:?}, &{granted:?}, &{recorded:?}, &{read:?})"
            );
            if !features.is_empty() {
                let _ = write!(text, ".with_features(&{features:?})");
            }
            self.row(format_args!("        {text},"));
        }
        self.row(format_args!("    ];"));
    }

    fn entry(&mut self, entry: &EntryDeclaration) {
        let mut text = format!(
            "        {}::Entry::new({}, {}).describing({:?}, &{:?})",
            self.path,
            entry.number,
            self.date(entry.introduced),
            entry.summary,
            entry.formats,
        );
        if !entry.removed.is_empty() {
            let _ = write!(text, ".without(&{:?})", entry.removed);
        }
        if let Some(release) = &entry.released_in {
            let _ = write!(text, ".released_in({release:?})");
        }
        if let Some(source) = &entry.date_source {
            let _ = write!(text, ".dated_by({source:?})");
        }
        if entry.min_consumer != 0 {
            let _ = write!(text, ".for_consumers_from({})", entry.min_consumer);
        }
        if entry.withdrawn {
            text.push_str(".withdrawn()");
        }
        if !entry.embeds.is_empty() {
            let _ = write!(text, ".embedding(&{:?})", entry.embeds);
        }
        self.row(format_args!("{text},"));
    }

    fn registry(&mut self, declarations: &Declarations) {
        let path = self.path;
        self.row(format_args!("\n/// Everything that versions.toml declares."));
        self.row(format_args!("pub static REGISTRY: {path}::Registry = {path}::Registry::new("));
        self.row(format_args!("    {},\n    &[", self.date(declarations.as_of)));
        declarations.lines.iter().for_each(|line| self.record(line));
        self.row(format_args!("    ],\n    &["));
        declarations.products.iter().for_each(|product| self.product(product));
        self.row(format_args!("    ],\n    &["));
        for family in &declarations.layouts {
            let (name, version) = (&family.name, &family.version);
            self.row(format_args!("    {path}::LayoutFamily::new({name:?}, {version:?}, &["));
            for layout in &family.layouts {
                self.row(format_args!(
                    "        {path}::NamedLayout::new({:?}, {:?}, &{:?}, &{:?}),",
                    layout.name, layout.summary, layout.headers, layout.struct_sizes
                ));
            }
            self.row(format_args!("    ]),"));
        }
        self.row(format_args!("    ],\n);"));
    }

    fn record(&mut self, line: &LineDeclaration) {
        let path = self.path;
        let entries = match &line.rust_type {
            Some(rust_type) => format!("<{rust_type} as {path}::Line>::ENTRIES"),
            None => "&[".to_owned(),
        };
        self.row(format_args!(
            "    {path}::LineRecord::new({:?}, {:?}, {entries}",
            line.name, line.title
        ));
        if line.rust_type.is_none() {
            for entry in &line.entries {
                self.entry(entry);
            }
            self.row(format_args!("    ]"));
        }
        let mut rest = format!(
            ").describing({:?}, {:?}).bounded({}, {}, &{:?})",
            line.data, line.summary, line.minimum, line.min_producer, line.bad_consumers
        );
        if !line.bad_consumers_with.is_empty() {
            let _ = write!(rest, ".banning_with({})", with_consumers(line));
        }
        if line.window_days != FOUR_WEEKS {
            let _ = write!(rest, ".with_window({})", line.window_days);
        }
        if !line.packages.is_empty() {
            let _ = write!(rest, ".in_packages(&{:?})", line.packages);
        }
        if let Some((number, day)) = line.counts_days_from {
            let _ = write!(rest, ".counting_days_from({number}, {})", self.date(day));
        }
        if let Some(release) = line.release {
            let (major, minor, patch) = (release.major(), release.minor(), release.patch());
            let _ =
                write!(rest, ".of_release({path}::ReleaseNumber::new({major}, {minor}, {patch}))");
        }
        self.row(format_args!("    {rest},"));
    }

    fn product(&mut self, product: &ProductDeclaration) {
        let path = self.path;
        let (name, title) = (&product.name, &product.title);
        self.row(format_args!("    {path}::Product::new({name:?}, {title:?}, &["));
        for release in &product.releases {
            let (version, numbers) = (&release.version, &release.numbers);
            let date = self.date(release.date);
            self.row(format_args!(
                "        {path}::Release::new({version:?}, {date}, &{numbers:?}),"
            ));
        }
        self.row(format_args!("    ]),"));
    }

    /// Returns a constant expression for a day; a nonexistent day cannot be declared.
    fn date(&self, date: Date) -> String {
        let (year, month, day) = date.to_ymd();
        format!("{}::Date::from_ymd({year}, {month}, {day}).unwrap()", self.path)
    }
}

/// Returns a constant slice of contents with their faulty consumers.
fn with_consumers(line: &LineDeclaration) -> String {
    let mut text = "&[".to_owned();
    for (content, consumers) in &line.bad_consumers_with {
        let _ = write!(text, "({content:?}, &{consumers:?}), ");
    }
    text.push(']');
    text
}
