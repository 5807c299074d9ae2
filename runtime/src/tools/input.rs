//! Typed inputs: the JSON schema that the model gets, and reading what the model wrote.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, transform};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The schema of an input struct as it goes to the model: keys in the order of the fields, nothing
/// that a model need not read.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
        s.transforms.push(Box::new(transform::RecursiveTransform(strip_noise)));
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn strip_noise(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    for noise in ["title", "format", "minimum", "default"] {
        object.shift_remove(noise);
    }
    drop_null(object);
}

/// An optional field may be left out; that it may also be null is of no use to a model.
fn drop_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [single] = types.as_mut_slice() {
            let single = single.take();
            object.insert("type".to_owned(), single);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    // An optional enum or struct comes as `anyOf: [it, null]`: put it in place of the choice.
    if let Some(Value::Array(mut choices)) = object.shift_remove("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        match choices.as_mut_slice() {
            [Value::Object(only)] => object.extend(std::mem::take(only)),
            _ => {
                object.insert("anyOf".to_owned(), Value::Array(choices));
            }
        }
    }
}

/// Reads the JSON text of a call. No text at all counts as `{}`.
pub(super) fn parse<T: DeserializeOwned>(tool: &str, text: &str) -> Result<T, String> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    serde_json::from_str(text).map_err(|error| {
        format!(
            "invalid input for {tool}: {error}; call it again with input that follows its schema"
        )
    })
}

/// Takes a number or a boolean also when the model wrote it as a string.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = match Value::deserialize(deserializer)? {
        Value::String(text) => serde_json::from_str(text.trim()).unwrap_or(Value::String(text)),
        value => value,
    };
    serde_json::from_value(value).map_err(serde::de::Error::custom)
}
