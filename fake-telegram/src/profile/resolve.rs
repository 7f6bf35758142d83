//! From settings to a profile: what is not written is the profile's, and every error names its way out.

use super::{HintSettings, Hold, LimitSettings, PenaltySettings, Profile, ServerSettings};
use crate::hint::{HintKind, HintRule};
use crate::limits::{Algorithm, AlgorithmKind, Key, LIMITS_MAX, Limit, LimitError};
use crate::penalty::{PenaltyKind, PenaltyRule};
use crate::time::Duration;

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
    /// A key of `retry_hint` that means nothing for its kind, is missing, or cannot be said.
    #[error("`retry_hint.{key}` {problem}")]
    Hint {
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
    /// More than [`LIMITS_MAX`].
    #[error("there are {0} limits; at most {LIMITS_MAX} are possible")]
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
        if profile.limits.len() > LIMITS_MAX {
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
        profile.idempotency_keys = self.idempotency_keys.unwrap_or(profile.idempotency_keys);
        if let Some(hint) = self.retry_hint {
            profile.retry_hint = hint.resolve()?;
        }
        Ok(profile)
    }
}

impl HintSettings {
    fn resolve(self) -> Result<HintRule, ProfileError> {
        let error = |key, problem| Err(ProfileError::Hint { key, problem });
        match (self.kind, self.after, self.share) {
            (HintKind::Constant, None, _) => {
                error("after", "is missing; kind `constant` needs it, as in `5s`")
            }
            (HintKind::Short, _, None) => error("share", "is missing; kind `short` needs it, as in `50%`"),
            (kind, Some(_), _) if kind != HintKind::Constant => error("after", "belongs to kind `constant`"),
            (kind, _, Some(_)) if kind != HintKind::Short => error("share", "belongs to kind `short`"),
            (HintKind::Constant, Some(after), _) => match u32::try_from(after.as_secs_ceil()) {
                Ok(seconds) if Duration::from_secs(seconds.into()) == after => {
                    Ok(HintRule::Constant(seconds))
                }
                _ => error("after", "is not whole seconds in 32 bits, and a hint can say nothing else"),
            },
            (HintKind::Short, _, Some(share)) => Ok(HintRule::Short(share)),
            (HintKind::Date, ..) => Ok(HintRule::Date),
            (HintKind::Absent, ..) => Ok(HintRule::Absent),
            (HintKind::Exact, ..) => Ok(HintRule::Exact),
        }
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
        let is_off = self.off == Some(true);
        if is_off && base.is_some() {
            return Ok(None);
        }
        // One that is off is one that there is, or that is written out.
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
        Ok((!is_off).then_some(limit))
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
    use crate::units::{Rate, Share};

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
    fn a_hint_is_exact_unless_it_is_said_how_it_lies() {
        let hint = |text: &str| resolve(&format!("[retry_hint]\n{text}")).map(|profile| profile.retry_hint);
        let wrong = |text, expected: &str| assert_eq!(hint(text), Err(expected.to_owned()));
        assert_eq!(resolve("").map(|profile| profile.retry_hint), Ok(HintRule::Exact));
        assert_eq!(hint("kind = \"date\""), Ok(HintRule::Date));
        assert_eq!(hint("kind = \"absent\""), Ok(HintRule::Absent));
        assert_eq!(hint("kind = \"constant\"\nafter = \"5s\""), Ok(HintRule::Constant(5)));
        let half = Share::from_ppm(500_000);
        assert_eq!(hint("kind = \"short\"\nshare = \"50%\""), Ok(HintRule::Short(half)));
        wrong("kind = \"constant\"", "`retry_hint.after` is missing; kind `constant` needs it, as in `5s`");
        wrong("kind = \"short\"", "`retry_hint.share` is missing; kind `short` needs it, as in `50%`");
        wrong("kind = \"date\"\nafter = \"5s\"", "`retry_hint.after` belongs to kind `constant`");
        wrong(
            "kind = \"constant\"\nafter = \"5s\"\nshare = \"1%\"",
            "`retry_hint.share` belongs to kind `short`",
        );
        wrong(
            "kind = \"constant\"\nafter = \"1.5s\"",
            "`retry_hint.after` is not whole seconds in 32 bits, and a hint can say nothing else",
        );
        assert!(hint("after = \"5s\"").is_err_and(|error| error.contains("missing field `kind`")));
    }

    #[test]
    fn a_new_limit_comes_after_the_profiles_own() {
        let more = "profile = \"telegram\"\n[limit.api]\nalgorithm = \"fixed-window\"\nlimit = 20\nwindow = \"1min\"\npenalty = { minimum = \"5min\" }";
        let profile = resolve(more).expect("a complete limit");
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
            "unknown profile `telegran`; known are telegram, telegram-observed, market, unlimited; did you mean `telegram`?",
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
        let hints =
            ["kind = \"date\"", "kind = \"constant\"\nafter = \"5s\"", "kind = \"short\"\nshare = \"50%\""];
        let hints = hints.map(|hint| resolve(&format!("[retry_hint]\n{hint}")));
        let keys = resolve("idempotency_keys = true");
        assert!(keys.as_ref().is_ok_and(|profile| profile.idempotency_keys));
        let changed = hints.into_iter().flatten().chain(resolve(off)).chain(keys);
        for profile in Profile::ALL.map(|(name, _)| Profile::named(name)).into_iter().flatten().chain(changed)
        {
            let shown = toml::to_string(&profile).expect("settings are plain data");
            assert_eq!(resolve(&shown), Ok(profile), "{shown}");
        }
    }
}
