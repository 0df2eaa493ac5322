//! The section of a prompt for a task: the best matches, a share for skills that were never
//! used, and how to find the rest.
//!
//! Where every skill fits with its description, all are there, the best matches first. Otherwise
//! fewer skills with descriptions serve an agent better than the names of many: lines of one
//! length, until the budget is used up.

use std::sync::Arc;

use super::Lookup;
use super::prompt::{Entry, HEADING, NOTICE, Prompt, budget, complete, note};
use model::SkillKey;
use registry::{Catalog, Head};

/// Maximum number of characters of a description where not all skills fit.
const CHARS: usize = 160;
/// Maximum number of skills whose usage is read.
const MAX_LOOKUPS: usize = 200;
/// Maximum number of names of omitted skills in the answer.
const MAX_OMITTED_NAMES: usize = 20;
/// The share where the caller names none, in percent.
pub const EXPLORATION_PERCENT: u32 = 10;

/// The task of a section.
#[derive(Debug, Clone, Default)]
pub struct PromptTask {
    /// The skills that fit, best first.
    pub fitting: Vec<Arc<Head>>,
    /// The share of the budget for skills that were never used, in percent.
    pub exploration_percent: u32,
}

impl Lookup {
    /// Returns the section for a task, in `max_tokens` at most; 0 is 2,000.
    ///
    /// # Errors
    /// Counts of use cannot be read.
    pub fn prompt_for(
        &self,
        task: &PromptTask,
        max_tokens: u32,
    ) -> Result<Prompt, registry::Error> {
        let budget = budget(max_tokens);
        let catalog = self.registry.catalog();
        let fitting: Vec<&Arc<Head>> = task
            .fitting
            .iter()
            .filter_map(|head| catalog.get(&head.id.key()))
            .filter(|head| head.is_offered())
            .collect();
        let known: rustc_hash::FxHashSet<SkillKey> =
            fitting.iter().map(|head| head.id.key()).collect();
        let ordered = || {
            let others = catalog.by_location();
            let others = others.filter(|head| !known.contains(&head.id.key()));
            fitting.iter().copied().chain(others)
        };
        let entries = ordered().filter_map(|head| Entry::of(&catalog, head));
        if let Some(prompt) = complete(entries, catalog.offered(), budget) {
            return Ok(prompt);
        }
        let mut section = Section::new(&catalog, budget);
        let share = budget / 100 * task.exploration_percent.min(100) as usize;
        // One of each author in turn, so that many new skills of one author do not take the
        // whole share.
        let others = catalog.in_turn();
        let others = others.filter(|head| head.is_offered() && !known.contains(&head.id.key()));
        let candidates = fitting.iter().copied().chain(others);
        let untried = self.untried(candidates, fitting.len().min(MAX_LOOKUPS), share / 40 + 1)?;
        let mut fitting = fitting.into_iter().peekable();
        // Matches first, up to the share that is reserved for untried skills.
        while let Some(head) = fitting.next_if(|head| section.fits(head, share)) {
            section.add(head);
        }
        let mut explored = Vec::new();
        for head in untried {
            if !section.has(&head) && section.fits(&head, 0) {
                explored.push(catalog.short_name(&head).to_owned());
                section.add(&head);
            }
        }
        // The rest of the share goes to the matches.
        while let Some(head) = fitting.next_if(|head| section.has(head) || section.fits(head, 0)) {
            section.add(head);
        }
        let next: Vec<String> = fitting
            .filter(|head| !section.has(head))
            .take(MAX_OMITTED_NAMES)
            .map(|head| catalog.short_name(head).to_owned())
            .collect();
        Ok(section.finish(explored, next))
    }

    /// Returns skills that were never loaded or read, after the best matches: weaker matches
    /// before the other skills.
    fn untried<'a>(
        &self,
        ordered: impl Iterator<Item = &'a Arc<Head>>,
        best: usize,
        max: usize,
    ) -> Result<Vec<Arc<Head>>, registry::Error> {
        let mut found = Vec::new();
        // The best quarter is listed in any case, so looking it up would waste the limited
        // reads.
        for head in ordered.skip(best / 4).take(MAX_LOOKUPS) {
            if found.len() >= max {
                break;
            }
            let usage = self.registry.usage(head)?;
            if usage
                .iter()
                .all(|(_, usage)| usage.loads + usage.reads == 0)
            {
                found.push(Arc::clone(head));
            }
        }
        Ok(found)
    }
}

/// A section that is being written.
struct Section<'a> {
    catalog: &'a Catalog,
    budget: usize,
    text: String,
    listed: rustc_hash::FxHashSet<SkillKey>,
}

impl<'a> Section<'a> {
    fn new(catalog: &'a Catalog, budget: usize) -> Self {
        // The skills that come with the server are few, so the first foreign one is found soon.
        let is_foreign = catalog
            .by_location()
            .any(|head| head.is_offered() && !head.id.is_builtin());
        Self {
            catalog,
            budget,
            text: format!("{HEADING}{}", if is_foreign { NOTICE } else { "" }),
            listed: Default::default(),
        }
    }

    fn line(&self, head: &Head) -> String {
        Entry::of(self.catalog, head).map_or_else(String::new, |entry| entry.line(CHARS))
    }

    fn has(&self, head: &Head) -> bool {
        self.listed.contains(&head.id.key())
    }

    /// Returns whether the line fits, with the note and the bytes to keep `free`.
    fn fits(&self, head: &Head, free: usize) -> bool {
        let line = self.line(head);
        let note = note_below(self.catalog.offered()).len();
        self.text.len() + line.len() + note + free <= self.budget
    }

    fn add(&mut self, head: &Head) {
        if self.listed.insert(head.id.key()) {
            self.text.push_str(&self.line(head));
        }
    }

    fn finish(mut self, explored: Vec<String>, next: Vec<String>) -> Prompt {
        let (listed, live) = (self.listed.len(), self.catalog.offered());
        let left_out = live.saturating_sub(listed);
        if left_out > 0 {
            let note = note_below(left_out);
            if listed == 0 {
                // Also over the budget: without it an agent would believe that there are no
                // skills.
                note.trim_start().clone_into(&mut self.text);
            } else {
                self.text.push_str(&note);
            }
        }
        Prompt {
            text: self.text,
            listed,
            left_out,
            explored,
            next,
        }
    }
}

fn note_below(left_out: usize) -> String {
    let note = note("more ", left_out, ", list_skills lists them");
    format!("\n{note}")
}
