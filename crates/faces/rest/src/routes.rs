//! Which rpc a path leads to.
//!
//! A path names one thing, whatever is done with it: the template is chosen by the
//! path alone, and then has to take the method. At the first segment where two
//! templates that take a path differ, a literal beats a variable and that beats
//! `**`. So `skills/a/versions/3` is a version of the skill `a` and never the skill
//! `a/versions/3`, neither for `GET` nor for `DELETE`; that one is reached as
//! `skills/a%2Fversions%2F3`.

use std::sync::Arc;

use http::Method as Verb;

use access_log::RouteName;
use gateway::{Contract, Method, Route, Segment, Template, TemplateError, UrlPath};

/// The routes of a contract.
#[derive(Debug)]
pub(super) struct Routes {
    /// By precedence: the first that takes a path is the one.
    shapes: Vec<PathRoutes>,
}

/// Routes whose templates take the same paths.
#[derive(Debug)]
struct PathRoutes {
    segments: Vec<Segment>,
    verb: Option<String>,
    routes: Vec<RpcRoute>,
}

/// A route to an rpc.
#[derive(Debug)]
pub(super) struct RpcRoute {
    verb: Verb,
    template: Template,
    pub(super) method: Arc<Method>,
    pub(super) route: Route,
    /// What the access log calls it.
    pub(super) name: RouteName,
}

/// The result of routing a request.
#[derive(Debug)]
pub(super) enum RouteMatch<'a> {
    /// An rpc, with the values of its path.
    Rpc(&'a RpcRoute, Vec<(String, String)>),
    /// A path that takes only these methods.
    Verbs(Vec<&'a str>),
    /// No path of the contract.
    Nothing,
}

impl Routes {
    /// # Errors
    /// A route of the contract cannot be read.
    pub(super) fn new(contract: &Contract) -> Result<Self, TemplateError> {
        let mut shapes: Vec<PathRoutes> = Vec::new();
        for method in contract.methods() {
            for route in &method.routes {
                let verb = Verb::from_bytes(route.verb.as_bytes())
                    .map_err(|_| TemplateError::of(&route.verb))?;
                let template = Template::parse(&route.template)?;
                let rpc = RpcRoute {
                    verb,
                    template,
                    name: RouteName(route.template.as_str().into()),
                    method: Arc::clone(method),
                    route: route.clone(),
                };
                let (segments, verb) = (&rpc.template.segments, &rpc.template.verb);
                let same =
                    |shape: &&mut PathRoutes| shape.segments == *segments && shape.verb == *verb;
                match shapes.iter_mut().find(same) {
                    Some(shape) => shape.routes.push(rpc),
                    None => shapes.push(PathRoutes {
                        segments: segments.clone(),
                        verb: verb.clone(),
                        routes: vec![rpc],
                    }),
                }
            }
        }
        // Those with a verb first: else `/s/{x}` would take `/s/a:undo` as the thing `a:undo`.
        shapes.sort_by(|a, b| {
            let by_segments = a.segments.cmp(&b.segments);
            by_segments.then_with(|| a.verb.is_none().cmp(&b.verb.is_none()))
        });
        Ok(Self { shapes })
    }

    /// Routes a request. `HEAD` goes where `GET` goes.
    pub(super) fn find(&self, verb: &Verb, path: &UrlPath) -> RouteMatch<'_> {
        let takes = |shape: &&PathRoutes| {
            shape
                .routes
                .first()
                .is_some_and(|rpc| rpc.template.takes(path))
        };
        let Some(shape) = self.shapes.iter().find(takes) else {
            return RouteMatch::Nothing;
        };
        let asked = if *verb == Verb::HEAD {
            &Verb::GET
        } else {
            verb
        };
        if let Some(rpc) = shape.routes.iter().find(|rpc| rpc.verb == *asked) {
            return RouteMatch::Rpc(rpc, rpc.template.values(path));
        }
        let mut verbs: Vec<_> = shape.routes.iter().map(|rpc| rpc.verb.as_str()).collect();
        if verbs.contains(&"GET") {
            verbs.push("HEAD");
        }
        verbs.sort_unstable();
        RouteMatch::Verbs(verbs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Routes {
        Routes::new(&contract::load().expect("a contract")).expect("routes")
    }

    /// `GetSkill skill_id=a`, `405 GET HEAD`, `404`.
    fn found(routes: &Routes, verb: &Verb, path: &str) -> String {
        match routes.find(verb, &UrlPath::parse(path).expect("a path")) {
            RouteMatch::Rpc(rpc, values) => {
                let values = values
                    .into_iter()
                    .map(|(name, value)| format!(" {name}={value}"));
                rpc.method.name.clone() + &values.collect::<String>()
            }
            RouteMatch::Verbs(verbs) => format!("405 {}", verbs.join(" ")),
            RouteMatch::Nothing => "404".to_owned(),
        }
    }

    #[test]
    fn a_path_leads_to_the_most_literal_template() {
        let routes = routes();
        let (get, post, delete, put) = (&Verb::GET, &Verb::POST, &Verb::DELETE, &Verb::PUT);
        for (verb, path, expected) in [
            (get, "/api/v1/skills", "ListSkills"),
            (get, "/api/v1/skills/a", "GetSkill skill_id=a"),
            (get, "/api/v1/skills/a/b/c", "GetSkill skill_id=a/b/c"),
            (get, "/api/v1/skills/a%2Fb%2Fc", "GetSkill skill_id=a/b/c"),
            (
                get,
                "/api/v1/skills/a/versions/3",
                "GetVersion skill_id=a version_number=3",
            ),
            (delete, "/api/v1/skills/a/versions/3", "405 GET HEAD"),
            (
                delete,
                "/api/v1/skills/a%2Fversions%2F3",
                "DeleteSkill skill_id=a/versions/3",
            ),
            (
                post,
                "/api/v1/skills/github/acme/refunds/versions/2/activate",
                "ActivateVersion skill_id=github/acme/refunds version_number=2",
            ),
            (get, "/api/v1/skills/a/diff", "DiffVersions skill_id=a"),
            (
                get,
                "/api/v1/skills/a/b/c/diff",
                "DiffVersions skill_id=a/b/c",
            ),
            (get, "/api/v1/skills/a/files", "ListFiles skill_id=a"),
            (
                get,
                "/api/v1/skills/a/files/x/y.md",
                "ReadFile skill_id=a path=x/y.md",
            ),
            (
                get,
                "/api/v1/skills/a/b/c/files/x/y.md",
                "ReadFile skill_id=a/b/c path=x/y.md",
            ),
            (post, "/api/v1/skills:activate", "ActivateSkill"),
            (post, "/api/v1/skills:validate", "ValidateSkill"),
            (put, "/api/v1/skills/a", "PublishSkill skill_id=a"),
            (get, "/api/v1/events", "Watch"),
            (&Verb::HEAD, "/api/v1/skills", "ListSkills"),
            (delete, "/api/v1/skills", "405 GET HEAD POST"),
            (get, "/api/v1/skills:activate", "405 POST"),
            (&Verb::PATCH, "/api/v1/skills/a", "405 DELETE GET HEAD PUT"),
            (get, "/api/v1/skills/", "404"),
            (get, "/api/v1/skills/a/b", "404"),
            (get, "/api/v2/skills", "404"),
        ] {
            assert_eq!(found(&routes, verb, path), expected, "{verb} {path}");
        }
    }

    #[test]
    fn no_route_of_the_contract_hides_another() {
        for shape in routes().shapes {
            let mut verbs: Vec<_> = shape.routes.iter().map(|rpc| rpc.verb.as_str()).collect();
            verbs.sort_unstable();
            let all = verbs.len();
            verbs.dedup();
            assert_eq!(verbs.len(), all, "two rpcs at {:?}", shape.segments);
        }
    }
}
