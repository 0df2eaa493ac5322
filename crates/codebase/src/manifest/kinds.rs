//! Which files are manifests, and of what.

use super::super::report::Source;
use super::super::table::is_at;
use super::super::text::{Broken, glob};
use super::{
    Ecosystem, Manifest, cargo, containers, dotnet, go, gradle, maven, npm, others, php, pins,
    pyproject, python, ruby,
};

/// Reads a text of one form.
pub(super) type Reader = fn(&str) -> Result<Manifest, Broken>;

/// How a file is read, which is known from its path.
pub(super) struct Kind {
    /// A file name, or with `/` the end of a path; `*` is any part of a name.
    pattern: &'static str,
    pub(super) ecosystem: Ecosystem,
    pub(super) source: Source,
    pub(super) read: Reader,
}

const fn kind(pattern: &'static str, ecosystem: Ecosystem, source: Source, read: Reader) -> Kind {
    Kind {
        pattern,
        ecosystem,
        source,
        read,
    }
}

/// All kinds of manifests. The first pattern that fits counts.
const KINDS: &[Kind] = &[
    kind(
        "package.json",
        Ecosystem::Npm,
        Source::PackageJson,
        npm::package,
    ),
    kind(
        "pnpm-workspace.yaml",
        Ecosystem::Npm,
        Source::PackageJson,
        npm::pnpm_workspace,
    ),
    kind(
        "lerna.json",
        Ecosystem::Npm,
        Source::PackageJson,
        npm::workspace,
    ),
    kind(
        "nx.json",
        Ecosystem::Npm,
        Source::PackageJson,
        npm::workspace,
    ),
    kind(
        "turbo.json",
        Ecosystem::Npm,
        Source::PackageJson,
        npm::workspace,
    ),
    kind("deno.json", Ecosystem::Npm, Source::Deno, npm::deno),
    kind("deno.jsonc", Ecosystem::Npm, Source::Deno, npm::deno),
    kind(
        "pyproject.toml",
        Ecosystem::Python,
        Source::Pyproject,
        pyproject::read,
    ),
    kind(
        "requirements/dev*.txt",
        Ecosystem::Python,
        Source::Requirements,
        python::development,
    ),
    kind(
        "requirements/test*.txt",
        Ecosystem::Python,
        Source::Requirements,
        python::development,
    ),
    kind(
        "requirements/*.txt",
        Ecosystem::Python,
        Source::Requirements,
        python::requirements,
    ),
    kind(
        "requirements*dev*.txt",
        Ecosystem::Python,
        Source::Requirements,
        python::development,
    ),
    kind(
        "requirements*test*.txt",
        Ecosystem::Python,
        Source::Requirements,
        python::development,
    ),
    kind(
        "dev-requirements.txt",
        Ecosystem::Python,
        Source::Requirements,
        python::development,
    ),
    kind(
        "test-requirements.txt",
        Ecosystem::Python,
        Source::Requirements,
        python::development,
    ),
    kind(
        "requirements*.txt",
        Ecosystem::Python,
        Source::Requirements,
        python::requirements,
    ),
    kind(
        "requirements*.in",
        Ecosystem::Python,
        Source::Requirements,
        python::requirements,
    ),
    kind(
        "Pipfile",
        Ecosystem::Python,
        Source::Pipfile,
        python::pipfile,
    ),
    kind(
        "setup.cfg",
        Ecosystem::Python,
        Source::Setup,
        python::setup_cfg,
    ),
    kind(
        "setup.py",
        Ecosystem::Python,
        Source::Setup,
        python::setup_py,
    ),
    kind(
        "environment.yml",
        Ecosystem::Python,
        Source::Conda,
        python::conda,
    ),
    kind(
        "environment.yaml",
        Ecosystem::Python,
        Source::Conda,
        python::conda,
    ),
    kind(
        "Cargo.toml",
        Ecosystem::Cargo,
        Source::CargoToml,
        cargo::read,
    ),
    kind("go.mod", Ecosystem::Go, Source::GoMod, go::module),
    kind("go.work", Ecosystem::Go, Source::GoMod, go::workspace),
    kind("pom.xml", Ecosystem::Jvm, Source::Maven, maven::read),
    kind(
        "build.gradle",
        Ecosystem::Jvm,
        Source::Gradle,
        gradle::build,
    ),
    kind(
        "build.gradle.kts",
        Ecosystem::Jvm,
        Source::Gradle,
        gradle::build,
    ),
    kind(
        "settings.gradle",
        Ecosystem::Jvm,
        Source::Gradle,
        gradle::settings,
    ),
    kind(
        "settings.gradle.kts",
        Ecosystem::Jvm,
        Source::Gradle,
        gradle::settings,
    ),
    kind(
        "libs.versions.toml",
        Ecosystem::Jvm,
        Source::Gradle,
        gradle::catalogue,
    ),
    kind("composer.json", Ecosystem::Php, Source::Composer, php::read),
    kind("Gemfile", Ecosystem::Ruby, Source::Gemfile, ruby::gemfile),
    kind("*.gemspec", Ecosystem::Ruby, Source::Gemfile, ruby::gemspec),
    kind(
        "*.csproj",
        Ecosystem::Dotnet,
        Source::Dotnet,
        dotnet::csharp,
    ),
    kind(
        "*.fsproj",
        Ecosystem::Dotnet,
        Source::Dotnet,
        dotnet::fsharp,
    ),
    kind(
        "*.vbproj",
        Ecosystem::Dotnet,
        Source::Dotnet,
        dotnet::visual_basic,
    ),
    kind(
        "Directory.Packages.props",
        Ecosystem::Dotnet,
        Source::Dotnet,
        dotnet::packages,
    ),
    kind(
        "packages.config",
        Ecosystem::Dotnet,
        Source::Dotnet,
        dotnet::config,
    ),
    kind("*.sln", Ecosystem::Dotnet, Source::Dotnet, dotnet::solution),
    kind(
        "*.slnx",
        Ecosystem::Dotnet,
        Source::Dotnet,
        dotnet::solution_xml,
    ),
    kind(
        "pubspec.yaml",
        Ecosystem::Dart,
        Source::Pubspec,
        others::pubspec,
    ),
    kind("mix.exs", Ecosystem::Elixir, Source::Mix, others::mix),
    kind(
        "Package.swift",
        Ecosystem::Swift,
        Source::SwiftPackage,
        others::swift,
    ),
    kind(
        "Dockerfile",
        Ecosystem::Image,
        Source::ContainerImage,
        containers::dockerfile,
    ),
    kind(
        "Dockerfile.*",
        Ecosystem::Image,
        Source::ContainerImage,
        containers::dockerfile,
    ),
    kind(
        "*.dockerfile",
        Ecosystem::Image,
        Source::ContainerImage,
        containers::dockerfile,
    ),
    kind(
        "Containerfile",
        Ecosystem::Image,
        Source::ContainerImage,
        containers::dockerfile,
    ),
    kind(
        "docker-compose*.yml",
        Ecosystem::Image,
        Source::ContainerImage,
        containers::compose,
    ),
    kind(
        "docker-compose*.yaml",
        Ecosystem::Image,
        Source::ContainerImage,
        containers::compose,
    ),
    kind(
        "compose.yml",
        Ecosystem::Image,
        Source::ContainerImage,
        containers::compose,
    ),
    kind(
        "compose.yaml",
        Ecosystem::Image,
        Source::ContainerImage,
        containers::compose,
    ),
    kind(".nvmrc", Ecosystem::Npm, Source::VersionFile, pins::node),
    kind(
        ".node-version",
        Ecosystem::Npm,
        Source::VersionFile,
        pins::node,
    ),
    kind(
        ".python-version",
        Ecosystem::Python,
        Source::VersionFile,
        pins::python,
    ),
    kind(
        ".ruby-version",
        Ecosystem::Ruby,
        Source::VersionFile,
        pins::ruby,
    ),
    kind(
        "rust-toolchain",
        Ecosystem::Cargo,
        Source::VersionFile,
        pins::rust,
    ),
    kind(
        "rust-toolchain.toml",
        Ecosystem::Cargo,
        Source::VersionFile,
        pins::rust,
    ),
    kind(
        "global.json",
        Ecosystem::Dotnet,
        Source::VersionFile,
        pins::dotnet,
    ),
    kind(
        ".tool-versions",
        Ecosystem::Image,
        Source::VersionFile,
        pins::asdf,
    ),
];

/// The kind of the file at a path; none where it is no manifest.
pub(super) fn find(path: &str) -> Option<&'static Kind> {
    let name = path.rsplit('/').next().unwrap_or(path);
    KINDS.iter().find(|kind| {
        if kind.pattern.contains('/') {
            is_at(kind.pattern, path)
        } else {
            glob(kind.pattern, name)
        }
    })
}
