//! Messages and offers as texts, for a store that has no types of ours; and times as whole numbers that a double holds.

use fake_telegram::api::{ChatIndex, ChatKind, Method};
use fake_telegram::time::{Duration, Time};

use super::offer::Offer;
use crate::world::{ClassIndex, Message};

/// Stands for [`Time::MAX`] and [`Duration::MAX`]: 2^53, up to which a double holds every whole number. That is 285 years.
pub const NEVER: u64 = 1 << 53;

/// An instant as a number up to [`NEVER`].
pub fn instant(at: Time) -> u64 {
    number(at.as_micros())
}

/// A distance as a number up to [`NEVER`].
pub fn distance(length: Duration) -> u64 {
    number(length.as_micros())
}

/// The instant that [`instant`] gave.
pub const fn read_instant(us: u64) -> Time {
    if us >= NEVER { Time::MAX } else { Time::from_micros(us) }
}

/// The distance that [`distance`] gave.
pub const fn read_distance(us: u64) -> Duration {
    if us >= NEVER { Duration::MAX } else { Duration::from_micros(us) }
}

fn number(us: u64) -> u64 {
    if us == u64::MAX { NEVER } else { us.min(NEVER - 1) }
}

/// `number:chat:due:deadline:class:kind:method:from_user`, all of them numbers.
pub fn write_message(message: &Message) -> String {
    let Message { number, chat, due, deadline, class, kind, method, from_user } = *message;
    format!(
        "{number}:{}:{}:{}:{}:{}:{}:{}",
        chat.0,
        instant(due),
        instant(deadline),
        class.0,
        kind as u8,
        method as u8,
        u8::from(from_user)
    )
}

/// The message that [`write_message`] gave.
pub fn read_message(text: &str) -> Option<Message> {
    let mut fields = text.split(':').map(|field| field.parse::<u64>().ok());
    let mut next = || fields.next().flatten();
    let message = Message {
        number: next()?.try_into().ok()?,
        chat: ChatIndex(next()?.try_into().ok()?),
        due: read_instant(next()?),
        deadline: read_instant(next()?),
        class: ClassIndex(next()?.try_into().ok()?),
        kind: *KINDS.get(usize::try_from(next()?).ok()?)?,
        method: *Method::ALL.get(usize::try_from(next()?).ok()?)?,
        from_user: next()? == 1,
    };
    fields.next().is_none().then_some(message)
}

/// `slot:ticket:tries:refusals:leased_until:MESSAGE`.
pub fn write_offer(offer: &Offer) -> String {
    let Offer { message, tries, refusals, leased_until, ticket, slot } = offer;
    format!("{slot}:{ticket}:{tries}:{refusals}:{}:{}", instant(*leased_until), write_message(message))
}

/// The offer that [`write_offer`] gave.
pub fn read_offer(text: &str) -> Option<Offer> {
    let mut fields = text.splitn(6, ':');
    let mut next = || fields.next();
    Some(Offer {
        slot: next()?.parse().ok()?,
        ticket: next()?.parse().ok()?,
        tries: next()?.parse().ok()?,
        refusals: next()?.parse().ok()?,
        leased_until: read_instant(next()?.parse().ok()?),
        message: read_message(next()?)?,
    })
}

const KINDS: [ChatKind; 3] = [ChatKind::Private, ChatKind::Group, ChatKind::Channel];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages() -> impl Strategy<Value = Message> {
        let times = prop_oneof![0..NEVER, Just(u64::MAX)];
        let times =
            (times.clone(), times).prop_map(|times| (Time::from_micros(times.0), Time::from_micros(times.1)));
        let kinds = (0..KINDS.len(), 0..Method::ALL.len(), any::<bool>());
        (any::<u32>(), any::<u32>(), times, any::<u8>(), kinds).prop_map(
            |(number, chat, (due, deadline), class, (kind, method, from_user))| Message {
                number,
                chat: ChatIndex(chat),
                due,
                deadline,
                class: ClassIndex(class),
                kind: KINDS[kind],
                method: Method::ALL[method],
                from_user,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(message in messages(), numbers in any::<(u8, u8, u32, u32)>(), until in 0..NEVER) {
            prop_assert_eq!(read_message(&write_message(&message)), Some(message));
            let (tries, refusals, ticket, slot) = numbers;
            let offer = Offer { message, tries, refusals, leased_until: Time::from_micros(until), ticket, slot };
            prop_assert_eq!(read_offer(&write_offer(&offer)), Some(offer));
        }
    }

    #[test]
    fn what_is_cut_short_or_too_long_is_no_message() {
        for text in ["", "1", "1:2:3:4:0:0:0", "1:2:3:4:0:9:0:0", "1:2:3:4:0:0:0:0:0", "x:2:3:4:0:0:0:0"] {
            assert_eq!(read_message(text), None, "{text}");
        }
    }
}
