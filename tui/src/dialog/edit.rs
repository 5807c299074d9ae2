//! An input as text for the person's editor, and back. A command is edited as it is, everything else
//! as JSON.

use serde_json::{Map, Value};

const COMMAND: &str = "command";

/// What the editor opens on.
pub(super) fn text_of(input: &str) -> String {
    let Some(fields) = fields(input) else { return input.to_owned() };
    match fields.get(COMMAND) {
        Some(Value::String(command)) => command.clone(),
        _ => serde_json::to_string_pretty(&Value::Object(fields))
            .unwrap_or_else(|_| input.to_owned()),
    }
}

/// The input that the edited text stands for. The error says what is wrong with it.
pub(super) fn input_of(original: &str, text: &str) -> Result<String, String> {
    if let Some(mut fields) = fields(original)
        && let Some(Value::String(command)) = fields.get_mut(COMMAND)
    {
        // Editors end every line.
        let edited = if command.ends_with('\n') { text } else { text.trim_end_matches('\n') };
        if edited.trim().is_empty() {
            return Err("an empty command cannot be allowed".to_owned());
        }
        if command == edited {
            return Ok(original.to_owned());
        }
        edited.clone_into(command);
        return Ok(Value::Object(fields).to_string());
    }
    let edited: Value = serde_json::from_str(text).map_err(|error| {
        format!("what you wrote is not valid JSON ({error}); nothing has changed")
    })?;
    if !edited.is_object() {
        return Err("what you wrote is not a JSON object; nothing has changed".to_owned());
    }
    let same = serde_json::from_str::<Value>(original).is_ok_and(|original| original == edited);
    Ok(if same { original.to_owned() } else { edited.to_string() })
}

fn fields(input: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(input).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_edited_as_it_is_and_keeps_its_other_fields() {
        let input = r#"{"command":"ls \\\n-l","timeout":5}"#;
        assert_eq!(text_of(input), "ls \\\n-l");
        assert_eq!(input_of(input, "ls \\\n-l\n"), Ok(input.to_owned()), "nothing was changed");
        let edited = input_of(input, "pwd\n").unwrap();
        assert_eq!(edited, r#"{"command":"pwd","timeout":5}"#);
        assert!(input_of(input, " \n").is_err());
    }

    #[test]
    fn everything_else_is_json_and_stays_an_object() {
        let input = r#"{"path":"a","content":"x"}"#;
        assert_eq!(input_of(input, &text_of(input)), Ok(input.to_owned()));
        let edited = input_of(input, "{\"path\": \"b\"}").unwrap();
        assert_eq!(edited, r#"{"path":"b"}"#);
        for wrong in ["{", "[]", "", "text"] {
            assert!(input_of(input, wrong).is_err(), "{wrong}");
        }
    }
}
