//! Whether a tool of the CLI may run: the same policy, levels and dialog as for our own tools.
//!
//! Everything that is not clearly an answer is a denial; questions that need more than yes or no are
//! left to the CLI's own dialog.

use std::sync::Arc;
use std::time::Instant;

use claw_runtime::TurnContext;
use claw_runtime::permissions::{
    Asker, Digest, PermissionMode, PermissionPolicy, PermissionPromptDecision, PermissionRequest,
    PermissionVerdict, RequestId, RequestKind,
};
use claw_runtime::tools::{Requirement, ToolCall};

use super::answers;
use crate::event::Verdict;

/// Says what a call of a CLI tool needs. Known names (`Bash`, `Write`, ...) mean what our own tools
/// of that name mean; anything else needs everything.
pub trait Judge: Send + Sync {
    fn requirement(&self, call: &ToolCall) -> Requirement;
    /// A unified diff of what an edit would do.
    fn preview(&self, call: &ToolCall) -> Option<String>;
}

/// What is known of a question besides its call.
#[derive(Debug)]
pub struct About {
    pub asker: Asker,
    pub expires: Instant,
    /// What the CLI has in its plan file.
    pub plan: Option<String>,
}

/// What is to be done with a question.
#[derive(Debug)]
pub enum Ruling {
    Settled(Verdict),
    /// The person must be asked with this.
    Ask(Box<PermissionRequest>),
    /// Not ours to answer.
    Leave,
}

/// The policy for the CLI's tools of one session.
pub struct Gate {
    judge: Arc<dyn Judge>,
    policy: PermissionPolicy,
}

impl Gate {
    pub fn new(judge: Arc<dyn Judge>) -> Self {
        Self { judge, policy: PermissionPolicy::new(PermissionMode::ReadOnly) }
    }

    pub fn set_mode(&mut self, mode: PermissionMode) {
        self.policy.set_mode(mode);
    }

    /// Another session: what was granted for the old one is over.
    pub fn clear_grants(&mut self) {
        self.policy.clear_grants();
    }

    /// Decides by the mode, or says what to ask.
    pub fn rule(&self, call: &ToolCall, about: About) -> Ruling {
        let Some(kind) = answers::kind(call, about.plan) else { return Ruling::Leave };
        let requirement = self.judge.requirement(call);
        let mut reason = None;
        // A question is for the person, whatever the mode.
        if matches!(kind, RequestKind::Tool { .. }) {
            match self.policy.verdict(&call.name, &requirement) {
                PermissionVerdict::Allow => {
                    return Ruling::Settled(Verdict::Allow { updated_input: None });
                }
                PermissionVerdict::Deny { reason } => {
                    return Ruling::Settled(answers::deny(reason));
                }
                PermissionVerdict::Ask { reason: why } => reason = why,
            }
        }
        Ruling::Ask(Box::new(PermissionRequest {
            id: RequestId::next(),
            kind,
            asker: about.asker,
            tool_use_id: call.id.clone(),
            tool_name: call.name.clone(),
            input: call.input.clone(),
            digest: Digest::of(&call.input),
            expires: Some(about.expires),
            current_mode: self.policy.mode(),
            required: requirement.level,
            reason,
            preview: self.judge.preview(call),
            grant: requirement.grant,
        }))
    }

    /// Remembers an answer "for this session".
    pub fn note(&mut self, call: &ToolCall, decision: &PermissionPromptDecision) {
        let requirement = self.judge.requirement(call);
        if *decision == PermissionPromptDecision::AllowForSession
            && requirement.always_ask.is_none()
        {
            self.policy.grant(&requirement.grant);
        }
    }
}

/// Asks the person. A cancelled turn denies.
pub async fn ask(request: PermissionRequest, cx: &TurnContext) -> PermissionPromptDecision {
    cx.prompter.decide(request, &cx.cancel).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_runtime::permissions::PermissionLevel;
    use claw_runtime::tools::Grant;

    /// `Read` reads, `Write` edits, everything else needs everything.
    struct ByName;

    impl Judge for ByName {
        fn requirement(&self, call: &ToolCall) -> Requirement {
            let level = match call.name.as_str() {
                "Read" => PermissionLevel::ReadOnly,
                "Write" => PermissionLevel::WorkspaceWrite,
                _ => PermissionLevel::DangerFullAccess,
            };
            let protected = call.input.contains(".git");
            Requirement {
                level,
                always_ask: protected.then(|| "protected".to_owned()),
                grant: Grant { key: format!("{}:{}", call.name, call.input), words: "it".into() },
            }
        }

        fn preview(&self, _call: &ToolCall) -> Option<String> {
            None
        }
    }

    fn call(name: &str, input: &str) -> ToolCall {
        ToolCall { id: "t".into(), name: name.into(), input: input.into(), iteration: 1 }
    }

    fn about() -> About {
        About { asker: Asker::default(), expires: Instant::now(), plan: None }
    }

    fn letter(ruling: &Ruling) -> char {
        match ruling {
            Ruling::Settled(Verdict::Allow { .. }) => 'A',
            Ruling::Settled(Verdict::Deny { .. }) => 'D',
            Ruling::Ask(_) => '?',
            Ruling::Leave => '-',
        }
    }

    #[test]
    fn the_mode_decides_about_the_clis_tools_as_about_ours() {
        let calls =
            [call("Read", "{}"), call("Write", "{}"), call("Bash", "{}"), call("Write", ".git")];
        for (mode, expected) in [
            (PermissionMode::ReadOnly, "ADDD"),
            (PermissionMode::WorkspaceWrite, "AA??"),
            (PermissionMode::DangerFullAccess, "AAA?"),
            (PermissionMode::Prompt, "????"),
            (PermissionMode::Allow, "AAA?"),
        ] {
            let mut gate = Gate::new(Arc::new(ByName));
            gate.set_mode(mode);
            let got: String = calls.iter().map(|call| letter(&gate.rule(call, about()))).collect();
            assert_eq!(got, expected, "{mode}");
        }
    }

    #[test]
    fn a_question_is_for_the_person_in_every_mode() {
        let which = r#"{"questions":[{"question":"Which?","options":[{"label":"This"}]}]}"#;
        for mode in [PermissionMode::ReadOnly, PermissionMode::Allow] {
            let mut gate = Gate::new(Arc::new(ByName));
            gate.set_mode(mode);
            assert_eq!(letter(&gate.rule(&call("AskUserQuestion", which), about())), '?');
            assert_eq!(letter(&gate.rule(&call("AskUserQuestion", "{}"), about())), '-');
            assert_eq!(letter(&gate.rule(&call("ExitPlanMode", "{}"), about())), '-');
            let plan = About { plan: Some("1.".into()), ..about() };
            assert_eq!(letter(&gate.rule(&call("ExitPlanMode", "{}"), plan)), '?');
        }
    }

    #[test]
    fn a_grant_holds_for_its_call_and_ends_with_the_session() {
        let mut gate = Gate::new(Arc::new(ByName));
        gate.set_mode(PermissionMode::WorkspaceWrite);
        let (bash, protected) = (call("Bash", "ls"), call("Bash", ".git"));
        for call in [&bash, &protected] {
            gate.note(call, &PermissionPromptDecision::AllowForSession);
        }
        assert_eq!(letter(&gate.rule(&bash, about())), 'A');
        assert_eq!(
            letter(&gate.rule(&protected, about())),
            '?',
            "what is protected is asked each time"
        );
        assert_eq!(letter(&gate.rule(&call("Bash", "rm"), about())), '?');
        gate.clear_grants();
        assert_eq!(letter(&gate.rule(&bash, about())), '?');
    }
}
