//! The child of this crate's tests; the server is its own.

fn main() -> std::process::ExitCode {
    repertoire_sandbox::child()
}
