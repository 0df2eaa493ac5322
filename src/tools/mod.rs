//! The tools that skills unlock: the gate before them, and what makes them run.
//!
//! Rules of this room:
//!
//! * A skill declares tools; only a [`Handler`] makes one run. Nothing of a
//!   skill is ever executed, and no command line is taken from one.
//! * Handlers have their connections and secrets from the operator's settings,
//!   never from a skill or a caller.
//!
//! Not here: which patterns a set of skills permits (`composition`).

mod handler;
pub mod host;

pub use handler::{
    Handler, Invocation, LOAD_CORE, Output, Progress, ToolError, ToolErrorKind, Work,
};
