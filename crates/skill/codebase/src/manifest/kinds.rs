//! Which files are manifests, and of what.

use super::super::report::Source;
use super::super::text::Broken;
use super::{
    Ecosystem, Manifest, cargo, containers, dotnet, go, gradle, maven, npm, others, php, pins,
    pyproject, python, ruby,
};
use technologies::is_at;

/// Reads a text of one form.
pub(super) type ManifestReader = fn(&str) -> Result<Manifest, Broken>;

/// Patterns of files, and who reads those that fit.
type Patterns = &'static [(&'static str, ManifestReader)];

/// How a file is read, which is known from its path.
pub(super) struct Kind {
    pub(super) ecosystem: Ecosystem,
    pub(super) source: Source,
    pub(super) read: ManifestReader,
}

/// All kinds of manifests, by file name, or with `/` by the end of a path; `*` is any
/// part of a name. The first that fits counts.
const KINDS: &[(Ecosystem, Source, Patterns)] = &[
    (
        Ecosystem::Npm,
        Source::PackageJson,
        &[
            ("package.json", npm::package),
            ("pnpm-workspace.yaml", npm::pnpm_workspace),
            ("lerna.json", npm::workspace),
            ("nx.json", npm::workspace),
            ("turbo.json", npm::workspace),
        ],
    ),
    (
        Ecosystem::Npm,
        Source::Deno,
        &[("deno.json", npm::deno), ("deno.jsonc", npm::deno)],
    ),
    (
        Ecosystem::Python,
        Source::Pyproject,
        &[("pyproject.toml", pyproject::read)],
    ),
    (
        Ecosystem::Python,
        Source::Requirements,
        &[
            ("requirements/dev*.txt", python::development),
            ("requirements/test*.txt", python::development),
            ("requirements/*.txt", python::requirements),
            ("requirements*dev*.txt", python::development),
            ("requirements*test*.txt", python::development),
            ("dev-requirements.txt", python::development),
            ("test-requirements.txt", python::development),
            ("requirements*.txt", python::requirements),
            ("requirements*.in", python::requirements),
        ],
    ),
    (
        Ecosystem::Python,
        Source::Pipfile,
        &[("Pipfile", python::pipfile)],
    ),
    (
        Ecosystem::Python,
        Source::Setup,
        &[
            ("setup.cfg", python::setup_cfg),
            ("setup.py", python::setup_py),
        ],
    ),
    (
        Ecosystem::Python,
        Source::Conda,
        &[
            ("environment.yml", python::conda),
            ("environment.yaml", python::conda),
        ],
    ),
    (
        Ecosystem::Cargo,
        Source::CargoToml,
        &[("Cargo.toml", cargo::read)],
    ),
    (
        Ecosystem::Go,
        Source::GoMod,
        &[("go.mod", go::module), ("go.work", go::workspace)],
    ),
    (Ecosystem::Jvm, Source::Maven, &[("pom.xml", maven::read)]),
    (
        Ecosystem::Jvm,
        Source::Gradle,
        &[
            ("build.gradle", gradle::build),
            ("build.gradle.kts", gradle::build),
            ("settings.gradle", gradle::settings),
            ("settings.gradle.kts", gradle::settings),
            ("libs.versions.toml", gradle::catalogue),
        ],
    ),
    (
        Ecosystem::Php,
        Source::Composer,
        &[("composer.json", php::read)],
    ),
    (
        Ecosystem::Ruby,
        Source::Gemfile,
        &[("Gemfile", ruby::gemfile), ("*.gemspec", ruby::gemspec)],
    ),
    (
        Ecosystem::Dotnet,
        Source::Dotnet,
        &[
            ("*.csproj", |text| dotnet::project(text, "csharp")),
            ("*.fsproj", |text| dotnet::project(text, "fsharp")),
            ("*.vbproj", |text| dotnet::project(text, "visual-basic")),
            ("Directory.Packages.props", dotnet::packages),
            ("packages.config", dotnet::config),
            ("*.sln", dotnet::solution),
            ("*.slnx", dotnet::solution_xml),
        ],
    ),
    (
        Ecosystem::Dart,
        Source::Pubspec,
        &[("pubspec.yaml", others::pubspec)],
    ),
    (Ecosystem::Elixir, Source::Mix, &[("mix.exs", others::mix)]),
    (
        Ecosystem::Swift,
        Source::SwiftPackage,
        &[("Package.swift", others::swift)],
    ),
    (
        Ecosystem::Image,
        Source::ContainerImage,
        &[
            ("Dockerfile", containers::dockerfile),
            ("Dockerfile.*", containers::dockerfile),
            ("*.dockerfile", containers::dockerfile),
            ("Containerfile", containers::dockerfile),
            ("docker-compose*.yml", containers::compose),
            ("docker-compose*.yaml", containers::compose),
            ("compose.yml", containers::compose),
            ("compose.yaml", containers::compose),
        ],
    ),
    (
        Ecosystem::Npm,
        Source::VersionFile,
        &[(".nvmrc", pins::node), (".node-version", pins::node)],
    ),
    (
        Ecosystem::Python,
        Source::VersionFile,
        &[(".python-version", pins::python)],
    ),
    (
        Ecosystem::Ruby,
        Source::VersionFile,
        &[(".ruby-version", pins::ruby)],
    ),
    (
        Ecosystem::Cargo,
        Source::VersionFile,
        &[
            ("rust-toolchain", pins::rust),
            ("rust-toolchain.toml", pins::rust),
        ],
    ),
    (
        Ecosystem::Dotnet,
        Source::VersionFile,
        &[("global.json", pins::dotnet)],
    ),
    (
        Ecosystem::Image,
        Source::VersionFile,
        &[(".tool-versions", pins::asdf)],
    ),
];

/// The kind of the file at a path; none where it is no manifest.
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
