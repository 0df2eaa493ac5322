//! Turns panics of libraries into errors.
//!
//! Some libraries panic on damaged files. Where one is called, that is an error like any
//! other, and nothing is printed.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Beginnings of the names of threads of sled and tantivy, which pass their panics on, or end
/// by them alone.
// By name, since these panics happen on the libraries' own threads, where no guard of ours is
// on the stack.
const THREADS: [&str; 4] = ["sled-", "merge_thread_", "segment_updater", "thrd-tantivy-"];

/// Characters of a panic's message that are reported.
const MAX_MESSAGE_CHARS: usize = 200;

/// Runs some work and returns its result, or the message of its panic.
///
/// # Errors
/// It panicked.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let before = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    // Restored, not cleared: guards nest, and the outer one still holds.
    GUARDED.set(before);
    result.map_err(|payload| panic_words(&*payload))
}

/// The first line of a panic's message.
#[must_use]
pub fn panic_words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let line = text.map(|text| text.lines().next().unwrap_or_default());
    let line = line.unwrap_or("it gave no reason");
    line.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Keeps panics that become errors from being printed as well.
///
/// Call it once, at the start of a program.
pub fn quiet_panics() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        let is_theirs = |name: &str| THREADS.iter().any(|theirs| name.starts_with(theirs));
        if !GUARDED.get() && !thread.name().is_some_and(is_theirs) {
            print(info);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_in_its_first_line() {
        assert_eq!(caught(|| 1), Ok(1));
        let said = |payload: Box<dyn Any + Send>| {
            caught(|| panic::resume_unwind(payload)).expect_err("a panic")
        };
        assert_eq!(said(Box::new("one")), "one");
        assert_eq!(said(Box::new("two\nthree".to_owned())), "two");
        assert_eq!(said(Box::new(4)), "it gave no reason");
    }
}
