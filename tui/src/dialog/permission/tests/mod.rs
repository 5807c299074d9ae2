//! Requests and keys in; screens, drafts and answers out.

mod answers;
mod focus;
mod random;
mod screen;

use claw_runtime::permissions::{PermissionLevel, PermissionMode};
use claw_runtime::tools::Grant;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tokio::sync::oneshot;

use super::*;
use crate::composer::{Composer, ComposerOutcome};
use crate::testing::shown;
use crate::theme::Theme;

type Reply = oneshot::Receiver<PermissionPromptDecision>;

fn request(tool: &str, input: &str) -> PermissionRequest {
    PermissionRequest {
        id: RequestId::next(),
        tool_use_id: "use".into(),
        tool_name: tool.into(),
        input: input.into(),
        current_mode: PermissionMode::WorkspaceWrite,
        required: PermissionLevel::DangerFullAccess,
        reason: None,
        preview: None,
        grant: Grant { key: "bash:cargo test".into(), words: "`cargo test`".into() },
    }
}

fn command(text: &str) -> PermissionRequest {
    request("bash", &serde_json::json!({ "command": text }).to_string())
}

/// The dialog in front of a composer, as the application puts them.
struct Rig {
    dialog: PermissionDialog,
    composer: Composer,
    now: Instant,
    size: (u16, u16),
    submitted: Vec<String>,
}

impl Rig {
    fn new() -> Self {
        Self {
            dialog: PermissionDialog::default(),
            composer: Composer::default(),
            now: Instant::now(),
            size: (80, 24),
            submitted: Vec::new(),
        }
    }

    fn ask(&mut self, request: PermissionRequest) -> (RequestId, Reply) {
        let (reply, answer) = PermissionReply::channel();
        let id = request.id;
        self.dialog.push(request, reply, self.now);
        (id, answer)
    }

    fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        self.dialog.tick(self.now);
    }

    fn event(&mut self, event: &Event) -> DialogOutcome {
        let outcome = self.dialog.handle(self.now, event);
        if outcome == DialogOutcome::Ignored
            && let ComposerOutcome::Submit(text) = self.composer.handle(self.now, event)
        {
            self.submitted.push(text);
        }
        outcome
    }

    fn key(&mut self, code: KeyCode) -> DialogOutcome {
        self.event(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn keys(&mut self, codes: &[KeyCode]) -> DialogOutcome {
        codes.iter().map(|code| self.key(*code)).last().unwrap_or(DialogOutcome::Ignored)
    }

    fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.key(KeyCode::Char(c));
        }
    }

    fn screen(&mut self) -> String {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buf = Buffer::empty(area);
        let caret = self.dialog.draw(area, &mut buf, &Theme::plain());
        shown(&buf, caret)
    }
}

fn decided(mut reply: Reply) -> Option<PermissionPromptDecision> {
    reply.try_recv().ok()
}

const DENY: PermissionPromptDecision = PermissionPromptDecision::Deny { reason: None };
