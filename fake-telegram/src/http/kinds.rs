//! The kinds of updates, and which of them a bot wants.

use serde_json::Value;

/// What an update tells of: the key beside its `update_id` (core.telegram.org/bots/api#update).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "they are called as the API calls them")]
pub enum Kind {
    Message,
    EditedMessage,
    ChannelPost,
    EditedChannelPost,
    BusinessConnection,
    BusinessMessage,
    EditedBusinessMessage,
    DeletedBusinessMessages,
    MessageReaction,
    MessageReactionCount,
    InlineQuery,
    ChosenInlineResult,
    CallbackQuery,
    ShippingQuery,
    PreCheckoutQuery,
    PurchasedPaidMedia,
    Poll,
    PollAnswer,
    MyChatMember,
    ChatMember,
    ChatJoinRequest,
    ChatBoost,
    RemovedChatBoost,
}

/// The kinds that a bot wants: a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed(u32);

impl Kind {
    /// All of them, in the order of the enum, with the names that the API gives them.
    const ALL: [(Self, &str); 23] = [
        (Self::Message, "message"),
        (Self::EditedMessage, "edited_message"),
        (Self::ChannelPost, "channel_post"),
        (Self::EditedChannelPost, "edited_channel_post"),
        (Self::BusinessConnection, "business_connection"),
        (Self::BusinessMessage, "business_message"),
        (Self::EditedBusinessMessage, "edited_business_message"),
        (Self::DeletedBusinessMessages, "deleted_business_messages"),
        (Self::MessageReaction, "message_reaction"),
        (Self::MessageReactionCount, "message_reaction_count"),
        (Self::InlineQuery, "inline_query"),
        (Self::ChosenInlineResult, "chosen_inline_result"),
        (Self::CallbackQuery, "callback_query"),
        (Self::ShippingQuery, "shipping_query"),
        (Self::PreCheckoutQuery, "pre_checkout_query"),
        (Self::PurchasedPaidMedia, "purchased_paid_media"),
        (Self::Poll, "poll"),
        (Self::PollAnswer, "poll_answer"),
        (Self::MyChatMember, "my_chat_member"),
        (Self::ChatMember, "chat_member"),
        (Self::ChatJoinRequest, "chat_join_request"),
        (Self::ChatBoost, "chat_boost"),
        (Self::RemovedChatBoost, "removed_chat_boost"),
    ];

    /// Its name in updates and in `allowed_updates`.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Whether a bot gets it only if it asks for it (core.telegram.org/bots/api#getupdates, `allowed_updates`).
    pub const fn must_be_asked_for(self) -> bool {
        matches!(self, Self::ChatMember | Self::MessageReaction | Self::MessageReactionCount)
    }
}

impl Default for Allowed {
    /// What a bot gets that never said what it wants.
    fn default() -> Self {
        Self::of(|kind| !kind.must_be_asked_for())
    }
}

impl Allowed {
    /// Reads a parameter `allowed_updates`. Names are taken in any case, unknown ones are passed over, and if none is
    /// left it is the default set; what is no list of texts says nothing (tdlib/telegram-bot-api `Client.cpp`,
    /// get_allowed_update_types).
    pub fn read(value: &Value) -> Option<Self> {
        let names: Vec<&str> = value.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
        let wanted = Self::of(|kind| names.iter().any(|name| name.eq_ignore_ascii_case(kind.name())));
        Some(if wanted.0 == 0 { Self::default() } else { wanted })
    }

    /// Whether `kind` is among them.
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 >> kind as u32 & 1 == 1
    }

    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Kind::ALL.into_iter().filter(move |(kind, _)| self.contains(*kind)).map(|(_, name)| name)
    }

    fn of(wanted: impl Fn(Kind) -> bool) -> Self {
        Self(
            Kind::ALL
                .into_iter()
                .filter(|(kind, _)| wanted(*kind))
                .fold(0, |set, (kind, _)| set | 1 << kind as u32),
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_stand_in_the_order_of_the_kinds() {
        for (at, (kind, _)) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
        }
        assert_eq!(Kind::MyChatMember.name(), "my_chat_member");
    }

    #[test]
    fn three_kinds_must_be_asked_for() {
        let missing: Vec<&str> = Kind::ALL
            .into_iter()
            .filter(|(kind, _)| !Allowed::default().contains(*kind))
            .map(|(_, name)| name)
            .collect();
        assert_eq!(missing, ["message_reaction", "message_reaction_count", "chat_member"]);
    }

    #[test]
    fn reads_what_clients_send() {
        let only = |value| Allowed::read(&value).map(|allowed| allowed.names().collect::<Vec<_>>());
        assert_eq!(only(json!(["poll", "MESSAGE"])), Some(vec!["message", "poll"]));
        assert_eq!(only(json!(["chat_member", "unheard_of"])), Some(vec!["chat_member"]));
        for everything in [json!([]), json!(["unheard_of"])] {
            assert_eq!(Allowed::read(&everything), Some(Allowed::default()));
        }
        for nothing in [json!("message"), json!({}), json!([7])] {
            assert_eq!(Allowed::read(&nothing), None);
        }
    }
}
