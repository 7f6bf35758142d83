//! Designs: who sends what with which strategy.

use std::sync::Arc;

use fake_telegram::time::Time;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::timeline::{Frame, Lives, Toll};
use super::{Reader, Result, deepest, index_of};
use crate::gate::BASELINE;
use crate::names::hint;
use crate::scenario::document::{Table, culprit};
use crate::scenario::settings::{GroupSettings, WORKERS_MAX};
use crate::scenario::{Design, Group, Scenario};
use crate::strategy::{Configured, Surroundings};

/// An earlier group that keeps something else in the store under the same name, and that name: whoever came first would
/// decide for both.
fn disagreement(group: &Group, built: &[(Group, toml::Table)]) -> Option<(String, &'static str)> {
    let shares = group.strategy.shares();
    built.iter().filter(|(other, _)| other.token == group.token).find_map(|(other, _)| {
        let theirs = other.strategy.shares();
        let differs = |(part, ours): &&(&'static str, String)| {
            theirs.iter().any(|(name, theirs)| name == part && theirs != ours)
        };
        shares.iter().find(differs).map(|(part, _)| (other.name.clone(), *part))
    })
}

/// Processes are numbered in 16 bits.
pub(super) const PROCESSES_MAX: u64 = 65_536;

/// What a group has that says nothing else.
#[derive(Clone, Copy)]
pub(super) struct Defaults {
    pub(super) processes: u32,
    pub(super) workers: u32,
}

impl<'a> Reader<'a> {
    /// Fills in designs and tokens.
    pub(super) fn designs(
        &self,
        designs: Option<Spanned<DeValue<'a>>>,
        defaults: Defaults,
        scenario: &mut Scenario,
    ) -> Result<()> {
        let designs = self.document.tables(designs, "tables [[design]]")?;
        if designs.is_empty() {
            return self.lacks("no designs: there is nothing to compare; write a table [[design]]");
        }
        let mut normal = Vec::new();
        for table in designs {
            let written = table.clone();
            let (design, groups) = self.design(table, defaults, scenario)?;
            if scenario.designs.iter().any(|other| other.name == design.name) {
                let message =
                    format!("there are two designs `{}`; give one of them another `name`", design.name);
                return self.wrong(written.at("name"), message);
            }
            self.check_design(&design, &written, scenario)?;
            let mut table = toml::Table::new();
            table.insert("name".to_owned(), design.name.clone().into());
            table.insert("group".to_owned(), groups.into());
            normal.push(toml::Value::from(table));
            scenario.designs.push(design);
        }
        scenario.normal.insert("design".to_owned(), normal.into());
        Ok(())
    }

    /// A design, and the tables of its groups with everything filled in. The short form is a design of one group.
    fn design(
        &self,
        mut design: Table<'a>,
        defaults: Defaults,
        scenario: &mut Scenario,
    ) -> Result<(Design, Vec<toml::Table>)> {
        let written = design.clone();
        let (groups, strategy) = (design.take("group"), design.take("strategy"));
        let settings: GroupSettings = self.document.read(design, &["strategy", "group"])?;
        let mut toll = Toll::default();
        let groups = match (groups, strategy) {
            (None, None) => {
                return self.wrong(written.span, "[[design]] lacks `strategy` (or tables [[design.group]])");
            }
            (Some(_), Some(strategy)) => {
                let message = "a [[design]] has a `strategy` or tables [[design.group]], not both";
                return self.wrong(strategy.span(), message);
            }
            (None, Some(strategy)) => {
                let settings = GroupSettings { name: None, ..settings.clone() };
                vec![self.group(strategy, &settings, defaults, &written, &mut toll, scenario)?]
            }
            (Some(groups), None) => {
                self.groups(groups, &settings, defaults, &written, &mut toll, scenario)?
            }
        };
        let (groups, tables): (Vec<Group>, Vec<toml::Table>) = groups.into_iter().unzip();
        let Some(first) = groups.first() else {
            return self.wrong(written.at("group"), "a [[design]] without groups sends nothing");
        };
        let name = settings.name.unwrap_or_else(|| first.strategy.kind().to_owned());
        self.check_name(&name, written.at("name"))?;
        if name == BASELINE {
            return self.wrong(written.at("name"), format!("`{BASELINE}` is reserved for saved results"));
        }
        Ok((Design { name, groups }, tables))
    }

    fn groups(
        &self,
        groups: Spanned<DeValue<'a>>,
        design: &GroupSettings,
        defaults: Defaults,
        written: &Table<'_>,
        toll: &mut Toll,
        scenario: &mut Scenario,
    ) -> Result<Vec<(Group, toml::Table)>> {
        let misplaced = [
            ("token", design.token.is_some()),
            ("workloads", design.workloads.is_some()),
            ("start", design.start.is_some()),
            ("skew", design.skew.is_some()),
            ("timeline", design.timeline.is_some()),
        ];
        if let Some((key, _)) = misplaced.into_iter().find(|(_, given)| *given) {
            return self.wrong(written.at(key), format!("`{key}` belongs into the tables [[design.group]]"));
        }
        let defaults = Defaults {
            processes: design.processes.unwrap_or(defaults.processes),
            workers: design.workers.unwrap_or(defaults.workers),
        };
        let mut built: Vec<(Group, toml::Table)> = Vec::new();
        for mut table in self.document.tables(Some(groups), "tables [[design.group]]")? {
            let written = table.clone();
            let Some(strategy) = table.take("strategy") else {
                return self.wrong(written.span, "[[design.group]] lacks `strategy`");
            };
            let settings = self.document.read(table, &["strategy"])?;
            let (group, table) = self.group(strategy, &settings, defaults, &written, toll, scenario)?;
            if built.iter().any(|(other, _)| other.name == group.name) {
                let message =
                    format!("there are two groups `{}`; give one of them another `name`", group.name);
                return self.wrong(written.at("name"), message);
            }
            // A process takes from one outbox, so workloads come in sets that whole groups share.
            let divided = built.iter().find(|(other, _)| {
                other.workloads != group.workloads
                    && other.workloads.iter().any(|w| group.workloads.contains(w))
            });
            if let Some((other, _)) = divided {
                let message = format!(
                    "groups `{}` and `{}` share a part of their workloads; let them share all or none",
                    other.name, group.name
                );
                return self.wrong(written.at("workloads"), message);
            }
            if let Some((other, part)) = disagreement(&group, &built) {
                let message = format!(
                    "groups `{}` and `{other}` send with one token and keep different parts `{part}` for it in the store; write the same in both, or give one of them another `token`",
                    group.name
                );
                return self.wrong(written.at("strategy"), message);
            }
            built.push((group, table));
        }
        Ok(built)
    }

    /// A group, and its table with everything filled in. `toll` is what the deaths by chance of the
    /// design cost.
    fn group(
        &self,
        strategy: Spanned<DeValue<'a>>,
        settings: &GroupSettings,
        defaults: Defaults,
        written: &Table<'_>,
        toll: &mut Toll,
        scenario: &mut Scenario,
    ) -> Result<(Group, toml::Table)> {
        let at = Surroundings { classes: &scenario.classes, call_timeout: scenario.wire.timeout };
        let strategy = self.strategy(strategy, &at)?;
        let processes = settings.processes.unwrap_or(defaults.processes);
        let workers = settings.workers.unwrap_or(defaults.workers);
        let name = settings.name.clone().unwrap_or_else(|| strategy.kind().to_owned());
        self.check_name(&name, written.at("name"))?;
        let token_name = settings.token.as_deref().unwrap_or("main");
        let Some(token) = index_of(&mut scenario.tokens, token_name, u16::MAX.into()) else {
            return self.wrong(written.at("token"), "more than 65536 tokens");
        };
        let workloads = self.routed(settings.workloads.as_deref(), written, scenario)?;
        let routed: Vec<&str> =
            workloads.iter().map(|index| scenario.workloads[*index].name.as_str()).collect();
        let (start, horizon) = (settings.start.unwrap_or_default(), scenario.horizon());
        let [start, horizon] = [start, horizon].map(|distance| Time::ZERO + distance);
        let frame = Frame { strategy: &*strategy, processes, workers, start, horizon };
        let Lives { processes: all, timeline, skew, normal: lives } =
            self.lives(settings, &frame, written, toll)?;
        let mut parameters = toml::Table::new();
        parameters.insert("kind".to_owned(), strategy.kind().into());
        parameters.extend(strategy.parameters());
        let normal = [
            ("name", name.clone().into()),
            ("processes", processes.into()),
            ("workers", workers.into()),
            ("token", token_name.into()),
            ("workloads", routed.into()),
            ("strategy", parameters.into()),
        ];
        let normal = normal.into_iter().chain(lives);
        let normal = normal.map(|(key, value): (&str, toml::Value)| (key.to_owned(), value)).collect();
        let group =
            Group { name, strategy, processes: all, timeline, skew, workers, token: token as u16, workloads };
        Ok((group, normal))
    }

    /// The workloads of these names; all without names.
    fn routed(
        &self,
        names: Option<&[String]>,
        written: &Table<'_>,
        scenario: &Scenario,
    ) -> Result<Vec<usize>> {
        let Some(names) = names else { return Ok((0..scenario.workloads.len()).collect()) };
        let mut workloads = Vec::new();
        for name in names {
            let known = || scenario.workloads.iter().map(|workload| workload.name.as_str());
            let Some(index) = known().position(|known| known == name) else {
                let message = format!("unknown workload `{name}` in `workloads`{}", hint(name, known()));
                return self.wrong(written.at("workloads"), message);
            };
            workloads.push(index);
        }
        workloads.sort_unstable();
        workloads.dedup();
        Ok(workloads)
    }

    /// A strategy: its kind, or a table with the kind and its parameters.
    fn strategy(&self, strategy: Spanned<DeValue<'a>>, at: &Surroundings<'_>) -> Result<Arc<dyn Configured>> {
        let span = strategy.span();
        let (kind, parameters) = match strategy.into_inner() {
            kind @ DeValue::String(_) => {
                (Spanned::new(span.clone(), kind), Table { span, entries: DeTable::new() })
            }
            DeValue::Table(entries) => {
                let mut table = Table { span, entries };
                let Some(kind) = table.take("kind") else {
                    let message = "the strategy lacks its `kind`, as in `{ kind = \"scheduler\" }`";
                    return self.wrong(table.span, message);
                };
                (kind, table)
            }
            _ => {
                let message = "a strategy is a name, as in `\"scheduler\"`, or a table, as in `{ kind = \"scheduler\" }`";
                return self.wrong(span, message);
            }
        };
        let Some(name) = kind.get_ref().as_str() else {
            return self.wrong(kind.span(), "`kind` is the name of a strategy, as in `\"scheduler\"`");
        };
        let known =
            self.registry.strategy(name).or_else(|error| self.wrong(kind.span(), error.to_string()))?;
        let written = parameters.clone();
        let read = |parameters: Table<'a>| (known.read)(parameters.into_deserializer());
        let strategy = read(parameters).map_err(|error| {
            let span = culprit(&written, &error, read);
            self.document.explain_at(&error, span, &["kind"])
        })?;
        match strategy.check(at) {
            Ok(()) => Ok(strategy.into()),
            Err(error) => {
                let message = format!("`{}` of strategy `{name}`: {}", error.key, error.message);
                // Of a part's parameter, down to where something was written.
                let path: Vec<&str> = error.key.split('.').collect();
                self.wrong(deepest(&written, &path), message)
            }
        }
    }

    fn check_design(&self, design: &Design, written: &Table<'_>, scenario: &Scenario) -> Result<()> {
        let workers: u64 = design.groups.iter().map(|g| u64::from(g.processes) * u64::from(g.workers)).sum();
        if workers > u64::from(WORKERS_MAX) {
            let message =
                format!("design `{}` has {workers} workers; at most {WORKERS_MAX} are possible", design.name);
            return self.wrong(written.at("workers"), message);
        }
        let processes: u64 = design.groups.iter().map(|group| u64::from(group.processes)).sum();
        if processes > PROCESSES_MAX {
            let message = format!(
                "design `{}` has {processes} processes; at most {PROCESSES_MAX} are possible",
                design.name
            );
            return self.wrong(written.at("processes"), message);
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
}
