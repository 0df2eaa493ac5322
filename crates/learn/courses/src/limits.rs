//! Bounds of a path and its exercises.

/// Exercises of a path.
pub(crate) const MAX_EXERCISES: usize = 64;
/// Files of an exercise.
pub(crate) const MAX_FILES: usize = 64;
/// Bytes of a file.
pub(crate) const MAX_FILE_BYTES: usize = 64 * 1024;
/// Bytes of a solution, all its files together.
pub(crate) const MAX_SOLUTION_BYTES: usize = 256 * 1024;
/// Tool patterns of a skill that is handed in.
// Each is compared with each, for every case that composes it.
pub(crate) const MAX_TOOLS: usize = 100;
/// Characters of one of them.
// The time of a comparison grows with the product of two lengths.
pub(crate) const MAX_TOOL_CHARS: usize = 200;
/// Cases of an exercise.
pub(crate) const MAX_CASES: usize = 64;
/// Hints of an exercise.
pub(crate) const MAX_HINTS: usize = 16;
/// Hints that an exercise must have besides the free ones.
pub(crate) const MIN_HINTS: usize = 2;
/// Patterns of advice, which are searched for besides the cases.
pub(crate) const MAX_ADVICE: usize = 32;
/// Entries of any other list.
pub(crate) const MAX_LIST_ITEMS: usize = 32;
/// Characters of a name or a title.
pub(crate) const MAX_NAME_CHARS: usize = 120;
/// Characters of a sentence.
pub(crate) const MAX_SENTENCE_CHARS: usize = 500;
/// Characters of a hint, or of an expression.
pub(crate) const MAX_PARAGRAPH_CHARS: usize = 4_000;
/// Characters of a text below front matter.
pub(crate) const MAX_BODY_CHARS: usize = 40_000;
/// Characters of a pattern.
// The time to build a pattern grows with them; its memory has a bound of its own below.
pub(crate) const MAX_PATTERN_CHARS: usize = 1_000;
/// Bytes that a built pattern may take.
pub(crate) const MAX_PATTERN_BYTES: usize = 4 * 1024 * 1024;
/// The largest weight of a case.
pub(crate) const MAX_WEIGHT: u64 = 100;
