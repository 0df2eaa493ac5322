//! Manifests: files that describe a project and its dependencies.
//!
//! Each format has a reader that takes a text and returns a [`Manifest`], or says
//! what is wrong with the text. Nothing is executed, fetched or expanded; formats
//! that are programs (`setup.py`, Gradle, `Gemfile`) are read for literals that stand
//! in plain words.

#![expect(
    clippy::unnecessary_wraps,
    reason = "all readers have one form, also those that take any text"
)]

mod cargo;
mod containers;
mod dotnet;
mod go;
mod gradle;
mod kinds;
mod maven;
mod npm;
mod others;
mod php;
mod pins;
mod pyproject;
mod python;
mod ruby;

use std::collections::BTreeMap;

use super::options::Limits;
use super::report::{PackageManager, Source};
use super::text::Broken;

/// The most bytes of a dependency's name, or of its requirement.
pub(super) const MAX_WORD: usize = 300;

/// The format that a file is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ManifestFormat {
    /// A manifest.
    Manifest,
    /// The versions that a package manager chose.
    Lockfile,
}

impl ManifestFormat {
    /// The most bytes of such a file.
    pub(super) fn limit(self, limits: &Limits) -> usize {
        match self {
            Self::Manifest => limits.manifest_bytes,
            Self::Lockfile => limits.lockfile_bytes,
        }
    }
}

/// The ecosystem of a dependency's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Ecosystem {
    Npm,
    Python,
    Cargo,
    Go,
    Jvm,
    Php,
    Ruby,
    Dotnet,
    Dart,
    Elixir,
    Swift,
    Image,
}

impl Ecosystem {
    /// Its name in the table of technologies.
    pub(super) fn registry(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Python => "pypi",
            Self::Cargo => "cargo",
            Self::Go => "go",
            Self::Jvm => "maven",
            Self::Php => "composer",
            Self::Ruby => "gem",
            Self::Dotnet => "nuget",
            Self::Dart => "pub",
            Self::Elixir => "hex",
            Self::Swift => "swift",
            Self::Image => "image",
        }
    }

    /// Languages that its packages are written in.
    pub(super) fn languages(self) -> &'static [&'static str] {
        match self {
            Self::Npm => &["typescript", "javascript", "vue", "svelte"],
            Self::Python => &["python"],
            Self::Cargo => &["rust"],
            Self::Go => &["go"],
            Self::Jvm => &["java", "kotlin", "scala", "groovy"],
            Self::Php => &["php"],
            Self::Ruby => &["ruby"],
            Self::Dotnet => &["csharp", "fsharp", "visual-basic"],
            Self::Dart => &["dart"],
            Self::Elixir => &["elixir"],
            Self::Swift => &["swift"],
            Self::Image => &[],
        }
    }

    /// The default package manager.
    pub(super) fn manager(self) -> Option<PackageManager> {
        Some(match self {
            Self::Npm => PackageManager::Npm,
            Self::Python => PackageManager::Pip,
            Self::Cargo => PackageManager::Cargo,
            Self::Go => PackageManager::Go,
            Self::Jvm => PackageManager::Maven,
            Self::Php => PackageManager::Composer,
            Self::Ruby => PackageManager::Bundler,
            Self::Dotnet => PackageManager::Nuget,
            Self::Dart => PackageManager::Pub,
            Self::Elixir => PackageManager::Mix,
            Self::Swift => PackageManager::Swift,
            Self::Image => return None,
        })
    }
}

/// The purpose of a package, as far as its manifest tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Library,
    Application,
}

/// A dependency of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// Its version as the manifest writes it.
    pub(super) requirement: Option<String>,
    /// It is only for developing, testing or building, or it is optional.
    pub(super) development: bool,
}

/// The facts of a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) description: Option<String>,
    pub(super) dependencies: Vec<Dependency>,
    /// Languages and platforms that it is of, by their ids, with their versions.
    pub(super) platforms: Vec<(&'static str, Option<String>)>,
    /// It holds several packages together.
    pub(super) workspace: bool,
    pub(super) purpose: Option<Purpose>,
    pub(super) manager: Option<PackageManager>,
    /// Requirements, by name, for manifests below that name no version.
    pub(super) offers: BTreeMap<String, String>,
    /// A version and a description for members that inherit them.
    pub(super) bequeaths: (Option<String>, Option<String>),
    /// Parts that were skipped, and why.
    pub(super) remarks: Vec<String>,
}

impl Manifest {
    /// An empty manifest that names its package manager.
    fn managed_by(manager: PackageManager) -> Self {
        Self {
            manager: Some(manager),
            ..Self::default()
        }
    }

    /// An empty manifest of a language or platform.
    fn of(platform: &'static str, version: Option<String>) -> Self {
        Self {
            platforms: vec![(platform, version)],
            ..Self::default()
        }
    }

    /// Adds a dependency. A name that is longer than any package's is none.
    pub(super) fn needs(&mut self, name: &str, requirement: Option<&str>, development: bool) {
        if !name.is_empty() && name.len() <= MAX_WORD {
            let requirement = requirement.filter(|text| text.len() <= MAX_WORD);
            self.dependencies.push(Dependency {
                name: name.to_owned(),
                requirement: requirement.map(str::to_owned),
                development,
            });
        }
    }
}

/// A manifest at its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ManifestFacts {
    pub(super) path: String,
    pub(super) ecosystem: Ecosystem,
    pub(super) source: Source,
    pub(super) manifest: Manifest,
}

/// The format of the file at this path; none where it is not read.
pub(super) fn form(path: &str) -> Option<ManifestFormat> {
    if super::lock::is_read(path) {
        return Some(ManifestFormat::Lockfile);
    }
    kinds::find(path).map(|_| ManifestFormat::Manifest)
}

/// Reads a manifest; none where the file is none.
pub(super) fn read(path: &str, text: &str) -> Option<Result<ManifestFacts, Broken>> {
    let kind = kinds::find(path)?;
    let found = (kind.read)(text).map(|manifest| ManifestFacts {
        path: path.to_owned(),
        ecosystem: kind.ecosystem,
        source: kind.source,
        manifest,
    });
    Some(found)
}
