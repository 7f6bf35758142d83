//! The text of a scenario as a tree that remembers where everything stood, and errors that point there.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::error::ScenarioError;
use super::json;
use crate::names::hint;

/// A scenario's file.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) file: PathBuf,
    pub(super) text: String,
}

/// A table of the file, where it stood, and where its keys stood.
#[derive(Debug, Clone)]
pub(super) struct Table<'i> {
    pub(super) span: Range<usize>,
    pub(super) entries: DeTable<'i>,
}

impl Document {
    /// Reads the file.
    pub(super) fn open(file: &Path) -> Result<Self, ScenarioError> {
        match std::fs::read_to_string(file) {
            Ok(text) => Ok(Self { file: file.to_owned(), text }),
            Err(error) => Err(ScenarioError::of_file(file, format!("cannot be read: {error}"))),
        }
    }

    /// The tree: JSON if the file is called so, else TOML.
    pub(super) fn parse(&self) -> Result<Table<'_>, ScenarioError> {
        let root = if self.file.extension().is_some_and(|extension| extension == "json") {
            json::parse(&self.text).map_err(|error| self.wrong(error.offset..error.offset, error.message))?
        } else {
            DeTable::parse(&self.text).map_err(|error| {
                self.wrong(error.span().unwrap_or_default(), format!("not TOML: {}", error.message()))
            })?
        };
        Ok(Table { span: root.span(), entries: root.into_inner() })
    }

    /// The error `message` about a part of the file.
    pub(super) fn wrong(&self, span: Range<usize>, message: impl Into<String>) -> ScenarioError {
        ScenarioError::at(&self.file, &self.text, span, message)
    }

    /// Reads a table into its type. `siblings` are keys of the same table that are read elsewhere.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        table: Table<'_>,
        siblings: &[&str],
    ) -> Result<T, ScenarioError> {
        T::deserialize(table.into_deserializer()).map_err(|error| self.explain(&error, siblings))
    }

    /// A value as a table.
    pub(super) fn table<'i>(
        &self,
        value: Spanned<DeValue<'i>>,
        what: &str,
    ) -> Result<Table<'i>, ScenarioError> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(entries) => Ok(Table { span, entries }),
            other => Err(self.wrong(span, format!("a {} where {what} is expected", other.type_str()))),
        }
    }

    /// A value as a list of tables.
    pub(super) fn tables<'i>(
        &self,
        value: Option<Spanned<DeValue<'i>>>,
        what: &str,
    ) -> Result<Vec<Table<'i>>, ScenarioError> {
        let Some(value) = value else { return Ok(Vec::new()) };
        let span = value.span();
        match value.into_inner() {
            DeValue::Array(items) => items.into_iter().map(|item| self.table(item, what)).collect(),
            other => {
                Err(self.wrong(span, format!("a {} where a list of {what} is expected", other.type_str())))
            }
        }
    }

    /// Tells serde's error in our words: where it is, and the nearest name if a name is unknown.
    pub(super) fn explain(&self, error: &toml::de::Error, siblings: &[&str]) -> ScenarioError {
        self.explain_at(error, error.span().unwrap_or_default(), siblings)
    }

    /// The same for an error that does not know where it is.
    pub(super) fn explain_at(
        &self,
        error: &toml::de::Error,
        span: Range<usize>,
        siblings: &[&str],
    ) -> ScenarioError {
        let Place { table, key } = self.place(span.start);
        let inside = if table.is_empty() { String::new() } else { format!(" in {table}") };
        let message = error.message();
        // serde's texts have the names in backticks: the wrong one first, then those that would be right.
        let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let message = match (message, names.as_slice()) {
            (text, [name, known @ ..]) if text.starts_with("unknown field") => {
                format!("unknown key `{name}`{inside}{}", hint(name, known.iter().chain(siblings).copied()))
            }
            (text, [name, known @ ..]) if text.starts_with("unknown variant") => {
                let of = key.map(|key| format!(" of `{key}`")).unwrap_or_default();
                format!("unknown value `{name}`{of}{inside}{}", hint(name, known.iter().copied()))
            }
            (text, [name]) if text.starts_with("missing field") => match table.as_str() {
                "" => return ScenarioError::of_file(&self.file, format!("the scenario lacks `{name}`")),
                table => format!("{table} lacks `{name}`"),
            },
            (text, _) => match key {
                Some(key) => format!("`{key}`{inside}: {text}"),
                None if table.is_empty() => text.to_owned(),
                None => format!("{table}: {text}"),
            },
        };
        self.wrong(span, message)
    }

    /// The table at an offset of the text, as in a header.
    pub(super) fn header(&self, offset: usize) -> String {
        self.place(offset).table
    }

    /// Which table and key stand at an offset of the text.
    fn place(&self, offset: usize) -> Place {
        let root = self.parse().map(|root| find(&root.entries, offset, "")).unwrap_or_default();
        root.unwrap_or_default()
    }
}

impl<'i> Table<'i> {
    /// Takes a key's value out.
    pub(super) fn take(&mut self, key: &str) -> Option<Spanned<DeValue<'i>>> {
        self.entries.remove(key)
    }

    /// Takes these keys out, as a table of their own.
    pub(super) fn split(&mut self, keys: &[&str]) -> Self {
        let all = std::mem::take(&mut self.entries);
        let (taken, rest) = all.into_iter().partition(|(key, _)| keys.contains(&key.get_ref().as_ref()));
        self.entries = rest;
        Self { span: self.span.clone(), entries: taken }
    }

    /// Where the value of a key stands; the table if it has no such key.
    pub(super) fn at(&self, key: &str) -> Range<usize> {
        self.entries.get(key).map_or_else(|| self.span.clone(), Spanned::span)
    }

    /// What serde reads from.
    pub(super) fn into_deserializer(self) -> ValueDeserializer<'i> {
        ValueDeserializer::from(Spanned::new(self.span, DeValue::Table(self.entries)))
    }
}

/// Where in `table` that is which `read` does not take. serde puts a table aside whose `kind` says how to read it, and
/// then knows the table alone, so what is wrong in it is found by leaving it out.
pub(super) fn culprit<'i, T>(
    table: &Table<'i>,
    error: &toml::de::Error,
    read: impl Fn(Table<'i>) -> Result<T, toml::de::Error>,
) -> Range<usize> {
    let is_still_wrong = |entries| {
        let span = table.span.clone();
        read(Table { span, entries }).is_err_and(|other| other.message() == error.message())
    };
    match left_out(&table.entries, &is_still_wrong) {
        Some(Entry { depth: 1.., key, .. }) if error.message().starts_with("unknown field") => key,
        Some(Entry { depth: 1.., value, .. }) => value,
        _ => error.span().unwrap_or_default(),
    }
}

/// Where an entry stands, and inside how many tables.
struct Entry {
    key: Range<usize>,
    value: Range<usize>,
    depth: usize,
}

/// The innermost entry without which a table is not wrong any more in this way.
fn left_out<'i>(table: &DeTable<'i>, is_still_wrong: &dyn Fn(DeTable<'i>) -> bool) -> Option<Entry> {
    // Without its kind a table is wrong in another way.
    table.iter().filter(|(key, _)| key.get_ref() != "kind").find_map(|(key, value)| {
        let mut rest = table.clone();
        rest.remove(key.get_ref().as_ref());
        if is_still_wrong(rest) {
            return None;
        }
        let inner = value.get_ref().as_table().and_then(|inner| {
            left_out(inner, &|inner| {
                let mut outer = table.clone();
                outer.insert(key.clone(), Spanned::new(value.span(), DeValue::Table(inner)));
                is_still_wrong(outer)
            })
        });
        Some(match inner {
            Some(inner) => Entry { depth: inner.depth + 1, ..inner },
            None => Entry { key: key.span(), value: value.span(), depth: 0 },
        })
    })
}

/// A place in the tree, in words.
#[derive(Debug, Default, PartialEq, Eq)]
struct Place {
    /// As in a header, `[server.limit.token]`, `[[design]]`; empty for the top.
    table: String,
    key: Option<String>,
}

/// Tables that are written as headers do not span their contents, so the whole tree is searched, inside out.
fn find(table: &DeTable<'_>, offset: usize, path: &str) -> Option<Place> {
    let header = |path: &str, array: bool| match (path, array) {
        ("", _) => String::new(),
        (path, true) => format!("[[{path}]]"),
        (path, false) => format!("[{path}]"),
    };
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref();
        let inner = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        let here = || Place { table: header(path, false), key: Some(name.to_string()) };
        let found = match value.get_ref() {
            DeValue::Table(entries) => find(entries, offset, &inner).or_else(|| {
                let whole = Place { table: header(&inner, false), key: None };
                value.span().contains(&offset).then_some(whole)
            }),
            DeValue::Array(items) => items.iter().find_map(|item| {
                let DeValue::Table(entries) = item.get_ref() else { return None };
                let mut place = find(entries, offset, &inner).or_else(|| {
                    item.span().contains(&offset).then(|| Place { table: header(&inner, false), key: None })
                })?;
                if place.table == header(&inner, false) {
                    place.table = header(&inner, true);
                }
                Some(place)
            }),
            _ => None,
        };
        found.or_else(|| (key.span().contains(&offset) || value.span().contains(&offset)).then(here))
    })
}
