//! Typed access to TOML tables, which collects every defect with its row.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::error::{Defect, RegistryError};
use crate::{Date, ReleaseNumber};

/// The position in the registry, and the defects found so far.
pub(super) struct Walk<'t> {
    file: &'t str,
    text: &'t str,
    line: Option<String>,
    entry: Option<String>,
    pub(super) errors: Vec<RegistryError>,
}

pub(super) type Table<'t> = Spanned<DeTable<'t>>;

impl<'t> Walk<'t> {
    pub(super) fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, line: None, entry: None, errors: Vec::new() }
    }

    /// Sets the line that the following defects belong to.
    pub(super) fn enter_line(&mut self, line: Option<String>) {
        self.line = line;
        self.entry = None;
    }

    /// Sets the entry that the following defects belong to.
    pub(super) fn enter_entry(&mut self, entry: Option<String>) {
        self.entry = entry;
    }

    /// Records a defect at a byte offset of the text.
    pub(super) fn report(&mut self, offset: usize, defect: Defect) {
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        let row = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        self.errors.push(RegistryError {
            file: self.file.to_owned(),
            row,
            line: self.line.clone(),
            entry: self.entry.clone(),
            defect,
        });
    }

    pub(super) fn allow_only(&mut self, table: &Table<'_>, known: &'static [&'static str]) {
        for key in table.get_ref().keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let defect = Defect::UnknownKey { key: name.to_owned(), known };
                self.report(key.span().start, defect);
            }
        }
    }

    fn required<'v>(
        &mut self,
        table: &'v Table<'t>,
        key: &'static str,
    ) -> Option<&'v Spanned<DeValue<'t>>> {
        let value = table.get_ref().get(key);
        if value.is_none() {
            self.report(table.span().start, Defect::MissingKey { key });
        }
        value
    }

    fn wrong_type<T>(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        expected: &'static str,
    ) -> Option<T> {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.report(value.span().start, Defect::WrongType { key: key.to_owned(), found, expected });
        None
    }

    fn text_of(&mut self, key: &'static str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let DeValue::String(text) = value.get_ref() else {
            return self.wrong_type(key, value, "a string");
        };
        if text.trim().is_empty() {
            self.report(value.span().start, Defect::Empty { key });
            return None;
        }
        Some(text.to_string())
    }

    pub(super) fn text(&mut self, table: &Table<'t>, key: &'static str) -> Option<String> {
        let value = self.required(table, key)?;
        self.text_of(key, value)
    }

    pub(super) fn optional_text(&mut self, table: &Table<'t>, key: &'static str) -> Option<String> {
        let value = table.get_ref().get(key)?;
        self.text_of(key, value)
    }

    pub(super) fn texts(&mut self, table: &Table<'t>, key: &'static str) -> Vec<String> {
        let Some(value) = table.get_ref().get(key) else { return Vec::new() };
        let DeValue::Array(items) = value.get_ref() else {
            return self.wrong_type(key, value, "an array of strings").unwrap_or_default();
        };
        let mut texts = Vec::new();
        for item in items.iter() {
            let Some(text) = self.text_of(key, item) else { continue };
            if texts.contains(&text) {
                self.report(item.span().start, Defect::Duplicate { key, found: text });
            } else {
                texts.push(text);
            }
        }
        texts
    }

    pub(super) fn flag(&mut self, table: &Table<'t>, key: &'static str) -> bool {
        match table.get_ref().get(key) {
            None => false,
            Some(value) => match value.get_ref() {
                DeValue::Boolean(flag) => *flag,
                _ => self.wrong_type(key, value, "true or false").unwrap_or_default(),
            },
        }
    }

    /// Returns a version number: 0 to 2^31-1, what an int32 field carries.
    pub(super) fn number_of(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<i32> {
        let DeValue::Integer(integer) = value.get_ref() else {
            return self.wrong_type(key, value, "an integer");
        };
        let number = i32::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.filter(|number| *number >= 0);
        if number.is_none() {
            let found = integer.as_str().to_owned();
            let expected = "0..2147483647";
            let defect = Defect::OutOfRange { key: key.to_owned(), found, expected };
            self.report(value.span().start, defect);
        }
        number
    }

    pub(super) fn number(&mut self, table: &Table<'t>, key: &'static str) -> Option<i32> {
        let value = self.required(table, key)?;
        self.number_of(key, value)
    }

    pub(super) fn number_or_zero(&mut self, table: &Table<'t>, key: &'static str) -> i32 {
        match table.get_ref().get(key) {
            Some(value) => self.number_of(key, value).unwrap_or_default(),
            None => 0,
        }
    }

    pub(super) fn numbers(&mut self, table: &Table<'t>, key: &'static str) -> Vec<i32> {
        let Some(value) = table.get_ref().get(key) else { return Vec::new() };
        self.numbers_of(key, value)
    }

    fn numbers_of(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Vec<i32> {
        match value.get_ref() {
            DeValue::Array(items) => {
                items.iter().filter_map(|item| self.number_of(key, item)).collect()
            }
            _ => self.wrong_type(key, value, "an array of integers").unwrap_or_default(),
        }
    }

    /// Returns a number of days, at least one; `default` if the key is missing.
    pub(super) fn days(&mut self, table: &Table<'t>, key: &'static str, default: i64) -> i64 {
        let Some(value) = table.get_ref().get(key) else { return default };
        match self.number_of(key, value) {
            Some(0) => {
                let (key, found) = (key.to_owned(), "0".to_owned());
                let defect = Defect::OutOfRange { key, found, expected: "1..2147483647" };
                self.report(value.span().start, defect);
                default
            }
            Some(days) => days.into(),
            None => default,
        }
    }

    /// Returns a table of arrays of numbers, in the order of the keys; none if the key is missing.
    pub(super) fn numbers_table(
        &mut self,
        table: &Table<'t>,
        key: &'static str,
    ) -> Vec<(String, Vec<i32>)> {
        let Some(fields) = self.table(table, key) else { return Vec::new() };
        let fields = fields.get_ref().iter();
        fields
            .map(|(name, value)| {
                (name.get_ref().to_string(), self.numbers_of(name.get_ref(), value))
            })
            .collect()
    }

    pub(super) fn date(&mut self, table: &Table<'t>, key: &'static str) -> Option<Date> {
        const EXPECTED: &str = "a day, written 2026-11-20 without quotes";
        let value = self.required(table, key)?;
        let day = match value.get_ref() {
            DeValue::Datetime(found) if found.time.is_none() && found.offset.is_none() => found
                .date
                .and_then(|day| Date::from_ymd(day.year.into(), day.month.into(), day.day.into())),
            _ => None,
        };
        day.or_else(|| self.wrong_type(key, value, EXPECTED))
    }

    /// Returns the `release` of a line; none if the key is missing.
    pub(super) fn release(&mut self, table: &Table<'t>) -> Option<ReleaseNumber> {
        let value = table.get_ref().get("release")?;
        let text = self.text_of("release", value)?;
        let release = text.parse().ok();
        if release.is_none() {
            let (key, expected) = ("release".to_owned(), "MAJOR.MINOR.PATCH, for example 1.4.0");
            let defect = Defect::BadName { key, found: text.chars().take(40).collect(), expected };
            self.report(value.span().start, defect);
        }
        release
    }

    /// Returns the tables of an array of tables; none if the key is missing.
    pub(super) fn tables(&mut self, table: &Table<'t>, key: &'static str) -> Vec<Table<'t>> {
        const EXPECTED: &str = "an array of tables, written [[...]]";
        let Some(value) = table.get_ref().get(key) else { return Vec::new() };
        let DeValue::Array(items) = value.get_ref() else {
            return self.wrong_type(key, value, EXPECTED).unwrap_or_default();
        };
        let mut tables = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Table(table) => tables.push(Spanned::new(item.span(), table.clone())),
                _ => return self.wrong_type(key, item, EXPECTED).unwrap_or_default(),
            }
        }
        tables
    }

    /// Returns an inline table of numbers, in the order of the keys.
    pub(super) fn number_table(
        &mut self,
        table: &Table<'t>,
        key: &'static str,
    ) -> Vec<(String, i32)> {
        let Some(value) = self.required(table, key) else { return Vec::new() };
        let DeValue::Table(fields) = value.get_ref() else {
            return self.wrong_type(key, value, "a table of integers").unwrap_or_default();
        };
        let mut numbers = Vec::new();
        for (name, value) in fields.iter() {
            if let Some(number) = self.number_of(name.get_ref(), value) {
                numbers.push((name.get_ref().to_string(), number));
            }
        }
        numbers
    }

    /// Like [`number_table`](Self::number_table); returns none if the key is missing.
    pub(super) fn optional_number_table(
        &mut self,
        table: &Table<'t>,
        key: &'static str,
    ) -> Vec<(String, i32)> {
        let is_there = table.get_ref().get(key).is_some();
        if is_there { self.number_table(table, key) } else { Vec::new() }
    }

    /// Returns an inline table of texts, in the order of the keys; none if the key is missing.
    pub(super) fn text_table(
        &mut self,
        table: &Table<'t>,
        key: &'static str,
    ) -> Vec<(String, String)> {
        let Some(value) = table.get_ref().get(key) else { return Vec::new() };
        let DeValue::Table(fields) = value.get_ref() else {
            return self.wrong_type(key, value, "a table of strings").unwrap_or_default();
        };
        let mut texts = Vec::new();
        for (name, value) in fields.iter() {
            if let Some(text) = self.text_of(key, value) {
                texts.push((name.get_ref().to_string(), text));
            }
        }
        texts
    }

    pub(super) fn table(&mut self, table: &Table<'t>, key: &'static str) -> Option<Table<'t>> {
        let value = table.get_ref().get(key)?;
        match value.get_ref() {
            DeValue::Table(inner) => Some(Spanned::new(value.span(), inner.clone())),
            _ => self.wrong_type(key, value, "a table"),
        }
    }
}
