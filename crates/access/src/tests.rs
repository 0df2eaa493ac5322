//! Rights, and what is decided by them.

use std::sync::Arc;

use proptest::prelude::*;

use crate::{Access, Action, Actions, Authorize as _, Caller, Origin, Rights, Role};
use model::{Principal, SkillId};

proptest! {
    #[test]
    fn a_set_of_actions_has_what_was_put_into_it(chosen in prop::collection::vec(0..Action::ALL.len(), 0..8)) {
        let chosen: Vec<Action> = chosen.into_iter().map(|at| Action::ALL[at]).collect();
        let set: Actions = chosen.iter().copied().collect();
        for action in Action::ALL {
            prop_assert_eq!(set.has(*action), chosen.contains(action));
            prop_assert!(!set.without(&[*action]).has(*action));
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
            "`guest` is no role; write reader, agent, publisher, reviewer, operator, administrator"
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
        Err("PERMISSION_DENIED: token:ci may not look after the server".to_owned())
    );
    let nobody = access(Principal::anonymous(), Rights::default(), true);
    assert_eq!(
        said(&nobody, Action::Read),
        Err("SIGN_IN_REQUIRED: Who wants to see skills has to sign in".to_owned())
    );
    let without_sign_in = access(Principal::anonymous(), Rights::default(), false);
    assert_eq!(
        said(&without_sign_in, Action::Operate),
        Err(
            "OPERATOR_ONLY: Only a caller on the server's machine may look after the server"
                .to_owned()
        )
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
