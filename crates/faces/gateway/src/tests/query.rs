//! Messages inside a request and in the query of a URL.

use super::*;

fn gathered(query: &[(&str, &str)]) -> Result<Json, Vec<(String, String)>> {
    let contract = contract();
    let search = method(&contract, "Search");
    let get = search
        .routes
        .iter()
        .find(|route| route.body == RouteBody::None);
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let parts = Parts {
        query: query.iter().map(pair).collect(),
        ..Parts::default()
    };
    let gathered = contract.merge(&search, get.expect("a route"), parts);
    gathered.map(Json::Object).map_err(|refusal| refusal.fields)
}

#[test]
fn filters_and_order_of_a_search_stand_in_the_query_by_names_with_dots() {
    let found = gathered(&[
        ("query", "x"),
        ("filters.trust_tier", "official"),
        ("filters.trust_tier", "verified"),
        ("filters.has_tests", "true"),
        ("filters.updated_after", "2025-01-01"),
        ("filters.min_score", "0.5"),
        ("sort.field", "updated"),
        ("limit", "5"),
    ]);
    let request = found.expect("a request");
    assert_eq!(
        request,
        json!({
            "query": "x",
            "filters": {
                "trust_tier": ["official", "verified"], "has_tests": true,
                "updated_after": "2025-01-01", "min_score": 0.5,
            },
            "sort": {"field": "updated"},
            "limit": 5,
        })
    );
    assert_eq!(wrong("Search", request), []);
    let whole = gathered(&[("query", "x"), ("filters", "{\"source\": [\"a\"]}")]);
    assert_eq!(
        whole,
        Ok(json!({"query": "x", "filters": {"source": ["a"]}}))
    );
    for (query, field) in [
        ([("filters.nope", "x"), ("query", "x")], "filters.nope"),
        (
            [("filters.source.x", "x"), ("query", "x")],
            "filters.source.x",
        ),
        ([("nope.source", "x"), ("query", "x")], "nope.source"),
    ] {
        // Refused by name when the request is read.
        let request = gathered(&query).expect("a request");
        let sentence = format!("Unrecognized key(s) in object: '{field}'");
        assert_eq!(wrong("Search", request), [(field.to_owned(), sentence)]);
    }
    assert_eq!(
        gathered(&[("filters", "x"), ("filters.source", "a")]),
        Err(vec![(
            "filters.source".to_owned(),
            "Given twice".to_owned()
        )])
    );
}

#[test]
fn a_date_is_when_it_begins() {
    let of = |text: &str| {
        let contract = contract();
        let search = method(&contract, "Search");
        let request = json!({"query": "x", "filters": {"updated_after": text}});
        let read = contract
            .read(&search.input, object(request), None)
            .expect("a request");
        written(&contract, &read)["filters"]["updated_after"].clone()
    };
    assert_eq!(of("2025-01-31"), of("2025-01-31T00:00:00Z"));
    assert_ne!(of("2025-01-31"), of("2025-01-30"));
    for text in [
        "2025-02-30",
        "2025-1-1",
        "2025-01-01T10:00",
        "20250101",
        "yesterday",
        "",
    ] {
        let request = json!({"query": "x", "filters": {"updated_after": text}});
        assert_eq!(
            one("Search", request),
            "filters.updated_after: Expected a time such as 2026-01-31T12:00:00Z, or a date",
            "{text}"
        );
    }
}
