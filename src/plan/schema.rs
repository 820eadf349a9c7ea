//! The JSON schema of a plan, for editors that complete and check TOML: what `pgstrata plan --schema` prints.
//!
//! Made from the catalogue. It says what one table may look like; what needs several (a baseline that is there, names
//! of other stacks) only [`super::check`] can say.

use super::values::{describe, is_scalar};
use super::{Catalogue, DEFAULT_BLOCKS, DEFAULT_SEED, Entry, MAX_BLOCKS, names};
use crate::record::options::{OptionKind, OptionSpec};
use serde_json::{Map, Value, json};

/// The schema (draft 2020-12) of plans that may name what the catalogue has.
#[must_use]
pub fn schema(catalogue: &Catalogue) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pgstrata plan",
        "description": "Which storage stacks to compare, under which PostgreSQL and which load.",
        "type": "object",
        "properties": {
            "name": {
                "description": "Name of the plan; the run's folder is called after it.",
                "type": "string",
                "pattern": names::PATTERN
            },
            "seed": {
                "description": "Seed of the random order of the trials.",
                "type": "integer", "minimum": 0, "default": DEFAULT_SEED
            },
            "blocks": {
                "description": "Rounds through all cases; the number of trials of each.",
                "type": "integer", "minimum": 1, "maximum": MAX_BLOCKS, "default": DEFAULT_BLOCKS
            },
            "baseline": baseline(),
            "stack": named("Storage stacks by name.", stack(catalogue)),
            "postgres": postgres(),
            "workload": named("Workloads by name.", workload(catalogue)),
            "exclude": exclude()
        },
        "required": ["name", "stack", "workload"],
        "additionalProperties": false
    })
}

fn named(description: &str, item: Value) -> Value {
    let mut patterns = Map::new();
    patterns.insert(names::PATTERN.to_owned(), item);
    json!({
        "description": description,
        "type": "object",
        "minProperties": 1,
        "patternProperties": patterns,
        "additionalProperties": false
    })
}

fn scalar() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

fn axis_of(value: &Value) -> Value {
    json!({ "anyOf": [value, { "type": "array", "items": value, "minItems": 1, "uniqueItems": true }] })
}

fn baseline() -> Value {
    json!({
        "description": "What comparisons are ratios to: the name of a stack, or a value of some axes.",
        "anyOf": [
            { "type": "string" },
            { "type": "object", "minProperties": 1, "additionalProperties": scalar() }
        ]
    })
}

fn exclude() -> Value {
    json!({
        "description": "Cases that match every line of one of these tables are left out.",
        "type": "array",
        "items": { "type": "object", "minProperties": 1, "additionalProperties": axis_of(&scalar()) }
    })
}

fn postgres() -> Value {
    let setting = json!({ "anyOf": [
        scalar(),
        { "type": "array", "items": scalar(), "minItems": 1, "uniqueItems": true },
        { "type": "object", "additionalProperties": true }
    ] });
    json!({
        "description": "The server.",
        "type": "object",
        "properties": {
            "bin": {
                "description": "auto (the newest installed), the folder of the server's programs, or a list of them.",
                "anyOf": axis_of(&json!({ "type": "string", "pattern": "^(auto|/.*)$" }))["anyOf"],
                "default": "auto"
            },
            "settings": {
                "description": "Settings as in postgresql.conf; a list of values is an axis.",
                "type": "object",
                "additionalProperties": setting
            },
            "initdb": {
                "description": "Further arguments of initdb.",
                "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1
            }
        },
        "additionalProperties": false
    })
}

fn stack(catalogue: &Catalogue) -> Value {
    let mut properties = Map::new();
    properties.insert("device".into(), any_layer("The block device.", &catalogue.devices));
    if !catalogue.volumes.is_empty() {
        let item = any_layer("A layer between device and filesystem.", &catalogue.volumes);
        let list = json!({ "description": "Layers between device and filesystem, the lowest first.",
            "type": "array", "items": item, "minItems": 1 });
        properties.insert("volume".into(), list);
    }
    properties.insert("filesystem".into(), any_layer("The filesystem.", &catalogue.filesystems));
    if let Some(main) = catalogue.filesystems.iter().find(|e| e.name == "directory").and_then(|e| e.options.first()) {
        properties.insert("directory".into(), value(main));
    }
    let wal = json!({ "description": "Name of another stack that holds pg_wal.", "type": "string" });
    properties.insert("wal".into(), wal);
    let reuse = json!({ "description": "Whether trials share one stack that ages.",
        "type": "boolean", "default": false });
    properties.insert("reuse".into(), reuse);
    let folders: Vec<&str> = catalogue.folders.clone();
    json!({
        "description": format!("One storage stack. These need no device: {}.", folders.join(", ")),
        "type": "object",
        "properties": properties,
        "oneOf": [{ "required": ["filesystem"] }, { "required": ["directory"] }],
        "additionalProperties": false
    })
}

fn any_layer(description: &str, entries: &[Entry]) -> Value {
    let spellings: Vec<Value> = entries.iter().flat_map(layer).collect();
    if spellings.is_empty() {
        return json!({ "description": description, "not": {} });
    }
    json!({ "description": description, "anyOf": spellings })
}

/// The three spellings of a layer.
fn layer(entry: &Entry) -> Vec<Value> {
    let mut spellings = Vec::new();
    if !entry.options.iter().any(|spec| spec.required) {
        spellings.push(json!({ "description": entry.doc, "const": entry.name }));
    }
    let object = |properties: Map<String, Value>, required: Vec<&str>| {
        json!({
            "description": entry.doc,
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        })
    };
    let inside = Map::from_iter([(entry.name.to_owned(), options(entry, false))]);
    spellings.push(object(inside, vec![entry.name]));
    if let Some((main, rest)) = entry.options.split_first() {
        let mut beside: Map<String, Value> = rest.iter().map(|spec| (spec.key.to_owned(), value(spec))).collect();
        beside.insert(entry.name.to_owned(), value(main));
        let further = rest.iter().filter(|spec| spec.required).map(|spec| spec.key);
        spellings.push(object(beside, std::iter::once(entry.name).chain(further).collect()));
    }
    spellings
}

fn workload(catalogue: &Catalogue) -> Value {
    let mut kinds: Vec<Value> = Vec::new();
    for entry in &catalogue.workloads {
        if !entry.options.iter().any(|spec| spec.required) {
            kinds.push(json!({ "description": entry.doc, "const": entry.name }));
        }
        let properties = Map::from_iter([(entry.name.to_owned(), options(entry, true))]);
        kinds.push(json!({
            "description": entry.doc,
            "type": "object",
            "properties": properties,
            "required": [entry.name],
            "additionalProperties": false
        }));
    }
    if kinds.is_empty() { json!({ "not": {} }) } else { json!({ "anyOf": kinds }) }
}

fn options(entry: &Entry, axes: bool) -> Value {
    let properties: Map<String, Value> = entry
        .options
        .iter()
        .map(|spec| {
            let one = value(spec);
            let varies = axes && spec.axis && is_scalar(spec.kind);
            (spec.key.to_owned(), if varies { axis(spec, &one) } else { one })
        })
        .collect();
    let required: Vec<&str> = entry.options.iter().filter(|spec| spec.required).map(|spec| spec.key).collect();
    json!({
        "description": entry.doc,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

fn axis(spec: &OptionSpec, one: &Value) -> Value {
    let mut schema = axis_of(one);
    schema["description"] = json!(format!("{} A list is an axis.", spec.doc));
    schema
}

/// One value of an option.
fn value(spec: &OptionSpec) -> Value {
    let mut schema = match spec.kind {
        OptionKind::Integer { min } => json!({ "type": "integer", "minimum": min }),
        OptionKind::Number => json!({ "type": "number", "exclusiveMinimum": 0 }),
        OptionKind::Boolean => json!({ "type": "boolean" }),
        OptionKind::Text => json!({ "type": "string", "minLength": 1 }),
        OptionKind::Path => json!({ "type": "string", "pattern": "^/" }),
        OptionKind::OneOf(words) => json!({ "enum": words }),
        OptionKind::TextOrList => {
            json!({ "anyOf": [{ "type": "string", "minLength": 1 }, text_list()] })
        }
        OptionKind::TextList => text_list(),
        OptionKind::Size => json!({ "type": "string", "pattern": SIZE }),
        OptionKind::Span => json!({ "type": "string", "pattern": SPAN }),
        OptionKind::IntegerOrShare => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "pattern": SHARE }] })
        }
    };
    let default = spec.default.map_or_else(String::new, |default| format!(" Default: {default}."));
    schema["description"] = json!(format!("{} ({}){default}", spec.doc, describe(spec.kind)));
    schema
}

fn text_list() -> Value {
    json!({ "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1 })
}

/// What `Bytes::parse` reads.
pub(super) const SIZE: &str = r"^\s*[0-9]+(\.[0-9]*)?\s*(B|[kKMGT]|[kKMGT]B|[KMGT]iB)\s*$";
/// What `Micros::parse` reads.
pub(super) const SPAN: &str = r"^\s*[0-9]+(\.[0-9]*)?\s*(us|µs|ms|s|sec|m|min|h|d)\s*$";
/// A share of memory.
pub(super) const SHARE: &str = r"^\s*[0-9]+(\.[0-9]*)?\s*%\s*[oO][fF]\s+[rR][aA][mM]\s*$";
