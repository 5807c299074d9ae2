//! What the tests of several rooms share: keys by name in, the screen as text out.

use claw_runtime::permissions::{
    Asker, Digest, PermissionLevel, PermissionMode, PermissionRequest, RequestId, RequestKind,
};
use claw_runtime::tools::Grant;
use claw_runtime::usage::TokenUsage;
use claw_runtime::{TurnStop, TurnSummary};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Position;
use unicode_width::UnicodeWidthStr;

/// A key as one writes it: `x`, `enter`, `ctrl+c`, `shift+enter`.
pub fn key(name: &str) -> KeyEvent {
    let mut modifiers = KeyModifiers::NONE;
    let mut rest = name;
    while let Some((head, tail)) = rest.split_once('+').filter(|(_, tail)| !tail.is_empty()) {
        modifiers |= match head {
            "ctrl" => KeyModifiers::CONTROL,
            "alt" => KeyModifiers::ALT,
            "shift" => KeyModifiers::SHIFT,
            _ => panic!("no key: {name}"),
        };
        rest = tail;
    }
    let code = match rest {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "space" => KeyCode::Char(' '),
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        "f1" => KeyCode::F(1),
        "f2" => KeyCode::F(2),
        "f6" => KeyCode::F(6),
        one => {
            let mut chars = one.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => KeyCode::Char(c),
                _ => panic!("no key: {name}"),
            }
        }
    };
    KeyEvent::new(code, modifiers)
}

/// The buffer as lines of text, `‸` where the cursor is, without blanks at their ends.
pub fn shown(buffer: &Buffer, cursor: Option<Position>) -> String {
    let area = *buffer.area();
    let rows = (area.top()..area.bottom()).map(|y| {
        let mut row = String::new();
        // A wide character covers the cells after its own.
        let mut covered = 0;
        for x in area.left()..area.right() {
            if cursor == Some(Position::new(x, y)) {
                row.push('‸');
            }
            if covered > 0 {
                covered -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            covered = symbol.width().saturating_sub(1);
            row.push_str(symbol);
        }
        row.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// How a turn without tools ended.
pub fn summary(stop: TurnStop) -> TurnSummary {
    TurnSummary {
        stop,
        text: String::new(),
        tool_calls: 0,
        iterations: 1,
        usage: TokenUsage::default(),
        auto_compaction: None,
    }
}

/// A question whether this call may run. It needs more than the mode gives.
pub fn request(tool: &str, input: &str) -> PermissionRequest {
    PermissionRequest {
        id: RequestId::next(),
        kind: RequestKind::Tool { editable: true },
        asker: Asker::default(),
        digest: Digest::of(input),
        expires: None,
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
