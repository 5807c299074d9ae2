//! Requests and keys in; screens, drafts and answers out.

mod answers;
mod focus;
mod kinds;
mod random;
mod screen;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tokio::sync::oneshot;

use super::*;
use crate::composer::{Composer, ComposerOutcome};
use crate::testing::{request, shown};
use crate::theme::Theme;

type Reply = oneshot::Receiver<PermissionPromptDecision>;

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
        let caret = self.dialog.draw(self.now, area, &mut buf, &Theme::plain());
        shown(&buf, caret)
    }
}

fn decided(mut reply: Reply) -> Option<PermissionPromptDecision> {
    reply.try_recv().ok()
}

const DENY: PermissionPromptDecision = PermissionPromptDecision::Deny { reason: None };
