//! The depth and the limits of an analysis.

/// The depth where the caller names none.
const DEFAULT_DEPTH: u8 = 3;
/// The greatest depth.
const MAX_DEPTH: u8 = 10;

/// The depth and the limits of an analysis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanOptions {
    /// Levels of folders below the root whose files are seen, 1 to 10; a value
    /// outside of that is clamped. 1 is the root and its
    /// direct children.
    pub depth: u8,
    /// Dependencies become items of the stack. Without, manifests describe the
    /// project, its languages and its package managers only.
    pub include_dependencies: bool,
    /// Only the root and its direct children are seen, whatever the depth.
    pub quick_mode: bool,
    /// The limits of the analysis.
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

/// The limits of an analysis. What exceeds them is left out with a note.
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
