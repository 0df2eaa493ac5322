//! The result of an analysis.

use std::fmt;

use technologies::{Fact, TechnologyKind, named};

/// The result of an analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// Its technologies: the most certain first, then by id.
    pub stack: Vec<TechStackItem>,
    /// Its own description.
    pub project: Project,
    /// Counts of what was seen.
    pub stats: Stats,
    /// How reliable the whole is.
    pub confidence_level: ConfidenceLevel,
    /// Notes on what was not read, by file, those on the whole first.
    pub notes: Vec<Note>,
    /// Its facts, each with the file that shows it, in the order of [`Fact`].
    pub signals: Vec<Signal>,
}

impl Analysis {
    /// Returns the file that shows a fact, if one does.
    #[must_use]
    pub fn shows(&self, fact: Fact) -> Option<&str> {
        let signal = self.signals.iter().find(|signal| signal.fact == fact);
        signal.map(|signal| signal.file.as_str())
    }

    /// Returns the technology of an id, if it is in the stack.
    #[must_use]
    pub fn technology(&self, id: &str) -> Option<&TechStackItem> {
        self.stack.iter().find(|item| item.technology_id == id)
    }
}

/// A technology that is in use.
#[derive(Debug, Clone, PartialEq)]
pub struct TechStackItem {
    /// Its id: lower-case words with hyphens, the same for ever.
    pub technology_id: String,
    /// Its common name.
    pub name: String,
    /// What it is.
    pub kind: TechnologyKind,
    /// Its version: of a lockfile that is read, else bare where the manifest names a single
    /// one, else as the manifest says.
    pub version: Option<String>,
    /// How certain this is, from 0.0 to 1.0: see the front page of the crate.
    pub confidence: f64,
    /// The kind of file that shows it.
    pub source: Source,
    /// The file, from the root.
    pub file: String,
}

named! {
    /// The kind of file that shows a technology. The first six are those of the
    /// tool specification.
    Source {
        /// `package.json`.
        PackageJson = "package_json",
        /// `requirements*.txt`.
        Requirements = "requirements",
        /// `go.mod`.
        GoMod = "go_mod",
        /// `Cargo.toml`.
        CargoToml = "cargo_toml",
        /// Names of files that end like a language's.
        FileExtension = "file_extension",
        /// Another technology that is not used without it.
        Inferred = "inferred",
        /// `pyproject.toml`.
        Pyproject = "pyproject",
        /// `Pipfile`.
        Pipfile = "pipfile",
        /// `setup.py` or `setup.cfg`.
        Setup = "setup",
        /// `environment.yml` of conda.
        Conda = "conda",
        /// `pom.xml`.
        Maven = "maven",
        /// Scripts and the version catalogue of Gradle.
        Gradle = "gradle",
        /// `composer.json`.
        Composer = "composer",
        /// `Gemfile` or a gemspec.
        Gemfile = "gemfile",
        /// Projects of .NET.
        Dotnet = "dotnet",
        /// `pubspec.yaml`.
        Pubspec = "pubspec",
        /// `mix.exs`.
        Mix = "mix",
        /// `Package.swift`.
        SwiftPackage = "swift_package",
        /// `deno.json`.
        Deno = "deno",
        /// A lockfile whose manifest was not read.
        Lockfile = "lockfile",
        /// A file that only this technology reads.
        ConfigFile = "config_file",
        /// The image of a container.
        ContainerImage = "container_image",
        /// A file that pins the version of a language, such as `.nvmrc`.
        VersionFile = "version_file",
    }
}

named! {
    /// What installs a project's dependencies.
    PackageManager {
        /// npm.
        Npm = "npm",
        /// Yarn.
        Yarn = "yarn",
        /// pnpm.
        Pnpm = "pnpm",
        /// Bun.
        Bun = "bun",
        /// Deno.
        Deno = "deno",
        /// pip.
        Pip = "pip",
        /// Poetry.
        Poetry = "poetry",
        /// uv.
        Uv = "uv",
        /// PDM.
        Pdm = "pdm",
        /// Pipenv.
        Pipenv = "pipenv",
        /// conda.
        Conda = "conda",
        /// Cargo.
        Cargo = "cargo",
        /// The go command.
        Go = "go",
        /// Maven.
        Maven = "maven",
        /// Gradle.
        Gradle = "gradle",
        /// Composer.
        Composer = "composer",
        /// Bundler.
        Bundler = "bundler",
        /// `NuGet`.
        Nuget = "nuget",
        /// pub.
        Pub = "pub",
        /// Mix.
        Mix = "mix",
        /// Swift's package manager.
        Swift = "swift",
    }
}

named! {
    /// The kind of a project.
    ProjectKind {
        /// Several packages that one file holds together.
        Monorepo = "monorepo",
        /// One package of unknown purpose.
        Single = "single",
        /// Code for other projects.
        Library = "library",
        /// Something that is run.
        Application = "application",
        /// No manifest was read.
        Unknown = "unknown",
    }
}

named! {
    /// How reliable an analysis is.
    ConfidenceLevel {
        /// A manifest lists the dependencies, and all files were seen.
        High = "high",
        /// Something was left out, or only configuration and names of files show technologies.
        Medium = "medium",
        /// Next to nothing was found.
        Low = "low",
    }
}

/// A project's own description, in the manifest nearest to its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// What it is.
    pub kind: ProjectKind,
    /// The package manager of that manifest.
    pub package_manager: Option<PackageManager>,
    /// All that were found, in the order of [`PackageManager`].
    pub package_managers: Vec<PackageManager>,
}

/// Counts of what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Regular files that are not ignored, within depth and limits.
    pub total_files: usize,
    /// The files among them that show something: of a known language, or recognized.
    pub analyzed_files: usize,
    /// Texts that people read, besides readme, licence and the like.
    pub texts: usize,
    /// Documents of an office: letters, sheets, slides.
    pub documents: usize,
    /// Folders that were entered, the root among them.
    pub directories_scanned: usize,
    /// Ids of languages: the one with the most files first, then by id.
    pub languages_detected: Vec<String>,
}

/// Something that was not read, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The file, from the root; empty where it is about the whole.
    pub file: String,
    /// The line, counted from 1, where one is to blame.
    pub line: Option<usize>,
    /// What it is.
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => f.write_str(&self.message),
            (file, None) => write!(f, "{file}: {}", self.message),
            (file, Some(line)) => write!(f, "{file}:{line}: {}", self.message),
        }
    }
}

/// A fact, and the file that shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// The fact.
    pub fact: Fact,
    /// The file, from the root: the one next to the root, then the first by name.
    pub file: String,
}
