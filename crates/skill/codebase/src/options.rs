//! How far an analysis looks.

/// The depth of whoever names none.
const DEFAULT_DEPTH: u8 = 3;
/// The greatest depth.
const MAX_DEPTH: u8 = 10;

/// How far an analysis looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanOptions {
    /// Levels of folders below the root whose files are seen, 1 to 10; what is
    /// outside of that is taken for the nearest of them. 1 is the root and its
    /// direct children.
    pub depth: u8,
    /// Dependencies become items of the stack. Without, manifests tell of the
    /// project, its languages and its package managers only.
    pub include_dependencies: bool,
    /// Only the root and its direct children are seen, whatever the depth.
    pub quick_mode: bool,
    /// What the analysis may cost.
    pub limits: Limits,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            depth: DEFAULT_DEPTH,
            include_dependencies: true,
            quick_mode: false,
            limits: Limits::default(),
        }
    }
}

impl ScanOptions {
    /// Levels of folders below the root that are entered.
    pub(super) fn levels(&self) -> usize {
        if self.quick_mode {
            1
        } else {
            usize::from(self.depth.clamp(1, MAX_DEPTH))
        }
    }
}

/// What an analysis may cost. What goes beyond is left out with a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Files that are seen. Of a folder with more, the first by name are.
    pub files: usize,
    /// Folders that are entered.
    pub directories: usize,
    /// Manifests and lockfiles that are read: those next to the root first.
    pub manifests: usize,
    /// Bytes of one manifest.
    pub manifest_bytes: usize,
    /// Bytes of one lockfile.
    pub lockfile_bytes: usize,
    /// Bytes of all manifests and lockfiles together.
    pub total_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files: 100_000,
            directories: 20_000,
            manifests: 1_000,
            manifest_bytes: 1024 * 1024,
            lockfile_bytes: 4 * 1024 * 1024,
            total_bytes: 32 * 1024 * 1024,
        }
    }
}
