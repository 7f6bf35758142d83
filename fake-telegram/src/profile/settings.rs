//! A profile and what a scenario changes of it, as written in TOML.
//!
//! Everything may be left out. A [`Profile`] turns into settings with nothing left out, which read back as the same
//! profile: that is how it is shown.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::{Hold, Profile};
use crate::api::{ChatKind, Method};
use crate::hint::{HintKind, HintRule};
use crate::limits::{Algorithm, AlgorithmKind, Key, Limit};
use crate::penalty::{PenaltyKind, PenaltyRule};
use crate::time::Duration;
use crate::units::{Count, Rate, Share};

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
    /// What a 429 says about the wait. Default: the profile's, which for a Telegram is what is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_hint: Option<HintSettings>,
    /// Whether a call that repeats the key of a delivered one is answered as that was, and does nothing. No Telegram
    /// can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_keys: Option<bool>,
    /// Holding calls open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldSettings>,
    /// Limits by name: those of the profile, changed, then new ones (which need an `algorithm`) in the order of names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limit: BTreeMap<String, LimitSettings>,
}

/// `[server.retry_hint]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HintSettings {
    /// Which rule.
    pub kind: HintKind,
    /// `constant`: the whole seconds that every 429 says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Duration>,
    /// `short`: the share of the true wait that it says, rounded down to whole seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
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
    /// What has a budget of its own. Default of a new limit: `token`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// The kinds of chat that it applies to. Default of a new limit: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<ChatKind>>,
    /// The methods that it applies to. Default of a new limit: all but `sendChatAction`, `editForumTopic` and `getMe`,
    /// which spend nothing else.
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

impl ServerSettings {
    /// Changes a limit, or adds one: what `change` does not say of it stays, and whatever it says brings back a limit that was
    /// off.
    pub fn change(&mut self, name: &str, change: LimitSettings) {
        let before = self.limit.remove(name).unwrap_or_default();
        let after = LimitSettings {
            off: change.off,
            key: change.key.or(before.key),
            kinds: change.kinds.or(before.kinds),
            methods: change.methods.or(before.methods),
            algorithm: change.algorithm.or(before.algorithm),
            rate: change.rate.or(before.rate),
            burst: change.burst.or(before.burst),
            limit: change.limit.or(before.limit),
            window: change.window.or(before.window),
            cost: change.cost.or(before.cost),
            penalty: change.penalty.or(before.penalty),
        };
        self.limit.insert(name.to_owned(), after);
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
            retry_hint: Some(profile.retry_hint.into()),
            idempotency_keys: Some(profile.idempotency_keys),
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

impl From<HintRule> for HintSettings {
    fn from(rule: HintRule) -> Self {
        let (after, share) = match rule {
            HintRule::Constant(seconds) => (Some(Duration::from_secs(seconds.into())), None),
            HintRule::Short(share) => (None, Some(share)),
            HintRule::Exact | HintRule::Date | HintRule::Absent => (None, None),
        };
        Self { kind: rule.kind(), after, share }
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
