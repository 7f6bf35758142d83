//! The naive loop (incident S1): take what is due, send it, look at nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Strategy;
use crate::env::Env;

/// Takes all that is due, sends it in a row, and never looks at an answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NaiveLoop {}

impl Strategy for NaiveLoop {
    const KIND: &'static str = "naive-loop";
    const SUMMARY: &'static str = "sends all that is due in a row and looks at nothing";

    async fn run(self, env: Env) {
        while let Some(message) = env.next().await {
            let _ = env.send(&message).await;
        }
    }
}
