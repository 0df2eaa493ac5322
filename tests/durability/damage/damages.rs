//! How a file is damaged.

use std::fs;
use std::path::Path;

use testing::at_night;

use crate::harness::Dice;

const PAGE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Damage {
    /// Only so many bytes are left.
    Truncate(usize),
    /// One bit of a byte is another.
    Flip(usize),
    /// 4 KiB are zero.
    Zero(usize),
    /// Bytes are added at the end.
    Append,
    Delete,
    /// The file is as it was some time ago.
    Older,
    /// There is a directory in its place.
    Directory,
}

impl Damage {
    pub(super) fn sort(self) -> &'static str {
        match self {
            Self::Truncate(_) => "truncate",
            Self::Flip(_) => "flip a bit",
            Self::Zero(_) => "zero 4 KiB",
            Self::Append => "append",
            Self::Delete => "delete",
            Self::Older => "older copy",
            Self::Directory => "directory",
        }
    }

    pub(super) fn apply(self, file: &Path, older: &Path) {
        let mut bytes = fs::read(file).expect("a file");
        match self {
            Self::Truncate(length) => bytes.truncate(length),
            Self::Flip(at) => bytes[at] ^= 1 << (at % 8),
            Self::Zero(at) => {
                let end = bytes.len().min(at + PAGE);
                bytes[at..end].fill(0);
            }
            Self::Append => bytes.extend_from_slice(&Dice::new(7).bytes(1000)),
            Self::Older => bytes = fs::read(older).expect("a file"),
            Self::Delete | Self::Directory => {
                fs::remove_file(file).expect("a file");
                if self == Self::Directory {
                    fs::create_dir(file).expect("a folder");
                }
                return;
            }
        }
        fs::write(file, bytes).expect("a file");
    }
}

/// The lengths and places at which a file is damaged.
pub(super) fn damages(length: usize, file: &Path, dice: &mut Dice) -> Vec<Damage> {
    let is_database = file.ends_with("db");
    if file.starts_with("search") {
        // It is derived: nothing that happens to it touches what is stored.
        let at = dice.index(length.max(1));
        let mut damages = vec![Damage::Truncate(length / 2), Damage::Delete];
        damages.extend((length > 0).then_some(Damage::Flip(at)));
        return damages;
    }
    let more = std::env::var("REPERTOIRE_DAMAGE")
        .map_or(at_night(1, 4), |text| text.parse().expect("a number"));
    let mut damages = vec![Damage::Append, Damage::Delete, Damage::Directory];
    damages.extend([0, length / 2, length.saturating_sub(1)].map(Damage::Truncate));
    if length == 0 {
        return damages;
    }
    let (flips, zeros) = if is_database {
        (3 * more, 2 * more)
    } else {
        (more, 1)
    };
    // Spread over the file, so that every part of it is hit.
    for (count, damage) in [
        (flips, Damage::Flip as fn(usize) -> Damage),
        (zeros, Damage::Zero),
    ] {
        damages.extend((0..count).map(|n| damage(length * n / count + dice.index(length / count))));
    }
    if is_database {
        damages.extend([length * 9 / 10, length * 99 / 100, length / 4].map(Damage::Truncate));
    }
    damages
}
