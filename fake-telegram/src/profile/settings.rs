//! A profile and what a scenario changes of it, as written in TOML.
//!
//! Everything may be left out. A [`Profile`] turns into settings with nothing left out, which read back as the same
//! profile: that is how it is shown.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::{Hold, Profile};
use crate::api::{ChatKind, Method};
use crate::limits::{Algorithm, AlgorithmKind, Key, Limit, LimitError};
use crate::penalty::{PenaltyKind, PenaltyRule};
use crate::time::Duration;
use crate::units::{Count, Rate};

/// `[server]`: a profile and its overrides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSettings {
    /// The profile that everything else overrides. Default `telegram`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// `false` switches all penalties off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalties: Option<bool>,
    /// Whether a 403 found out upstream (blocked, deactivated) spends budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_403_costs: Option<bool>,
    /// Whether a 403 from the server's cache (kicked) spends budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_403_costs: Option<bool>,
    /// Holding calls open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldSettings>,
    /// Limits by name: those of the profile, changed, then new ones (which need an `algorithm`) in the order of names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limit: BTreeMap<String, LimitSettings>,
}

/// `[server.hold]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HoldSettings {
    /// `true`: refuse at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<bool>,
    /// How much waiting a call may add up. Default 8 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Duration>,
    /// Whether a wait counts for all that stand behind. Default on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cascade: Option<bool>,
}

/// `[server.limit.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// `true`: no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<bool>,
    /// Whose budget it is. Default of a new limit: `token`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// The kinds of chat that it applies to. Default of a new limit: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<ChatKind>>,
    /// The methods that it applies to. Default of a new limit: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<Method>>,
    /// How it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<AlgorithmKind>,
    /// A token bucket's refill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// What a token bucket holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Count>,
    /// What a window lets through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// A window's length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Duration>,
    /// What a call takes. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u32>,
    /// What a refusal leads to. Default of a new limit: nothing but the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty: Option<PenaltySettings>,
}

/// `[server.limit.NAME.penalty]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PenaltySettings {
    /// `true`: no penalty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<bool>,
    /// Which rule. Default where there was none: `early-retry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<PenaltyKind>,
    /// The shortest penalty. Default 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Duration>,
    /// The longest penalty. Default 1 h (`early-retry`) or 3 h (`reoffence`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<Duration>,
    /// `early-retry`: how soon after a refusal calls are not early. Default 500 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<Duration>,
    /// `early-retry`: good behaviour that halves the remembered penalty. Default 10 min.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halve_every: Option<Duration>,
    /// `reoffence`: how soon after the last deadline an offence doubles. Default 10 min.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
    /// `reoffence`: quiet that forgives one doubling. Default 30 min.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forgive_every: Option<Duration>,
}

/// Why settings make no profile; keys are named as below `[server]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// There is no such profile.
    #[error("unknown profile `{name}`; known are {known}{hint}")]
    Profile {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
        /// The nearest name, as `; did you mean ...?`, or nothing.
        hint: String,
    },
    /// A limit is neither the profile's nor complete.
    #[error("limit `{name}` is not in profile `{profile}` ({has}) and lacks `{lacks}`{hint}")]
    Incomplete {
        /// The limit.
        name: String,
        /// The profile.
        profile: String,
        /// What the profile has.
        has: String,
        /// The first key that is missing.
        lacks: &'static str,
        /// The nearest name, as `; did you mean ...?`, or nothing.
        hint: String,
    },
    /// A key that means nothing for this algorithm or rule, or is missing.
    #[error("`limit.{limit}.{key}` {problem}")]
    Key {
        /// The limit.
        limit: String,
        /// The key.
        key: &'static str,
        /// What is wrong, and the way out.
        problem: &'static str,
    },
    /// A limit that cannot work.
    #[error("limit `{name}` cannot work: {source}")]
    Limit {
        /// The limit.
        name: String,
        /// Why.
        source: LimitError,
    },
    /// More limits than an index can name.
    #[error("there are {0} limits; at most 256 are possible")]
    TooMany(usize),
}

impl ServerSettings {
    /// The profile with its overrides.
    ///
    /// # Errors
    /// If a name is unknown, a key does not fit the algorithm or rule, or a limit cannot work.
    pub fn resolve(&self) -> Result<Profile, ProfileError> {
        let name = self.profile.as_deref().unwrap_or("telegram");
        let mut profile = Profile::named(name).ok_or_else(|| {
            let known = Profile::ALL.map(|(name, _)| name);
            ProfileError::Profile { name: name.to_owned(), known: known.join(", "), hint: hint(name, &known) }
        })?;
        let own: Vec<Limit> = std::mem::take(&mut profile.limits);
        let new = self.limit.keys().filter(|name| own.iter().all(|limit| limit.name != **name));
        for limit in &own {
            let changed = match self.limit.get(&limit.name) {
                Some(settings) => settings.resolve(&limit.name, Some(limit), &profile.name, &own)?,
                None => Some(limit.clone()),
            };
            profile.limits.extend(changed);
        }
        for name in new {
            profile.limits.extend(self.limit[name].resolve(name, None, &profile.name, &own)?);
        }
        if profile.limits.len() > 256 {
            return Err(ProfileError::TooMany(profile.limits.len()));
        }
        if self.penalties == Some(false) {
            profile.limits.iter_mut().for_each(|limit| limit.penalty = None);
        }
        if let Some(hold) = self.hold {
            let base = profile.hold.unwrap_or(Hold { budget: Duration::from_secs(8), cascade: true });
            profile.hold = (hold.off != Some(true)).then(|| Hold {
                budget: hold.budget.unwrap_or(base.budget),
                cascade: hold.cascade.unwrap_or(base.cascade),
            });
        }
        profile.remote_403_costs = self.remote_403_costs.unwrap_or(profile.remote_403_costs);
        profile.local_403_costs = self.local_403_costs.unwrap_or(profile.local_403_costs);
        Ok(profile)
    }
}

impl LimitSettings {
    /// The limit that these settings make of `base`; `None` if it is off.
    fn resolve(
        &self,
        name: &str,
        base: Option<&Limit>,
        profile: &str,
        own: &[Limit],
    ) -> Result<Option<Limit>, ProfileError> {
        if self.off == Some(true) {
            return Ok(None);
        }
        let kind = self.algorithm.or_else(|| base.map(|limit| limit.algorithm.kind()));
        let kind = kind.ok_or_else(|| {
            let names: Vec<&str> = own.iter().map(|limit| limit.name.as_str()).collect();
            ProfileError::Incomplete {
                name: name.to_owned(),
                profile: profile.to_owned(),
                has: if names.is_empty() {
                    "has none".to_owned()
                } else {
                    format!("has {}", names.join(", "))
                },
                lacks: "algorithm",
                hint: hint(name, &names),
            }
        })?;
        let algorithm = self.algorithm(name, kind, base.map(|limit| limit.algorithm))?;
        let before = base.and_then(|limit| limit.penalty);
        let limit = Limit {
            name: name.to_owned(),
            key: self.key.or_else(|| base.map(|limit| limit.key)).unwrap_or(Key::Token),
            kinds: self.kinds.clone().or_else(|| base.map(|limit| limit.kinds.clone())).unwrap_or_default(),
            methods: self
                .methods
                .clone()
                .or_else(|| base.map(|limit| limit.methods.clone()))
                .unwrap_or_default(),
            algorithm,
            cost: self.cost.or_else(|| base.map(|limit| limit.cost)).unwrap_or(1),
            penalty: self.penalty.map_or(Ok(before), |settings| settings.resolve(name, before))?,
        };
        limit.check().map_err(|source| ProfileError::Limit { name: name.to_owned(), source })?;
        Ok(Some(limit))
    }

    /// The algorithm `kind`, with parameters from here, else from `base`.
    fn algorithm(
        &self,
        limit: &str,
        kind: AlgorithmKind,
        base: Option<Algorithm>,
    ) -> Result<Algorithm, ProfileError> {
        let error = |key, problem| ProfileError::Key { limit: limit.to_owned(), key, problem };
        let missing = |key| error(key, "is missing; a limit with another algorithm, or a new one, needs it");
        if kind == AlgorithmKind::TokenBucket {
            let problem = "has no meaning for a token bucket; it has `rate` and `burst` (or set `algorithm`)";
            if self.limit.is_some() {
                return Err(error("limit", problem));
            }
            if self.window.is_some() {
                return Err(error("window", problem));
            }
            let (rate, burst) = match base {
                Some(Algorithm::TokenBucket { rate, burst }) => (Some(rate), Some(burst)),
                _ => (None, None),
            };
            return Ok(Algorithm::TokenBucket {
                rate: self.rate.or(rate).ok_or_else(|| missing("rate"))?,
                burst: self.burst.map(|count| count.0).or(burst).ok_or_else(|| missing("burst"))?,
            });
        }
        let problem = "has no meaning for a window; it has `limit` and `window` (or set `algorithm`)";
        if self.rate.is_some() {
            return Err(error("rate", problem));
        }
        if self.burst.is_some() {
            return Err(error("burst", problem));
        }
        let (count, length) = match base {
            Some(Algorithm::SlidingWindow { limit, window } | Algorithm::FixedWindow { limit, window }) => {
                (Some(limit), Some(window))
            }
            _ => (None, None),
        };
        let limit = self.limit.or(count).ok_or_else(|| missing("limit"))?;
        let window = self.window.or(length).ok_or_else(|| missing("window"))?;
        Ok(match kind {
            AlgorithmKind::SlidingWindow => Algorithm::SlidingWindow { limit, window },
            _ => Algorithm::FixedWindow { limit, window },
        })
    }
}

impl PenaltySettings {
    /// The rule that these settings make of `base`.
    fn resolve(self, limit: &str, base: Option<PenaltyRule>) -> Result<Option<PenaltyRule>, ProfileError> {
        if self.off == Some(true) {
            return Ok(None);
        }
        let kind = self.rule.or_else(|| base.map(|rule| rule.kind())).unwrap_or(PenaltyKind::EarlyRetry);
        let base = base.filter(|rule| rule.kind() == kind).unwrap_or(match kind {
            PenaltyKind::EarlyRetry => PenaltyRule::EARLY_RETRY,
            PenaltyKind::Reoffence => PenaltyRule::REOFFENCE,
        });
        let foreign = match kind {
            PenaltyKind::EarlyRetry => {
                [("penalty.within", self.within), ("penalty.forgive_every", self.forgive_every)]
            }
            PenaltyKind::Reoffence => {
                [("penalty.grace", self.grace), ("penalty.halve_every", self.halve_every)]
            }
        };
        if let Some((key, _)) = foreign.into_iter().find(|(_, value)| value.is_some()) {
            let problem = match kind {
                PenaltyKind::EarlyRetry => {
                    "belongs to rule `reoffence`; `early-retry` has `minimum`, `cap`, `grace`, `halve_every`"
                }
                PenaltyKind::Reoffence => {
                    "belongs to rule `early-retry`; `reoffence` has `minimum`, `cap`, `within`, `forgive_every`"
                }
            };
            return Err(ProfileError::Key { limit: limit.to_owned(), key, problem });
        }
        Ok(Some(match base {
            PenaltyRule::EarlyRetry { grace, minimum, cap, halve_every } => PenaltyRule::EarlyRetry {
                grace: self.grace.unwrap_or(grace),
                minimum: self.minimum.unwrap_or(minimum),
                cap: self.cap.unwrap_or(cap),
                halve_every: self.halve_every.unwrap_or(halve_every),
            },
            PenaltyRule::Reoffence { within, minimum, cap, forgive_every } => PenaltyRule::Reoffence {
                within: self.within.unwrap_or(within),
                minimum: self.minimum.unwrap_or(minimum),
                cap: self.cap.unwrap_or(cap),
                forgive_every: self.forgive_every.unwrap_or(forgive_every),
            },
        }))
    }
}

/// As [`ServerSettings`] with nothing left out.
impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ServerSettings::from(self).serialize(serializer)
    }
}

/// With nothing left out: [`ServerSettings::resolve`] gives the same profile again.
impl From<&Profile> for ServerSettings {
    fn from(profile: &Profile) -> Self {
        let off = || LimitSettings { off: Some(true), ..LimitSettings::default() };
        let base = Profile::named(&profile.name).map_or_else(Vec::new, |base| base.limits);
        let mut limit: BTreeMap<String, LimitSettings> =
            base.into_iter().map(|limit| (limit.name, off())).collect();
        limit.extend(profile.limits.iter().map(|limit| (limit.name.clone(), limit.into())));
        Self {
            profile: Some(profile.name.clone()),
            penalties: Some(profile.limits.iter().any(|limit| limit.penalty.is_some())),
            remote_403_costs: Some(profile.remote_403_costs),
            local_403_costs: Some(profile.local_403_costs),
            hold: Some(match profile.hold {
                Some(Hold { budget, cascade }) => {
                    HoldSettings { off: None, budget: Some(budget), cascade: Some(cascade) }
                }
                None => HoldSettings { off: Some(true), ..HoldSettings::default() },
            }),
            limit,
        }
    }
}

impl From<&Limit> for LimitSettings {
    fn from(limit: &Limit) -> Self {
        let (rate, burst, count, window) = match limit.algorithm {
            Algorithm::TokenBucket { rate, burst } => (Some(rate), Some(Count(burst)), None, None),
            Algorithm::SlidingWindow { limit, window } | Algorithm::FixedWindow { limit, window } => {
                (None, None, Some(limit), Some(window))
            }
        };
        let penalty = limit.penalty.map_or_else(
            || PenaltySettings { off: Some(true), ..PenaltySettings::default() },
            PenaltySettings::from,
        );
        Self {
            off: None,
            key: Some(limit.key),
            kinds: Some(limit.kinds.clone()),
            methods: Some(limit.methods.clone()),
            algorithm: Some(limit.algorithm.kind()),
            rate,
            burst,
            limit: count,
            window,
            cost: Some(limit.cost),
            penalty: Some(penalty),
        }
    }
}

impl From<PenaltyRule> for PenaltySettings {
    fn from(rule: PenaltyRule) -> Self {
        let with = Self { rule: Some(rule.kind()), ..Self::default() };
        match rule {
            PenaltyRule::EarlyRetry { grace, minimum, cap, halve_every } => Self {
                grace: Some(grace),
                minimum: Some(minimum),
                cap: Some(cap),
                halve_every: Some(halve_every),
                ..with
            },
            PenaltyRule::Reoffence { within, minimum, cap, forgive_every } => Self {
                within: Some(within),
                minimum: Some(minimum),
                cap: Some(cap),
                forgive_every: Some(forgive_every),
                ..with
            },
        }
    }
}

/// `; did you mean ...?` where a known name is near.
fn hint(name: &str, known: &[&str]) -> String {
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|&(distance, known)| distance <= 1 + known.len() / 4)
        .min_by_key(|&(distance, _)| distance)
        .map_or_else(String::new, |(_, known)| format!("; did you mean `{known}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(toml: &str) -> Result<Profile, String> {
        let settings: ServerSettings = toml::from_str(toml).map_err(|error| error.to_string())?;
        settings.resolve().map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_written_is_the_profiles() {
        assert_eq!(resolve(""), Ok(Profile::telegram()));
        let profile = resolve("[limit.token]\nrate = \"25/s\"\n[limit.chat]\noff = true").expect("overrides");
        assert_eq!(profile.limits.len(), 3);
        assert_eq!(
            profile.limits[0].algorithm,
            Algorithm::TokenBucket { rate: Rate::per_second(25), burst: 30 }
        );
        assert_eq!(profile.limits[0].penalty, Some(PenaltyRule::EARLY_RETRY));
    }

    #[test]
    fn penalties_change_one_by_one_or_all_at_once() {
        let grace = |text| resolve(text).map(|profile| profile.limits[0].penalty);
        assert_eq!(
            grace("[limit.token.penalty]\ngrace = \"2s\""),
            Ok(Some(PenaltyRule::EarlyRetry {
                grace: Duration::from_secs(2),
                minimum: Duration::from_secs(1),
                cap: Duration::from_hours(1),
                halve_every: Duration::from_mins(10),
            }))
        );
        assert_eq!(grace("[limit.token.penalty]\nrule = \"reoffence\""), Ok(Some(PenaltyRule::REOFFENCE)));
        assert_eq!(grace("penalties = false"), Ok(None));
        assert_eq!(grace("[limit.token.penalty]\noff = true"), Ok(None));
    }

    #[test]
    fn a_new_limit_comes_after_the_profiles_own() {
        let market = "profile = \"telegram\"\n[limit.api]\nalgorithm = \"fixed-window\"\nlimit = 20\nwindow = \"1min\"\npenalty = { minimum = \"5min\" }";
        let profile = resolve(market).expect("a complete limit");
        assert_eq!(profile.limits.last().map(|limit| limit.name.as_str()), Some("api"));
    }

    #[test]
    fn errors_name_key_value_and_way_out() {
        let check = |toml, expected: &str| assert_eq!(resolve(toml), Err(expected.to_owned()));
        check(
            "[limit.tokn]\nrate = \"25/s\"",
            "limit `tokn` is not in profile `telegram` (has token, chat, group, channel) and lacks `algorithm`; did you mean `token`?",
        );
        check(
            "profile = \"telegran\"",
            "unknown profile `telegran`; known are telegram, telegram-observed, unlimited; did you mean `telegram`?",
        );
        check(
            "[limit.token]\nwindow = \"1min\"",
            "`limit.token.window` has no meaning for a token bucket; it has `rate` and `burst` (or set `algorithm`)",
        );
        check(
            "[limit.token]\nalgorithm = \"fixed-window\"\nlimit = 3",
            "`limit.token.window` is missing; a limit with another algorithm, or a new one, needs it",
        );
        check(
            "[limit.token.penalty]\nwithin = \"1s\"",
            "`limit.token.penalty.within` belongs to rule `reoffence`; `early-retry` has `minimum`, `cap`, `grace`, `halve_every`",
        );
        check(
            "[limit.token]\nburst = 0",
            "limit `token` cannot work: rate `30/s` with burst 0 lets nothing through; both must be above 0",
        );
        assert!(resolve("[limit.token]\nrat = \"25/s\"").is_err_and(|e| e.contains("unknown field `rat`")));
        assert!(resolve("[limit.token]\nrate = 25").is_err_and(|e| e.contains("write `25/s`")));
    }

    #[test]
    fn a_profile_shown_in_full_reads_back() {
        let off = "[limit.chat]\noff = true\n[limit.extra]\nalgorithm = \"sliding-window\"\nlimit = 5\nwindow = \"10s\"\nkey = \"chat\"";
        for profile in
            Profile::ALL.map(|(name, _)| Profile::named(name)).into_iter().flatten().chain(resolve(off))
        {
            let shown = toml::to_string(&profile).expect("settings are plain data");
            assert_eq!(resolve(&shown), Ok(profile), "{shown}");
        }
    }
}
