//! The lines that we write to the CLI, without their line ends.

use serde_json::{Value, json};

/// The first line: the answer says that the CLI reads.
pub fn initialize(request_id: &str) -> String {
    request(request_id, &json!({"subtype": "initialize", "hooks": null}))
}

/// A prompt, verbatim.
pub fn user(text: &str) -> String {
    json!({
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
        "parent_tool_use_id": null,
        "session_id": "",
    })
    .to_string()
}

/// Stops the turn that runs.
pub fn interrupt(request_id: &str) -> String {
    request(request_id, &json!({"subtype": "interrupt"}))
}

/// The tool may run with this input (JSON text).
pub fn allow(request_id: &str, input: &str) -> String {
    // An input that is not JSON cannot be meant: an empty object lets the tool refuse it itself.
    let input: Value = serde_json::from_str(input).unwrap_or_else(|_| json!({}));
    response(request_id, &json!({"behavior": "allow", "updatedInput": input}))
}

/// The tool may not run. `interrupt` ends the turn too.
pub fn deny(request_id: &str, message: &str, interrupt: bool) -> String {
    let mut verdict = json!({"behavior": "deny", "message": message});
    if interrupt {
        verdict["interrupt"] = Value::Bool(true);
    }
    response(request_id, &verdict)
}

/// The answer to a request of a kind that we do not know.
pub fn refuse(request_id: &str, error: &str) -> String {
    let response = json!({"subtype": "error", "request_id": request_id, "error": error});
    json!({"type": "control_response", "response": response}).to_string()
}

fn request(request_id: &str, request: &Value) -> String {
    json!({"type": "control_request", "request_id": request_id, "request": request}).to_string()
}

fn response(request_id: &str, response: &Value) -> String {
    let response = json!({"subtype": "success", "request_id": request_id, "response": response});
    json!({"type": "control_response", "response": response}).to_string()
}
