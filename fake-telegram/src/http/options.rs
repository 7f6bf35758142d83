//! How a server is to be.

use std::net::SocketAddr;

use crate::api::ChatIndex;
use crate::chat::Chats;
use crate::fault::Fault;
use crate::http::peers::{ChatId, ChatType};
use crate::http::people::act::Act;
use crate::profile::Profile;
use crate::time::Duration;

/// How a server is to be. The default is what `fake-telegram` without flags is.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens; port 0 takes a free one.
    pub addr: SocketAddr,
    /// The rules.
    pub profile: Profile,
    /// What fails.
    pub faults: Vec<Fault>,
    /// Chats of a scenario: chat `i` of a kind has the id that [`chat_id`] gives it. Other ids are other chats.
    pub chats: Option<Chats>,
    /// Server seconds in a real one.
    pub speed: u32,
    /// Whether its clock stands until somebody moves it.
    pub frozen: bool,
    /// Of its draws.
    pub seed: u64,
    /// Whether it knows only `tokens`.
    pub strict: bool,
    /// The tokens that a strict server knows.
    pub tokens: Vec<String>,
    /// Whether only declared chats exist.
    pub declared_chats_only: bool,
    /// Whether updates may go to webhooks that are not on this host.
    pub webhooks_anywhere: bool,
    /// Whether a 429 has the header `Retry-After`: the open server sends it; nobody has said whether the public service
    /// lets it through (`telegram.md` 2.2).
    pub retry_after_header: bool,
    /// Calls that the journal keeps.
    pub journal: usize,
    /// Connections at a time; more are closed at once.
    pub connections_max: usize,
    /// Bytes of a body: Telegram takes files of up to 50 MB (core.telegram.org/bots/api#sending-files).
    pub body_max: usize,
    /// What people do by themselves.
    pub people: Vec<Act>,
    /// How long a bot may take to answer a query, in its own time, whole seconds. 15 s are assumed: nothing is published, and
    /// an answer after 20 s was too late (eternnoir/pyTelegramBotAPI#1615), where people guess 5 to 10 s.
    pub queries_live: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            addr: ([127, 0, 0, 1], 8081).into(),
            profile: Profile::telegram(),
            faults: Vec::new(),
            chats: None,
            speed: 1,
            frozen: false,
            seed: 1,
            strict: false,
            tokens: Vec::new(),
            declared_chats_only: false,
            webhooks_anywhere: false,
            retry_after_header: true,
            journal: 100_000,
            connections_max: 16_384,
            body_max: 52 << 20,
            people: Vec::new(),
            queries_live: Duration::from_secs(15),
        }
    }
}

/// The ids of a scenario's chats begin here; those of groups are negative, those of channels have `-100` before it.
const FIRST: i64 = 1_000_000_000;
/// Channels and supergroups are below this (core.telegram.org/api/bots/ids).
const CHANNELS: i64 = -1_000_000_000_000;

/// The id of chat `index` of a scenario.
pub const fn chat_id(index: ChatIndex, kind: ChatType) -> ChatId {
    let number = FIRST + index.0 as i64;
    ChatId(match kind {
        ChatType::Private => number,
        ChatType::Group => -number,
        ChatType::Supergroup | ChatType::Channel => CHANNELS - number,
    })
}

impl Options {
    /// The chats at the start: those of the scenario, of which each bot gets copies.
    pub(super) fn chats(&self) -> Chats {
        let mut chats = self.chats.clone().unwrap_or_default();
        // All that come later are a bot's, and bots are told of what happens.
        chats.watch();
        chats
    }

    /// The chat of a scenario with that id.
    pub(super) fn index_of(&self, id: ChatId) -> Option<ChatIndex> {
        let chats = self.chats.as_ref()?;
        let number = if id.0 <= CHANNELS { CHANNELS - id.0 } else { id.0.abs() };
        let index = ChatIndex(u32::try_from(number - FIRST).ok()?);
        chats.kind(index).map(|_| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ChatKind;

    #[test]
    fn a_scenarios_chats_are_found_by_their_ids() {
        let options = Options { chats: Some(Chats::of(ChatKind::Group, 5)), ..Options::default() };
        for kind in [ChatType::Private, ChatType::Group, ChatType::Channel] {
            let id = chat_id(ChatIndex(4), kind);
            assert_eq!(
                (options.index_of(id), id.guess().kind() == kind.kind() || kind == ChatType::Channel),
                (Some(ChatIndex(4)), true)
            );
            assert_eq!(options.index_of(chat_id(ChatIndex(5), kind)), None);
        }
        assert_eq!(options.index_of(ChatId(7)), None);
        assert_eq!(Options::default().index_of(chat_id(ChatIndex(0), ChatType::Private)), None);
    }
}
