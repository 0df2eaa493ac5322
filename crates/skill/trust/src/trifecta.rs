//! The lethal trifecta: private data, what strangers wrote, and a way out, together in one
//! set of skills. Whoever writes what the set reads then decides what leaves.

use super::{Capabilities, Capability};

/// Which skills bring which part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trifecta {
    /// Those that read private data.
    pub private_data: Vec<String>,
    /// Those that take in what strangers wrote.
    pub untrusted_content: Vec<String>,
    /// Those that hand something out.
    pub way_out: Vec<String>,
}

/// The trifecta of a set; none where a part is missing.
#[must_use]
pub fn trifecta(skills: &[(&str, &Capabilities)]) -> Option<Trifecta> {
    let with = |capability| {
        let having = skills.iter().filter(|(_, has)| has.has(capability));
        having
            .map(|(name, _)| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let found = Trifecta {
        private_data: with(Capability::ReadsPrivateData),
        untrusted_content: with(Capability::TakesUntrustedContent),
        way_out: with(Capability::SendsOut),
    };
    let is_whole = [
        &found.private_data,
        &found.untrusted_content,
        &found.way_out,
    ]
    .iter()
    .all(|skills| !skills.is_empty());
    is_whole.then_some(found)
}
