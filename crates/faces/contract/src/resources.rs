//! Resources of the server that requests name: paths, addresses, secrets, programs.
//!
//! The contract marks the fields that do (`(repertoire.v1.field).permitted_by`), and the build
//! fails for one that sounds like it and is not marked. Callers on the network may name what the
//! setting of the field permits ([`View::permits`](super::handlers::View::permits)) and nothing
//! else.

use super::Checked;
use model::{Code, Failure, shown};

/// Characters of a resource in a refusal.
const MAX_SHOWN_CHARS: usize = 200;

/// A resource of the server that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedResource<'a> {
    /// Path of the field, such as `source.credential.env`.
    pub field: String,
    /// The setting that says what callers on the network may name.
    pub setting: &'static str,
    /// The resource, as the caller names it.
    pub value: &'a str,
}

impl NamedResource<'_> {
    /// Builds the refusal, which is the same whether the resource exists or not.
    pub(super) fn refusal(&self) -> Failure {
        let (field, setting) = (&self.field, self.setting);
        let message = format!(
            "the setting `{setting}` does not permit callers on the network to name `{}`",
            shown(self.value, MAX_SHOWN_CHARS)
        );
        Failure::new(Code::ResourceNotPermitted, format!("{field}: {message}"))
            .field(field, message)
            .detail("setting", setting)
            .suggest("On the server's machine the command line may name it")
            .suggest(format!("Or ask the operator what `{setting}` permits"))
    }
}

/// Adds what a field names; an empty one names nothing.
pub(super) fn named<'a>(
    out: &mut Vec<NamedResource<'a>>,
    field: &str,
    setting: &'static str,
    value: &'a str,
) {
    if !value.is_empty() {
        out.push(NamedResource {
            field: field.to_owned(),
            setting,
            value,
        });
    }
}

/// Adds what a message inside a field names.
pub(super) fn nested<'a>(out: &mut Vec<NamedResource<'a>>, field: &str, message: &'a impl Checked) {
    let start = out.len();
    message.resources(out);
    for named in out.iter_mut().skip(start) {
        named.field = format!("{field}.{}", named.field);
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::net::{IpAddr, Ipv4Addr};
    use std::path::Path;
    use std::sync::Arc;

    use ::access::{Access, Actions, Caller, Origin, Rights};
    use model::Principal;
    use prost_reflect::DescriptorPool;
    use tonic::Request;

    use super::super::handlers::{View, permit_resources};
    use super::super::{resources_of_build, v1};
    use super::*;

    /// Builds a contract with a request of these fields, and returns whether it names resources.
    fn built(fields: &str, request: &str) -> Result<bool, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "syntax = \"proto3\"; package repertoire.v1; import \"repertoire/v1/options.proto\";
             message Inner {{ string path = 1; }}
             message Marked {{ string path = 1 [(repertoire.v1.field).names_no_resource = true]; }}
             message PlantedRequest {{ {fields} }}
             service Planted {{ rpc Plant({request}) returns (Inner); }}"
        );
        std::fs::write(folder.path().join("planted.proto"), text).expect("a file");
        let mut compiler = protox::Compiler::new([folder.path(), Path::new("../../../proto")])
            .expect("the folders of the contract");
        let compiler = compiler.include_imports(true);
        let compiler = compiler.open_files(["planted.proto"]).expect("a contract");
        let set = compiler.encode_file_descriptor_set();
        let pool = DescriptorPool::decode(set.as_slice()).expect("descriptors");
        let request = pool.get_message_by_name("repertoire.v1.PlantedRequest");
        let request = request.expect("the request");
        let read = resources_of_build::Resources::read(&pool);
        let code = read.and_then(|resources| resources.of(&request));
        code.map(|code| code.is_some())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_field_of_a_request_that_sounds_like_a_resource_fails_the_build_unless_it_is_marked() {
        let refused = [
            (
                "string webhook_url = 1;",
                "PlantedRequest.webhook_url: it sounds",
            ),
            (
                "repeated string hosts = 1;",
                "PlantedRequest.hosts: it sounds",
            ),
            (
                "optional bytes credential = 1;",
                "PlantedRequest.credential: it sounds",
            ),
            (
                "string start_command = 1;",
                "PlantedRequest.start_command: it sounds",
            ),
            (
                "map<string, string> environment = 1;",
                "PlantedRequest.environment: it sounds",
            ),
            ("Inner deep = 1;", "Inner.path: it sounds"),
            ("oneof of { Inner deep = 1; }", "Inner.path: it sounds"),
            (
                "string path = 1 [(repertoire.v1.field) = {permitted_by: \"a.b\" names_no_resource: true}];",
                "PlantedRequest.path: it cannot both",
            ),
            (
                "oneof of { string path = 1 [(repertoire.v1.field).permitted_by = \"a.b\"]; }",
                "PlantedRequest.path: `permitted_by` is known for plain",
            ),
            (
                "bytes path = 1 [(repertoire.v1.field).permitted_by = \"a.b\"];",
                "PlantedRequest.path: `permitted_by` is known for plain",
            ),
        ];
        for (fields, why) in refused {
            let error = built(fields, "PlantedRequest").expect_err(fields);
            assert!(error.contains(why), "{fields}: {error}");
            let error = built(fields, "stream PlantedRequest").expect_err(fields);
            assert!(error.contains("repertoire.v1."), "{fields}: {error}");
        }
        for fields in [
            "string name = 1; string path_id = 2; repeated string skill_ids = 3;",
            "uint32 port = 1; bool file = 2;",
            "string path = 1 [(repertoire.v1.field).names_no_resource = true];",
            "repeated Marked files = 1; Marked folder = 2;",
        ] {
            assert_eq!(built(fields, "PlantedRequest"), Ok(false), "{fields}");
        }
        let marked = "repeated string paths = 1 [(repertoire.v1.field).permitted_by = \"a.b\"];";
        assert_eq!(built(marked, "PlantedRequest"), Ok(true));
        // No check sees the messages of a stream before its handler does.
        assert!(built(marked, "stream PlantedRequest").is_err());
    }

    fn request() -> v1::AddSourceRequest {
        v1::AddSourceRequest {
            source: Some(v1::Source {
                location: "https://git.example.com".to_owned(),
                path: "skills".to_owned(),
                credential: Some(v1::SecretReference {
                    env: "TOKEN".to_owned(),
                    file: String::new(),
                }),
                webhook_secret: Some(v1::SecretReference {
                    env: String::new(),
                    file: "/run/hook".to_owned(),
                }),
                ..Default::default()
            }),
        }
    }

    #[test]
    fn a_request_says_what_it_names_by_field_and_setting() {
        let request = request();
        let mut found = Vec::new();
        request.resources(&mut found);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.field.as_str(), it.setting, it.value))
            .collect();
        assert_eq!(
            found,
            [
                (
                    "source.location",
                    "sync.allow_networks",
                    "https://git.example.com"
                ),
                ("source.credential.env", "sync.secrets", "TOKEN"),
                ("source.webhook_secret.file", "sync.secrets", "/run/hook"),
            ]
        );
    }

    /// A service whose settings permit what begins with `https:`, or nothing.
    #[derive(Clone)]
    struct Service(bool);

    impl View for Service {
        async fn view<'a>(&'a self, _: &http::Extensions) -> Cow<'a, Self> {
            Cow::Borrowed(self)
        }

        fn permits(&self, named: &NamedResource<'_>, all: &[NamedResource<'_>]) -> bool {
            self.0 && all.iter().any(|it| it == named) && named.value.starts_with("https:")
        }
    }

    #[test]
    fn whoever_is_not_known_to_be_local_names_what_a_setting_permits_and_nothing_else() {
        let network = |face| Origin {
            face,
            address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            forwarded: None,
        };
        let caller = |principal| Access {
            caller: Arc::new(Caller::new(principal, Rights::to_all(Actions::all()))),
            signs_in: true,
            limit: None,
            origin: network("grpc"),
        };
        let asked = |access: Option<Access>, service: Service| {
            let mut request = Request::new(request());
            if let Some(access) = access {
                request.extensions_mut().insert(access);
            }
            permit_resources(&service, &request).map_err(|refused| refused.message)
        };
        let local = Access::local();
        let socket = Access::local().from(Origin::local("socket"));
        for access in [local, socket] {
            assert_eq!(asked(Some(access), Service(false)), Ok(()));
        }
        let refused = "source.credential.env: the setting `sync.secrets` does not permit callers on the network to name `TOKEN`";
        for access in [
            None,
            Some(caller(Principal::anonymous())),
            Some(caller(Principal::token("operator"))),
            Some(caller(Principal::token("operator")).from(Origin::PROCESS)),
            Some(Access::local().from(network("http"))),
        ] {
            let found = asked(access.clone(), Service(true));
            assert_eq!(found, Err(refused.to_owned()), "{access:?}");
            assert!(asked(access, Service(false)).is_err());
        }
    }
}
