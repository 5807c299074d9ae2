//! What a request can be answered with.

use claw_runtime::permissions::RequestKind;

use super::permission::Waiting;

/// One row below the input, in the order of the screen. What refuses comes first and is selected
/// whenever the dialog gets the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Deny,
    DenyWithReason,
    AllowOnce,
    AllowForSession,
    /// Change the input in the person's editor and look at it again.
    Edit,
    /// One of the answers that the question offers.
    Option(usize),
    /// Words of the person's own.
    Other,
    /// Go on with what is marked.
    Done,
}

/// What this request can be answered with now. "For this session" is not offered where it would not
/// hold.
pub(super) fn choices(waiting: &Waiting) -> Vec<Choice> {
    let request = &waiting.request;
    match &request.kind {
        RequestKind::TrustFolder => vec![Choice::Deny, Choice::AllowOnce],
        RequestKind::Tool { editable } => {
            let mut all = vec![Choice::Deny, Choice::DenyWithReason, Choice::AllowOnce];
            if request.can_be_granted() && waiting.edited.is_none() {
                all.push(Choice::AllowForSession);
            }
            if *editable {
                all.push(Choice::Edit);
            }
            all
        }
        RequestKind::Plan { .. } => {
            vec![Choice::Deny, Choice::DenyWithReason, Choice::AllowOnce, Choice::Edit]
        }
        RequestKind::Questions(_) => {
            let question = waiting.question();
            let options = question.map_or(0, |question| question.options.len());
            let mut all = vec![Choice::Deny];
            all.extend((0..options).map(Choice::Option));
            all.push(Choice::Other);
            if question.is_some_and(|question| question.multi_select) {
                all.push(Choice::Done);
            }
            all
        }
    }
}

impl Choice {
    /// Whether it lets something run or speaks for the person: not before all was on the screen.
    pub fn allows(self) -> bool {
        !matches!(self, Self::Deny | Self::DenyWithReason | Self::Edit)
    }

    /// The neighbour; the ends hold, so that one stray key never jumps from Deny to Allow.
    pub fn step(self, forward: bool, choices: &[Self]) -> Self {
        let at = choices.iter().position(|choice| *choice == self).unwrap_or(0);
        let to = if forward { at + 1 } else { at.saturating_sub(1) };
        choices.get(to).copied().unwrap_or(self)
    }

    /// Its words for this request.
    pub fn label(self, waiting: &Waiting) -> String {
        let request = &waiting.request;
        match (self, &request.kind) {
            (Self::Deny, RequestKind::Questions(_)) => "Do not answer".to_owned(),
            (Self::Deny, RequestKind::Plan { .. }) => "Keep planning".to_owned(),
            (Self::Deny, _) => "Deny".to_owned(),
            (Self::DenyWithReason, RequestKind::Plan { .. }) => {
                "Keep planning, with a message…".to_owned()
            }
            (Self::DenyWithReason, _) => "Deny with a reason…".to_owned(),
            (Self::AllowOnce, RequestKind::TrustFolder) => "Trust this folder".to_owned(),
            (Self::AllowOnce, RequestKind::Plan { .. }) if waiting.edited.is_some() => {
                "Approve the plan as you changed it".to_owned()
            }
            (Self::AllowOnce, RequestKind::Plan { .. }) => "Approve this plan".to_owned(),
            (Self::AllowOnce, _) if waiting.edited.is_some() => {
                "Allow once, as you changed it".to_owned()
            }
            (Self::AllowOnce, _) => "Allow once".to_owned(),
            (Self::AllowForSession, _) => {
                format!("Allow for this session: {}", request.grant.words)
            }
            (Self::Edit, _) => "Change it in your editor first…".to_owned(),
            (Self::Option(at), _) => {
                let Some(question) = waiting.question() else { return String::new() };
                let label = question.options.get(at).map_or("", |option| option.label.as_str());
                match (question.multi_select, waiting.marked.contains(&at)) {
                    (false, _) => label.to_owned(),
                    (true, true) => format!("[x] {label}"),
                    (true, false) => format!("[ ] {label}"),
                }
            }
            (Self::Other, _) => "Something else…".to_owned(),
            (Self::Done, _) => "Go on with what is marked".to_owned(),
        }
    }

    /// What stands before the field that it opens.
    pub fn field(self, waiting: &Waiting) -> &'static str {
        match (self, &waiting.request.kind) {
            (Self::Other, _) => "› Answer: ",
            (_, RequestKind::Plan { .. }) => "› Message: ",
            _ => "› Reason: ",
        }
    }
}
