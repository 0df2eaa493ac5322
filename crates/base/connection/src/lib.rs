//! The bytes of a connection, whatever protocol they are: limits on its socket that no layer
//! above has, one write for all that is ready, graceful shutdown, clients of HTTP/2
//! that do not read an answer, the user at its other end, and short paths to sockets in deep
//! folders.
//!
//! Not here: protocols, access and services (the server).

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod coalesce;
mod graceful_shutdown;
mod peer_user;
mod reader;
mod short_path;
mod socket;

pub use coalesce::Coalesce;
pub use graceful_shutdown::served_until;
pub use peer_user::{gives_peer_users, own_user, peer_user};
pub use reader::{Polled, WatchedExecutor, note_polled};
pub use short_path::ShortPath;
pub use socket::Socket;
