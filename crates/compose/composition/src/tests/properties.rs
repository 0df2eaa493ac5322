use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::patterns::{PATTERNS, calls, parsed};
use super::*;

fn tools() -> impl Strategy<Value = Vec<&'static str>> {
    let plain = select(&["a", "b", "c", "d"][..]);
    vec(prop_oneof![plain, select(PATTERNS)], 0..5)
}

/// One to five skills of a small world, in any order.
fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let steps = || vec(select(&["s1", "s2", "s3", "s4"][..]), 0..4);
    let kind = prop::option::of(select(&["report", "patch"][..]));
    let draft = (tools(), tools(), steps(), steps(), kind);
    vec(draft, 1..6).prop_map(|all| {
        let draft = |(at, (allowed, forbidden, steps, conditions, kind)): (usize, _)| {
            let steps: Vec<&str> = steps;
            let conditions: Vec<&str> = conditions;
            let kind: Option<&str> = kind;
            let allowed: Vec<&str> = allowed;
            let forbidden: Vec<&str> = forbidden;
            let mut draft = Draft::new(&format!("s{at}"))
                .allows(&allowed)
                .forbids_tools(&forbidden);
            if let Some(kind) = kind {
                draft = draft.gives(kind);
            }
            let owned = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
            draft.skill.execution_protocol = owned(&steps);
            draft.skill.preconditions = owned(&conditions);
            draft
        };
        all.into_iter().enumerate().map(draft).collect()
    })
}

fn policy() -> impl Strategy<Value = ToolPolicy> {
    select(&[ToolPolicy::Union, ToolPolicy::Intersection][..])
}

fn set(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(ToString::to_string).collect()
}

/// All that must not depend on the order, with ids for places.
fn essence(composed: &Composed) -> impl PartialEq + std::fmt::Debug {
    let id = |at: usize| composed.members[at].id.to_string();
    let said = |all: &[Attributed]| -> BTreeSet<(String, Vec<String>)> {
        all.iter()
            .map(|said| {
                (
                    said.text.to_string(),
                    said.members.iter().copied().map(id).collect(),
                )
            })
            .collect()
    };
    let statements = |all: &[Statement]| -> Vec<(String, String)> {
        all.iter()
            .map(|s| (id(s.member), s.pattern.to_string()))
            .collect()
    };
    let tools: Vec<_> = composed
        .tools()
        .map(|proof| {
            (
                proof.tool.to_string(),
                proof.rule,
                statements(&proof.grants),
                statements(&proof.denials),
                statements(&proof.exceptions),
            )
        })
        .collect();
    let outputs: BTreeSet<(String, Vec<String>)> = composed
        .output_contracts
        .iter()
        .map(|promised| {
            (
                promised.kind.clone(),
                promised.members.iter().copied().map(id).collect(),
            )
        })
        .collect();
    (
        (set(&allowed(composed)), set(&forbidden(composed))),
        (
            said(&composed.execution_protocol),
            said(&composed.preconditions),
        ),
        (tools, outputs, lines(&composed.findings)),
    )
}

fn said(all: &[Attributed]) -> Vec<&str> {
    all.iter().map(|said| &*said.text).collect()
}

/// What a composition says, as a skill.
fn as_skill(composed: &Composed) -> Draft {
    let texts = |all: &[Attributed]| all.iter().map(|said| said.text.to_string()).collect();
    let mut draft = Draft::new("composed")
        .allows(&allowed(composed))
        .forbids_tools(&forbidden(composed));
    draft.skill.execution_protocol = texts(&composed.execution_protocol);
    draft.skill.preconditions = texts(&composed.preconditions);
    draft
}

fn permitted(composed: &Composed) -> Vec<bool> {
    calls()
        .into_iter()
        .map(|(tool, arguments)| {
            let Value::Object(arguments) = arguments else {
                unreachable!()
            };
            composed.check(&Call::new(tool, &arguments)).rule.allows()
        })
        .collect()
}

proptest! {
    #[test]
    fn every_order_gives_the_same_sets_proof_and_answers(
        (drafts, shuffled) in drafts().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        policy in policy(),
    ) {
        let one = compose(&members(&drafts), policy);
        let two = compose(&members(&shuffled), policy);
        prop_assert_eq!(essence(&one), essence(&two));
        prop_assert_eq!(permitted(&one), permitted(&two));
    }

    #[test]
    fn composing_a_composition_changes_nothing(drafts in drafts(), policy in policy()) {
        let once = compose(&members(&drafts), policy);
        let twice = compose(&members(&[as_skill(&once)]), policy);
        prop_assert_eq!(allowed(&once), allowed(&twice));
        prop_assert_eq!(forbidden(&once), forbidden(&twice));
        prop_assert_eq!(said(&once.execution_protocol), said(&twice.execution_protocol));
        prop_assert_eq!(said(&once.preconditions), said(&twice.preconditions));
        prop_assert_eq!(permitted(&once), permitted(&twice));
    }

    #[test]
    fn a_skill_more_never_adds_to_an_intersection(drafts in drafts()) {
        let all = members(&drafts);
        let (_, fewer) = all.split_last().expect("a skill");
        prop_assume!(!fewer.is_empty());
        let (small, large) = (compose(fewer, ToolPolicy::Intersection), compose(&all, ToolPolicy::Intersection));
        let known: Vec<_> = small.allowed_tools().map(parsed).collect();
        for tool in large.allowed_tools() {
            let pattern = parsed(tool);
            let mut patterns = known.iter();
            prop_assert!(patterns.any(|known| known.covers(&pattern)), "{tool} of {known:?}");
        }
        for (before, after) in permitted(&small).into_iter().zip(permitted(&large)) {
            prop_assert!(before || !after);
        }
    }

    #[test]
    fn what_is_forbidden_is_never_allowed(drafts in drafts(), policy in policy()) {
        let composed = compose(&members(&drafts), policy);
        let forbidden: Vec<_> = composed.forbidden_tools().map(parsed).collect();
        let forbidden = || forbidden.iter();
        for tool in composed.allowed_tools() {
            let pattern = parsed(tool);
            prop_assert!(!forbidden().any(|forbid| forbid.covers(&pattern)), "{tool}");
        }
        for (tool, arguments) in calls() {
            let Value::Object(arguments) = arguments else { unreachable!() };
            let call = Call::new(tool, &arguments);
            if forbidden().any(|forbid| forbid.touches(&call) != Ok(false)) {
                prop_assert!(!composed.check(&call).rule.allows(), "{call:?}");
            }
        }
    }

    #[test]
    fn what_is_allowed_has_a_grant_and_no_denial(drafts in drafts(), policy in policy()) {
        let composed = compose(&members(&drafts), policy);
        for tool in composed.allowed_tools() {
            let proof = composed.tools().find(|proof| &*proof.tool == tool).expect("a proof");
            prop_assert!(proof.rule.allows() && !proof.grants.is_empty() && proof.denials.is_empty());
            if policy == ToolPolicy::Intersection {
                prop_assert_eq!(proof.grants.len(), drafts.len());
            }
            for grant in &proof.grants {
                let said = &drafts[grant.member].skill.allowed_tools;
                prop_assert!(said.iter().any(|text| text.trim() == &*grant.pattern));
            }
        }
        for proof in composed.tools().filter(|proof| !proof.rule.allows()) {
            prop_assert!(!allowed(&composed).contains(&&*proof.tool));
        }
        prop_assert_eq!(
            composed.allowed_tools().count(),
            composed.tools().filter(|proof| proof.rule.allows()).count()
        );
    }

    #[test]
    fn a_lock_reproduces_the_composition_and_covers_all_of_it(drafts in drafts(), policy in policy()) {
        let all = members(&drafts);
        let lock = Lock::of(&all, policy);
        prop_assert_eq!(lock.computed().to_string(), lock.digest.clone());
        let again: Vec<Member> = lock.in_order().iter().map(|entry| {
            let same = |member: &&Member| member.id.as_str() == entry.skill_id
                && member.version.digest.to_string() == entry.digest;
            all.iter().find(same).expect("a member").clone()
        }).collect();
        prop_assert_eq!(Lock::of(&again, lock.policy), lock.clone());
        let (before, after) = (compose(&all, policy), compose(&again, lock.policy));
        prop_assert_eq!(allowed(&before), allowed(&after));
        prop_assert!(before.tools().eq(after.tools()));
        prop_assert_eq!(said(&before.execution_protocol), said(&after.execution_protocol));
        let ids = |lock: &Lock| lock.entries.iter().map(|e| e.skill_id.clone()).collect::<Vec<_>>();
        let mut sorted = ids(&lock);
        sorted.sort();
        prop_assert_eq!(ids(&lock), sorted);
        let mut changed = lock.clone();
        changed.entries[0].digest.push('0');
        prop_assert_ne!(changed.computed().to_string(), changed.digest);
    }
}
