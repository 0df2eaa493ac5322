//! The needs of a codebase: areas of work, by the ids of categories, each with its evidence.

use codebase::{Analysis, Fact, TechStackItem, TechnologyKind};

use super::project::has_fact;

/// How much a codebase needs an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Some codebases like this do.
    Low,
    /// Most do.
    Medium,
    /// Every one does.
    High,
}

impl Severity {
    /// The weight of an area of this severity.
    pub(super) fn weight(self) -> f64 {
        match self {
            Self::High => 0.85,
            Self::Medium => 0.7,
            Self::Low => 0.55,
        }
    }
}

/// An area of work that a codebase needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Need {
    /// The id of the category.
    pub(super) area: &'static str,
    /// How much.
    pub(super) severity: Severity,
    /// The evidence, as half a sentence.
    pub(super) because: String,
}

/// Texts from which on a codebase is one of texts, where there is no code.
const MIN_TEXTS: usize = 3;
/// How certain a technology must be, and a language of most files is.
const MIN_CONFIDENCE: f64 = 0.6;
const MIN_LANGUAGE_CONFIDENCE: f64 = 0.8;
/// Languages that most codebases have somewhere, and are rarely made of.
const BESIDE: &[&str] = &["sql", "shell", "powershell", "hcl", "html", "css"];

/// Databases that know no SQL, and what is for those only.
const NO_SQL: &[&str] = &[
    "mongodb",
    "mongoose",
    "redis",
    "elasticsearch",
    "opensearch",
    "meilisearch",
    "cassandra",
    "dynamodb",
    "neo4j",
    "influxdb",
    "qdrant",
    "pinecone",
    "weaviate",
    "chroma",
    "firebase",
    "convex",
    "sled",
    "rocksdb",
    "redb",
];
/// Frameworks that train and run models, clients of hosted models, and frameworks for agents.
const MODELS: &[&str] = &[
    "pytorch",
    "pytorch-lightning",
    "tensorflow",
    "keras",
    "jax",
    "scikit-learn",
    "xgboost",
    "lightgbm",
    "hugging-face-transformers",
    "spacy",
    "opencv",
    "mlflow",
    "ray",
    "vllm",
    "candle",
    "burn",
];
const OTHERS_MODELS: &[&str] = &[
    "openai-api",
    "anthropic-api",
    "google-gemini-api",
    "ollama",
    "vercel-ai-sdk",
    "langchain",
    "langgraph",
    "llamaindex",
    "spring-ai",
    "semantic-kernel",
];
const AGENTS: &[&str] = &["crewai", "claude-agent-sdk", "model-context-protocol"];
/// Generators of web sites.
const SITES: &[&str] = &[
    "astro",
    "gatsby",
    "eleventy",
    "jekyll",
    "wordpress",
    "shopify",
];
/// Tools for data.
const DATA: &[&str] = &[
    "jupyter",
    "pandas",
    "polars",
    "dbt",
    "apache-spark",
    "r",
    "julia",
];
/// User interfaces without a browser.
const NATIVE: &[&str] = &[
    "android",
    "jetpack-compose",
    "flutter",
    "riverpod",
    "bloc",
    "xcode",
    "react-native",
    "expo",
    "maui",
    "wpf",
    "winforms",
    "avalonia",
    "unity",
    "egui",
    "iced",
];

/// The technologies that are certain enough.
fn known(analysis: &Analysis) -> impl Iterator<Item = &TechStackItem> {
    let stack = analysis.stack.iter();
    stack.filter(|item| item.confidence >= MIN_CONFIDENCE)
}

/// A relational database, or what is for one.
pub(super) fn is_relational(item: &TechStackItem) -> bool {
    has_fact(&item.technology_id, Fact::Database) && !NO_SQL.contains(&item.technology_id.as_str())
}

/// The traits of a codebase that areas of work depend on.
pub(super) struct Shape<'a> {
    analysis: &'a Analysis,
    /// Its language, if it has code of its own.
    language: Option<&'a str>,
    /// A product of others that it is for, such as a program that it sets up.
    runs: Option<&'a str>,
}

impl<'a> Shape<'a> {
    pub(super) fn of(analysis: &'a Analysis) -> Self {
        let languages = || known(analysis).filter(|item| item.kind == TechnologyKind::Language);
        let own = languages().find(|item| !BESIDE.contains(&item.technology_id.as_str()));
        // Scripts are the project where it runs nothing that others wrote.
        let runs = known(analysis).find(|item| {
            item.kind == TechnologyKind::Platform
                && !has_fact(&item.technology_id, Fact::ContinuousIntegration)
                && !has_fact(&item.technology_id, Fact::Database)
        });
        let scripts = languages().find(|item| item.confidence >= MIN_LANGUAGE_CONFIDENCE);
        let language = own.or(scripts.filter(|_| runs.is_none()));
        Self {
            analysis,
            language: language.map(|item| item.name.as_str()),
            runs: runs.map(|item| item.name.as_str()),
        }
    }

    pub(super) fn language(&self) -> Option<&str> {
        self.language
    }

    /// It has a relational database.
    pub(super) fn is_relational(&self) -> bool {
        self.language.is_some() && known(self.analysis).any(is_relational)
    }

    /// A user interface for browsers. Beside what is native, the one of a server.
    fn web(&self) -> Option<String> {
        let is_native = self.uses(NATIVE).is_some();
        let item = known(self.analysis).find(|item| {
            let id = item.technology_id.as_str();
            let has = |fact: Fact| has_fact(id, fact);
            has(Fact::Frontend) && !NATIVE.contains(&id) && (!is_native || has(Fact::Backend))
        })?;
        Some(format!("the project uses {}", item.name))
    }

    /// It is all about models or data.
    pub(super) fn has_domain(&self) -> bool {
        let about = self.uses(MODELS).or_else(|| self.uses(DATA)).is_some();
        about && self.domain() == Severity::High
    }

    /// The severity of the subject of a codebase: highest where it has no other part.
    fn domain(&self) -> Severity {
        match self.server().or_else(|| self.web()) {
            Some(_) => Severity::Medium,
            None => Severity::High,
        }
    }

    /// A server of its own.
    fn server(&self) -> Option<String> {
        self.language?;
        self.shows(Fact::Backend, "a server")
    }

    /// A file shows this.
    fn shows(&self, fact: Fact, what: &str) -> Option<String> {
        let file = self.analysis.shows(fact)?;
        Some(format!("{file} shows {what}"))
    }

    /// One of these technologies is in use.
    fn uses(&self, ids: &[&str]) -> Option<String> {
        let item = known(self.analysis).find(|item| ids.contains(&item.technology_id.as_str()))?;
        Some(format!("the project uses {}", item.name))
    }

    fn has(&self, fact: Fact) -> bool {
        self.analysis.shows(fact).is_some()
    }

    fn code(&self) -> Option<String> {
        self.language
            .map(|language| format!("the project is {language} code"))
    }

    /// Scripts, queries or settings, and no code besides.
    fn scripts(&self) -> Option<String> {
        if !self.has(Fact::Deployment) && !self.has(Fact::ContinuousIntegration) {
            return None;
        }
        let item = known(self.analysis).next()?;
        self.language
            .is_none()
            .then(|| format!("the project uses {}", item.name))
    }

    fn only_texts(&self) -> Option<String> {
        let texts = self.analysis.stats.texts;
        let alone = self.language.is_none() && self.runs.is_none() && texts >= MIN_TEXTS;
        alone.then(|| format!("the project has {texts} texts and no code"))
    }
}

type Asks = fn(&Shape<'_>) -> Option<(Severity, String)>;

/// Areas, and when a codebase needs each. There is evidence for each need.
const AREAS: &[(&str, Asks)] = &[
    ("testing", |shape| {
        let code = shape.code()?;
        let shown = shape.shows(Fact::Tests, "tests");
        let is_site = shape.uses(SITES).is_some();
        let application = shape.server().or_else(|| shape.web()).filter(|_| !is_site);
        Some(match (shown, application) {
            (Some(tests), _) => (Severity::Medium, tests),
            (None, Some(_)) => (Severity::High, "no file shows tests".to_owned()),
            (None, None) => (Severity::Low, code),
        })
    }),
    ("code-quality", |shape| match shape.code() {
        Some(code) if shape.has(Fact::Linting) => Some((Severity::Low, code)),
        Some(_) => Some((Severity::Medium, "no file shows a linter".to_owned())),
        None => Some((Severity::Low, shape.scripts()?)),
    }),
    // As severe as review: in the judged projects its skills help more often (.91 against .73).
    ("debugging", |shape| match shape.code() {
        Some(code) => Some((Severity::Medium, code)),
        None => Some((Severity::Low, shape.scripts()?)),
    }),
    ("version-control", |shape| {
        let code = shape.code().or_else(|| shape.scripts())?;
        Some((Severity::Low, code))
    }),
    ("security", |shape| {
        let server = shape.server()?;
        let guarded = shape.has(Fact::SecurityScanning) || !shape.has(Fact::Database);
        Some((
            if guarded {
                Severity::Low
            } else {
                Severity::Medium
            },
            server,
        ))
    }),
    ("api-design", |shape| {
        let described = shape.shows(Fact::ApiDescription, "an API");
        Some((Severity::Low, described.or_else(|| shape.server())?))
    }),
    ("backend", |shape| Some((Severity::Low, shape.server()?))),
    ("database", |shape| {
        let is_relational = shape.is_relational();
        let shown = shape
            .shows(Fact::Database, "a database")
            .filter(|_| is_relational);
        Some((Severity::Medium, shown?))
    }),
    ("frontend", |shape| Some((Severity::Medium, shape.web()?))),
    ("accessibility", |shape| Some((Severity::Low, shape.web()?))),
    ("deployment", |shape| {
        let deployed = shape.shows(Fact::Deployment, "a deployment");
        let docker = || shape.shows(Fact::Docker, "containers");
        Some((Severity::Low, deployed.or_else(docker)?))
    }),
    ("ci", |shape| {
        let shown = shape.shows(Fact::ContinuousIntegration, "continuous integration");
        Some((Severity::Low, shown?))
    }),
    ("observability", |shape| {
        let shown = shape.shows(Fact::Observability, "metrics or traces");
        Some((Severity::Low, shown?))
    }),
    ("machine-learning", |shape| match shape.uses(MODELS) {
        Some(models) => Some((shape.domain(), models)),
        None => Some((Severity::Low, shape.uses(OTHERS_MODELS)?)),
    }),
    ("agents", |shape| {
        Some((
            Severity::Medium,
            shape.uses(AGENTS).or_else(|| shape.uses(OTHERS_MODELS))?,
        ))
    }),
    ("data", |shape| Some((shape.domain(), shape.uses(DATA)?))),
    ("documentation", |shape| match shape.only_texts() {
        Some(texts) => Some((Severity::High, texts)),
        None => Some((
            Severity::Low,
            shape.shows(Fact::Documentation, "documentation")?,
        )),
    }),
    ("writing", |shape| {
        Some((Severity::Medium, shape.only_texts()?))
    }),
    ("marketing", |shape| {
        Some((Severity::Medium, shape.uses(SITES)?))
    }),
    ("blockchain", |shape| {
        Some((shape.domain(), shape.uses(&["solidity", "hardhat"])?))
    }),
    ("mobile", |shape| {
        let made_with = &["android", "flutter", "react-native", "expo", "xcode"];
        Some((Severity::Medium, shape.uses(made_with)?))
    }),
    ("documents", |shape| {
        let count = shape.analysis.stats.documents;
        let alone = shape.language.is_none() && count >= MIN_TEXTS;
        alone.then(|| {
            (
                Severity::Medium,
                format!("the project has {count} documents"),
            )
        })
    }),
];

/// The needs of a codebase, in the order of the report.
pub(super) fn needs(shape: &Shape<'_>) -> Vec<Need> {
    let asked = AREAS.iter().filter_map(|(area, asks)| {
        let (severity, because) = asks(shape)?;
        Some(Need {
            area,
            severity,
            because,
        })
    });
    asked.collect()
}
