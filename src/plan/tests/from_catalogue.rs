//! The example and the schema, both generated from the catalogue.

use super::{MANUAL, catalogue};
use crate::plan::{
    self, Catalogue, DEFAULT_BLOCKS, DEFAULT_SEED, MAX_BLOCKS, PRECISION_PERCENT, QUICK_PRECISION_PERCENT, blocks,
    example, names, parse, postgres, power_cut_check, quick, schema,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Validates a value against the part of JSON schema that ours uses; of patterns, only their presence.
fn mistakes(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, wanted) in schema.as_object().unwrap() {
        let ok = match keyword.as_str() {
            "type" => is_type(wanted, value),
            "const" => value == wanted,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|n| n >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|n| n <= wanted.as_f64().unwrap()),
            "exclusiveMinimum" => value.as_f64().is_none_or(|n| n > wanted.as_f64().unwrap()),
            "minLength" => value.as_str().is_none_or(|text| text.len() as u64 >= wanted.as_u64().unwrap()),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap()),
            "minProperties" => value.as_object().is_none_or(|map| map.len() as u64 >= wanted.as_u64().unwrap()),
            "required" => value
                .as_object()
                .is_none_or(|map| wanted.as_array().unwrap().iter().all(|key| map.contains_key(key.as_str().unwrap()))),
            "anyOf" => wanted.as_array().unwrap().iter().any(|schema| mistakes(schema, value, at).is_empty()),
            "oneOf" => {
                wanted.as_array().unwrap().iter().filter(|schema| mistakes(schema, value, at).is_empty()).count() == 1
            }
            "not" => false,
            "items" => {
                let items = value.as_array().into_iter().flatten();
                found.extend(items.flat_map(|item| mistakes(wanted, item, &format!("{at}[]"))));
                true
            }
            "additionalProperties" => {
                found.extend(property_mistakes(schema, value, at));
                true
            }
            "$schema" | "title" | "description" | "default" | "pattern" | "properties" | "patternProperties"
            | "uniqueItems" => true,
            other => panic!("the schema uses {other}"),
        };
        if !ok {
            found.push(format!("{at}: {keyword} {wanted} but {value}"));
        }
    }
    found
}

fn property_mistakes(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (key, item) in value.as_object().into_iter().flatten() {
        let named = schema.get("properties").and_then(|properties| properties.get(key));
        let by_pattern = schema.get("patternProperties").and_then(|patterns| patterns.as_object()?.values().next());
        let place = format!("{at}.{key}");
        match named.or(by_pattern).unwrap_or(&schema["additionalProperties"]) {
            Value::Bool(true) => {}
            Value::Bool(false) => found.push(format!("{place}: unknown")),
            schema => found.extend(mistakes(schema, item, &place)),
        }
    }
    found
}

fn is_type(wanted: &Value, value: &Value) -> bool {
    let one = |name: &str| match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    };
    wanted.as_str().map_or_else(|| wanted.as_array().unwrap().iter().any(|name| one(name.as_str().unwrap())), one)
}

fn against_schema(text: &str) -> Vec<String> {
    let value: Value = toml::from_str(text).unwrap();
    mistakes(&schema(&catalogue()), &value, "plan")
}

#[test]
fn the_example_is_a_plan_with_every_layer_and_workload() {
    let catalogue = catalogue();
    let text = example(&catalogue);
    let plan = parse(&text, "example", &catalogue).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(plan.cases.len() > 10);
    let all = [&catalogue.layers, &catalogue.workloads];
    for entry in all.into_iter().flatten() {
        assert!(text.contains(entry.doc), "{}", entry.name);
        for option in entry.options {
            assert!(text.contains(option.doc.trim_end_matches('.')), "{}.{}", entry.name, option.key);
        }
    }
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("example", text);
    });
}

#[test]
fn the_commented_stacks_of_the_example_parse_once_filled_in() {
    let text = example(&catalogue());
    let start = text.find("# [stack.ext4-disk]").unwrap();
    let stack: Vec<&str> = text[start..].lines().take_while(|l| l.starts_with("# ")).map(|l| &l[2..]).collect();
    let filled = format!("name = \"p\"\n{}\n[workload]\nw = \"sync\"\n", stack.join("\n").replace("...", "S5GX"));
    parse(&filled, "filled", &catalogue()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn an_empty_catalogue_has_an_example_and_a_schema_too() {
    let empty = Catalogue::default();
    assert!(example(&empty).contains("# baseline"));
    assert!(schema(&empty).is_object());
}

#[test]
fn good_plans_keep_to_the_schema() {
    for text in [MANUAL, &example(&catalogue()), "name = 'p'\nstack.t.filesystem = 'tmpfs'\nworkload.w = 'sync'\n"] {
        assert_eq!(against_schema(text), Vec::<String>::new());
    }
}

/// The schema's fixed part is a file and cannot use the program's constants.
#[test]
fn the_fixed_schema_part_has_the_parser_keys_and_limits() {
    let schema = schema(&catalogue());
    let keys = &schema["properties"];
    let named = |table: &Value| table["properties"].as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let same = |table: &Value, known: &[&str]| {
        assert_eq!(named(table), known.iter().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>());
    };
    same(&schema, &plan::KEYS);
    same(&keys["postgres"], &postgres::KEYS);
    same(&keys["quick"], &quick::KEYS);
    let adaptive = &keys["blocks"]["oneOf"][1];
    same(adaptive, &[blocks::AT_LEAST, blocks::AT_MOST]);
    for key in [blocks::AT_LEAST, blocks::AT_MOST] {
        let key = &adaptive["properties"][key];
        assert_eq!((&key["minimum"], &key["maximum"]), (&json!(blocks::FIRST_LOOK), &json!(blocks::LOOKS_MAX)));
    }
    assert_eq!(keys["name"]["pattern"], json!(names::PATTERN));
    assert_eq!((&keys["seed"]["default"], &keys["blocks"]["default"]), (&json!(DEFAULT_SEED), &json!(DEFAULT_BLOCKS)));
    assert_eq!(keys["blocks"]["oneOf"][0]["maximum"], json!(MAX_BLOCKS));
    assert_eq!(keys["quick"]["properties"]["blocks"]["oneOf"][0]["maximum"], json!(MAX_BLOCKS));
    assert_eq!(keys["precision"]["default"], json!(PRECISION_PERCENT));
    assert_eq!(keys["quick"]["properties"]["precision"]["default"], json!(QUICK_PRECISION_PERCENT));
    for key in [&keys["precision"], &keys["quick"]["properties"]["precision"]] {
        assert_eq!(key["maximum"], json!(blocks::PRECISION_MAX));
    }
    assert_eq!(keys["durability"]["enum"], json!(power_cut_check::words()));
}

#[test]
fn the_schema_refuses_what_it_can_see() {
    for (from, to) in [
        ("blocks = 3", "bloks = 3"),
        ("blocks = 3", "blocks = 0"),
        ("\"6GiB\"", "6"),
        ("in = \"/var", "inn = \"/var"),
        ("{ xfs =", "{ xsf ="),
        ("directory = \"/srv/pg\"", "reuse = true"),
        ("pgbench = {", "pgbnech = {"),
        ("clients = [1, 4, 16]", "clients = []"),
        ("clients = [1, 4, 16]", "mode = \"fast\""),
        ("warmup = \"10s\"", "warmup = 10"),
        ("sync = {}", "sync = { clients = 1 }"),
    ] {
        assert!(MANUAL.contains(from), "{from}");
        assert_ne!(against_schema(&MANUAL.replacen(from, to, 1)), Vec::<String>::new(), "{to}");
    }
}

#[test]
fn the_schema_tells_what_a_value_means() {
    let schema = schema(&catalogue());
    let options =
        &schema["properties"]["workload"]["patternProperties"].as_object().unwrap()["^[a-z0-9][a-z0-9_-]{0,39}$"];
    let pgbench = options["anyOf"].as_array().unwrap().iter().find(|kind| kind["properties"]["pgbench"].is_object());
    let clients = &pgbench.unwrap()["properties"]["pgbench"]["properties"]["clients"];
    assert_eq!(clients["description"], json!("Number of clients. A list is an axis."));
    assert_eq!(clients["anyOf"][0]["minimum"], json!(1));
}
