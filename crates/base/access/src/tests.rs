//! Rights, and what is decided by them.

use std::sync::Arc;

use proptest::prelude::*;

use crate::{
    Access, Action, Actions, Authorize as _, Caller, EVERY_SKILL, Limit, Origin, Rights, Role,
    Scope,
};
use model::{Failure, Principal, SkillId, SkillPattern};

proptest! {
    #[test]
    fn a_set_of_actions_has_what_was_put_into_it(chosen in prop::collection::vec(0..Action::ALL.len(), 0..8)) {
        let chosen: Vec<Action> = chosen.into_iter().map(|at| Action::ALL[at]).collect();
        let set: Actions = chosen.iter().copied().collect();
        for action in Action::ALL {
            prop_assert_eq!(set.has(*action), chosen.contains(action));
        }
    }
}

#[test]
fn rights_bind_what_is_done_to_a_skill_to_the_skills_they_name() {
    let rights = publisher();
    let mine: SkillId = "GitHub/acme/refunds".parse().expect("an id");
    let other: SkillId = "github/other/refunds".parse().expect("an id");
    let allowed = |action| {
        (
            rights.allow(action),
            rights.allow_to(action, &mine),
            rights.allow_to(action, &other),
        )
    };
    assert_eq!(allowed(Action::Publish), (true, true, false));
    assert_eq!(allowed(Action::Read), (true, true, true));
    assert_eq!(allowed(Action::Review), (false, false, false));
    let all = Rights::to_all(Actions::all());
    assert!(
        Action::ALL
            .iter()
            .all(|action| all.allow_to(*action, &other))
    );
}

#[test]
fn a_role_may_do_what_the_contract_calls_actions() {
    for role in Role::ALL {
        assert_eq!(role.name().parse(), Ok(*role));
        assert!(!role.actions().is_empty(), "{role:?}");
    }
    assert_eq!(Role::Administrator.actions(), Actions::all());
    assert!(!Role::Operator.actions().has(Action::Administer));
    assert_eq!(
        "guest".parse::<Role>(),
        Err(
            "`guest` is not a role; use reader, agent, publisher, reviewer, operator, administrator"
                .to_owned()
        )
    );
}

fn publisher() -> Rights {
    Rights {
        actions: Role::Publisher.actions(),
        skills: vec!["github/acme/*".parse().expect("a pattern")],
        ..Rights::default()
    }
}

fn access(principal: Principal, rights: Rights, signs_in: bool) -> Access {
    Access {
        caller: Arc::new(Caller::new(principal, rights)),
        signs_in,
        limit: None,
        origin: Origin::PROCESS,
    }
}

#[test]
fn a_refusal_says_what_was_asked_for_and_what_to_do() {
    let said = |access: &Access, action| {
        access
            .require(action)
            .map_err(|refused| refused.to_string())
    };
    let token = access(Principal::token("ci"), publisher(), true);
    assert_eq!(said(&token, Action::Publish), Ok(()));
    assert_eq!(
        said(&token, Action::Operate),
        Err("PERMISSION_DENIED: token:ci may not operate the server".to_owned())
    );
    let nobody = access(Principal::anonymous(), Rights::default(), true);
    assert_eq!(
        said(&nobody, Action::Read),
        Err("SIGN_IN_REQUIRED: Sign in to see skills".to_owned())
    );
    let without_sign_in = access(Principal::anonymous(), Rights::default(), false);
    assert_eq!(
        said(&without_sign_in, Action::Operate),
        Err("OPERATOR_ONLY: Only the operator may operate the server".to_owned())
    );
}

#[test]
fn who_is_bound_to_some_skills_names_them_by_their_ids() {
    let token = access(Principal::token("ci"), publisher(), true);
    let allowed = |skill: &str| {
        token
            .allow(Action::Publish, skill)
            .map_err(|refused| refused.to_string())
    };
    assert_eq!(allowed("GitHub/Acme/refunds"), Ok(()));
    assert_eq!(
        allowed("github/other/refunds"),
        Err("PERMISSION_DENIED: token:ci may publish skills for github/acme/* alone, not for github/other/refunds".to_owned())
    );
    for unnamed in ["refunds", "", "skill://github/acme/refunds"] {
        assert_eq!(
            allowed(unnamed),
            Err("PERMISSION_DENIED: token:ci may publish skills for github/acme/* alone, so the skill has to be named by its id".to_owned()),
            "{unnamed}"
        );
    }
    assert_eq!(
        allowed(EVERY_SKILL),
        Err("PERMISSION_DENIED: token:ci may publish skills for github/acme/* alone, not for all skills".to_owned())
    );
    assert!(token.authorizer(Action::Publish).is_some());
    assert!(token.authorizer(Action::Read).is_none());
    let all = access(
        Principal::token("all"),
        Rights::to_all(Actions::all()),
        true,
    );
    assert!(all.authorizer(Action::Publish).is_none());
    assert_eq!(
        all.allow(Action::Delete, "refunds")
            .map_err(|refused| refused.to_string()),
        Ok(())
    );
}

/// Facts that a refusal carries for programs, and what it suggests first.
fn facts(refused: Result<(), Failure>) -> (Vec<(String, String)>, String) {
    let refused = refused.expect_err("a refusal");
    let first = refused.suggestions.into_iter().next();
    (
        refused.details.into_iter().collect(),
        first.unwrap_or_default(),
    )
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[test]
fn a_caller_is_sent_for_a_scope_only_where_its_token_lacks_one_that_it_may_have() {
    let mut caller = Caller::new(
        Principal::oidc("corp", "ada"),
        Rights::to_all([Action::Read].into_iter().collect()),
    );
    caller.scope = Some(Scope {
        granted: vec!["read".to_owned(), "learn".to_owned()],
        withheld: [Action::Publish].into_iter().collect(),
    });
    let access = Access {
        caller: Arc::new(caller),
        signs_in: true,
        limit: None,
        origin: Origin::PROCESS,
    };
    let withheld = access.require(Action::Publish);
    assert_eq!(
        withheld.as_ref().map_err(ToString::to_string),
        Err("PERMISSION_DENIED: oidc:corp/ada may publish skills, but its token has no scope `publish`".to_owned())
    );
    assert_eq!(
        facts(withheld),
        (
            pairs(&[("action", "publish"), ("scope", "read learn publish")]),
            "Sign in again, and ask for the scope `publish`".to_owned()
        )
    );
    let without_the_right = access.require(Action::Operate);
    assert_eq!(
        without_the_right.as_ref().map_err(ToString::to_string),
        Err("PERMISSION_DENIED: oidc:corp/ada may not operate the server".to_owned())
    );
    assert_eq!(
        facts(without_the_right),
        (
            pairs(&[("action", "operate")]),
            "Ask the operator for a token that allows `operate`".to_owned()
        )
    );
}

#[test]
fn a_caller_is_told_what_it_signed_in_with_and_which_skill_it_may_not_touch() {
    let certificate = access(Principal::certificate("ci"), publisher(), true);
    assert_eq!(
        facts(certificate.require(Action::Operate)),
        (
            pairs(&[("action", "operate")]),
            "Ask the operator for a rule for the certificate that allows `operate`".to_owned()
        )
    );
    let token = access(Principal::token("ci"), publisher(), true);
    assert_eq!(
        facts(token.allow(Action::Publish, "github/other/refunds")),
        (
            pairs(&[("action", "publish"), ("skill_id", "github/other/refunds")]),
            "Ask the operator for a token that allows `publish` for this skill".to_owned()
        )
    );
}

#[test]
fn who_may_not_do_an_action_at_all_is_not_told_of_skills() {
    let token = access(Principal::token("ci"), publisher(), true);
    for skill in ["github/acme/refunds", "github/other/refunds", "refunds"] {
        let refused = token.allow(Action::Review, skill);
        assert_eq!(
            refused.map_err(|refused| refused.to_string()),
            Err(
                "PERMISSION_DENIED: token:ci may not review held versions and blocked skills"
                    .to_owned()
            ),
            "{skill}"
        );
    }
}

#[test]
fn who_opens_the_data_directory_may_do_everything_and_a_call_keeps_where_it_came_from() {
    let local = Access::local();
    assert_eq!(local.caller.rights, Rights::to_all(Actions::all()));
    assert_eq!((local.signs_in, local.origin), (false, Origin::PROCESS));
    let from = Origin {
        face: "grpc",
        address: Some([10, 0, 0, 1].into()),
        forwarded: None,
    };
    assert_eq!(local.from(from).origin, from);
}

#[test]
fn what_is_done_to_a_skill_may_be_allowed_for_some_skills_alone() {
    let by_skill = Action::ALL.iter().filter(|action| action.is_by_skill());
    let names: Vec<_> = by_skill.map(|action| action.name()).collect();
    assert_eq!(
        names,
        ["publish", "activate", "delete", "block", "review", "audit"]
    );
}

#[test]
fn each_role_has_its_actions_and_no_others() {
    let roles = Role::ALL.iter().map(|role| {
        let actions: Vec<_> = role.actions().iter().map(Action::name).collect();
        format!("{}: {}", role.name(), actions.join(" "))
    });
    assert_eq!(
        roles.collect::<Vec<_>>(),
        [
            "reader: read load",
            "agent: read load call learn",
            "publisher: read load call learn publish activate delete",
            "reviewer: read load learn grade block review audit",
            "operator: read load block sync review audit operate",
            "administrator: read load call learn grade publish activate delete block sync review audit serve operate administer",
        ]
    );
}

#[test]
fn an_action_is_read_by_its_whole_name() {
    for action in Action::ALL {
        assert_eq!(action.name().parse(), Ok(*action));
    }
    let all = "read, load, call, learn, grade, publish, activate, delete, block, sync, review, audit, serve, operate, administer";
    for wrong in ["", "re", "reads", "Read"] {
        let expected = format!("`{wrong}` is not an action; use {all}");
        assert_eq!(wrong.parse::<Action>(), Err(expected));
    }
}

#[test]
fn a_set_without_actions_is_empty() {
    let one: Actions = [Action::Read].into_iter().collect();
    assert_eq!(
        [Actions::default(), one].map(Actions::is_empty),
        [true, false]
    );
}

#[test]
fn a_name_of_actions_is_one_of_an_action_or_of_a_role() {
    let one = |action: Action| Ok(Actions::from_iter([action]));
    for action in Action::ALL {
        assert_eq!(Actions::named(action.name()), one(*action));
    }
    for role in Role::ALL {
        assert_eq!(Actions::named(role.name()), Ok(role.actions()));
    }
    for (name, expected) in [
        (
            "readers",
            "unknown action or role `readers`; did you mean the role `reader`?",
        ),
        (
            "Publish",
            "unknown action or role `Publish`; did you mean the action `publish`?",
        ),
        (
            "write",
            "unknown action or role `write`; actions are read, load, call, learn, grade, publish, activate, delete, block, sync, review, audit, serve, operate, administer; roles are reader, agent, publisher, reviewer, operator, administrator",
        ),
    ] {
        assert_eq!(Actions::named(name), Err(expected.to_owned()));
    }
}

#[test]
fn a_limited_caller_is_told_why_and_what_the_operator_can_do() {
    let all = Access::without_sign_in(Principal::anonymous(), Actions::all());
    let said = |limit: Limit, action| {
        let refused = all.clone().limited(limit).require(action);
        refused.map_err(|refused| refused.to_string())
    };
    assert_eq!(
        [Some(1001), None].map(|user| said(Limit::OtherUser(user), Action::Delete)),
        ["user 1001", "a user that the system does not give"].map(|user| Err(format!(
            "PERMISSION_DENIED: Without sign-in, only the user who runs the server (and root) may delete skills over loopback; this connection is of {user}"
        )))
    );
    let other_page = |action| said(Limit::OtherPage, action);
    assert_eq!(
        [Action::Read, Action::Load].map(other_page),
        [Ok(()), Ok(())]
    );
    assert_eq!(
        [Action::Delete, Action::Operate].map(other_page),
        [
            "ORIGIN_REFUSED: Pages of other origins may see and load skills here, but not delete skills",
            "OPERATOR_ONLY: Only the operator may operate the server",
        ].map(|text| Err(text.to_owned()))
    );
}

fn patterns(patterns: &[&str]) -> Vec<SkillPattern> {
    let parsed = patterns.iter().map(|pattern| pattern.parse());
    parsed.collect::<Result<_, _>>().expect("patterns")
}

#[test]
fn who_looks_after_all_of_the_server_or_changes_every_skill_sees_every_skill() {
    let alone = |action: &Action, skills: &[&str]| Rights {
        actions: [*action].into_iter().collect(),
        skills: patterns(skills),
        ..Rights::default()
    };
    let seeing = |skills: &[&str]| {
        let actions = Action::ALL.iter();
        let see_all = actions.filter(|action| alone(action, skills).see_all());
        see_all.map(|action| action.name()).collect::<Vec<_>>()
    };
    let of_server = ["sync", "operate", "administer"];
    assert_eq!(seeing(&["github/acme/*"]), of_server);
    let to_all = [
        "publish",
        "activate",
        "delete",
        "block",
        "sync",
        "review",
        "audit",
        "operate",
        "administer",
    ];
    assert_eq!(seeing(&[]), to_all);
}

#[test]
fn whoever_may_change_skills_sees_them_and_those_it_was_let_see() {
    let seen = |actions: Actions| {
        let rights = Rights {
            actions,
            skills: patterns(&["github/acme/*"]),
            sees: patterns(&["github/other/*"]),
        };
        rights.seen().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        seen(Role::Publisher.actions()),
        ["github/other/*", "github/acme/*"]
    );
    assert_eq!(seen(Role::Reader.actions()), ["github/other/*"]);
}

#[test]
fn rights_are_stored_whole() {
    let rights = Rights {
        sees: patterns(&["github/other/*"]),
        ..publisher()
    };
    let stored = serde_json::to_value(&rights).expect("JSON");
    assert_eq!(
        stored,
        serde_json::json!({
            "actions": ["read", "load", "call", "learn", "publish", "activate", "delete"],
            "skills": ["github/acme/*"],
            "sees": ["github/other/*"],
        })
    );
    assert_eq!(
        serde_json::from_value::<Rights>(stored).expect("rights"),
        rights
    );
}
