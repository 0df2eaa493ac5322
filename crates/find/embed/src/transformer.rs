//! The optional embedder: a transformer from a folder, such as all-MiniLM-L6-v2.
//!
//! * It reads models of the BERT architecture in the layout of sentence-transformers;
//!   `folder` says which files, and refuses others by name.
//! * A text is cut at as many tokens as the model reads. One without any has a vector
//!   of length 0.
//! * A text has the same vector alone and among others, whatever else is computed,
//!   on however many threads.
//! * A batch takes as many threads as it was given, at most; a single text takes the
//!   caller's only. No other thread stays.
//! * A model that wants a word before each text ("query: ") does not get it.
//!
//! The forward pass is our own, over `pulp`, and not candle's: measured side by side it gave
//! 1.3 times the sentences a second, needs no unsafe code and no global thread pool, and adds
//! 80 instead of 270 processor seconds to a build. Vectors agree with a reference in double
//! precision to five places.
//!
//! | file | contents |
//! |---|---|
//! | `folder` | reading a folder, and refusing others |
//! | `bert` | the forward pass |
//! | `matrix` | products, and the functions between them |
//!
//! Sources: the `transformers` and `sentence-transformers` packages of Python, whose
//! vectors the tests compare with.

mod bert;
mod folder;
mod matrix;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sha2::{Digest as _, Sha256};
use tokenizers::{
    PostProcessor as _, Tokenizer, TruncationDirection, TruncationParams, TruncationStrategy,
};

pub use folder::OpenError;

use super::{EmbedError, Embedder, normalize};
use bert::{Bert, Pooling, Token};
use folder::{Folder, Tensors};
use model::{Digest, caught, panic_words};

/// Changes when the same files give other vectors.
const VERSION: u8 = 1;
/// Texts of a batch.
const TEXTS_PER_BATCH: usize = 32;
/// Tokens that are computed at once: more do not fit into a processor's cache.
const MAX_BATCH_TOKENS: usize = 512;
/// Characters that are scanned for each token that is read.
const CHARS_PER_TOKEN: usize = 64;
/// The default number of threads for a batch.
const DEFAULT_THREADS: usize = 4;

/// A transformer.
pub struct Transformer {
    name: String,
    digest: Digest,
    tokenizer: Tokenizer,
    bert: Bert,
    pooling: Pooling,
    /// Tokens of a text that are read.
    tokens: usize,
    threads: NonZeroUsize,
}

impl fmt::Debug for Transformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transformer")
            .field("name", &self.name)
            .field("digest", &self.digest)
            .field("shape", self.bert.shape())
            .field("pooling", &self.pooling)
            .field("tokens", &self.tokens)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Transformer {
    /// Loads a model from a folder. Blocks for as long as its weights take to read.
    ///
    /// # Errors
    /// A file is missing, is not what it should be, or asks for something unsupported.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let read = Folder::read(folder)?;
        let digest = digest(&read);
        let weights = Tensors::new(&read.weights_file, &read.weights)?;
        let bert = Bert::new(&weights, read.shape)?;
        let tokenizer = caught(|| tokenizer(&read))
            .map_err(|panic| OpenError::damaged(&read.tokenizer_file, panic))??;
        let name = folder.file_name().unwrap_or(folder.as_os_str());
        let available = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let model = Self {
            name: format!("transformer {}", name.to_string_lossy()),
            digest,
            tokenizer,
            bert,
            pooling: read.pooling,
            tokens: read.tokens,
            threads: NonZeroUsize::new((available / 2).min(DEFAULT_THREADS))
                .unwrap_or(NonZeroUsize::MIN),
        };
        // A model whose weights overflow or whose marks have no row is refused here, not by each
        // search.
        match model.embed(&["a text to try it with"]) {
            Ok(_) => Ok(model),
            Err(EmbedError(problem)) => Err(OpenError::damaged(folder, problem)),
        }
    }

    /// The tokens of a text; none where it has no words.
    fn tokens(&self, text: &str) -> Result<Vec<Token>, EmbedError> {
        let text = text.trim();
        let end = text.char_indices().nth(self.tokens * CHARS_PER_TOKEN);
        let text = end.map_or(text, |(end, _)| text.get(..end).unwrap_or_default());
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let tokens = caught(|| self.tokenizer.encode_fast(text, true))
            .map_err(|panic| EmbedError(format!("the tokenizer failed: {panic}")))?
            .map_err(|error| EmbedError(format!("the tokenizer failed: {error}")))?;
        if tokens
            .get_special_tokens_mask()
            .iter()
            .all(|special| *special == 1)
        {
            return Ok(Vec::new());
        }
        let both = tokens.get_ids().iter().zip(tokens.get_type_ids());
        let tokens = both.map(|(id, kind)| Token {
            id: *id,
            kind: *kind,
        });
        Ok(tokens.take(self.tokens).collect())
    }

    /// Vectors of some texts, by their positions.
    fn vectors(&self, part: &[(usize, &[Token])]) -> Result<Vec<(usize, Vec<f32>)>, EmbedError> {
        let tokens: Vec<&[Token]> = part.iter().map(|(_, tokens)| *tokens).collect();
        let made = self.bert.vectors(&tokens, self.pooling);
        let made = made.ok_or_else(|| EmbedError("a token is not in the vocabulary".to_owned()))?;
        let places = part.iter().map(|(position, _)| *position);
        places
            .zip(made)
            .map(|(position, vector)| Ok((position, unit(vector)?)))
            .collect()
    }

    /// Vectors of all parts, each by the next thread that is free.
    fn parts(&self, parts: &[&[(usize, &[Token])]]) -> Result<Vec<(usize, Vec<f32>)>, EmbedError> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut made = Vec::new();
            while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                made.extend(self.vectors(part)?);
            }
            Ok(made)
        };
        // These threads end with the call, which holds a permit or is the follower's.
        thread::scope(|scope| {
            let others = self.threads.get().min(parts.len()).saturating_sub(1);
            let others: Vec<_> = (0..others)
                .filter_map(|_| {
                    // Where the system has no thread to give, those that there are do its part.
                    thread::Builder::new()
                        .name("embed".into())
                        .spawn_scoped(scope, work)
                        .ok()
                })
                .collect();
            let mut made = work()?;
            for other in others {
                made.extend(
                    other
                        .join()
                        .map_err(|panic| EmbedError(panic_words(&*panic)))??,
                );
            }
            Ok(made)
        })
    }
}

impl Embedder for Transformer {
    fn name(&self) -> &str {
        &self.name
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn dimensions(&self) -> usize {
        self.bert.shape().hidden
    }

    fn batch(&self) -> usize {
        TEXTS_PER_BATCH
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let tokens = texts.iter().map(|text| self.tokens(text));
        let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
        let mut order: Vec<(usize, &[Token])> =
            tokens.iter().map(Vec::as_slice).enumerate().collect();
        order.retain(|(_, tokens)| !tokens.is_empty());
        // The long ones first, so that the threads end at about the same time.
        order.sort_by_key(|(_, tokens)| std::cmp::Reverse(tokens.len()));
        let all: usize = order.iter().map(|(_, tokens)| tokens.len()).sum();
        let parts = cut(
            &order,
            MAX_BATCH_TOKENS.min(all.div_ceil(self.threads.get())),
        );
        let mut vectors = vec![vec![0.0; self.dimensions()]; texts.len()];
        for (position, vector) in self.parts(&parts)? {
            if let Some(at) = vectors.get_mut(position) {
                *at = vector;
            }
        }
        Ok(vectors)
    }
}

/// Cuts texts into parts of at most `max` tokens, but one text at least.
fn cut<'a, 'b>(order: &'a [(usize, &'b [Token])], max: usize) -> Vec<&'a [(usize, &'b [Token])]> {
    let mut parts = Vec::new();
    let mut rest = order;
    while !rest.is_empty() {
        let mut tokens = 0;
        let fits = rest.iter().take_while(|(_, text)| {
            tokens += text.len();
            tokens <= max
        });
        let (part, behind) = rest.split_at(fits.count().max(1));
        parts.push(part);
        rest = behind;
    }
    parts
}

/// A vector at length 1.
fn unit(mut vector: Vec<f32>) -> Result<Vec<f32>, EmbedError> {
    if !normalize(&mut vector).is_finite() {
        return Err(EmbedError(
            "the model's values grow beyond all numbers".to_owned(),
        ));
    }
    Ok(vector)
}

/// The digest of everything that vectors depend on.
fn digest(folder: &Folder) -> Digest {
    let mut hash = Sha256::new();
    hash.update([VERSION, u8::from(folder.pooling == Pooling::First)]);
    hash.update((folder.tokens as u64).to_le_bytes());
    for bytes in [&folder.config, &folder.tokenizer, &folder.weights] {
        // With lengths, so that no bytes can move from one file into the next.
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    Digest::from(<[u8; 32]>::from(hash.finalize()))
}

fn tokenizer(folder: &Folder) -> Result<Tokenizer, OpenError> {
    let file = &folder.tokenizer_file;
    let wrong =
        |error: tokenizers::Error| OpenError::damaged(file, format!("is not a tokenizer: {error}"));
    let mut tokenizer = Tokenizer::from_bytes(&folder.tokenizer).map_err(wrong)?;
    let vocabulary = folder.shape.vocabulary;
    let ids = tokenizer.get_vocab(true).into_values();
    if let Some(max) = ids.max().filter(|max| *max as usize >= vocabulary) {
        let problem = format!("has the token {max}; config.json knows {vocabulary}");
        return Err(OpenError::damaged(file, problem));
    }
    // A mark before, one behind, and a token between them.
    let marks = tokenizer
        .get_post_processor()
        .map_or(0, |marks| marks.added_tokens(false));
    if marks >= folder.tokens {
        let (tokens, problem) = (folder.tokens, "adds marks to each text");
        let problem = format!("{problem}: {marks}, of {tokens} tokens that are read");
        return Err(OpenError::damaged(file, problem));
    }
    let cut = TruncationParams {
        direction: TruncationDirection::Right,
        max_length: folder.tokens,
        strategy: TruncationStrategy::LongestFirst,
        stride: 0,
    };
    tokenizer.with_truncation(Some(cut)).map_err(wrong)?;
    // The forward pass has no mask: padding would be read as words.
    tokenizer.with_padding(None);
    Ok(tokenizer)
}
