//! The lethal trifecta: private data, untrusted content, and a way out, together in one
//! set of skills. The author of the content that is read can then have the data sent out.

use super::{Capabilities, Capability};

/// The skills that bring each part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trifecta {
    /// Those that read private data.
    pub private_data: Vec<String>,
    /// Those that read what strangers wrote.
    pub untrusted_content: Vec<String>,
    /// Those that send data out.
    pub way_out: Vec<String>,
}

/// Finds the trifecta of a set; none where a part is missing.
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
