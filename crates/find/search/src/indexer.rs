//! The one writer of the index.
//!
//! The catalog alone decides what is indexed: a skill with an active version has one
//! document, of exactly that version. So no history is needed: a comparison of the
//! documents with the catalog shows what to do, after a start, a kill, or a truncated
//! log.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use imbl::HashMap;
use rustc_hash::FxHashMap;
use tantivy::directory::MmapDirectory;
use tantivy::index::SegmentComponent;
use tantivy::indexer::LogMergePolicy;
use tantivy::schema::{Term, Value as _};
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, TantivyDocument};
use tokio_util::sync::CancellationToken;

use super::document::{Document, Facts};
use super::schema;
use super::signature::Signature;
use super::snapshot::{Segment, Slot, Snapshot, ordinals};
use super::tie_break::TieBreakKeys;
use super::vectors::Vectors;
use super::{Error, tokens};
use model::{SkillKey, caught, skeleton};
use registry::{Head, Registry};

/// Threads that tokenize texts. One more reads them.
const THREAD_COUNT: usize = 2;
/// Bytes of documents that a thread keeps before it writes them as a segment: the least that the
/// engine takes. With twice as much nothing was faster.
const WRITER_BYTES: usize = 15_000_000;
/// Segments of one size that are merged into one: few, since each costs every
/// search some look-ups.
const SEGMENTS_PER_MERGE: usize = 4;
/// Ordinals that are no longer used before the index is made anew.
const MAX_UNUSED_ORDINALS: usize = 10_000;
/// The format of the index; in its file the id of the log follows.
const FORM: &str = "2";
const FORM_FILE: &str = "FORM";

/// The form, and the log of the skills: the numbers of another store's versions are
/// other versions.
fn form_of(registry: &Registry) -> String {
    format!("{FORM} {}", registry.log_id())
}

/// Writes the index, and has its current state.
pub(super) struct Indexer {
    registry: Registry,
    writer: IndexWriter,
    reader: IndexReader,
    by_key: FxHashMap<SkillKey, u32>,
    by_segment: FxHashMap<tantivy::index::SegmentId, Arc<Segment>>,
    now: Snapshot,
}

impl Indexer {
    /// Opens the index in a folder; makes a new one where there is none, or none
    /// that can be read. Blocks.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn open(
        folder: &Path,
        registry: Registry,
        dimensions: usize,
    ) -> Result<Self, Error> {
        let form = folder.join(FORM_FILE);
        // An index of another form, or of another log, has nothing that can be trusted: it is
        // derived, so it is made anew.
        if std::fs::read_to_string(&form).is_ok_and(|found| found == form_of(&registry)) {
            let opened = caught(|| Self::at(folder, registry.clone(), dimensions));
            match opened.map_err(Error::Panicked).flatten() {
                Ok(indexer) => return Ok(indexer),
                Err(error) => {
                    tracing::warn!(%error, "the search index cannot be read and is rebuilt");
                }
            }
        }
        Self::new(folder, registry, dimensions)
    }

    /// An empty index in a folder; what was there is removed. Blocks.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn new(folder: &Path, registry: Registry, dimensions: usize) -> Result<Self, Error> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        let form = form_of(&registry);
        let indexer = Self::at(folder, registry, dimensions)?;
        // Last: a folder without it was not finished.
        std::fs::write(folder.join(FORM_FILE), form)?;
        Ok(indexer)
    }

    fn at(folder: &Path, registry: Registry, dimensions: usize) -> Result<Self, Error> {
        let words = folder.join("words");
        std::fs::create_dir_all(&words)?;
        let (schema, _) = schema::schema();
        let index = Index::open_or_create(
            MmapDirectory::open(&words).map_err(tantivy::TantivyError::from)?,
            schema,
        )?;
        // tantivy believes sizes that a damaged file has, and asks for memory that no guard of
        // ours sees refused. So checksums come first.
        check(&index)?;
        Self::of(
            &index,
            (THREAD_COUNT, THREAD_COUNT * WRITER_BYTES),
            registry,
            dimensions,
        )
    }

    /// An empty index in memory, for few skills.
    ///
    /// # Errors
    /// The engine refuses.
    pub(super) fn in_memory(registry: Registry, dimensions: usize) -> Result<Self, Error> {
        let (schema, _) = schema::schema();
        let index = Index::create_in_ram(schema);
        Self::of(&index, (1, WRITER_BYTES), registry, dimensions)
    }

    fn of(
        index: &Index,
        (threads, bytes): (usize, usize),
        registry: Registry,
        dimensions: usize,
    ) -> Result<Self, Error> {
        let (_, fields) = schema::schema();
        index.tokenizers().register(schema::STEMS, tokens::stems());
        index.tokenizers().register(schema::WORDS, tokens::plain());
        let writer = index.writer_with_num_threads(threads, bytes)?;
        let mut policy = LogMergePolicy::default();
        policy.set_min_num_segments(SEGMENTS_PER_MERGE);
        writer.set_merge_policy(Box::new(policy));
        let reader: IndexReader = index
            .reader_builder()
            // Documents and slots move on together, by `reload`: a document without a slot is
            // nobody's.
            .reload_policy(ReloadPolicy::Manual)
            .try_into()?;
        let mut indexer = Self {
            now: Snapshot {
                seen: None,
                searcher: reader.searcher(),
                segments: Vec::new(),
                slots: Default::default(),
                alike: HashMap::new(),
                confusables: 0,
                tie_breaks: TieBreakKeys::default(),
                fields,
                vectors: Vectors::new(dimensions),
                live: 0,
                pending: 0,
                position: 0,
                caught_up: false,
            },
            registry,
            writer,
            reader,
            by_key: FxHashMap::default(),
            by_segment: FxHashMap::default(),
        };
        indexer.take_stock()?;
        Ok(indexer)
    }

    /// Reads which documents there are, and keeps those that the catalog confirms.
    fn take_stock(&mut self) -> Result<(), Error> {
        let catalog = self.registry.catalog();
        let searcher = self.reader.searcher();
        for (segment, reader) in searcher.segment_readers().iter().enumerate() {
            let ordinals = ordinals(reader)?;
            // One block in its cache is enough, since documents are read in their order.
            let store = reader.get_store_reader(1)?;
            for number in reader.doc_ids_alive() {
                let document: TantivyDocument = store.get(number)?;
                let facts = document
                    .get_first(self.now.fields.facts)
                    .and_then(|value| value.as_bytes())
                    .and_then(|bytes| serde_json::from_slice::<Facts>(bytes).ok());
                let signature = document
                    .get_first(self.now.fields.signature)
                    .and_then(|value| value.as_bytes())
                    .and_then(Signature::read);
                let (Some(facts), Some(ordinal)) = (facts, ordinals.get(number as usize)) else {
                    return Err(Error::Damaged { segment });
                };
                // Ordinals grow even where the skill is gone, so that none is given twice.
                while self.now.slots.len() <= *ordinal as usize {
                    self.now.slots.push_back(None);
                }
                let key = SkillKey::from_stored(&facts.key);
                match catalog.get(&key) {
                    // The catalog decides, not the index: whatever a kill left in between is
                    // found here.
                    Some(head) if head.active == Some(facts.number) => {
                        self.put(*ordinal, Slot::new(Arc::clone(head), &facts, signature));
                    }
                    _ => {
                        self.writer.delete_term(self.term(&key));
                    }
                }
            }
        }
        Ok(())
    }

    fn term(&self, key: &SkillKey) -> Term {
        Term::from_field_text(self.now.fields.key, key.as_str())
    }

    /// The state as it was last published.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.now.clone()
    }

    /// Events of the log up to here are in it.
    pub(super) fn position(&self) -> u64 {
        self.now.position
    }

    /// The skills whose documents or slots differ from the catalog.
    pub(super) fn behind(&self) -> BTreeSet<SkillKey> {
        let catalog = self.registry.catalog();
        let missing = catalog
            .by_location()
            .filter(|head| {
                let ordinal = self.by_key.get(&head.id.key());
                let slot = ordinal.and_then(|ordinal| self.now.slot(*ordinal));
                // A slot has the head of the catalog that it was made from.
                slot.is_none_or(|slot| !Arc::ptr_eq(&slot.head, head))
            })
            .map(|head| head.id.key());
        let gone = self.by_key.keys().filter(|key| {
            let head = catalog.get(key);
            head.is_none_or(|head| head.active.is_none())
        });
        missing.chain(gone.cloned()).collect()
    }

    /// Indexes these skills as the catalog has them now. They are found once
    /// [`Indexer::commit`] was called. Blocks. After a stop, the next comparison finds the
    /// rest.
    ///
    /// # Errors
    /// The index cannot be written. A skill that cannot be read is logged and left out.
    pub(super) fn update(
        &mut self,
        keys: impl IntoIterator<Item = SkillKey>,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let catalog = self.registry.catalog();
        for key in keys {
            if stop.is_cancelled() {
                return Ok(());
            }
            let known = self.by_key.get(&key).copied();
            let Some(head) = catalog.get(&key).filter(|head| head.active.is_some()) else {
                self.remove(&key);
                continue;
            };
            let slot = known.and_then(|ordinal| self.now.slot(ordinal));
            if let (Some(ordinal), Some(slot)) = (known, slot)
                && Some(slot.number) == head.active
            {
                let slot = Slot {
                    head: Arc::clone(head),
                    ..slot.clone()
                };
                self.now.slots.set(ordinal as usize, Some(slot));
                continue;
            }
            match Document::read(&self.registry, head) {
                Ok(document) => self.add(head, document)?,
                Err(error) => {
                    let error = Error::from(error);
                    if error.passes() {
                        return Err(error);
                    }
                    // If it changed or was deleted meanwhile, an event will follow.
                    let now = self.registry.catalog();
                    if now.get(&key).is_some_and(|now| Arc::ptr_eq(now, head)) {
                        tracing::error!(%error, skill = %head.id, "the skill cannot be indexed");
                    }
                    self.remove(&key);
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, head: &Arc<Head>, document: Document) -> Result<(), Error> {
        let key = head.id.key();
        let ordinal = match self.by_key.get(&key) {
            Some(ordinal) => *ordinal,
            None => u32::try_from(self.now.slots.len()).map_err(|_| Error::Full)?,
        };
        let slot = Slot::new(Arc::clone(head), &document.facts, document.signature);
        self.writer.delete_term(self.term(&key));
        let document = document.into_tantivy(&self.now.fields, ordinal)?;
        self.writer.add_document(document)?;
        self.put(ordinal, slot);
        Ok(())
    }

    fn put(&mut self, ordinal: u32, slot: Slot) {
        let at = ordinal as usize;
        while self.now.slots.len() <= at {
            self.now.slots.push_back(None);
        }
        self.forget(ordinal);
        self.by_key.insert(slot.head.id.key(), ordinal);
        let skeleton = Arc::clone(&slot.skeleton);
        self.now.tie_breaks.set(ordinal, &slot.head.id.key());
        self.now.slots.set(at, Some(slot));
        self.alike(&skeleton, |ordinals| ordinals.push(ordinal));
        self.now.live += 1;
        self.now.pending += 1;
    }

    fn remove(&mut self, key: &SkillKey) {
        self.writer.delete_term(self.term(key));
        if let Some(ordinal) = self.by_key.remove(key) {
            self.forget(ordinal);
        }
    }

    /// Removes a skill from all that is stored by ordinal.
    fn forget(&mut self, ordinal: u32) {
        let Some(slot) = self.now.slot(ordinal).cloned() else {
            return;
        };
        self.now.slots.set(ordinal as usize, None);
        self.now.live -= 1;
        if !self.now.vectors.clear(ordinal) {
            self.now.pending -= 1;
        }
        self.alike(&slot.skeleton, |ordinals| {
            ordinals.retain(|other| *other != ordinal);
        });
    }

    /// Changes which skills look alike.
    fn alike(&mut self, skeleton: &Arc<str>, change: impl FnOnce(&mut Vec<u32>)) {
        let known = self.now.alike.get(skeleton);
        let before = known.map_or(0, |ordinals| ordinals.len());
        let mut ordinals = known.map_or_else(Vec::new, |ordinals| ordinals.to_vec());
        change(&mut ordinals);
        let confusable = ordinals.len() > 1;
        // Only a second one makes both confusable, and only its removal ends that; a third one
        // sets its own flag alone, and its removal changes nothing for the other two.
        let unchanged = if confusable && before > 1 { before } else { 0 };
        for ordinal in ordinals.iter().skip(unchanged) {
            if let Some(Some(slot)) = self.now.slots.get_mut(*ordinal as usize) {
                slot.confusable = confusable;
            }
        }
        let count = |ordinals: usize| if ordinals > 1 { ordinals } else { 0 };
        self.now.confusables = self.now.confusables + count(ordinals.len()) - count(before);
        if ordinals.is_empty() {
            self.now.alike.remove(skeleton);
        } else {
            self.now.alike.insert(Arc::clone(skeleton), ordinals.into());
        }
    }

    /// Makes what was indexed findable. Blocks.
    ///
    /// # Errors
    /// The index cannot be written.
    pub(super) fn commit(&mut self, position: u64) -> Result<(), Error> {
        self.writer.commit()?;
        self.reload(position)
    }

    /// Notes that all skills of the start are in it.
    pub(super) fn has_caught_up(&mut self) {
        self.now.caught_up = true;
    }

    /// Takes over the committed state.
    pub(super) fn reload(&mut self, position: u64) -> Result<(), Error> {
        self.reader.reload()?;
        let searcher = self.reader.searcher();
        let mut by_segment = FxHashMap::default();
        let mut all = Vec::new();
        for reader in searcher.segment_readers() {
            let id = reader.segment_id();
            let segment = match self.by_segment.get(&id) {
                Some(segment) => Arc::clone(segment),
                None => Arc::new(Segment::read(reader, &self.now.fields)?),
            };
            by_segment.insert(id, Arc::clone(&segment));
            all.push(segment);
        }
        self.by_segment = by_segment;
        self.now.searcher = searcher;
        self.now.segments = all;
        self.now.position = position;
        Ok(())
    }

    /// Skills without a vector, some of them: ordinal and text.
    pub(super) fn pending(&self, from: u32, max: usize) -> Vec<u32> {
        let slots = self.now.slots.iter().enumerate().skip(from as usize);
        slots
            .filter(|(_, slot)| slot.is_some())
            .filter_map(|(at, _)| u32::try_from(at).ok())
            .filter(|ordinal| !self.now.vectors.has(*ordinal))
            .take(max)
            .collect()
    }

    /// Stores the vector of a skill.
    pub(super) fn set_vector(&mut self, ordinal: u32, row: &[i8]) {
        if self.now.slot(ordinal).is_some() && !self.now.vectors.has(ordinal) {
            self.now.vectors.set(ordinal, row);
            self.now.pending -= 1;
        }
    }

    /// So many ordinals are unused that a new index is smaller.
    pub(super) fn is_sparse(&self) -> bool {
        self.now.slots.len() > self.now.live * 2 + MAX_UNUSED_ORDINALS
    }
}

/// Compares every file with its checksum. The engine believes what it reads: sizes that
/// no memory has, positions outside of a file.
fn check(index: &Index) -> Result<(), Error> {
    const FILES: [SegmentComponent; 6] = [
        SegmentComponent::Postings,
        SegmentComponent::Positions,
        SegmentComponent::FastFields,
        SegmentComponent::FieldNorms,
        SegmentComponent::Terms,
        SegmentComponent::Store,
    ];
    for segment in index.searchable_segment_metas()? {
        let deleted = segment.has_deletes().then_some(SegmentComponent::Delete);
        for component in FILES.into_iter().chain(deleted) {
            let file = segment.relative_path(component);
            let checked = index.directory().validate_checksum(&file);
            if !checked.map_err(tantivy::TantivyError::from)? {
                return Err(Error::Checksum { file });
            }
        }
    }
    Ok(())
}

impl Slot {
    fn new(head: Arc<Head>, facts: &Facts, signature: Option<Signature>) -> Self {
        let name = head.summary.as_ref().map(|summary| summary.name.as_str());
        Self {
            skeleton: skeleton(name.unwrap_or(head.id.slug())).into(),
            confusable: false,
            number: facts.number,
            meaning: facts.meaning,
            signature,
            has_tests: facts.has_tests,
            has_examples: facts.has_examples,
            head,
        }
    }
}
