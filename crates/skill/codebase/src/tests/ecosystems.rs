//! A project of each ecosystem: its stack and what it says of itself.

mod jvm;

use super::super::PackageManager;
use super::{notes, of, project, sent, stack};

/// Stack, project and notes of files, as one list.
fn all(files: &[(&str, &str)]) -> Vec<String> {
    let analysis = of(files);
    let mut all = stack(&analysis);
    all.push(project(&analysis));
    all.extend(notes(&analysis));
    all
}

#[test]
fn npm_takes_versions_from_the_lockfile_and_else_from_the_manifest() {
    let manifest = r#"{
        "name": "shop", "version": "2.1.0", "private": true,
        "engines": {"node": ">=20"},
        "scripts": {"dev": "next dev"},
        "dependencies": {"next": "^14.0.0", "react": "^18.2.0", "pg": "^8.11.0", "left-pad": "1.0.0"},
        "devDependencies": {"vitest": "~1.2.0", "typescript": "^5.3.0", "eslint": "8 || 9"}
    }"#;
    let lock = r#"{"lockfileVersion": 3, "packages": {
        "": {"name": "shop"},
        "node_modules/next": {"version": "14.1.3"},
        "node_modules/next/node_modules/react": {"version": "17.0.0"},
        "node_modules/react": {"version": "18.2.7"}
    }}"#;
    assert_eq!(
        all(&[("package.json", manifest), ("package-lock.json", lock)]),
        [
            "nextjs 14.1.3 1.0 package_json",
            "nodejs >=20 1.0 package_json",
            "react 18.2.7 1.0 package_json",
            "typescript 5.3.0 1.0 package_json",
            "eslint 8 || 9 0.9 package_json",
            "postgresql - 0.9 package_json",
            "vitest 1.2.0 0.9 package_json",
            "shop 2.1.0 application npm",
        ]
    );
}

#[test]
fn lockfiles_of_yarn_and_pnpm_are_read_and_that_of_bun_names_its_manager() {
    let manifest =
        r#"{"name": "ui", "exports": "./index.js", "dependencies": {"react": "^18.2.0"}}"#;
    let yarn = "# yarn lockfile v1\n\n\"react@^17.0.0\", react@^17.0.2:\n  version \"17.0.2\"\n\nreact@^18.2.0:\n  version \"18.3.1\"\n";
    let berry = "\"react@npm:^18.2.0\":\n  version: 18.3.2\n";
    let pnpm = "lockfileVersion: '6.0'\n\ndependencies:\n  react:\n    specifier: ^18.2.0\n    version: 18.3.3(x@1)\n\npackages:\n\n  /react@18.3.3:\n    resolution: {}\n";
    let pnpm9 = "lockfileVersion: '9.0'\nimporters:\n  .:\n    dependencies:\n      react:\n        specifier: ^18.2.0\n        version: 18.3.4\n  packages/a:\n    dependencies:\n      react:\n        specifier: ^17\n        version: 17.0.1\n";
    let bun = "{\n  \"packages\": {\n    \"react\": [\"react@18.3.5\", \"\", {}],\n  }\n}\n";
    for (name, lock, version, manager) in [
        ("yarn.lock", yarn, "18.3.1", "yarn"),
        ("yarn.lock", berry, "18.3.2", "yarn"),
        ("pnpm-lock.yaml", pnpm, "18.3.3", "pnpm"),
        ("pnpm-lock.yaml", pnpm9, "18.3.4", "pnpm"),
        ("bun.lock", bun, "18.2.0", "bun"),
    ] {
        let found = all(&[("package.json", manifest), (name, lock)]);
        assert_eq!(
            found[0],
            format!("react {version} 1.0 package_json"),
            "{name}"
        );
        assert!(
            found.contains(&format!("ui - library {manager}")),
            "{found:?}"
        );
    }
}

#[test]
fn requirements_are_read_line_by_line_and_includes_are_named() {
    let lines = "# web\nDjango[argon2] ==4.2.1 ; python_version >= '3.8'\n-r base.txt\n--index-url https://user:secret@example.org/simple\ncelery>=5,<6\npsycopg2-binary~=2.9 --hash=sha256:00\nscikit_learn @ https://example.org/x.whl\n";
    assert_eq!(
        all(&[
            ("requirements.txt", lines),
            ("requirements-dev.txt", "pytest\n"),
            ("manage.py", "")
        ]),
        [
            "celery >=5,<6 1.0 requirements",
            "django 4.2.1 1.0 requirements",
            "python - 1.0 requirements",
            "scikit-learn - 1.0 requirements",
            "postgresql - 0.9 requirements",
            "pytest - 0.9 requirements",
            "- - application pip",
            "requirements.txt: 'base.txt' is named here and not followed",
        ]
    );
}

#[test]
fn pyproject_is_read_as_the_standard_writes_it_with_uv() {
    let manifest = r#"
[project]
name = "orders"
version = "0.3.0"
requires-python = ">=3.11"
dependencies = ["fastapi>=0.100", "SQLAlchemy==2.0.1", "pydantic"]
[project.optional-dependencies]
docs = ["mkdocs"]
[dependency-groups]
dev = ["pytest>=8", {include-group = "docs"}]
[tool.ruff]
line-length = 100
[tool.uv.workspace]
members = ["packages/*"]
"#;
    let lock = "version = 1\n\n[[package]]\nname = \"fastapi\"\nversion = \"0.110.2\"\n\n[[package]]\nname = \"pytest\"\nversion = \"8.1.1\"\n";
    assert_eq!(
        all(&[("pyproject.toml", manifest), ("uv.lock", lock)]),
        [
            "fastapi 0.110.2 1.0 pyproject",
            "pydantic - 1.0 pyproject",
            "python >=3.11 1.0 pyproject",
            "sqlalchemy 2.0.1 1.0 pyproject",
            "mkdocs - 0.9 pyproject",
            "pytest 8.1.1 0.9 pyproject",
            "ruff - 0.9 pyproject",
            "uv - 0.9 config_file",
            "starlette - 0.5 inferred",
            "orders 0.3.0 monorepo uv",
        ]
    );
}

#[test]
fn poetry_pipenv_setup_files_and_conda_are_read() {
    let poetry = "[tool.poetry]\nname = \"p\"\nversion = \"1.0\"\n[tool.poetry.dependencies]\npython = \"^3.10\"\nFlask = {version = \"^3.0.0\", extras = [\"async\"]}\n[tool.poetry.group.dev.dependencies]\nblack = \"*\"\n[build-system]\nbuild-backend = \"poetry.core.masonry.api\"\n";
    assert_eq!(
        all(&[("pyproject.toml", poetry)]),
        [
            "flask 3.0.0 1.0 pyproject",
            "python 3.10 1.0 pyproject",
            "black - 0.9 pyproject",
            "p 1.0 library poetry",
        ]
    );
    let pipfile = "[packages]\nflask = \"*\"\n[dev-packages]\npytest = \"==7.0\"\n[requires]\npython_version = \"3.9\"\n";
    assert_eq!(
        all(&[("Pipfile", pipfile)]),
        [
            "flask - 1.0 pipfile",
            "python 3.9 1.0 pipfile",
            "pytest 7.0 0.9 pipfile",
            "- - application pipenv"
        ]
    );
    let setup = "from setuptools import setup\nsetup(\n    name='tool',\n    version=\"1.4\",\n    python_requires='>=3.8',\n    # install_requires=['django'],\n    install_requires=[\n        'click>=8',\n        \"requests[socks]==2.31\",\n    ],\n)\n";
    assert_eq!(
        all(&[("setup.py", setup)]),
        [
            "click >=8 1.0 setup",
            "python >=3.8 1.0 setup",
            "requests 2.31 1.0 setup",
            "tool 1.4 single pip",
        ]
    );
    let config = "[metadata]\nname = cfg\nversion = attr: cfg.__version__\n[options]\npython_requires = >=3.7\ninstall_requires =\n    numpy>=1.20\n    pandas==2.0\n[flake8]\nmax-line-length = 90\n";
    assert_eq!(
        all(&[("setup.cfg", config)]),
        [
            "numpy >=1.20 1.0 setup",
            "pandas 2.0 1.0 setup",
            "python >=3.7 1.0 setup",
            "cfg - single pip"
        ]
    );
    let conda = "name: lab\ndependencies:\n  - python=3.11\n  - pytorch::torch\n  - numpy=1.26\n  - pip:\n    - pandas==2.1\n";
    assert_eq!(
        all(&[("environment.yml", conda)]),
        [
            "numpy 1.26 1.0 conda",
            "pandas 2.1 1.0 conda",
            "python 3.11 1.0 conda",
            "pytorch - 1.0 conda",
            "lab - single conda"
        ]
    );
}

#[test]
fn cargo_members_inherit_from_their_workspace() {
    let root = "[workspace]\nmembers = [\"server\"]\n[workspace.package]\nversion = \"0.5.0\"\n[workspace.dependencies]\naxum = \"0.7\"\ntokio = { version = \"1.35\", features = [\"full\"] }\n";
    let member = "[package]\nname = \"server\"\nversion.workspace = true\nrust-version = \"1.75\"\n[dependencies]\naxum.workspace = true\ntokio = { workspace = true }\npg = { package = \"tokio-postgres\", version = \"0.7\" }\n[target.'cfg(unix)'.dependencies]\nclap = \"4\"\n[dev-dependencies]\nproptest = \"1\"\n";
    let lock = "[[package]]\nname = \"tokio\"\nversion = \"1.36.0\"\n\n[[package]]\nname = \"axum\"\nversion = \"0.6.1\"\n\n[[package]]\nname = \"axum\"\nversion = \"0.7.4\"\n";
    assert_eq!(
        all(&[
            ("Cargo.toml", root),
            ("server/Cargo.toml", member),
            ("server/src/main.rs", ""),
            ("Cargo.lock", lock)
        ]),
        [
            "axum 0.7.4 1.0 cargo_toml",
            "clap 4 1.0 cargo_toml",
            "rust 1.75 1.0 cargo_toml",
            "tokio 1.36.0 1.0 cargo_toml",
            "postgresql - 0.9 cargo_toml",
            "proptest 1 0.9 cargo_toml",
            "- 0.5.0 monorepo cargo",
        ]
    );
}

#[test]
fn go_modules_are_known_with_their_major_versions_and_indirect_ones_are_not() {
    let module = "module example.org/api\n\ngo 1.22\n\nrequire (\n\tgithub.com/gin-gonic/gin v1.9.1\n\tgithub.com/jackc/pgx/v5 v5.5.0 // the driver\n\tgithub.com/spf13/cobra v1.8.0 // indirect\n)\n\nrequire github.com/stretchr/testify v1.9.0\n";
    assert_eq!(
        all(&[
            ("go.mod", module),
            ("main.go", "package main"),
            ("go.sum", "x")
        ]),
        [
            "gin 1.9.1 1.0 go_mod",
            "go 1.22 1.0 go_mod",
            "testify 1.9.0 1.0 go_mod",
            "postgresql - 0.9 go_mod",
            "example.org/api - application go",
        ]
    );
    let work = "go 1.22\n\nuse (\n\t./a\n\t./b\n)\n";
    assert_eq!(
        project(&of(&[("go.work", work), ("a/go.mod", "module a\n")])),
        "- - monorepo go"
    );
}

#[test]
fn composer_is_known_by_what_its_manifest_asks_for() {
    let manifest = r#"{"name": "acme/site", "type": "project", "require": {"php": "^8.2", "ext-json": "*", "laravel/framework": "^10.10"}, "require-dev": {"phpunit/phpunit": "^10.1"}}"#;
    let lock = r#"{"packages": [{"name": "laravel/framework", "version": "v10.48.2"}], "packages-dev": []}"#;
    assert_eq!(
        all(&[("composer.json", manifest), ("composer.lock", lock)]),
        [
            "laravel 10.10 1.0 composer",
            "php 8.2 1.0 composer",
            "phpunit 10.1 0.9 composer",
            "acme/site - application composer",
        ]
    );
}

#[test]
fn bundler_knows_groups() {
    let gems = "source 'https://rubygems.org'\nruby '3.2.2'\ngem 'rails', '~> 7.1'\ngem \"pg\"\ngroup :development, :test do\n  gem 'rspec-rails'\nend\ngem 'puma', '>= 5.0'\n";
    let lock = "GEM\n  specs:\n    rails (7.1.3)\n      actioncable (= 7.1.3)\n    puma (6.4.0)\n";
    assert_eq!(
        all(&[("Gemfile", gems), ("Gemfile.lock", lock)]),
        [
            "puma >= 5.0 1.0 gemfile",
            "rails 7.1 1.0 gemfile",
            "ruby 3.2.2 1.0 gemfile",
            "postgresql - 0.9 gemfile",
            "rspec - 0.9 gemfile",
            "activerecord - 0.5 inferred",
            "- - application bundler",
        ]
    );
}

#[test]
fn dotnet_projects_take_central_versions_and_solutions_hold_them_together() {
    let api = r#"<Project Sdk="Microsoft.NET.Sdk.Web"><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup><ItemGroup><PackageReference Include="Microsoft.EntityFrameworkCore" /><PackageReference Include="Serilog.AspNetCore" Version="8.0.0" /></ItemGroup></Project>"#;
    let tests = r#"<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup><ItemGroup><PackageReference Include="xunit"><Version>2.6.1</Version></PackageReference></ItemGroup></Project>"#;
    let central = r#"<Project><ItemGroup><PackageVersion Include="Microsoft.EntityFrameworkCore" Version="8.0.1" /></ItemGroup></Project>"#;
    let solution = "Project(\"{FAE0}\") = \"Api\", \"src\\Api\\Api.csproj\", \"{1}\"\nEndProject\nProject(\"{FAE0}\") = \"Unit\", \"src\\Unit\\Unit.csproj\", \"{2}\"\nEndProject\n";
    assert_eq!(
        all(&[
            ("src/Api/Api.csproj", api),
            ("src/Unit/Unit.csproj", tests),
            ("Directory.Packages.props", central),
            ("Shop.sln", solution),
        ]),
        [
            "aspnet-core - 1.0 dotnet",
            "csharp - 1.0 dotnet",
            "dotnet 8.0 1.0 dotnet",
            "entity-framework-core 8.0.1 1.0 dotnet",
            "xunit 2.6.1 1.0 dotnet",
            "serilog - 0.9 dotnet",
            "- - monorepo nuget",
        ]
    );
}

#[test]
fn dart_elixir_swift_and_deno_are_read() {
    let pubspec = "name: app\nversion: 1.0.0+1\nenvironment:\n  sdk: '>=3.0.0 <4.0.0'\ndependencies:\n  flutter:\n    sdk: flutter\n  bloc: ^8.1.0\ndev_dependencies:\n  flutter_test:\n    sdk: flutter\n";
    assert_eq!(
        all(&[("pubspec.yaml", pubspec)]),
        [
            "bloc 8.1.0 1.0 pubspec",
            "dart >=3.0.0 <4.0.0 1.0 pubspec",
            "flutter - 1.0 pubspec",
            "app 1.0.0+1 application pub"
        ]
    );
    let mix = "defmodule Shop.MixProject do\n  def project do\n    [\n      app: :shop,\n      version: \"0.1.0\",\n      elixir: \"~> 1.14\"\n    ]\n  end\n  defp deps do\n    [\n      {:phoenix, \"~> 1.7.10\"},\n      {:credo, \"~> 1.7\", only: [:dev, :test]}\n    ]\n  end\nend\n";
    assert_eq!(
        all(&[
            ("mix.exs", mix),
            (
                "mix.lock",
                "%{\n  \"phoenix\": {:hex, :phoenix, \"1.7.12\", \"x\"},\n}\n"
            )
        ]),
        [
            "elixir 1.14 1.0 mix",
            "phoenix 1.7.10 1.0 mix",
            "credo 1.7 0.9 mix",
            "shop 0.1.0 application mix",
        ]
    );
    let swift = "// swift-tools-version:5.9\nimport PackageDescription\nlet package = Package(\n    name: \"Api\",\n    dependencies: [\n        .package(url: \"https://github.com/vapor/vapor.git\", from: \"4.89.0\"),\n    ],\n    targets: [.executableTarget(name: \"App\")]\n)\n";
    assert_eq!(
        all(&[("Package.swift", swift)]),
        [
            "swift 5.9 1.0 swift_package",
            "vapor 4.89.0 1.0 swift_package",
            "Api - application swift"
        ]
    );
    let deno = "{\n  // settings\n  \"name\": \"@acme/tool\", \"version\": \"0.2.0\", \"exports\": \"./mod.ts\",\n  \"imports\": {\"hono\": \"npm:hono@^4.0.0\", \"@std/path\": \"jsr:@std/path@1\",},\n}\n";
    assert_eq!(
        all(&[("deno.jsonc", deno)]),
        [
            "deno - 1.0 deno",
            "hono 4.0.0 1.0 deno",
            "@acme/tool 0.2.0 library deno"
        ]
    );
}

#[test]
fn images_say_what_a_project_runs_on() {
    let compose = "x-base: &base\n  restart: always\nservices:\n  db:\n    <<: *base\n    image: \"postgres:16.1-alpine\"\n  cache:\n    image: docker.io/library/redis:7@sha256:00\n  own:\n    image: ${REGISTRY}/own:1\n";
    assert_eq!(
        all(&[
            ("docker-compose.yml", compose),
            (
                "Dockerfile",
                "FROM --platform=linux/amd64 node:20-slim AS build\nFROM scratch\n"
            )
        ]),
        [
            "docker - 0.9 config_file",
            "docker-compose - 0.9 config_file",
            "nodejs 20 0.8 container_image",
            "postgresql 16.1 0.8 container_image",
            "redis 7 0.8 container_image",
            "- - unknown -",
        ]
    );
}

#[test]
fn pinned_versions_of_languages_are_read() {
    assert_eq!(
        all(&[
            (".nvmrc", "v20.11.0\n"),
            (".tool-versions", "ruby 3.2.1\nunheard 1\n"),
            ("rust-toolchain.toml", "[toolchain]\nchannel = \"1.75.0\"\n")
        ]),
        [
            "nodejs 20.11.0 0.9 version_file",
            "ruby 3.2.1 0.9 version_file",
            "rust 1.75.0 0.9 version_file",
            "- - unknown -",
        ]
    );
}

#[test]
fn a_lockfile_alone_says_a_little() {
    let analysis = sent(&[(
        "Cargo.lock",
        "[[package]]\nname = \"axum\"\nversion = \"0.7.4\"\n",
    )]);
    assert_eq!(stack(&analysis), ["axum 0.7.4 0.5 lockfile"]);
    assert_eq!(project(&analysis), "- - unknown -");
    assert_eq!(analysis.confidence_level.name(), "low");
    // One that is not read tells of its package manager.
    let analysis = sent(&[("Gemfile.lock", "GEM\n  specs:\n    rails (7.1.3)\n")]);
    assert_eq!(stack(&analysis), Vec::<String>::new());
    let managers: Vec<_> = analysis.project.package_managers.iter().collect();
    assert_eq!(managers, [&PackageManager::Bundler]);
    assert_eq!(analysis.stats.analyzed_files, 1);
}
