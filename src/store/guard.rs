//! sled panics on damaged files; here a panic becomes an error.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

use super::StoreError;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a call into sled; its panic becomes an error.
pub(super) fn guarded<T>(call: impl FnOnce() -> sled::Result<T>) -> Result<T, StoreError> {
    let before = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(before);
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(StoreError::Engine(error.to_string())),
        Err(payload) => Err(StoreError::Engine(message(&*payload))),
    }
}

/// What a panic said.
pub(super) fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    text.map_or_else(
        || "the engine gave up".to_owned(),
        |text| {
            text.lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(200)
                .collect()
        },
    )
}

/// Keeps panics that become errors from being printed as well.
///
/// Call it once, at the start of a program.
pub fn quiet_panics() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let engine = GUARDED.get()
            || std::thread::current()
                .name()
                .is_some_and(|name| name.starts_with("sled-"));
        if !engine {
            print(info);
        }
    }));
}
