//! Kinds of technologies, and facts of the codebases that use them.

/// Declares an enum whose values each have a name on the wire.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $value,)+
        }

        impl $name {
            /// All of them, in their order.
            pub const ALL: &'static [Self] = &[$(Self::$value,)+];

            /// Its name in answers.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// The kind of a technology.
    TechnologyKind {
        /// A programming language.
        Language = "language",
        /// Code that calls the project's.
        Framework = "framework",
        /// Something that developers run.
        Tool = "tool",
        /// Something that the project runs on: services, databases, runtimes.
        Platform = "platform",
        /// Code that the project calls.
        Library = "library",
    }
}

named! {
    /// A fact of a codebase, for a recommender.
    Fact {
        /// Tests, or a framework for them.
        Tests = "has_tests",
        /// Documentation besides a readme.
        Documentation = "has_docs",
        /// A readme.
        Readme = "has_readme",
        /// Continuous integration.
        ContinuousIntegration = "has_ci",
        /// Images of containers.
        Docker = "has_docker",
        /// Deployment: infrastructure as code, charts, hosting.
        Deployment = "has_deployment",
        /// A linter.
        Linting = "has_linting",
        /// A formatter.
        Formatting = "has_formatting",
        /// Types that are checked before a run.
        Types = "has_types",
        /// A database.
        Database = "has_database",
        /// A user interface for browsers or devices.
        Frontend = "has_frontend",
        /// A server, or the framework for one.
        Backend = "has_backend",
        /// Scanning for vulnerabilities, secrets or outdated dependencies.
        SecurityScanning = "has_security_scanning",
        /// A description of an interface: `OpenAPI`, protocol buffers, `GraphQL`.
        ApiDescription = "has_api_description",
        /// Metrics, traces or error reports.
        Observability = "has_observability",
        /// Models or services of machine learning.
        MachineLearning = "has_machine_learning",
        /// Instructions for coding agents.
        AgentInstructions = "has_agent_instructions",
        /// A licence.
        Licence = "has_licence",
    }
}
