//! The section of a prompt for a task: what fits it best, a share for what nobody
//! has tried, and how to find the rest.
//!
//! Where every skill fits with its description, all are there, the fitting ones
//! first. Otherwise fewer skills with what they are for serve an agent better than
//! the names of many: lines of one length, until the room is taken.

use std::sync::Arc;

use super::Lookup;
use super::prompt::{Entry, HEADING, NOTICE, Prompt, budget, note, whole};
use model::SkillKey;
use registry::{Catalog, Head};

/// Characters of a description where not all skills fit.
const CHARS: usize = 160;
/// Skills whose use is looked up, at most.
const MAX_LOOKUPS: usize = 200;
/// Names of what was left out that are told.
const MAX_OMITTED_NAMES: usize = 20;
/// The share of whoever names none, in percent.
pub const EXPLORATION_PERCENT: u32 = 10;

/// What a section is made for.
#[derive(Debug, Clone, Default)]
pub struct PromptTask {
    /// The skills that fit, best first.
    pub fitting: Vec<Arc<Head>>,
    /// Share of the room for skills that nobody has used, in percent.
    pub exploration_percent: u32,
}

impl Lookup {
    /// The section for a task, in as many tokens at most; 0 is 2,000.
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
        if let Some(prompt) = whole(entries, catalog.offered(), budget) {
            return Ok(prompt);
        }
        let mut section = Section::new(&catalog, budget);
        let share = budget / 100 * task.exploration_percent.min(100) as usize;
        // In turn, so that many new skills of one source do not take all of the share.
        let others = catalog.in_turn();
        let others = others.filter(|head| head.is_offered() && !known.contains(&head.id.key()));
        let candidates = fitting.iter().copied().chain(others);
        let untried = self.untried(candidates, fitting.len().min(MAX_LOOKUPS), share / 40 + 1)?;
        let mut fitting = fitting.into_iter().peekable();
        while let Some(head) = fitting.next_if(|head| section.takes(head, share)) {
            section.add(head);
        }
        let mut explored = Vec::new();
        for head in untried {
            if !section.has(&head) && section.takes(&head, 0) {
                explored.push(catalog.short_name(&head).to_owned());
                section.add(&head);
            }
        }
        // What exploring left over goes to what fits.
        while let Some(head) = fitting.next_if(|head| section.has(head) || section.takes(head, 0)) {
            section.add(head);
        }
        let next: Vec<String> = fitting
            .filter(|head| !section.has(head))
            .take(MAX_OMITTED_NAMES)
            .map(|head| catalog.short_name(head).to_owned())
            .collect();
        Ok(section.finish(explored, next))
    }

    /// Skills that nobody has loaded or read, of the first so many that do not fit
    /// best: what fits somewhat before what does not.
    fn untried<'a>(
        &self,
        ordered: impl Iterator<Item = &'a Arc<Head>>,
        best: usize,
        max: usize,
    ) -> Result<Vec<Arc<Head>>, registry::Error> {
        let mut found = Vec::new();
        // The best few are listed in any case.
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
        // Those that come with the server are few, so this is soon known.
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

    /// There is room for the line, for the note, and for what is kept free.
    fn takes(&self, head: &Head, free: usize) -> bool {
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
                // Also where there is no room for it: an agent must know.
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
