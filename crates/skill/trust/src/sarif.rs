//! Writes reports as SARIF 2.1.0, which code hosts and editors read.

use serde_json::{Value, json};

use super::{Finding, Report, Severity, rules};

/// Writes a report as a SARIF log. `name` and `version` are those of the calling program.
#[must_use]
pub fn sarif(report: &Report, name: &str, version: &str) -> Value {
    let descriptors: Vec<Value> = rules()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": { "text": rule.title },
                "fullDescription": { "text": rule.description },
                "help": { "text": rule.fix },
                "defaultConfiguration": { "level": level(rule.severity) },
                "properties": { "tags": [rule.category.name(), rule.owasp] },
            })
        })
        .collect();
    let results: Vec<Value> = report.findings.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": name,
                "version": version,
                "rules": descriptors,
            } },
            "results": results,
            "columnKind": "unicodeCodePoints",
            "properties": {
                "ruleSet": report.rules,
                "verdict": report.verdict.name(),
                "capabilities": report.capabilities,
                "leftOut": report.left_out,
            },
        }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low | Severity::Info => "note",
    }
}

fn result(found: &Finding) -> Value {
    let text = if found.evidence.is_empty() {
        found.title.to_string()
    } else {
        format!("{}: {}", found.title, found.evidence)
    };
    let mut result = json!({
        "ruleId": found.rule,
        "level": level(found.severity),
        "message": { "text": text },
        "properties": {
            "severity": found.severity.name(),
            "confidence": found.confidence.name(),
        },
    });
    let mut location = json!({ "artifactLocation": { "uri": uri(&found.path) } });
    if let (Some(location), true) = (location.as_object_mut(), found.line > 0) {
        location.insert("region".to_owned(), json!({ "startLine": found.line }));
    }
    if let (Some(result), false) = (result.as_object_mut(), found.path.is_empty()) {
        result.insert(
            "locations".to_owned(),
            json!([{ "physicalLocation": location }]),
        );
    }
    result
}

/// Writes a path as a relative URI reference.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_' | b'~') {
            uri.push(char::from(byte));
        } else {
            uri.push('%');
            let digits = [byte >> 4, byte & 15].map(u32::from);
            uri.extend(
                digits
                    .into_iter()
                    .filter_map(|digit| char::from_digit(digit, 16)),
            );
        }
    }
    uri
}
