//! Questions of the CLI that need more than yes or no, and every answer in the shape in which it was
//! seen to work. What has another shape is not ours to answer: nothing is guessed.

use claw_runtime::permissions::{
    PermissionPromptDecision, Question, QuestionAnswer, QuestionOption, RequestKind,
};
use claw_runtime::tools::ToolCall;
use serde_json::{Map, Value, json};

use crate::event::Verdict;

const QUESTIONS: &str = "AskUserQuestion";
const PLAN: &str = "ExitPlanMode";

/// What is asked with this call. `plan` is what the CLI has in its plan file, where it names none in
/// the call. None: it can only be answered in the CLI's own terminal.
pub(super) fn kind(call: &ToolCall, plan: Option<String>) -> Option<RequestKind> {
    match call.name.as_str() {
        QUESTIONS => questions(&call.input).map(RequestKind::Questions),
        PLAN => {
            let said = fields(&call.input)?.get("plan").and_then(Value::as_str).map(str::to_owned);
            let text = said.or(plan).filter(|text| !text.trim().is_empty())?;
            Some(RequestKind::Plan { text })
        }
        _ => Some(RequestKind::Tool { editable: fields(&call.input).is_some() }),
    }
}

/// Whether this tool asks for a plan to be approved.
pub(super) fn asks_for_plan(call: &ToolCall) -> bool {
    call.name == PLAN
}

/// The person's words as the CLI takes them.
pub(super) fn verdict(call: &ToolCall, decision: &PermissionPromptDecision) -> Verdict {
    let changed = |input: Option<String>| match input {
        Some(input) => Verdict::Allow { updated_input: Some(input) },
        None => deny("the answer does not fit the question".to_owned()),
    };
    match decision {
        PermissionPromptDecision::AllowOnce | PermissionPromptDecision::AllowForSession => {
            Verdict::Allow { updated_input: None }
        }
        PermissionPromptDecision::AllowInput { input } => {
            changed(fields(input).map(|_| input.clone()))
        }
        PermissionPromptDecision::Answers(answers) => changed(with_answers(&call.input, answers)),
        PermissionPromptDecision::ApprovePlan { text } => {
            changed(with(&call.input, "plan", json!(text)))
        }
        PermissionPromptDecision::Deny { reason: None } => {
            deny("permission denied by the person".to_owned())
        }
        PermissionPromptDecision::Deny { reason: Some(reason) } => {
            deny(format!("permission denied: {reason}"))
        }
    }
}

pub(super) fn deny(message: String) -> Verdict {
    Verdict::Deny { message, interrupt: false }
}

fn fields(input: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(input).ok()
}

fn with(input: &str, name: &str, value: Value) -> Option<String> {
    let mut fields = fields(input)?;
    fields.insert(name.to_owned(), value);
    Some(Value::Object(fields).to_string())
}

fn with_answers(input: &str, answers: &[QuestionAnswer]) -> Option<String> {
    let answers: Map<String, Value> =
        answers.iter().map(|one| (one.question.clone(), json!(one.answer))).collect();
    with(input, "answers", Value::Object(answers))
}

/// Answers are given by the words of the question, so those must not repeat.
fn questions(input: &str) -> Option<Vec<Question>> {
    let fields = fields(input)?;
    let questions = fields.get("questions")?.as_array()?;
    let questions: Vec<Question> = questions.iter().map(question).collect::<Option<_>>()?;
    let distinct = questions
        .iter()
        .enumerate()
        .all(|(at, one)| questions[..at].iter().all(|other| other.question != one.question));
    (distinct && !questions.is_empty()).then_some(questions)
}

fn question(value: &Value) -> Option<Question> {
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
    let options = value.get("options")?.as_array()?.iter().map(|option| {
        Some(QuestionOption {
            label: text(option, "label")?,
            description: text(option, "description").unwrap_or_default(),
        })
    });
    Some(Question {
        question: text(value, "question").filter(|text| !text.trim().is_empty())?,
        header: text(value, "header").unwrap_or_default(),
        options: options.collect::<Option<Vec<_>>>().filter(|options| !options.is_empty())?,
        multi_select: value.get("multiSelect").and_then(Value::as_bool).unwrap_or(false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, input: &Value) -> ToolCall {
        ToolCall { id: "t".into(), name: name.into(), input: input.to_string(), iteration: 1 }
    }

    fn colours() -> Value {
        json!({"questions": [{"question": "Which colour?", "header": "Colour", "options": [
            {"label": "Red", "description": "the red one"},
            {"label": "Blue", "description": "the blue one"}], "multiSelect": false}]})
    }

    /// What was written for these to the real CLI, and worked.
    fn recorded(name: &str) -> Value {
        let file =
            format!("{}/../tests/fixtures/claude/verdicts/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(file).expect("a fixture");
        let verdict: Value = serde_json::from_str(&text).expect("JSON");
        verdict["hookSpecificOutput"]["decision"]["updatedInput"].clone()
    }

    fn updated(call: &ToolCall, decision: &PermissionPromptDecision) -> Value {
        let Verdict::Allow { updated_input: Some(input) } = verdict(call, decision) else {
            panic!("no changed input")
        };
        serde_json::from_str(&input).expect("JSON")
    }

    #[test]
    fn answers_have_the_shapes_that_were_seen_to_work() {
        let answer = QuestionAnswer { question: "Which colour?".into(), answer: "Blue".into() };
        let decision = PermissionPromptDecision::Answers(vec![answer]);
        let asked = call(QUESTIONS, &colours());
        assert_eq!(updated(&asked, &decision), recorded("ask-user-question.json"));
        let decision = PermissionPromptDecision::ApprovePlan { text: "1. Updated plan".into() };
        assert_eq!(updated(&call(PLAN, &json!({})), &decision), recorded("exit-plan-mode.json"));
        let decision = PermissionPromptDecision::AllowInput {
            input: recorded("allow-updated-input.json").to_string(),
        };
        let asked = call("Bash", &json!({"command": "touch a"}));
        assert_eq!(updated(&asked, &decision), recorded("allow-updated-input.json"));
    }

    #[test]
    fn what_is_no_answer_denies() {
        let bash = call("Bash", &json!({"command": "ls"}));
        for decision in [
            PermissionPromptDecision::Deny { reason: Some("no".into()) },
            PermissionPromptDecision::Deny { reason: None },
            PermissionPromptDecision::AllowInput { input: "[]".into() },
            PermissionPromptDecision::AllowInput { input: "not JSON".into() },
        ] {
            assert!(matches!(verdict(&bash, &decision), Verdict::Deny { .. }), "{decision:?}");
        }
        let plain = verdict(&bash, &PermissionPromptDecision::AllowOnce);
        assert_eq!(plain, Verdict::Allow { updated_input: None });
        let denied = verdict(&bash, &PermissionPromptDecision::Deny { reason: Some("no".into()) });
        assert_eq!(denied, deny("permission denied: no".into()));
    }

    #[test]
    fn a_question_that_has_another_shape_is_left_to_the_terminal() {
        let mut asked = colours();
        let Some(RequestKind::Questions(questions)) = kind(&call(QUESTIONS, &asked), None) else {
            panic!("questions")
        };
        assert_eq!(questions[0].question, "Which colour?");
        assert_eq!(questions[0].options[1].label, "Blue");
        let twice = json!({"questions": [asked["questions"][0], asked["questions"][0]]});
        asked["questions"][0]["options"] = json!([]);
        for input in [asked, twice, json!({}), json!({"questions": "Which?"}), json!([1])] {
            assert_eq!(kind(&call(QUESTIONS, &input), None), None, "{input}");
        }
    }

    #[test]
    fn a_plan_is_in_the_call_or_in_its_file() {
        let plan =
            |input: &Value, file: Option<&str>| kind(&call(PLAN, input), file.map(str::to_owned));
        let text = |text: &str| Some(RequestKind::Plan { text: text.to_owned() });
        assert_eq!(plan(&json!({"plan": "1. Begin"}), None), text("1. Begin"));
        assert_eq!(plan(&json!({}), Some("2. End")), text("2. End"));
        assert_eq!(plan(&json!({}), None), None);
        assert_eq!(plan(&json!({"plan": " "}), Some("2.")), None);
    }
}
