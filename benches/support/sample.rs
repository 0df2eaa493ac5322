//! The skill that calls ask for: `GetSkill` answers with 4 KB.

use std::net::SocketAddr;

use bytes::Bytes;
use contract::v1;
use prost::Message as _;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::transport::Channel;
use tower::BoxError;

/// Bytes of the answer.
const ANSWER: usize = 4096;
/// Id of the skill.
pub const ID: &str = "bench/load/four-kilobytes";

/// A channel to a server.
pub async fn channel(address: SocketAddr) -> Channel {
    let channel = Channel::from_shared(format!("http://{address}")).expect("an address");
    channel.connect().await.expect("a connection")
}

/// Publishes the skill; the answer has the size within a few bytes.
pub async fn publish<T>(transport: T)
where
    T: GrpcService<Body> + Clone,
    T::Error: Into<BoxError>,
    T::ResponseBody: http_body::Body<Data = Bytes, Error: Into<BoxError> + Send> + Send + 'static,
{
    let mut registry = v1::registry_client::RegistryClient::new(transport.clone());
    let mut lookup = v1::lookup_client::LookupClient::new(transport);
    // The body is shown as an excerpt of up to 2,000 characters, the description
    // once more in the definition.
    let mut body = 1_500;
    loop {
        let words = "Count the rows before and after, and say which of them changed. ".repeat(40);
        let skill_md = format!(
            "---\nname: four-kilobytes\ndescription: {}\ncategory: database\ntags: [sql, review, data]\n\
             technologies: [postgres, sqlite]\nallowed_tools: [read_file, run_query, explain_plan]\n\
             forbidden_tools: [drop_table]\nexecution_protocol:\n  - read the schema\n  - write the query\n  \
             - run it on a sample\npreconditions: [there is a database]\npostconditions: [the query is tested]\n\
             ---\n{}\n",
            words[..600].trim(),
            &words[..body],
        );
        let file = v1::File {
            path: "SKILL.md".to_owned(),
            content: skill_md.into(),
        };
        let skill = v1::PublishSkillRequest {
            skill_id: ID.to_owned(),
            files: vec![file],
            ..Default::default()
        };
        registry
            .publish_skill(skill)
            .await
            .expect("a published skill");
        let request = v1::GetSkillRequest {
            skill_id: ID.to_owned(),
            ..Default::default()
        };
        let answer = lookup
            .get_skill(request)
            .await
            .expect("the skill")
            .into_inner();
        assert_eq!(
            answer.skill.as_ref().map(|skill| skill.id.as_str()),
            Some(ID)
        );
        let size = answer.encoded_len();
        if size.abs_diff(ANSWER) <= 16 {
            return;
        }
        body = body + ANSWER - size;
        if words.as_bytes()[body - 1] == b' ' {
            body += 1; // Cut off again by the excerpt.
        }
    }
}
