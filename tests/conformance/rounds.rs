//! Tools and a prompt that need the client's input, the way of 2026-07-28: they
//! answer with questions, and the client calls again with the answers (SEP-2322).

use std::collections::BTreeMap;

use rmcp::model::{
    ClientCapabilities, ErrorData, InputRequests, InputRequiredResult, InputResponses,
    RequestStateCodec, SealOptions,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answers::text;
use crate::catalog::read;

/// What the client said so far, by question.
pub(crate) type Answers = BTreeMap<String, Value>;

/// Where such a call stands.
pub(crate) enum Step {
    /// Questions are open.
    Ask(InputRequiredResult),
    /// All is known.
    Done(Answers),
}

/// The questions of one tool or prompt.
pub(crate) struct Talk {
    name: &'static str,
    rounds: &'static [&'static [Question]],
    /// Carries a sealed state from call to call.
    sealed: bool,
    /// Leaves out what the client cannot answer, where others refuse.
    modest: bool,
}

enum Question {
    /// The user fills in one field: key, message, field, its JSON type.
    Elicit(&'static str, &'static str, &'static str, &'static str),
    /// The client's model says something: key, prompt.
    Sample(&'static str, &'static str),
    /// The client names its roots: key.
    Roots(&'static str),
}

use Question::{Elicit, Roots, Sample};

const NAME: Question = Elicit("user_name", "What is your name?", "name", "string");
const CONFIRM: Question = Elicit("confirm", "Please confirm", "ok", "boolean");
const CAPITAL: Question = Sample("capital_question", "What is the capital of France?");

const TALKS: &[Talk] = &[
    Talk::new("test_input_required_result_elicitation", &[&[NAME]]),
    Talk::new(
        "test_input_required_result_list_roots",
        &[&[Roots("client_roots")]],
    ),
    Talk::new("test_input_required_result_sampling", &[&[CAPITAL]]),
    Talk::new("test_streaming_elicitation", &[&[NAME]]),
    Talk::new(
        "test_input_required_result_prompt",
        &[&[Elicit(
            "user_context",
            "What context should the prompt use?",
            "context",
            "string",
        )]],
    ),
    Talk::new("test_input_required_result_request_state", &[&[CONFIRM]]).sealed(),
    Talk::new("test_input_required_result_tampered_state", &[&[CONFIRM]]).sealed(),
    Talk::new(
        "test_input_required_result_multiple_inputs",
        &[&[
            NAME,
            Sample("greeting", "Generate a greeting"),
            Roots("client_roots"),
        ]],
    )
    .sealed(),
    Talk::new(
        "test_input_required_result_multi_round",
        &[
            &[Elicit(
                "step1",
                "Step 1: What is your name?",
                "name",
                "string",
            )],
            &[Elicit(
                "step2",
                "Step 2: What is your favorite color?",
                "color",
                "string",
            )],
        ],
    )
    .sealed(),
    Talk::new(
        "test_input_required_result_capabilities",
        &[&[NAME, CAPITAL]],
    )
    .modest(),
];

/// What a sealed state says.
#[derive(Default, Serialize, Deserialize)]
struct State {
    round: usize,
    answers: Answers,
}

pub(crate) fn find(name: &str) -> Option<&'static Talk> {
    TALKS.iter().find(|talk| talk.name == name)
}

impl Talk {
    const fn new(name: &'static str, rounds: &'static [&'static [Question]]) -> Self {
        Self {
            name,
            rounds,
            sealed: false,
            modest: false,
        }
    }

    const fn sealed(self) -> Self {
        Self {
            sealed: true,
            ..self
        }
    }

    const fn modest(self) -> Self {
        Self {
            modest: true,
            ..self
        }
    }

    /// Takes the answers of this call in, and says what is next.
    pub(crate) fn step(
        &self,
        codec: &RequestStateCodec,
        state: Option<&str>,
        responses: Option<InputResponses>,
        client: &ClientCapabilities,
    ) -> Result<Step, ErrorData> {
        let mut state = self.open(codec, state)?;
        let responses = responses.unwrap_or_default();
        while let Some(questions) = self.rounds.get(state.round) {
            let mut open = InputRequests::new();
            for question in *questions {
                if state.answers.contains_key(question.key()) {
                    continue;
                }
                match responses
                    .get(question.key())
                    .filter(|answer| question.is_answered_by(answer))
                {
                    Some(answer) => {
                        state
                            .answers
                            .insert(question.key().to_owned(), answer.clone());
                    }
                    None if question.suits(client) => {
                        open.insert(question.key().to_owned(), read(question.request()));
                    }
                    None if self.modest => {}
                    None => {
                        return Err(ErrorData::missing_required_client_capability(
                            question.needs(),
                        ));
                    }
                }
            }
            if !open.is_empty() {
                let sealed = self.sealed.then(|| self.seal(codec, &state));
                return Ok(Step::Ask(InputRequiredResult::new(Some(open), sealed)));
            }
            state.round += 1;
        }
        Ok(Step::Done(state.answers))
    }

    /// The text at the end of it.
    pub(crate) fn conclusion(&self, answers: &Answers) -> String {
        let said = json!(answers);
        match self.name {
            "test_input_required_result_elicitation" => {
                let name = said
                    .pointer("/user_name/content/name")
                    .and_then(Value::as_str)
                    .unwrap_or("you");
                format!("Hello, {name}!")
            }
            "test_input_required_result_request_state" => "state-ok".to_owned(),
            _ => format!("The answers: {said}"),
        }
    }

    fn open(&self, codec: &RequestStateCodec, state: Option<&str>) -> Result<State, ErrorData> {
        match state {
            Some(state) if self.sealed => codec
                .open_json_with(state, self.name.as_bytes())
                .map_err(|error| ErrorData::invalid_params(format!("requestState: {error}"), None)),
            _ => Ok(State::default()),
        }
    }

    fn seal(&self, codec: &RequestStateCodec, state: &State) -> String {
        let options = SealOptions::new().associated_data(self.name.as_bytes());
        codec
            .seal_json_with(state, &options)
            .expect("a state is JSON")
    }
}

impl Question {
    fn key(&self) -> &'static str {
        match self {
            Elicit(key, ..) | Sample(key, _) | Roots(key) => key,
        }
    }

    fn request(&self) -> Value {
        match self {
            Elicit(_, message, field, kind) => {
                let schema = json!({ "type": "object", "properties": { *field: { "type": kind } }, "required": [field] });
                let params =
                    json!({ "mode": "form", "message": message, "requestedSchema": schema });
                json!({ "method": "elicitation/create", "params": params })
            }
            Sample(_, prompt) => {
                let messages = json!([{ "role": "user", "content": text(prompt) }]);
                json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": 100 } })
            }
            Roots(_) => json!({ "method": "roots/list", "params": {} }),
        }
    }

    fn is_answered_by(&self, answer: &Value) -> bool {
        match self {
            Elicit(_, _, field, kind) => {
                answer.get("action") == Some(&json!("accept"))
                    && answer
                        .get("content")
                        .and_then(|content| content.get(field))
                        .is_some_and(|value| match *kind {
                            "boolean" => value.is_boolean(),
                            _ => value.is_string(),
                        })
            }
            Sample(..) => answer.get("content").is_some_and(Value::is_object),
            Roots(_) => answer.get("roots").is_some_and(Value::is_array),
        }
    }

    fn suits(&self, client: &ClientCapabilities) -> bool {
        match self {
            Elicit(..) => client.elicitation.is_some(),
            Sample(..) => client.sampling.is_some(),
            Roots(_) => client.roots.is_some(),
        }
    }

    fn needs(&self) -> ClientCapabilities {
        read(match self {
            Elicit(..) => json!({ "elicitation": {} }),
            Sample(..) => json!({ "sampling": {} }),
            Roots(_) => json!({ "roots": {} }),
        })
    }
}
