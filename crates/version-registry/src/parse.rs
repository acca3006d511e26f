//! Parses versions.toml into declarations that meet every rule.

mod build;
mod declaration;
mod error;
mod formats;
mod generate;
mod positions;
mod rules;
mod table;
#[cfg(test)]
mod tests;

use std::path::Path;

use toml::{Spanned, de::DeTable};

pub use build::{Build, build};
pub use declaration::{
    Declarations, EntryDeclaration, LayoutDeclaration, LayoutFamilyDeclaration, LineDeclaration,
    ProductDeclaration, ReleaseDeclaration,
};
pub use error::{Defect, RegistryError, RegistryErrors};
pub use formats::TypeDeclaration;
pub use generate::generate;
use positions::Positions;
use table::{Table, Walk};

use crate::FOUR_WEEKS;

/// The keys of a line.
const LINE_KEYS: [&str; 14] = [
    "name",
    "title",
    "type",
    "data",
    "summary",
    "minimum",
    "min_producer",
    "bad_consumers",
    "bad_consumers_with",
    "window_days",
    "packages",
    "counts_days_from",
    "release",
    "entry",
];

/// Reads and validates the file at `path`.
pub fn read(path: &Path) -> Result<Declarations, RegistryErrors> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&file, &text),
        Err(error) => Err(RegistryErrors(vec![RegistryError {
            file,
            row: 0,
            line: None,
            entry: None,
            defect: Defect::Unreadable(error.to_string()),
        }])),
    }
}

/// Parses and validates `text`; `file` is the name for errors.
///
/// All broken rules are reported at once. Rules about several entries are checked once every single
/// value is well formed.
pub fn parse(file: &str, text: &str) -> Result<Declarations, RegistryErrors> {
    let mut walk = Walk::new(file, text);
    let root = match DeTable::parse(text) {
        Ok(root) => root,
        Err(error) => {
            let offset = error.span().map_or(0, |span| span.start);
            walk.report(offset, Defect::Syntax(error.message().to_owned()));
            return Err(RegistryErrors(walk.errors));
        }
    };
    let declarations = walk.declarations(&root);
    match declarations {
        Some((declarations, places)) if walk.errors.is_empty() => {
            rules::check(&mut walk, &declarations, &places);
            walk.errors.sort_by_key(|error| error.row);
            if walk.errors.is_empty() { Ok(declarations) } else { Err(RegistryErrors(walk.errors)) }
        }
        _ => Err(RegistryErrors(walk.errors)),
    }
}

impl<'t> Walk<'t> {
    /// Returns the declarations; `None` if an essential value is wrong.
    fn declarations(&mut self, root: &Spanned<DeTable<'t>>) -> Option<(Declarations, Positions)> {
        self.allow_only(root, &["as_of", "line", "product", "layouts"]);
        let as_of = self.date(root, "as_of");
        let mut places = Positions::default();
        let mut lines = Vec::new();
        for table in self.tables(root, "line") {
            if let Some((line, entries)) = self.line(&table) {
                lines.push(line);
                places.lines.push((table.span().start, entries));
            }
        }
        let mut products = Vec::new();
        for table in self.tables(root, "product") {
            if let Some((product, releases)) = self.product(&table) {
                products.push(product);
                places.products.push((table.span().start, releases));
            }
        }
        let mut layouts = Vec::new();
        for table in self.tables(root, "layouts") {
            if let Some((family, found)) = self.layout_family(&table) {
                layouts.push(family);
                places.layouts.push((table.span().start, found));
            }
        }
        self.enter_line(None);
        Some((Declarations { as_of: as_of?, lines, products, layouts }, places))
    }

    fn line(&mut self, table: &Table<'t>) -> Option<(LineDeclaration, Vec<usize>)> {
        self.enter_line(None);
        let name = self.text(table, "name");
        self.enter_line(name.clone().map(|name| format!("line {name}")));
        self.allow_only(table, &LINE_KEYS);
        let title = self.text(table, "title");
        let rust_type = self.optional_text(table, "type");
        let data = self.optional_text(table, "data");
        let summary = self.text(table, "summary");
        let minimum = self.number(table, "minimum");
        let min_producer = self.number_or_zero(table, "min_producer");
        let bad_consumers = self.numbers(table, "bad_consumers");
        let bad_consumers_with = self.numbers_table(table, "bad_consumers_with");
        let window_days = self.days(table, "window_days", FOUR_WEEKS);
        let packages = self.texts(table, "packages");
        let counts_days_from = self.table(table, "counts_days_from").and_then(|base| {
            self.allow_only(&base, &["number", "day"]);
            Some((self.number(&base, "number")?, self.date(&base, "day")?))
        });
        let release = self.release(table);
        let mut entries = Vec::new();
        let mut places = Vec::new();
        for entry in self.tables(table, "entry") {
            if let Some(declaration) = self.entry(&entry) {
                entries.push(declaration);
                places.push(entry.span().start);
            }
        }
        self.enter_entry(None);
        let title = title?;
        let declaration = LineDeclaration {
            name: name?,
            data: data.unwrap_or_else(|| title.clone()),
            title,
            rust_type,
            summary: summary?,
            minimum: minimum?,
            min_producer,
            bad_consumers,
            bad_consumers_with,
            window_days,
            packages,
            counts_days_from,
            release,
            entries,
        };
        Some((declaration, places))
    }

    fn entry(&mut self, table: &Table<'t>) -> Option<EntryDeclaration> {
        self.enter_entry(None);
        let number = self.number(table, "number");
        self.enter_entry(number.map(|number| format!("entry {number}")));
        self.allow_only(
            table,
            &[
                "number",
                "introduced",
                "summary",
                "formats",
                "recorded_as",
                "also_read",
                "features",
                "embeds",
                "removed",
                "released_in",
                "date_source",
                "min_consumer",
                "withdrawn",
            ],
        );
        let introduced = self.date(table, "introduced");
        let summary = self.text(table, "summary");
        let formats = self.texts(table, "formats");
        let recorded_as = self.optional_number_table(table, "recorded_as");
        let also_read = self.texts(table, "also_read");
        let features = self.text_table(table, "features");
        let embeds = self.optional_number_table(table, "embeds");
        let removed = self.texts(table, "removed");
        let released_in = self.optional_text(table, "released_in");
        let date_source = self.optional_text(table, "date_source");
        let min_consumer = self.number_or_zero(table, "min_consumer");
        let withdrawn = self.flag(table, "withdrawn");
        Some(EntryDeclaration {
            number: number?,
            introduced: introduced?,
            summary: summary?,
            formats,
            removed,
            released_in,
            date_source,
            min_consumer,
            withdrawn,
            recorded_as,
            also_read,
            features,
            embeds,
        })
    }

    fn product(&mut self, table: &Table<'t>) -> Option<(ProductDeclaration, Vec<usize>)> {
        self.enter_line(None);
        let name = self.text(table, "name");
        self.enter_line(name.clone().map(|name| format!("product {name}")));
        self.allow_only(table, &["name", "title", "release"]);
        let title = self.text(table, "title");
        let mut releases = Vec::new();
        let mut places = Vec::new();
        for release in self.tables(table, "release") {
            self.enter_entry(None);
            let version = self.text(&release, "version");
            self.enter_entry(version.clone().map(|version| format!("release {version}")));
            self.allow_only(&release, &["version", "date", "numbers"]);
            let date = self.date(&release, "date");
            let numbers = self.number_table(&release, "numbers");
            if let (Some(version), Some(date)) = (version, date) {
                releases.push(ReleaseDeclaration { version, date, numbers });
                places.push(release.span().start);
            }
        }
        self.enter_entry(None);
        Some((ProductDeclaration { name: name?, title: title?, releases }, places))
    }

    fn layout_family(
        &mut self,
        table: &Table<'t>,
    ) -> Option<(LayoutFamilyDeclaration, Vec<usize>)> {
        self.enter_line(None);
        let name = self.text(table, "name");
        self.enter_line(name.clone().map(|name| format!("layouts {name}")));
        self.allow_only(table, &["name", "version", "layout"]);
        let version = self.text(table, "version");
        let mut layouts = Vec::new();
        let mut places = Vec::new();
        for layout in self.tables(table, "layout") {
            self.enter_entry(None);
            let name = self.text(&layout, "name");
            self.enter_entry(name.clone().map(|name| format!("layout {name}")));
            self.allow_only(&layout, &["name", "summary", "headers", "struct_sizes"]);
            let summary = self.text(&layout, "summary");
            let headers = self.texts(&layout, "headers");
            let struct_sizes = self.number_table(&layout, "struct_sizes");
            if let (Some(name), Some(summary)) = (name, summary) {
                let struct_sizes =
                    struct_sizes.into_iter().map(|(name, size)| (name, size.unsigned_abs()));
                layouts.push(LayoutDeclaration {
                    name,
                    summary,
                    headers,
                    struct_sizes: struct_sizes.collect(),
                });
                places.push(layout.span().start);
            }
        }
        self.enter_entry(None);
        Some((LayoutFamilyDeclaration { name: name?, version: version?, layouts }, places))
    }
}
