//! Few chats get most messages: a power law with a cut-off, drawn from in two reads and one comparison.

use fake_telegram::api::ChatKind;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::factor::Factor;
use crate::rng::fixed;

/// How messages are spread over chats, by kind.
///
/// The defaults are fitted to public traces (docs/scenario.md): private chats alpha 2.0 to 2.3 with a cut-off near 500
/// messages a month, groups alpha 1.7.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Popularity {
    /// Private chats.
    pub private: Tail,
    /// Groups.
    pub group: Tail,
    /// Channels.
    pub channel: Tail,
}

/// The density of a chat's share of the messages falls as share^-exponent, from the quietest chat to one `cutoff`
/// times as busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// More than 1; smaller is more unequal.
    pub exponent: Factor,
    /// The busiest chat per quietest chat, 1 (all alike) to 1,000,000.
    pub cutoff: Factor,
}

impl Tail {
    const fn new(exponent_millionths: u64, cutoff: u64) -> Self {
        Self {
            exponent: Factor::from_millionths(exponent_millionths),
            cutoff: Factor::from_millionths(cutoff * Factor::ONE.as_millionths()),
        }
    }

    /// Whether the law can be computed; the message says what to change.
    fn check(self) -> Result<(), String> {
        if self.exponent <= Factor::ONE {
            return Err("`exponent` must be more than 1".to_owned());
        }
        if !(Factor::ONE..=Self::new(0, 1_000_000).cutoff).contains(&self.cutoff) {
            return Err("`cutoff` must be between 1 and 1000000".to_owned());
        }
        Ok(())
    }

    /// The weights of `count` chats in Q32: the quantiles of the law at (i + 1/2) / count.
    fn weights(self, count: u32) -> impl Iterator<Item = u64> {
        let million = i128::from(Factor::ONE.as_millionths());
        let slope = i128::from(self.exponent.as_millionths()) - million;
        let cutoff = (u128::from(self.cutoff.as_millionths()) << 32) / million as u128;
        // F(x) = (1 - x^-slope) / (1 - cutoff^-slope), solved for x.
        let last = fixed::exp2((-i128::from(fixed::log2(cutoff as u64)) * slope / million) as i64);
        let span = u128::from(fixed::ONE - last);
        (0..count).map(move |rank| {
            let below = span * (2 * u128::from(rank) + 1) / (2 * u128::from(count));
            let above = (fixed::ONE - below as u64).max(1);
            // One less, since one itself has no 64 bits behind the point.
            let log = fixed::neg_log2((above << 32).wrapping_sub(1));
            fixed::exp2((i128::from(log) * million / slope) as i64)
        })
    }
}

impl Default for Popularity {
    fn default() -> Self {
        let group = Tail::new(1_700_000, 2_000);
        Self { private: Tail::new(2_150_000, 500), group, channel: group }
    }
}

impl Popularity {
    /// The weights of `count` chats of a kind, the quietest first.
    pub(super) fn weights(&self, kind: ChatKind, count: u32) -> Result<Vec<u64>, String> {
        let tail = match kind {
            ChatKind::Private => self.private,
            ChatKind::Group => self.group,
            ChatKind::Channel => self.channel,
        };
        tail.check()?;
        Ok(tail.weights(count).collect())
    }
}

/// Draws an index in proportion to its weight, in constant time: a column, and whether to take it or its alias
/// (Walker 1977; built after Vose 1991).
#[derive(Debug)]
pub(super) struct AliasTable(Box<[Column]>);

#[derive(Debug, Clone, Copy)]
struct Column {
    /// The share of the column that is its own, in units of 2^-32; the rest is the alias'.
    own: u32,
    alias: u32,
}

impl AliasTable {
    /// A table over `weights`, at least one of which is positive.
    pub(super) fn new(weights: &[u64]) -> Self {
        let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
        let count = weights.len() as u128;
        // Each weight in Q32, 1 on average.
        let mut mass: Vec<u64> =
            weights.iter().map(|weight| (((u128::from(*weight) * count) << 32) / total) as u64).collect();
        let mut columns: Vec<Column> =
            (0..weights.len() as u32).map(|index| Column { own: u32::MAX, alias: index }).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|index| mass[*index as usize] < fixed::ONE);
        while let (Some(poor), Some(rich)) = (small.pop(), large.last().copied()) {
            let own = mass[poor as usize];
            columns[poor as usize] = Column { own: own as u32, alias: rich };
            mass[rich as usize] -= fixed::ONE - own;
            if mass[rich as usize] < fixed::ONE {
                large.pop();
                small.push(rich);
            }
        }
        // What rounding leaves over keeps its own column.
        Self(columns.into())
    }

    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> usize {
        let bits = rng.next_u64();
        let index = (((bits >> 32) * self.0.len() as u64) >> 32) as usize;
        let column = self.0[index];
        if (bits as u32) < column.own { index } else { column.alias as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    #[test]
    fn an_alias_table_draws_in_proportion() {
        let table = AliasTable::new(&[1, 2, 3, 0, 94]);
        let mut rng = rng::stream(1, "test");
        let mut counts = [0u32; 5];
        for _ in 0..100_000 {
            counts[table.draw(&mut rng)] += 1;
        }
        for (count, expected) in counts.into_iter().zip([1_000u32, 2_000, 3_000, 0, 94_000]) {
            assert!(count.abs_diff(expected) <= 5 * expected.isqrt(), "{count} against {expected}");
        }
    }

    /// The maximum-likelihood exponent of a continuous power law from its smallest value on (Hill): the law is cut off
    /// far out, so that the cut moves the estimate by less than the tolerance.
    #[test]
    fn weights_have_the_tail_that_is_asked_for() {
        for exponent in [1_700_000, 2_150_000, 3_000_000] {
            let tail = Tail::new(exponent, 1_000_000);
            let logs: Vec<f64> = tail.weights(100_000).map(|w| (w as f64 / fixed::ONE as f64).ln()).collect();
            let estimate = 1.0 + logs.len() as f64 / logs.iter().sum::<f64>();
            assert!((estimate - exponent as f64 / 1e6).abs() < 0.01, "{estimate} for {exponent}");
        }
    }

    #[test]
    fn a_cutoff_bounds_the_busiest_and_one_makes_all_alike() {
        let ratio = |tail: Tail| {
            let weights: Vec<u64> = tail.weights(300_000).collect();
            weights[299_999] as f64 / weights[0] as f64
        };
        assert!((495.0..=500.0).contains(&ratio(Tail::new(2_150_000, 500))));
        assert_eq!(ratio(Tail::new(2_000_000, 1)), 1.0);
    }
}
