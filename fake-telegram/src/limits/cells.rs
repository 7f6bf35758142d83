//! Where the state of limits is kept: one integer for each limit and key, 0 before its first use; grows on use.

use super::Key;
use crate::api::{ChatIndex, ChatKind, Method, TokenIndex};

/// The cells of a list of limits.
#[derive(Debug, Clone, Default)]
pub(super) struct Cells {
    of_host: Vec<u64>,
    of_tokens: Vec<u64>,
    token_slots: usize,
    /// For each token, the cells of all chats; one row for all tokens where no two of them share a chat.
    of_chats: Vec<Vec<u64>>,
    /// A token's bits that tell its row.
    row_mask: usize,
    chat_slots: usize,
    chats: usize,
}

/// The place of a cell among those of its shelf: of the token's, say, the third.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    shelf: Shelf,
    /// 16 bits: a limit of methods has a cell for each.
    number: u16,
}

/// Whose cells these are; the order of what [`Cells::of`] gives.
#[derive(Debug, Clone, Copy)]
enum Shelf {
    Host,
    Token,
    Chat,
}

/// How many cells the limits so far need, and so the place of the next one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slots {
    host: u16,
    token: u16,
    /// A chat has the limits of its kind only.
    chat: [u16; KINDS],
}

/// Where a limit keeps its cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    key: Key,
    /// The first of the token's or the host's, or the one of a chat of each kind.
    slots: [u16; KINDS],
}

impl Slots {
    /// The place of one limit more, which applies to these kinds.
    pub(super) fn place(&mut self, key: Key, applies: impl Fn(ChatKind) -> bool) -> Place {
        let next = |count: &mut u16, cells: usize| {
            *count += cells as u16;
            *count - cells as u16
        };
        let slots = match key {
            Key::Host => [next(&mut self.host, 1); KINDS],
            Key::Token => [next(&mut self.token, 1); KINDS],
            Key::Method => [next(&mut self.token, Method::ALL.len()); KINDS],
            Key::Chat => {
                std::array::from_fn(|i| if applies(ALL_KINDS[i]) { next(&mut self.chat[i], 1) } else { 0 })
            }
        };
        Place { key, slots }
    }
}

impl Place {
    /// Where the cell is of a call with `method` to a chat of `kind`.
    pub(super) const fn slot(self, kind: ChatKind, method: Method) -> Slot {
        let number = self.slots[kind as usize];
        match self.key {
            Key::Host => Slot { shelf: Shelf::Host, number },
            Key::Token => Slot { shelf: Shelf::Token, number },
            // A token's methods lie side by side: which one it is costs a call nothing.
            Key::Method => Slot { shelf: Shelf::Token, number: number + method as u16 },
            Key::Chat => Slot { shelf: Shelf::Chat, number },
        }
    }
}

impl Slot {
    /// Its place in what [`Cells::of`] gives.
    #[inline(always)]
    pub(super) const fn index(self) -> (usize, usize) {
        (self.shelf as usize, self.number as usize)
    }
}

impl Cells {
    /// Cells for `chats` chats and `tokens` tokens; more come on use.
    pub(super) fn new(chats: usize, tokens: usize, slots: Slots) -> Self {
        let (token_slots, chat_slots) =
            (slots.token.into(), slots.chat.into_iter().max().unwrap_or(0).into());
        // Zeroed by the system, page by page, on first use.
        let of_chats = (0..tokens).map(|_| vec![0; chats * chat_slots]).collect();
        Self {
            of_host: vec![0; slots.host.into()],
            of_tokens: vec![0; tokens * token_slots],
            token_slots,
            of_chats,
            row_mask: usize::MAX,
            chat_slots,
            chats,
        }
    }

    /// The same for chats that are one token's own each: a row for all. Nobody may have used a cell yet.
    pub(super) fn of_own_chats(mut self) -> Self {
        self.of_chats = vec![vec![0; self.chats * self.chat_slots]];
        self.row_mask = 0;
        self
    }

    /// The cell, 0 if nobody used it yet.
    pub(super) fn get(&self, slot: Slot, token: TokenIndex, chat: ChatIndex) -> u64 {
        let (token, chat) = (usize::from(token.0), chat.0 as usize);
        let number = usize::from(slot.number);
        let cell = match slot.shelf {
            Shelf::Host => self.of_host.get(number),
            Shelf::Token => self.of_tokens.get(token * self.token_slots + number),
            Shelf::Chat => {
                let row = self.of_chats.get(token & self.row_mask);
                row.and_then(|cells| cells.get(chat * self.chat_slots + number))
            }
        };
        cell.copied().unwrap_or(0)
    }

    /// For each [`Shelf`], all cells of the host, of the token and of its chat.
    #[inline]
    pub(super) fn of(&mut self, token: TokenIndex, chat: ChatIndex) -> [&mut [u64]; 3] {
        let token = usize::from(token.0);
        let of_token = token * self.token_slots;
        let of_chat = chat.0 as usize * self.chat_slots;
        let row = token & self.row_mask;
        if self.of_tokens.len() < of_token + self.token_slots
            || self.of_chats.get(row).is_none_or(|cells| cells.len() < of_chat + self.chat_slots)
        {
            self.grow(token, of_chat);
        }
        let of_chats = &mut self.of_chats[row][of_chat..of_chat + self.chat_slots];
        [&mut self.of_host, &mut self.of_tokens[of_token..of_token + self.token_slots], of_chats]
    }

    /// The cells of a token are as if nobody had used them; those of its chats, too, unless they are its own, which nobody
    /// else will write to.
    pub(super) fn forget(&mut self, token: TokenIndex) {
        let token = usize::from(token.0);
        if let Some(of_token) = self.of_tokens.get_mut(token * self.token_slots..) {
            of_token.iter_mut().take(self.token_slots).for_each(|cell| *cell = 0);
        }
        if self.row_mask != 0
            && let Some(of_chats) = self.of_chats.get_mut(token)
        {
            *of_chats = Vec::new();
        }
    }

    #[cold]
    fn grow(&mut self, token: usize, of_chat: usize) {
        if self.of_tokens.len() < (token + 1) * self.token_slots {
            self.of_tokens.resize((token + 1) * self.token_slots, 0);
        }
        let row = token & self.row_mask;
        if self.of_chats.len() <= row {
            self.of_chats.resize(row + 1, Vec::new());
        }
        let cells = &mut self.of_chats[row];
        let wanted = (of_chat + self.chat_slots).max(self.chats * self.chat_slots);
        if cells.is_empty() {
            *cells = vec![0; wanted];
        } else {
            cells.resize(wanted, 0);
        }
    }
}

pub(super) const KINDS: usize = 3;
pub(super) const ALL_KINDS: [ChatKind; KINDS] = [ChatKind::Private, ChatKind::Group, ChatKind::Channel];

#[cfg(test)]
mod tests {
    use super::*;

    /// The most that a profile may have, all of them with a cell for each method.
    #[test]
    fn no_two_limits_share_a_cell() {
        let mut slots = Slots::default();
        let all = |_| true;
        let keys = [Key::Host, Key::Token, Key::Method, Key::Chat];
        let places: Vec<Place> = (0..64).map(|i| slots.place(keys[i % keys.len()], all)).collect();
        let mut of_a_call: Vec<(usize, usize)> =
            places.iter().map(|place| place.slot(ChatKind::Group, Method::Search).index()).collect();
        of_a_call.sort_unstable();
        of_a_call.dedup();
        assert_eq!(of_a_call.len(), 64);
        let mut all: Vec<(usize, usize)> = Vec::new();
        for place in places {
            let mut own: Vec<_> =
                Method::ALL.map(|method| place.slot(ChatKind::Group, method).index()).into();
            own.dedup();
            all.extend(own);
        }
        let cells = all.len();
        all.sort_unstable();
        all.dedup();
        // 16 limits of each key.
        let each = 1 + 1 + Method::ALL.len() + 1;
        assert_eq!((all.len(), cells), (16 * each, 16 * each));
    }

    /// A thousand tokens with a chat each, one after the other: a cell each, and not a thousand.
    #[test]
    fn own_chats_take_a_cell_each() {
        let mut slots = Slots::default();
        let place = slots.place(Key::Chat, |_| true);
        let (_, number) = place.slot(ChatKind::Private, Method::SendMessage).index();
        let mut cells = Cells::new(0, 0, slots).of_own_chats();
        for index in 0..1_000u16 {
            cells.of(TokenIndex(index), ChatIndex(index.into()))[Shelf::Chat as usize][number] = index.into();
        }
        assert_eq!(cells.of_chats.iter().map(Vec::len).sum::<usize>(), 1_000);
        let slot = place.slot(ChatKind::Private, Method::SendMessage);
        assert_eq!(cells.get(slot, TokenIndex(7), ChatIndex(7)), 7);
    }
}
