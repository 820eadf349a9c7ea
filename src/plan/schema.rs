//! The JSON schema of a plan, for editors that complete and check TOML: the output of `pgstrata plan --schema`.
//!
//! Generated from the catalogue. It describes single tables; conditions across tables (an existing baseline, names of
//! other stacks) are left to [`super::check`].

use super::build::KeyKind;
use super::stacks::{AGE, MODULE, Slot, stands_alone};
use super::values::{describe, is_scalar};
use super::{Catalogue, CatalogueEntry, build, names};
use crate::record::options::{LEAVE, OptionKind, OptionSpec};
use serde_json::{Map, Value, json};

/// The fixed part; `null` where the catalogue's part belongs.
const SKELETON: &str = include_str!("schema.json");

/// The schema (draft 2020-12) of plans for this catalogue.
pub fn schema(catalogue: &Catalogue) -> Value {
    let mut schema: Value = serde_json::from_str(SKELETON).unwrap_or_default();
    let keys = &mut schema["properties"];
    keys["machine"] = machine(catalogue);
    keys["stack"] = named("Storage stacks by name.", &stack(catalogue));
    keys["postgres"]["properties"]["build"] = build();
    keys["workload"] = named("Workloads by name.", &workload(catalogue));
    schema
}

/// Tables with user-defined names.
fn named(description: &str, item: &Value) -> Value {
    json!({ "description": description, "type": "object", "minProperties": 1,
        "patternProperties": { names::PATTERN: item }, "additionalProperties": false })
}

/// A table with only these keys.
fn table(description: impl Into<Value>, properties: impl Into<Value>, required: &[&str]) -> Value {
    let (description, properties) = (description.into(), properties.into());
    let mut table = json!({ "description": description, "type": "object", "properties": properties,
        "additionalProperties": false });
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}

/// A list with at least one item.
fn list_of(item: &Value) -> Value {
    json!({ "type": "array", "items": item, "minItems": 1 })
}

fn scalar() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

fn axis_of(value: &Value) -> Value {
    json!({ "anyOf": [value, { "type": "array", "items": value, "minItems": 1, "uniqueItems": true }] })
}

/// A server built from source.
fn build() -> Value {
    let mut properties = Map::new();
    for (key, kind, doc) in build::KEYS {
        let mut schema = axis_of(&match kind {
            KeyKind::Version => json!({ "anyOf": [
                { "type": "string", "pattern": r"^[0-9]{1,4}(\.[0-9]{1,4})?$" }, { "type": "integer", "minimum": 1 }
            ] }),
            KeyKind::Suite => json!({ "type": "string", "pattern": "^[a-z]+$" }),
            KeyKind::Path => json!({ "type": "string", "minLength": 1 }),
            KeyKind::OneOf(sizes) => json!({ "enum": sizes }),
            KeyKind::Whole => json!({ "type": "integer", "minimum": 1 }),
            KeyKind::Texts => text_list(),
        });
        schema["description"] = json!(format!("{doc} A list is an axis."));
        properties.insert(key.to_owned(), schema);
    }
    let mut table = table("Build the server from source, once; the result is cached.", properties, &[]);
    table["anyOf"] = json!([{ "required": ["version"] }, { "required": ["source"] }]);
    table
}

/// Knobs by their dotted names, quoted or as tables.
fn machine(catalogue: &Catalogue) -> Value {
    let specs = catalogue.machine.as_ref().map_or(&[][..], |entry| entry.options);
    let mut properties = Map::new();
    for spec in specs {
        properties.insert(spec.key.to_owned(), axis(spec));
        if let Some((table, inner)) = spec.key.split_once('.') {
            let nested = json!({ "type": "object", "properties": {}, "additionalProperties": false });
            properties.entry(table).or_insert(nested)["properties"][inner] = axis(spec);
        }
    }
    table("Kernel knobs, set for each trial and restored afterwards. A list is an axis.", properties, &[])
}

fn stack(catalogue: &Catalogue) -> Value {
    let device = any_layer("The block device.", Slot::Device, catalogue);
    let filesystem = any_layer("The filesystem.", Slot::Filesystem, catalogue);
    let several = json!({ "type": "object", "minProperties": 1, "patternProperties": { names::PATTERN: &device } });
    let mut properties = json!({
        "devices": { "description": "Several devices: by name, or identical ones with a count.",
            "anyOf": [several, &device] },
        "device": device,
        "wal": { "description": "Location of pg_wal: another stack by name, or a separate filesystem.",
            "anyOf": [{ "type": "string" }, &filesystem] },
        "tablespace": named("One filesystem per tablespace, by tablespace name.", &filesystem),
        "filesystem": filesystem,
        "reuse": { "description": "Build the stack once and let it age across trials.",
            "type": "boolean", "default": false },
    });
    if Slot::Volume.entries(catalogue).next().is_some() {
        let item = any_layer("A layer between device and filesystem.", Slot::Volume, catalogue);
        properties["volume"] = json!({ "description": "Layers between devices and filesystem, lowest first.",
            "anyOf": [list_of(&item), &item] });
    }
    let directory = Slot::Filesystem.entries(catalogue).find(|entry| entry.name == "directory");
    if let Some(main) = directory.and_then(|entry| entry.options.first()) {
        properties["directory"] = axis(main);
    }
    if let Some(spec) = catalogue.layers.iter().find_map(|entry| entry.option(MODULE)) {
        properties[MODULE] = axis(spec);
    }
    if let Some(entry) = &catalogue.age {
        properties[AGE] = options(entry);
    }
    let alone: Vec<&str> =
        Slot::Filesystem.entries(catalogue).filter(|entry| stands_alone(entry)).map(|entry| entry.name).collect();
    let mut table = table(format!("One storage stack. These need no device: {}.", alone.join(", ")), properties, &[]);
    table["oneOf"] = json!([{ "required": ["filesystem"] }, { "required": ["directory"] }]);
    table
}

fn any_layer(description: &str, slot: Slot, catalogue: &Catalogue) -> Value {
    let mut layers = any_of(&slot.entries(catalogue).flat_map(layer).collect::<Vec<_>>());
    layers["description"] = json!(description);
    layers
}

/// Any of these; nothing where there are none.
fn any_of(spellings: &[Value]) -> Value {
    if spellings.is_empty() { json!({ "not": {} }) } else { json!({ "anyOf": spellings }) }
}

/// A name alone, if no option is required, and a table under that name.
fn by_name(entry: &CatalogueEntry, own: Map<String, Value>) -> Vec<Value> {
    let mut spellings = Vec::new();
    if !entry.options.iter().any(|spec| spec.required) {
        spellings.push(json!({ "description": entry.doc, "const": entry.name }));
    }
    spellings.push(table(entry.doc, own, &[entry.name]));
    spellings
}

/// The three spellings of a layer.
fn layer(entry: &CatalogueEntry) -> Vec<Value> {
    let mut inside = options(entry);
    if let Some(properties) = inside["properties"].as_object_mut() {
        properties.extend(wiring(entry));
    }
    let mut own = Map::from_iter([(entry.name.to_owned(), inside)]);
    own.extend(own_keys(entry));
    let mut spellings = by_name(entry, own);
    if let Some((main, rest)) = entry.options.split_first() {
        let mut beside: Map<String, Value> = rest.iter().map(|spec| (spec.key.to_owned(), axis(spec))).collect();
        beside.extend(wiring(entry));
        beside.extend(own_keys(entry));
        beside.insert(entry.name.to_owned(), axis(main));
        let further = rest.iter().filter(|spec| spec.required).map(|spec| spec.key);
        let required: Vec<&str> = std::iter::once(entry.name).chain(further).collect();
        spellings.push(table(entry.doc, beside, &required));
    }
    spellings
}

/// The keys by which a layer names its inputs.
fn wiring(entry: &CatalogueEntry) -> Map<String, Value> {
    let name = json!({ "type": "string", "minLength": 1 });
    let names = json!({ "anyOf": [&name, list_of(&name)] });
    let keys = entry.takes.iter().map(|take| {
        let groups: Map<String, Value> = take.groups.iter().map(|word| ((*word).to_owned(), names.clone())).collect();
        let item = json!({ "anyOf": [&name, { "type": "object", "properties": groups, "minProperties": 1,
            "additionalProperties": false }] });
        let value = match take.groups {
            [] => names.clone(),
            _ => json!({ "anyOf": [&item, list_of(&item)] }),
        };
        (take.key.to_owned(), json!({ "description": take.doc, "allOf": [value] }))
    });
    keys.collect()
}

/// The keys that a layer has because of its place in the stack.
fn own_keys(entry: &CatalogueEntry) -> Map<String, Value> {
    let key = match Slot::of(entry) {
        Slot::Device => json!({ "count": { "description": "Number of devices, named d1, d2, ...",
            "type": "integer", "minimum": 1 } }),
        Slot::Volume => json!({ "name": { "description": "Name by which other layers refer to it.",
            "type": "string", "pattern": names::PATTERN } }),
        Slot::Filesystem => json!({}),
    };
    key.as_object().cloned().unwrap_or_default()
}

fn workload(catalogue: &Catalogue) -> Value {
    let kinds = catalogue.workloads.iter();
    let kinds = kinds.flat_map(|entry| by_name(entry, Map::from_iter([(entry.name.to_owned(), options(entry))])));
    any_of(&kinds.collect::<Vec<_>>())
}

fn options(entry: &CatalogueEntry) -> Value {
    let properties: Map<String, Value> = entry.options.iter().map(|spec| (spec.key.to_owned(), axis(spec))).collect();
    let required: Vec<&str> = entry.options.iter().filter(|spec| spec.required).map(|spec| spec.key).collect();
    table(entry.doc, properties, &required)
}

/// One value of an option, or a list of them, which is an axis.
fn axis(spec: &OptionSpec) -> Value {
    let one = value(spec);
    if matches!(spec.kind, OptionKind::Properties | OptionKind::Table(_)) {
        return one;
    }
    let mut schema = axis_of(&one);
    let of_lists = if is_scalar(spec.kind) { "" } else { " of lists" };
    schema["description"] = json!(format!("{} A list{of_lists} is an axis.", spec.doc));
    schema
}

/// One value of an option.
fn value(spec: &OptionSpec) -> Value {
    let mut schema = match spec.kind {
        OptionKind::Integer { min } => json!({ "type": "integer", "minimum": min }),
        OptionKind::Number => json!({ "type": "number", "exclusiveMinimum": 0 }),
        OptionKind::Boolean => json!({ "type": "boolean" }),
        OptionKind::Text | OptionKind::Sql => json!({ "type": "string", "minLength": 1 }),
        OptionKind::Path => json!({ "type": "string", "pattern": "^/" }),
        OptionKind::OneOf(words) => json!({ "enum": words }),
        OptionKind::SqlOrList => json!({ "anyOf": [{ "type": "string", "minLength": 1 }, text_list()] }),
        OptionKind::TextList => text_list(),
        OptionKind::Size => json!({ "type": "string", "pattern": SIZE }),
        OptionKind::Span => json!({ "type": "string", "pattern": SPAN }),
        OptionKind::IntegerOrShare => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "pattern": SHARE }] })
        }
        OptionKind::Scalar => scalar(),
        OptionKind::OrDefault(kind) => {
            json!({ "anyOf": [value(&OptionSpec { kind: *kind, ..*spec }), { "const": LEAVE }] })
        }
        OptionKind::Properties => json!({ "type": "object", "additionalProperties": axis_of(&scalar()) }),
        OptionKind::Table(specs) => {
            let inside: Map<String, Value> = specs.iter().map(|spec| (spec.key.to_owned(), axis(spec))).collect();
            json!({ "type": "object", "properties": inside, "additionalProperties": false })
        }
    };
    let default = spec.default.map_or_else(String::new, |default| format!(" Default: {default}."));
    schema["description"] = json!(format!("{} ({}){default}", spec.doc, describe(spec.kind)));
    schema
}

fn text_list() -> Value {
    list_of(&json!({ "type": "string", "minLength": 1 }))
}

/// Texts that `Bytes::parse` accepts.
pub(super) const SIZE: &str = r"^\s*[0-9]+(\.[0-9]*)?\s*(B|[kKMGT]|[kKMGT]B|[KMGT]iB)\s*$";
/// Texts that `Micros::parse` accepts.
pub(super) const SPAN: &str = r"^\s*[0-9]+(\.[0-9]*)?\s*(us|µs|ms|s|sec|m|min|h|d)\s*$";
/// A share of memory.
pub(super) const SHARE: &str = r"^\s*[0-9]+(\.[0-9]*)?\s*%\s*[oO][fF]\s+[rR][aA][mM]\s*$";
