//! Texts of several skills, each once, and which of the skills have it.

use std::collections::HashMap;
use std::sync::Arc;

use super::Member;
use model::Skill;

/// A text, and the members that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributed {
    /// The text.
    pub text: Arc<str>,
    /// The members that have it, in the order of their ids.
    pub members: Vec<usize>,
}

/// The texts of members, each once, by first appearance. The ranks are the
/// positions of the members in the order of their ids.
pub(super) fn attribute<'a, I: Iterator<Item = &'a str>>(
    members: &'a [Member],
    ranks: &[usize],
    texts: impl Fn(&'a Skill) -> I,
) -> Vec<Attributed> {
    let mut all: Vec<Attributed> = Vec::new();
    // The standard map, with its random seed: the texts are those of strangers, who could make
    // the keys of a faster hash collide.
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for (at, member) in members.iter().enumerate() {
        for text in texts(&member.version.skill) {
            let position = *positions.entry(text).or_insert(all.len());
            match all.get_mut(position) {
                // A member may have a text twice.
                Some(known) if known.members.last() == Some(&at) => {}
                Some(known) => known.members.push(at),
                None => all.push(Attributed {
                    text: text.into(),
                    members: vec![at],
                }),
            }
        }
    }
    for attributed in &mut all {
        attributed.members.sort_by_key(|at| ranks.get(*at));
    }
    all
}
