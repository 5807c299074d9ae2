//! Layout: where each part of the screen is, for any size down to nothing.

use ratatui::layout::Rect;

/// The rows of the screen, top to bottom. Parts that do not fit are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub transcript: Rect,
    /// The permission dialog, while it has the keys.
    pub dialog: Rect,
    /// One line about a question that waits.
    pub notice: Rect,
    /// One line between what was said and what is being written.
    pub rule: Rect,
    pub composer: Rect,
    pub status: Rect,
}

impl Layout {
    /// The whole screen.
    pub fn area(&self) -> Rect {
        self.transcript.union(self.status)
    }
}

/// Rows that the parts below the transcript would like to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    pub notice: u16,
    pub composer: u16,
    pub dialog: u16,
}

/// Smallest size at which everything is drawn; below it only a word is.
pub const MINIMUM: (u16, u16) = (10, 3);

/// Screens of this many rows have one to spare for a line above the composer.
const RULE_FROM: u16 = 12;

/// Rows of the conversation that stay above a dialog, where there are that many.
const CONTEXT_ROWS: u16 = 4;

/// Gives the composer and the status line their rows first, then the notice; the
/// transcript takes the rest and keeps at least a third of the screen where there is one.
pub fn layout(area: Rect, wanted: Wanted) -> Layout {
    let mut left = area.height;
    let mut take = |rows: u16, keep: u16| {
        let rows = rows.min(left.saturating_sub(keep));
        left -= rows;
        rows
    };
    let third = area.height / 3;
    let status = take(1, 1);
    let composer = take(wanted.composer.max(1), third);
    let composer = if composer == 0 { take(1, 0) } else { composer };
    let notice = take(wanted.notice, 0);
    let rule = take(u16::from(area.height >= RULE_FROM), 0);
    let dialog = take(wanted.dialog, 0);
    let transcript = left;
    let mut y = area.y;
    let mut row = |height: u16| {
        let rect = Rect { x: area.x, y, width: area.width, height };
        y += height;
        rect
    };
    Layout {
        transcript: row(transcript),
        dialog: row(dialog),
        notice: row(notice),
        rule: row(rule),
        composer: row(composer),
        status: row(status),
    }
}

/// The room that a dialog may take of this layout: some of what was said stays above it.
pub fn room_for_dialog(layout: Layout) -> Rect {
    let height = layout.transcript.height;
    bottom(layout.transcript, height - CONTEXT_ROWS.min(height / 4))
}

/// The last `rows` rows of an area.
pub fn bottom(area: Rect, rows: u16) -> Rect {
    let height = rows.min(area.height);
    Rect { y: area.bottom() - height, height, ..area }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_cover_every_size_without_overlap() {
        for height in 0..60 {
            for composer in [0, 1, 3, 40] {
                let area = Rect::new(0, 0, 80, height);
                let layout = layout(area, Wanted { notice: 1, composer, dialog: 9 });
                let parts = [
                    layout.transcript,
                    layout.dialog,
                    layout.notice,
                    layout.rule,
                    layout.composer,
                    layout.status,
                ];
                let total: u16 = parts.iter().map(|part| part.height).sum();
                assert_eq!(total, height);
                for pair in parts.windows(2) {
                    assert_eq!(pair[0].bottom(), pair[1].y);
                }
                assert!(height == 0 || layout.composer.height >= 1, "the caret has a row");
            }
        }
    }
}
