//! What a test does more of at night.

/// How much of something a test does: in every run, and at night, when `make nightly` sets
/// `REPERTOIRE_NIGHTLY`.
pub fn at_night<T>(every_run: T, night: T) -> T {
    if std::env::var_os("REPERTOIRE_NIGHTLY").is_some() {
        night
    } else {
        every_run
    }
}
