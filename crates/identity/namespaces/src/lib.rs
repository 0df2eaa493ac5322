//! Namespaces: their owners, and who sees the skills in them.
//!
//! A namespace is the `source/author` of ids. One with owners or a visibility of its own has a
//! record; for all others the settings hold.
//!
//! Rules:
//!
//! * **Visibility.** The skills of a public namespace are seen by every caller that may read; of
//!   an internal one by those that signed in; of a private one by those whose rights name them, by
//!   its owners, and by those who may change them or every skill ([`access::Rights::see_all`]).
//!   What comes with the server is public.
//! * A skill that is not seen does not exist: its callers get a registry and an index without
//!   it ([`Views`]), so no call has to remember to leave it out. An answer about a skill says
//!   nothing of others that fewer people see ([`registry::Audience`]).
//! * **Owners.** Where a namespace has owners, they alone publish, activate and delete in it,
//!   as far as their rights go, with administrators. They decide who else owns it and who sees
//!   it. The last of them cannot leave: a name that had an owner never becomes free.
//! * The first publish in a namespace makes its caller the owner, where the settings say so. The
//!   record is written in the commit of that publish.
//!
//! Not here: what a caller's rights are (`access`, `tokens`, `oidc`); how a registry and an
//! index leave skills out (`registry`, `search`).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod claim;
mod error;
mod namespace;
mod namespace_index;
mod namespaces;
mod owners;
#[cfg(test)]
mod tests;
mod views;
mod visibility_key;

pub use error::Error;
pub use namespace::{Change, FirstPublish, Namespace, NamespacesConfig, NewVisibility, Visibility};
pub use namespaces::Namespaces;
pub use views::{Views, VisibleSkills};
