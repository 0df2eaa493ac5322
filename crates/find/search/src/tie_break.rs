//! Tie-break keys: digests of ids, which order skills with equal scores.
//!
//! They say nothing about a skill, which is the point: a name that begins with `aaa`
//! gains nothing, and two indexes of the same skills agree.

use std::sync::Arc;

use model::{Digest, SkillKey};

/// Values of one chunk, which is copied when one of its values changes.
const VALUES_PER_CHUNK: usize = 1024;

/// A value for each ordinal.
#[derive(Debug, Clone, Default)]
pub(super) struct TieBreakKeys {
    chunks: Vec<Arc<Vec<u64>>>,
}

impl TieBreakKeys {
    /// The value of an ordinal.
    #[expect(clippy::indexing_slicing, reason = "every slot that is filled has one")]
    pub(super) fn get(&self, ordinal: u32) -> u64 {
        let at = ordinal as usize;
        self.chunks[at / VALUES_PER_CHUNK][at % VALUES_PER_CHUNK]
    }

    /// Gives an ordinal the value of its skill.
    #[expect(clippy::indexing_slicing, reason = "the chunks up to it were made")]
    pub(super) fn set(&mut self, ordinal: u32, key: &SkillKey) {
        let at = ordinal as usize;
        while self.chunks.len() <= at / VALUES_PER_CHUNK {
            self.chunks.push(Arc::new(vec![0; VALUES_PER_CHUNK]));
        }
        let digest = Digest::of(key.as_str().as_bytes());
        let (eights, _) = digest.as_bytes().as_chunks();
        let chunk = Arc::make_mut(&mut self.chunks[at / VALUES_PER_CHUNK]);
        chunk[at % VALUES_PER_CHUNK] = u64::from_be_bytes(eights[0]);
    }
}
