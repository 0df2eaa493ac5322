//! The files that are manifests, with their ecosystems and readers.

use super::super::report::Source;
use super::super::text::Broken;
use super::{
    Ecosystem, Manifest, cargo, containers, dotnet, go, gradle, maven, npm, others, php, pins,
    pyproject, python, ruby,
};
use technologies::is_at;

/// A reader of one format.
pub(super) type ManifestReader = fn(&str) -> Result<Manifest, Broken>;

/// Patterns of files, each with its reader.
type Patterns = &'static [(&'static str, ManifestReader)];

/// How a file is read, by its path.
pub(super) struct Kind {
    pub(super) ecosystem: Ecosystem,
    pub(super) source: Source,
    pub(super) read: ManifestReader,
}

/// Writes [`KINDS`]: ecosystem and source of a group, and the reader of each pattern.
macro_rules! kinds {
    ($($ecosystem:ident $source:ident { $($pattern:literal => $read:expr,)+ })+) => {
        &[$((Ecosystem::$ecosystem, Source::$source, &[$(($pattern, $read)),+])),+]
    };
}

/// All kinds of manifests, by file name, or with `/` by the end of a path; `*` is any
/// part of a name. The first that fits counts.
const KINDS: &[(Ecosystem, Source, Patterns)] = kinds! {
    Npm PackageJson {
        "package.json" => npm::package,
        "pnpm-workspace.yaml" => npm::pnpm_workspace,
        "lerna.json" => npm::workspace,
        "nx.json" => npm::workspace,
        "turbo.json" => npm::workspace,
    }
    Npm Deno {
        "deno.json" => npm::deno,
        "deno.jsonc" => npm::deno,
    }
    Python Pyproject {
        "pyproject.toml" => pyproject::read,
    }
    Python Requirements {
        "requirements/dev*.txt" => |text| python::requirements(text, true),
        "requirements/test*.txt" => |text| python::requirements(text, true),
        "requirements/*.txt" => |text| python::requirements(text, false),
        "requirements*dev*.txt" => |text| python::requirements(text, true),
        "requirements*test*.txt" => |text| python::requirements(text, true),
        "dev-requirements.txt" => |text| python::requirements(text, true),
        "test-requirements.txt" => |text| python::requirements(text, true),
        "requirements*.txt" => |text| python::requirements(text, false),
        "requirements*.in" => |text| python::requirements(text, false),
    }
    Python Pipfile {
        "Pipfile" => python::pipfile,
    }
    Python Setup {
        "setup.cfg" => python::setup_cfg,
        "setup.py" => python::setup_py,
    }
    Python Conda {
        "environment.yml" => python::conda,
        "environment.yaml" => python::conda,
    }
    Cargo CargoToml {
        "Cargo.toml" => cargo::read,
    }
    Go GoMod {
        "go.mod" => go::module,
        "go.work" => go::workspace,
    }
    Jvm Maven {
        "pom.xml" => maven::read,
    }
    Jvm Gradle {
        "build.gradle" => gradle::build,
        "build.gradle.kts" => gradle::build,
        "settings.gradle" => gradle::settings,
        "settings.gradle.kts" => gradle::settings,
        "libs.versions.toml" => gradle::catalogue,
    }
    Php Composer {
        "composer.json" => php::read,
    }
    Ruby Gemfile {
        "Gemfile" => ruby::gemfile,
        "*.gemspec" => ruby::gemspec,
    }
    Dotnet Dotnet {
        "*.csproj" => |text| dotnet::project(text, "csharp"),
        "*.fsproj" => |text| dotnet::project(text, "fsharp"),
        "*.vbproj" => |text| dotnet::project(text, "visual-basic"),
        "Directory.Packages.props" => dotnet::packages,
        "packages.config" => dotnet::config,
        "*.sln" => dotnet::solution,
        "*.slnx" => dotnet::solution_xml,
    }
    Dart Pubspec {
        "pubspec.yaml" => others::pubspec,
    }
    Elixir Mix {
        "mix.exs" => others::mix,
    }
    Swift SwiftPackage {
        "Package.swift" => others::swift,
    }
    Image ContainerImage {
        "Dockerfile" => containers::dockerfile,
        "Dockerfile.*" => containers::dockerfile,
        "*.dockerfile" => containers::dockerfile,
        "Containerfile" => containers::dockerfile,
        "docker-compose*.yml" => containers::compose,
        "docker-compose*.yaml" => containers::compose,
        "compose.yml" => containers::compose,
        "compose.yaml" => containers::compose,
    }
    Npm VersionFile {
        ".nvmrc" => |text| pins::line(text, "nodejs"),
        ".node-version" => |text| pins::line(text, "nodejs"),
    }
    Python VersionFile {
        ".python-version" => |text| pins::line(text, "python"),
    }
    Ruby VersionFile {
        ".ruby-version" => pins::ruby,
    }
    Cargo VersionFile {
        "rust-toolchain" => pins::rust,
        "rust-toolchain.toml" => pins::rust,
    }
    Dotnet VersionFile {
        "global.json" => pins::dotnet,
    }
    Image VersionFile {
        ".tool-versions" => pins::asdf,
    }
};

/// Finds the kind of the file at a path; none where it is no manifest.
pub(super) fn find(path: &str) -> Option<Kind> {
    KINDS.iter().find_map(|(ecosystem, source, patterns)| {
        let (_, read) = patterns.iter().find(|(pattern, _)| is_at(pattern, path))?;
        Some(Kind {
            ecosystem: *ecosystem,
            source: *source,
            read: *read,
        })
    })
}
