//! From the tree to the scenario: names become what they stand for, and everything is checked.

mod designs;
mod timeline;

use std::ops::Range;
use std::path::Path;

use fake_telegram::fault::Faults;
use fake_telegram::profile::{Profile, ProfileError, ServerSettings};
use fake_telegram::units::Count;
use serde::Serialize;
use toml::Spanned;
use toml::de::DeValue;

use self::designs::Defaults;
use super::document::{Document, Table};
use super::settings::{Chats, Settings, WorkloadSettings};
use super::{NamedWorkload, Scenario, ScenarioError};
use crate::gate::{Reference, Rule, RuleError, Written};
use crate::registry::Registry;
use crate::store::plan::Plan;
use crate::workload::Site;
use crate::workload::population::Population;
use crate::world::ClassIndex;

/// Chats are counted in 32 bits, and workloads may bring some.
const CHATS_MAX: u64 = 1_000_000_000;

pub(super) fn read(document: &Document, registry: &Registry) -> Result<Scenario, ScenarioError> {
    Reader { document, registry }.scenario()
}

struct Reader<'a> {
    document: &'a Document,
    registry: &'a Registry,
}

type Result<T, E = ScenarioError> = std::result::Result<T, E>;

impl<'a> Reader<'a> {
    fn scenario(&self) -> Result<Scenario> {
        let mut root = self.document.parse()?;
        if let Some(store) = root.entries.get_mut("store")
            && let DeValue::String(url) = store.get_ref()
        {
            let span = store.span();
            let entry = (
                Spanned::new(span.clone(), "url".into()),
                Spanned::new(span.clone(), DeValue::String(url.clone())),
            );
            *store = Spanned::new(span, DeValue::Table([entry].into_iter().collect()));
        }
        let top = root.clone();
        const OTHERS: [&str; 5] = ["server", "workload", "design", "gate", "expect"];
        let [server, workload, design, gate, expect] = OTHERS.map(|key| root.take(key));
        let mut settings: Settings = self.document.read(root, &OTHERS)?;
        self.check(&settings, &top)?;
        settings.store.round_trip_p99 = Some(settings.store.round_trip_p99());
        if !settings.name.is_empty() {
            self.check_name(&settings.name, top.at("name"))?;
        } else {
            settings.name = self.document.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        let (server, faults) = self.server(server)?;
        let mut normal = table(&settings);
        let mut server_table = table(&ServerSettings::from(&server));
        if !faults.is_empty() {
            server_table.insert("fault".to_owned(), value(&faults));
        }
        normal.insert("server".to_owned(), server_table.into());

        let mut scenario = Scenario {
            file: self.document.file.clone(),
            name: settings.name,
            summary: settings.summary,
            covers: settings.covers,
            seed: settings.seed as u64,
            duration: settings.duration,
            drain: settings.drain,
            warm_up: settings.warm_up,
            server,
            faults,
            population: population(&settings.chats),
            lifecycle: settings.chats.lifecycle(),
            wire: settings.wire,
            store: settings.store,
            classes: Vec::new(),
            tokens: Vec::new(),
            workloads: Vec::new(),
            designs: Vec::new(),
            gates: Vec::new(),
            asked_gates: Vec::new(),
            expectations: Vec::new(),
            hash: String::new(),
            normal,
        };
        let files = self.workloads(workload, &mut scenario)?;
        let defaults = Defaults { processes: settings.processes, workers: settings.workers };
        self.designs(design, defaults, &mut scenario)?;
        scenario.gates = self.rules("gate", gate, &mut scenario)?;
        scenario.expectations = self.rules("expect", expect, &mut scenario)?;
        scenario.hash = hash(scenario.to_toml().as_bytes(), &files);
        Ok(scenario)
    }

    fn wrong<T>(&self, span: Range<usize>, message: impl Into<String>) -> Result<T> {
        Err(self.document.wrong(span, message))
    }

    /// The error about something that is nowhere in the file.
    fn lacks<T>(&self, message: &str) -> Result<T> {
        Err(ScenarioError::of_file(&self.document.file, message))
    }

    fn check(&self, settings: &Settings, top: &Table<'_>) -> Result<()> {
        let inner = |table: &str, key: &str| match top.entries.get(table).map(Spanned::get_ref) {
            Some(DeValue::Table(entries)) if entries.contains_key(key) => entries[key].span(),
            _ => top.at(table),
        };
        let Settings { chats, wire, store, .. } = settings;
        if settings.duration.is_zero() {
            return self
                .wrong(top.at("duration"), "`duration`: nothing happens in no time; write it as in `24h`");
        }
        if settings.duration.as_micros().checked_add(settings.drain.as_micros()).is_none_or(|us| us > 1 << 62)
        {
            return self.wrong(top.at("duration"), "`duration` and `drain`: longer than a run can be");
        }
        if settings.seed < 0 {
            return self.wrong(top.at("seed"), "`seed`: must not be negative");
        }
        if chats.count.0 > CHATS_MAX {
            return self
                .wrong(inner("chats", "count"), format!("`count` in [chats]: more than {CHATS_MAX} chats"));
        }
        if chats.groups.as_ppm() + chats.channels.as_ppm() > 1_000_000 {
            let message = format!(
                "`groups` and `channels` in [chats]: {} and {} are more than 100%",
                chats.groups, chats.channels
            );
            return self.wrong(inner("chats", "groups"), message);
        }
        if wire.median > wire.p99 {
            let message = format!("`p99` in [wire]: {} is less than the median, {}", wire.p99, wire.median);
            return self.wrong(inner("wire", "p99"), message);
        }
        if wire.timeout.is_zero() {
            return self
                .wrong(inner("wire", "timeout"), "`timeout` in [wire]: no call would ever be answered");
        }
        let (median, p99) = (store.round_trip, store.round_trip_p99());
        if median > p99 {
            let message = format!("`round_trip_p99` in [store]: {p99} is less than `round_trip`, {median}");
            return self.wrong(inner("store", "round_trip_p99"), message);
        }
        if let Err(error) = Plan::new(store.events.clone()) {
            return self.wrong(inner("store", "event"), format!("[[store.event]]: {error}"));
        }
        if !store.timeout.is_zero() && store.timeout <= median {
            let message = format!(
                "`timeout` in [store]: {} is not longer than `round_trip`, {median}, so every call would time out; raise it",
                store.timeout
            );
            return self.wrong(inner("store", "timeout"), message);
        }
        let end = settings.duration + settings.drain;
        if settings.warm_up >= settings.duration {
            let message = format!(
                "`warm_up`: {} leaves nothing of `duration`, {}; lower it",
                settings.warm_up, settings.duration
            );
            return self.wrong(top.at("warm_up"), message);
        }
        if let Some(late) = store.events.iter().find(|event| event.at >= end) {
            let message =
                format!("[[store.event]]: `at` is {}, and the run ends at {end}: it never happens", late.at);
            return self.wrong(inner("store", "event"), message);
        }
        if store.timeout.is_zero() {
            return self
                .wrong(inner("store", "timeout"), "`timeout` in [store]: no call would ever be answered");
        }
        Ok(())
    }

    fn server(
        &self,
        server: Option<Spanned<DeValue<'a>>>,
    ) -> Result<(Profile, Vec<fake_telegram::fault::Fault>)> {
        let Some(server) = server else { return Ok((Profile::default(), Vec::new())) };
        let mut server = self.document.table(server, "table [server]")?;
        let written = server.clone();
        let faults = match server.take("fault") {
            Some(faults) => {
                let span = faults.span();
                let tables = self.document.tables(Some(faults), "tables [[server.fault]]")?;
                let faults = tables
                    .into_iter()
                    .map(|fault| self.document.read(fault, &[]))
                    .collect::<Result<Vec<_>>>()?;
                Faults::new(&faults)
                    .or_else(|error| self.wrong(span, format!("[[server.fault]]: {error}")))?;
                faults
            }
            None => Vec::new(),
        };
        let settings: ServerSettings = self.document.read(server, &["fault"])?;
        let profile = settings.resolve().or_else(|error| {
            let path = match &error {
                ProfileError::Profile { .. } => vec!["profile"],
                ProfileError::Key { limit, key, .. } => {
                    [["limit", limit.as_str()].as_slice(), &key.split('.').collect::<Vec<_>>()].concat()
                }
                ProfileError::Hint { key, .. } => vec!["retry_hint", key],
                ProfileError::Incomplete { name, .. } | ProfileError::Limit { name, .. } => {
                    vec!["limit", name]
                }
                _ => vec!["limit"],
            };
            self.wrong(deepest(&written, &path), format!("[server]: {error}"))
        })?;
        Ok((profile, faults))
    }

    /// Fills in workloads and classes; answers the contents of the files that were read.
    fn workloads(
        &self,
        workloads: Option<Spanned<DeValue<'a>>>,
        scenario: &mut Scenario,
    ) -> Result<Vec<Vec<u8>>> {
        let workloads = workloads.map(|workloads| self.document.table(workloads, "table [workload.NAME]"));
        let Some(workloads) = workloads.transpose()?.filter(|workloads| !workloads.entries.is_empty()) else {
            return self.lacks("no workloads: there is nothing to send; write a table [workload.NAME]");
        };
        let mut files = Vec::new();
        let mut tables = toml::Table::new();
        for (name, workload) in workloads.entries {
            self.check_name(name.get_ref(), name.span())?;
            let mut parameters = self.document.table(workload, "table [workload.NAME]")?;
            let written = parameters.clone();
            let common = parameters.split(COMMON);
            let settings: WorkloadSettings = self.document.read(common, &[])?;
            let kind = self.registry.workload(&settings.kind);
            let kind = kind.or_else(|error| self.wrong(written.at("kind"), error.to_string()))?;
            let read = (kind.read)(parameters.into_deserializer());
            let parameters = read.map_err(|error| self.document.explain(&error, COMMON))?;
            let mut site = Site {
                name: name.get_ref(),
                duration: scenario.duration,
                chats: &mut scenario.population,
                directory: self.document.file.parent().unwrap_or_else(|| Path::new("")),
                files: Vec::new(),
            };
            let source = (parameters.prepare)(&mut site).or_else(|error| {
                let message = format!("`{}` in [workload.{}]: {}", error.key, name.get_ref(), error.message);
                self.wrong(written.at(error.key), message)
            })?;
            files.append(&mut site.files);
            let class = match index_of(&mut scenario.classes, &settings.class, u8::MAX.into()) {
                Some(class) => ClassIndex(class as u8),
                None => return self.wrong(written.at("class"), "more than 256 classes"),
            };
            let mut normal = table(&settings);
            normal.extend(parameters.table);
            tables.insert(name.get_ref().to_string(), normal.into());
            scenario.workloads.push(NamedWorkload {
                name: name.into_inner().into_owned(),
                kind: kind.kind,
                class,
                deadline: settings.deadline,
                method: settings.method,
                from_user: settings.from_user,
                source,
            });
        }
        scenario.normal.insert("workload".to_owned(), tables.into());
        Ok(files)
    }

    /// The rules of the tables `[[gate]]` or `[[expect]]`.
    fn rules(
        &self,
        key: &str,
        tables: Option<Spanned<DeValue<'a>>>,
        scenario: &mut Scenario,
    ) -> Result<Vec<Rule>> {
        let tables = self.document.tables(tables, &format!("tables [[{key}]]"))?;
        let names = scenario.names();
        let (mut rules, mut normal) = (Vec::new(), Vec::new());
        for table in tables {
            let place = table.clone();
            let written: Written = self.document.read(table, &[])?;
            let rule = Rule::try_from(written.clone()).and_then(|rule| {
                if key == "expect"
                    && rule.conditions.iter().any(|c| c.reference() == Some(&Reference::Baseline))
                {
                    return Err(RuleError::Unbased);
                }
                rule.check(names.known()).map(|()| rule)
            });
            let rule = rule.or_else(|error| {
                let at = match &error {
                    RuleError::Unknown { what: "metric", .. } => "metric",
                    RuleError::Over(_) => "over",
                    RuleError::Unknown { what: "class" | "limit", .. } | RuleError::Label { .. } => "where",
                    RuleError::Unknown { name, .. } if written.design.0.contains(name) => "design",
                    _ => "expect",
                };
                self.wrong(place.at(at), format!("[[{key}]]: {error}"))
            })?;
            rules.push(rule);
            let mut table = toml::Table::new();
            table.insert("metric".to_owned(), written.metric.into());
            table.insert("where".to_owned(), value(&written.r#where));
            table.insert("design".to_owned(), written.design.0.into());
            table.insert("expect".to_owned(), written.expect.0.into());
            if let Some(over) = written.over {
                table.insert("over".to_owned(), over.into());
            }
            normal.push(toml::Value::from(table));
        }
        if !normal.is_empty() {
            scenario.normal.insert(key.to_owned(), normal.into());
        }
        Ok(rules)
    }

    /// Names appear in tables, file names and expectations.
    fn check_name(&self, name: &str, span: Range<usize>) -> Result<()> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(fits) {
            return Ok(());
        }
        self.wrong(
            span,
            format!("`{name}` is no name; use letters, digits, `-`, `_` and `.`, a letter or digit first"),
        )
    }
}

/// The keys that all workloads have.
pub(super) const COMMON: &[&str] = &["kind", "class", "deadline", "method", "from_user"];

fn population(chats: &Chats) -> Population {
    let Count(count) = chats.count;
    let (groups, channels) = (chats.groups.of(count), chats.channels.of(count));
    let [private, groups, channels] = [count - groups - channels, groups, channels].map(|count| count as u32);
    Population::new(private, groups, channels)
}

/// The index of a name in a list that grows on use; `None` above `max`.
fn index_of(names: &mut Vec<String>, name: &str, max: usize) -> Option<usize> {
    let index = names.iter().position(|known| known == name).unwrap_or(names.len());
    if index == names.len() {
        names.push(name.to_owned());
    }
    (index <= max).then_some(index)
}

/// Where the deepest part of `path` that was written stands.
fn deepest(table: &Table<'_>, path: &[&str]) -> Range<usize> {
    let mut span = table.span.clone();
    let mut entries = Some(&table.entries);
    for key in path {
        let Some(value) = entries.and_then(|entries| entries.get(*key)) else { break };
        span = value.span();
        entries = value.get_ref().as_table();
    }
    span
}

fn table(settings: &impl Serialize) -> toml::Table {
    toml::Table::try_from(settings).expect("settings are a table")
}

fn value(settings: &impl Serialize) -> toml::Value {
    toml::Value::try_from(settings).expect("settings are TOML")
}

/// FNV-1a with 64 bits (RFC 9923) over the scenario and each file, in 16 hex digits.
fn hash(scenario: &[u8], files: &[Vec<u8>]) -> String {
    let parts = std::iter::once(scenario).chain(files.iter().map(Vec::as_slice));
    // The length keeps two files from being taken for one.
    let bytes = parts.flat_map(|part| part.len().to_le_bytes().into_iter().chain(part.iter().copied()));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
