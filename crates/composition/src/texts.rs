//! Texts that several skills say, each once, and who says it.
//!
//! A composition has hundreds of texts, each in several places. An allocation for
//! each would take longer than all that is thought about them, so they lie in one
//! buffer and are spoken of by their places.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::Member;

/// A place in a list. There are far fewer than it could tell apart.
pub(super) type Place = u32;

/// A length as a place.
#[inline]
pub(super) fn place(length: usize) -> Place {
    Place::try_from(length).unwrap_or(Place::MAX)
}

/// A part of a list.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) begin: Place,
    pub(super) end: Place,
}

impl Span {
    /// None of it where it is no part of the list.
    #[inline]
    pub(super) fn of<T>(self, list: &[T]) -> &[T] {
        let part = list.get(self.begin as usize..self.end as usize);
        part.unwrap_or_default()
    }

    pub(super) fn len(self) -> usize {
        (self.end - self.begin) as usize
    }

    pub(super) fn is_empty(self) -> bool {
        self.begin == self.end
    }
}

/// A member says a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) member: Place,
    pub(super) text: Place,
}

/// Texts one behind the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Buffer {
    all: String,
    ends: Vec<Place>,
}

impl Buffer {
    #[inline]
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Self {
        let (mut count, mut length) = (0, 0);
        for text in texts.clone() {
            (count, length) = (count + 1, length + text.len());
        }
        let mut buffer = Self {
            all: String::with_capacity(length),
            ends: Vec::with_capacity(count),
        };
        for text in texts {
            buffer.all.push_str(text);
            buffer.ends.push(place(buffer.all.len()));
        }
        buffer
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> &str {
        let begin = at.checked_sub(1).and_then(|before| self.ends.get(before));
        let begin = begin.map_or(0, |begin| *begin as usize);
        let end = self.ends.get(at).map_or(begin, |end| *end as usize);
        self.all.get(begin..end).unwrap_or_default()
    }
}

/// The first bytes of a text as a number: the numbers have the order of the texts
/// where they differ.
#[inline]
pub(super) fn begin_of(text: &str) -> u128 {
    let bytes = text.as_bytes();
    if let Some(begin) = bytes.first_chunk() {
        return u128::from_be_bytes(*begin);
    }
    // Two parts that overlap are read faster than bytes one by one.
    let length = place(bytes.len());
    if let (Some(head), Some(tail)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        let tail = u64::from_be_bytes(*tail).checked_shl(8 * (16 - length));
        return u128::from(u64::from_be_bytes(*head)) << 64 | u128::from(tail.unwrap_or(0));
    }
    if let (Some(head), Some(tail)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let tail = u32::from_be_bytes(*tail).checked_shl(8 * (8 - length));
        return u128::from(u32::from_be_bytes(*head)) << 96 | u128::from(tail.unwrap_or(0)) << 64;
    }
    let letters = bytes.iter().zip([120, 112, 104]);
    letters.fold(0, |begin, (letter, at)| begin | u128::from(*letter) << at)
}

/// A number whose bits depend on all bits of another: its halves are multiplied,
/// and the halves of the product put together. Names that are counted up, whose
/// digits are all that differs, end up far apart.
#[inline]
pub(super) fn mixed(number: u128) -> u64 {
    const HALF: u128 = u64::MAX as u128;
    const KEYS: (u128, u128) = (0x9e37_79b9_7f4a_7c15, 0xf39c_c060_5ced_c835);
    let product = ((number >> 64) ^ KEYS.0).wrapping_mul((number & HALF) ^ KEYS.1);
    let folded = (product ^ product >> 64) & HALF;
    u64::try_from(folded).unwrap_or(0)
}

/// A text, and who says it.
pub(super) struct Heard<'a> {
    pub(super) text: &'a str,
    /// What it begins with.
    pub(super) begin: u128,
    /// Where they are among the words of all, in the order of their ids.
    pub(super) speakers: Span,
    /// Who said it last.
    last: Place,
}

/// Each text once, by first appearance.
pub(super) struct Texts<'a> {
    pub(super) all: Vec<Heard<'a>>,
    /// Places by texts, one more each; nothing is 0. It is half empty at least, and
    /// a place is next to where it should be if that was taken.
    slots: Vec<Place>,
}

impl<'a> Texts<'a> {
    /// Those that members say; who says them is put behind the words, as from the
    /// place that the first text has. The order is that of the members' ids.
    pub(super) fn gather<I: ExactSizeIterator<Item = &'a str>>(
        members: &'a [Member],
        order: &[usize],
        (words, first): (&mut Vec<Word>, Place),
        texts: impl Fn(&'a Member) -> I,
    ) -> Self {
        let most = members.iter().map(|member| texts(member).len()).sum();
        let mut heard = Self {
            all: Vec::with_capacity(most),
            slots: vec![0; (2 * most).next_power_of_two().max(2)],
        };
        // What each member says, and where that ends.
        let mut said = Vec::with_capacity(most);
        let mut ends = Vec::with_capacity(members.len());
        for (member, texts) in (0..).zip(members.iter().map(texts)) {
            for text in texts {
                said.extend(heard.hear(text, member));
            }
            ends.push(said.len());
        }
        let mut end = place(words.len());
        for heard in &mut heard.all {
            let count = heard.speakers.end;
            heard.speakers = Span { begin: end, end };
            end += count;
        }
        let nobody = Word { member: 0, text: 0 };
        words.resize(end as usize, nobody);
        // Taken by the order of ids, speakers need no sorting.
        for member in order {
            let begin = member.checked_sub(1).and_then(|before| ends.get(before));
            let (Some(end), begin) = (ends.get(*member), begin.unwrap_or(&0)) else {
                continue;
            };
            for at in said.get(*begin..*end).unwrap_or_default() {
                if let Some(heard) = heard.all.get_mut(*at as usize)
                    && let Some(word) = words.get_mut(heard.speakers.end as usize)
                {
                    heard.speakers.end += 1;
                    word.member = place(*member);
                    word.text = first + at;
                }
            }
        }
        heard
    }

    /// A member says a text; where it is, if it has not said it before.
    #[inline]
    fn hear(&mut self, text: &'a str, member: Place) -> Option<Place> {
        let begin = begin_of(text);
        let slot = self.slot(text, begin);
        let slot = self.slots.get_mut(slot)?;
        let at = slot.checked_sub(1).unwrap_or_else(|| {
            self.all.push(Heard {
                text,
                begin,
                speakers: Span::default(),
                last: Place::MAX,
            });
            *slot = place(self.all.len());
            *slot - 1
        });
        let heard = self.all.get_mut(at as usize)?;
        if heard.last == member {
            return None;
        }
        heard.last = member;
        heard.speakers.end += 1;
        Some(at)
    }

    /// The slot that has a text, or that would have it.
    #[inline]
    fn slot(&self, text: &str, begin: u128) -> usize {
        let is_long = text.len() > 16;
        let hash = if is_long {
            FxBuildHasher.hash_one(text).into()
        } else {
            begin
        };
        let bits = self.slots.len().trailing_zeros();
        let mut at = usize::try_from(mixed(hash) >> (64 - bits)).unwrap_or(0);
        loop {
            match self.slots.get(at).map(|at| at.checked_sub(1)) {
                // Behind the last one is the first one.
                None => at = 0,
                Some(None) => return at,
                Some(Some(place)) => {
                    let is_same = |heard: &Heard<'_>| {
                        heard.begin == begin
                            && heard.text.len() == text.len()
                            && (!is_long || heard.text == text)
                    };
                    if self.all.get(place as usize).is_some_and(is_same) {
                        return at;
                    }
                    at += 1;
                }
            }
        }
    }

    /// Where a text is among them.
    #[inline]
    pub(super) fn place(&self, text: &str, begin: u128) -> Option<usize> {
        let slot = self.slots.get(self.slot(text, begin))?;
        slot.checked_sub(1).map(|place| place as usize)
    }

    /// The same in one buffer.
    pub(super) fn texts(&self) -> impl Iterator<Item = &'a str> + Clone {
        self.all.iter().map(|heard| heard.text)
    }
}

/// Texts that members say, each once, by first appearance.
#[derive(Debug, Clone, Default)]
pub struct Sayings {
    texts: Buffer,
    words: Vec<Word>,
    /// Where the speakers of each end.
    ends: Vec<Place>,
}

/// A text that members say. The members are in the order of their ids.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// The text.
    pub text: &'a str,
    words: &'a [Word],
}

impl<'a> Said<'a> {
    /// Who says it.
    #[must_use]
    pub fn members(&self) -> impl ExactSizeIterator<Item = usize> + use<'a> {
        self.words.iter().map(|word| word.member as usize)
    }
}

impl Sayings {
    pub(super) fn gather(
        members: &[Member],
        order: &[usize],
        texts: fn(&Member) -> &[String],
    ) -> Self {
        if members.iter().all(|member| texts(member).is_empty()) {
            return Self::default();
        }
        let mut words = Vec::new();
        let heard = Texts::gather(members, order, (&mut words, 0), |member| {
            texts(member).iter().map(String::as_str)
        });
        Self {
            texts: Buffer::of(heard.texts()),
            words,
            ends: heard.all.iter().map(|heard| heard.speakers.end).collect(),
        }
    }

    /// How many texts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Each text, with who says it.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Said<'_>> {
        let mut begin = 0;
        self.ends.iter().enumerate().map(move |(at, end)| {
            let span = Span { begin, end: *end };
            begin = *end;
            Said {
                text: self.texts.get(at),
                words: span.of(&self.words),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_begins_with_is_its_bytes_and_nothing_behind_them() {
        let long = "\u{1}b\u{7f}defghijklmnopqrst";
        for end in 0..long.len() {
            let mut bytes = [0; 16];
            let text = &long[..end];
            let first = &text.as_bytes()[..end.min(16)];
            bytes[..first.len()].copy_from_slice(first);
            assert_eq!(begin_of(text), u128::from_be_bytes(bytes), "{text}");
        }
    }
}
