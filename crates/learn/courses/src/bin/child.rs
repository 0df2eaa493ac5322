//! The sandbox's child, for the tests of this crate.

fn main() -> std::process::ExitCode {
    sandbox::child()
}
