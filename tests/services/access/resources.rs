//! What callers on the network may name of the server's own machine: what its settings permit.

use std::path::Path;
use std::sync::{Arc, Mutex};

use contract::FILE_DESCRIPTOR_SET;
use gateway::{Context, Gateway, Method, Refusal};
use prost_reflect::{DescriptorPool, ExtensionDescriptor, Kind, MessageDescriptor};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::actions::{arguments, everybody, with_issuer};
use super::{code, local, role_token, transport};
use crate::support::Server;
use crate::support::issuer::Issuer;
use crate::support::web::ask;
use access::Role;

/// A web site without skills that remembers the requests it gets.
struct Site {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Site {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let remembered = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let text = String::from_utf8(head).expect("text");
                remembered.lock().expect("heads").push(text);
                let answer =
                    "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                stream.write_all(answer.as_bytes()).await.ok();
            }
        });
        Self { url, heads }
    }

    /// The credentials that it was sent.
    fn credentials(&self) -> Vec<String> {
        let heads = self.heads.lock().expect("heads");
        let lines = heads.iter().flat_map(|head| head.lines());
        let lines = lines.filter_map(|line| line.strip_prefix("authorization: "));
        let mut found: Vec<_> = lines.map(str::to_owned).collect();
        found.dedup();
        found
    }

    fn is_asked(&self) -> bool {
        !self.heads.lock().expect("heads").is_empty()
    }
}

/// Files with secrets, as a server has them.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(TempDir::new().expect("a folder"));
        for (name, text) in [
            ("listed", "l1sted\n"),
            ("other", "an0th3r\n"),
            ("several", "one\ntwo\n"),
        ] {
            std::fs::write(files.0.path().join(name), text).expect("a file");
        }
        files
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// A server that may send the listed secrets to an origin.
    fn server(&self, origin: &str) -> Server {
        let entry = |name| format!("{{file: {}, origin: '{origin}'}}", self.path(name));
        let entries = ["listed", "several", "missing"].map(entry).join(", ");
        Server::with(
            &[],
            &format!(
                "access: {{sign_in: tokens}}\nsync:\n  allow_networks: [127.0.0.0/8]\n  secrets: [{entries}]\n"
            ),
        )
    }
}

/// A source of the kind `well_known` with a credential.
fn source(id: &str, location: &str, credential: &Value) -> Value {
    let namespace = format!("team/{id}");
    json!({"source_id": id, "kind": "well_known", "location": location, "namespace": namespace, "credential": credential})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_on_the_network_has_no_secret_folder_or_program_of_the_server_used() {
    let (site, elsewhere, files) = (Site::start().await, Site::start().await, Files::new());
    let server = files.server(&site.url);
    let operator = role_token(&server, Role::Operator);
    let contract = contract::load().expect("the contract");
    let gateway = Gateway::new(contract, transport(&server, &operator).await);
    let methods = gateway.contract().methods().iter();
    let add = methods
        .clone()
        .find(|it| it.name == "AddSource")
        .expect("it")
        .clone();
    let at_site = |credential: Value| source("x", &site.url, &credential);
    let in_file = |name: &str| json!({"file": files.path(name)});
    let secrets = [
        at_site(json!({"env": "PATH"})),
        at_site(json!({"env": "NO_SUCH_VARIABLE"})),
        at_site(in_file("other")),
        at_site(in_file("several")),
        at_site(in_file("missing")),
        at_site(in_file("never-was")),
        at_site(json!({"env": "PATH", "file": files.path("listed")})),
        source("x", &elsewhere.url, &in_file("listed")),
        source(
            "x",
            &site.url.replace("127.0.0.1", "localhost"),
            &in_file("listed"),
        ),
        source(
            "x",
            &format!("{}@{}", site.url, &elsewhere.url[7..]),
            &in_file("listed"),
        ),
        json!({"source_id": "x", "kind": "github", "select": ["acme"], "credential": in_file("listed")}),
        json!({"source_id": "x", "kind": "git", "location": site.url, "webhook_secret": {"env": "PATH"}}),
    ];
    let folder = files.0.path().display().to_string();
    let places = [
        ("directory", folder.as_str()),
        ("directory", "/etc"),
        ("git", format!("file://{folder}").as_str()),
        ("git", format!(" file://{folder}").as_str()),
        ("git", "FILE:///etc"),
        ("git", folder.as_str()),
        ("git", "ssh://git@git.example.com/acme/skills"),
        ("git", "git@git.example.com:acme/skills"),
        ("git", "https:git@git.example.com:acme/skills"),
        ("git", "ext::sh -c id"),
    ]
    .map(|(kind, location)| json!({"source_id": "x", "kind": kind, "location": location}));
    let mut words = std::collections::BTreeSet::new();
    for (at, source) in secrets.iter().chain(&places).enumerate() {
        let body = json!({"source": source});
        let answer = ask(&server.url, "POST", "/api/v1/sources")
            .header("authorization", &format!("Bearer {operator}"))
            .json(&body)
            .send()
            .await;
        let found = (answer.status.as_u16(), code(&answer));
        assert_eq!(found, (403, "RESOURCE_NOT_PERMITTED".to_owned()), "{body}");
        let refused = call(&gateway, &add, &body).await;
        assert_eq!(refused.code, "RESOURCE_NOT_PERMITTED", "{body}");
        if at < secrets.len() {
            // The same words for a secret that is not there, cannot be used, or is not listed.
            let message = refused.message.split('`').step_by(2).collect::<String>();
            words.insert(
                message
                    .replace("webhook_secret", "credential")
                    .replace("file", "env"),
            );
        }
    }
    assert_eq!(words.len(), 1, "{words:?}");
    let listed = local(&server, &["source", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed["sources"].as_array().map_or(0, Vec::len), 0);
    assert!(!site.is_asked() && !elsewhere.is_asked());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listed_secret_goes_to_its_origin_and_the_local_caller_names_any() {
    let (site, files) = (Site::start().await, Files::new());
    let server = files.server(&site.url);
    let operator = role_token(&server, Role::Operator);
    let post = async |path: &str, body: Value| {
        let ask = ask(&server.url, "POST", path);
        let ask = ask.header("authorization", &format!("Bearer {operator}"));
        ask.json(&body).send().await
    };
    let listed = source("listed", &site.url, &json!({"file": files.path("listed")}));
    let added = post("/api/v1/sources", json!({"source": listed})).await;
    assert_eq!(added.status, 200, "{}", added.text());
    let synced = post("/api/v1/sync", json!({"sources": ["listed"]})).await;
    // It may be synced already, as it was due at once.
    let came = code(&synced);
    assert!(
        came == "SYNC_FAILED" || came == "SYNC_IN_PROGRESS",
        "{came}"
    );
    until(|| site.credentials() == ["Bearer l1sted"]).await;
    let (file, folder) = (files.path("other"), files.0.path().display().to_string());
    for args in [
        &["any", "well-known", &site.url, "--token-file", &file][..],
        &["folder", "directory", &folder],
    ] {
        let added = local(&server, &[&["source", "add"], args].concat());
        assert!(added.status.success(), "{added:?}");
    }
    until(|| site.credentials().contains(&"Bearer an0th3r".to_owned())).await;
    assert!(!server.log().contains("l1sted") && !server.log().contains("an0th3r"));
}

/// Waits until something holds, which syncs in the background make so.
async fn until(holds: impl Fn() -> bool) {
    let waits = async {
        while !holds() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), waits).await;
    waited.expect("it holds in a minute");
}

/// A field of a request that names a resource of the server.
struct NamedField {
    /// Such as `source.credential.env`.
    path: String,
    setting: String,
}

fn set(request: &mut Value, path: &str, value: &str) {
    let field = path.split('.').fold(request, |at, name| &mut at[name]);
    *field = json!(value);
}

/// The refusal of a call.
async fn call(gateway: &Gateway, method: &Method, request: &Value) -> Refusal {
    let request = request.as_object().expect("a request").clone();
    let request = match gateway.read(method, request) {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    let called = gateway.call(method, request, Context::default()).await;
    called.expect_err("refused")
}

fn fields(
    message: &MessageDescriptor,
    option: &ExtensionDescriptor,
    inside: &str,
    found: &mut Vec<NamedField>,
) {
    for field in message.fields() {
        let path = format!("{inside}{}", field.name());
        let options = field.options();
        let options = options.get_extension(option);
        let options = options.as_message().expect("options");
        let setting = options.get_field_by_name("permitted_by").expect("a field");
        let setting = setting.as_str().expect("text").to_owned();
        match field.kind() {
            _ if !setting.is_empty() => found.push(NamedField { path, setting }),
            Kind::Message(inner)
                if inner.package_name() == "repertoire.v1" && inner != *message =>
            {
                fields(&inner, option, &format!("{path}."), found);
            }
            _ => {}
        }
    }
}

/// What a caller who may make the call is answered where it names a resource that a setting does
/// not permit. A field with another setting needs an entry here.
fn refusal(setting: &str) -> &'static str {
    match setting {
        "sync.allow_networks" | "sync.secrets" => "RESOURCE_NOT_PERMITTED",
        "analysis.roots" | "install.roots" => "INVALID_PARAMETER",
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_remote_caller_names_a_resource_in_any_field_of_any_call() {
    let issuer = Issuer::start().await;
    let server = Server::with(&[], &with_issuer(&issuer));
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
    let option = pool.get_extension_by_name("repertoire.v1.field");
    let option = option.expect("the option of fields");
    let file = server.data.join("last").display().to_string();
    assert!(Path::new(&file).exists(), "a file of the server's");
    let mut settings = std::collections::BTreeSet::new();
    for who in everybody(&server, &issuer) {
        let contract = contract::load().expect("the contract");
        let gateway = Gateway::new(contract, transport(&server, &who.token).await);
        for method in gateway.contract().methods().to_vec() {
            let service = format!("repertoire.v1.{}", method.service);
            let service = pool.get_service_by_name(&service).expect("a service");
            let rpc = service.methods().find(|it| it.name() == method.name);
            let mut named = Vec::new();
            fields(&rpc.expect("an rpc").input(), &option, "", &mut named);
            // The build refuses a stream of requests with such a field.
            assert!(
                named.is_empty() || !method.client_streaming,
                "{}",
                method.name
            );
            for NamedField { path, setting } in named {
                let mut request = Value::Object(arguments(&gateway, &method));
                if request.get("skill_id").is_some() {
                    request["skill_id"] = json!("write_sql");
                }
                set(&mut request, &path, &file);
                let name = format!("{} {path} as {}", method.name, who.name);
                let mut refused = call(&gateway, &method, &request).await;
                if refused.code == "MISSING_PARAMETER" {
                    for (missing, _) in &refused.fields {
                        set(&mut request, missing, "x");
                    }
                    refused = call(&gateway, &method, &request).await;
                }
                let may = (who.outcome)(method.action.parse().ok());
                let expected = may.unwrap_or_else(|| refusal(&setting));
                assert_eq!(refused.code, expected, "{name}: {refused:?}");
                if may.is_none() {
                    let wrong: Vec<_> = refused.fields.iter().map(|(field, _)| field).collect();
                    assert_eq!(wrong, [&path], "{name}");
                }
                settings.insert(setting);
            }
        }
    }
    // Each is a setting that there is: the page with all of them has it.
    let page = include_str!("../../../docs/operations.md");
    for setting in settings {
        let (above, key) = setting.split_once('.').expect("a key below another");
        let of = page
            .split(&format!("\n{above}:"))
            .nth(1)
            .expect("its settings");
        assert!(of.contains(&format!("\n  {key}: ")), "{setting}");
    }
}
