//! Designs: who sends what with which strategy.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Reader, Result, index_of};
use crate::gate::RESERVED;
use crate::names::hint;
use crate::scenario::document::Table;
use crate::scenario::settings::GroupSettings;
use crate::scenario::{Design, Group, Scenario};
use crate::strategy::Configured;

/// More workers than one machine runs; a guard against a slip of the keyboard.
const WORKERS_MAX: u64 = 1_000_000;

impl<'a> Reader<'a> {
    pub(super) fn designs(
        &self,
        designs: Option<Spanned<DeValue<'a>>>,
        top: &Table<'_>,
        defaults: (u32, u32),
        scenario: &mut Scenario,
    ) -> Result<()> {
        let designs = self.document.tables(designs, "tables [[design]]")?;
        if designs.is_empty() {
            let span = top.at("design");
            return self.wrong(span, "no designs: there is nothing to compare; write a table [[design]]");
        }
        let mut normal = Vec::new();
        for mut design in designs {
            let written = design.clone();
            let groups = match design.take("group") {
                None => None,
                Some(groups) => Some(self.document.tables(Some(groups), "tables [[design.group]]")?),
            };
            let strategy = design.take("strategy");
            let settings: GroupSettings = self.document.read(design, &["strategy", "group"])?;
            let mut tables = Vec::new();
            let built = match (groups, strategy) {
                (None, None) => {
                    return self
                        .wrong(written.span, "[[design]] lacks `strategy` (or tables [[design.group]])");
                }
                (Some(_), Some(strategy)) => {
                    return self.wrong(
                        strategy.span(),
                        "a [[design]] has a `strategy` or tables [[design.group]], not both",
                    );
                }
                (None, Some(strategy)) => {
                    let (group, table) = self.group(
                        strategy,
                        &GroupSettings { name: None, ..settings.clone() },
                        defaults,
                        &written,
                        scenario,
                    )?;
                    tables.push(table);
                    vec![group]
                }
                (Some(groups), None) => {
                    let inherited =
                        (settings.processes.unwrap_or(defaults.0), settings.workers.unwrap_or(defaults.1));
                    if settings.workloads.is_some() || settings.token.is_some() {
                        let key = if settings.token.is_some() { "token" } else { "workloads" };
                        return self.wrong(
                            written.at(key),
                            format!("`{key}` belongs into the tables [[design.group]]"),
                        );
                    }
                    let mut built: Vec<Group> = Vec::new();
                    for mut group in groups {
                        let written = group.clone();
                        let Some(strategy) = group.take("strategy") else {
                            return self.wrong(written.span, "[[design.group]] lacks `strategy`");
                        };
                        let settings = self.document.read(group, &["strategy"])?;
                        let (group, table) =
                            self.group(strategy, &settings, inherited, &written, scenario)?;
                        if built.iter().any(|other| other.name == group.name) {
                            let message = format!(
                                "there are two groups `{}`; give one of them another `name`",
                                group.name
                            );
                            return self.wrong(written.at("name"), message);
                        }
                        built.push(group);
                        tables.push(table);
                    }
                    built
                }
            };
            let Some(first) = built.first() else {
                return self.wrong(written.at("group"), "a [[design]] without groups sends nothing");
            };
            let name = settings.name.clone().unwrap_or_else(|| first.strategy.kind().to_owned());
            self.check_name(&name, written.at("name"))?;
            if name == RESERVED {
                return self.wrong(written.at("name"), format!("`{RESERVED}` is reserved for saved results"));
            }
            if scenario.designs.iter().any(|design| design.name == name) {
                let message = format!("there are two designs `{name}`; give one of them another `name`");
                return self.wrong(written.at("name"), message);
            }
            let design = Design { name, groups: built };
            self.check_design(&design, &written, scenario)?;
            let mut table = toml::Table::new();
            table.insert("name".to_owned(), design.name.clone().into());
            table.insert("group".to_owned(), tables.into());
            normal.push(toml::Value::from(table));
            scenario.designs.push(design);
        }
        scenario.normal.insert("design".to_owned(), normal.into());
        Ok(())
    }

    fn check_design(&self, design: &Design, written: &Table<'_>, scenario: &Scenario) -> Result<()> {
        let workers: u64 = design.groups.iter().map(|g| u64::from(g.processes) * u64::from(g.workers)).sum();
        if workers > WORKERS_MAX {
            let message =
                format!("design `{}` has {workers} workers; at most {WORKERS_MAX} are possible", design.name);
            return self.wrong(written.at("workers"), message);
        }
        let unrouted = (0..scenario.workloads.len())
            .find(|index| design.groups.iter().all(|group| !group.workloads.contains(index)));
        if let Some(index) = unrouted {
            let name = &scenario.workloads[index].name;
            let message = format!(
                "no group of design `{}` takes workload `{name}`; add it to `workloads`",
                design.name
            );
            return self.wrong(written.at("group"), message);
        }
        Ok(())
    }

    /// A group, and its table with everything filled in.
    fn group(
        &self,
        strategy: Spanned<DeValue<'a>>,
        settings: &GroupSettings,
        defaults: (u32, u32),
        written: &Table<'_>,
        scenario: &mut Scenario,
    ) -> Result<(Group, toml::Table)> {
        let strategy = self.strategy(strategy)?;
        let counts = [
            ("processes", settings.processes.unwrap_or(defaults.0)),
            ("workers", settings.workers.unwrap_or(defaults.1)),
        ];
        if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return self
                .wrong(written.at(key), format!("`{key}`: with none of them nothing is sent; at least 1"));
        }
        let name = settings.name.clone().unwrap_or_else(|| strategy.kind().to_owned());
        self.check_name(&name, written.at("name"))?;
        let token_name = settings.token.as_deref().unwrap_or("main");
        let Some(token) = index_of(&mut scenario.tokens, token_name, u16::MAX.into()) else {
            return self.wrong(written.at("token"), "more than 65536 tokens");
        };
        let mut workloads = Vec::new();
        match &settings.workloads {
            None => workloads.extend(0..scenario.workloads.len()),
            Some(names) => {
                for name in names {
                    let known = || scenario.workloads.iter().map(|workload| workload.name.as_str());
                    let Some(index) = known().position(|known| known == name) else {
                        let message =
                            format!("unknown workload `{name}` in `workloads`{}", hint(name, known()));
                        return self.wrong(written.at("workloads"), message);
                    };
                    workloads.push(index);
                }
                workloads.sort_unstable();
                workloads.dedup();
            }
        }
        let mut normal = toml::Table::new();
        normal.insert("name".to_owned(), name.clone().into());
        counts.map(|(key, count)| normal.insert(key.to_owned(), count.into()));
        normal.insert("token".to_owned(), token_name.into());
        let routed: Vec<&str> =
            workloads.iter().map(|index| scenario.workloads[*index].name.as_str()).collect();
        normal.insert("workloads".to_owned(), routed.into());
        let mut parameters = toml::Table::new();
        parameters.insert("kind".to_owned(), strategy.kind().into());
        parameters.extend(strategy.parameters());
        normal.insert("strategy".to_owned(), parameters.into());
        let [(_, processes), (_, workers)] = counts;
        Ok((Group { name, strategy, processes, workers, token: token as u16, workloads }, normal))
    }

    /// A strategy: its kind, or a table with the kind and its parameters.
    fn strategy(&self, strategy: Spanned<DeValue<'a>>) -> Result<Box<dyn Configured>> {
        let span = strategy.span();
        let (kind, parameters) = match strategy.into_inner() {
            DeValue::String(kind) => {
                (Spanned::new(span.clone(), kind), Table { span, entries: DeTable::new() })
            }
            DeValue::Table(entries) => {
                let mut table = Table { span, entries };
                let kind = table.take("kind").map(|kind| (kind.span(), kind.into_inner()));
                match kind {
                    Some((span, DeValue::String(kind))) => (Spanned::new(span, kind), table),
                    Some((span, _)) => {
                        return self.wrong(span, "`kind` is the name of a strategy, as in `\"scheduler\"`");
                    }
                    None => {
                        return self.wrong(
                            table.span,
                            "the strategy lacks its `kind`, as in `{ kind = \"scheduler\" }`",
                        );
                    }
                }
            }
            _ => {
                let message = "a strategy is a name, as in `\"scheduler\"`, or a table, as in `{ kind = \"scheduler\" }`";
                return self.wrong(span, message);
            }
        };
        let known = self.registry.strategy(kind.get_ref());
        let known = known.or_else(|error| self.wrong(kind.span(), error.to_string()))?;
        (known.read)(parameters.into_deserializer()).map_err(|error| self.document.explain(&error, &["kind"]))
    }
}
