//! Keys in, screens and outcomes out.

mod commands;
mod editing;
mod history;
mod keys;
mod random;
mod screen;

use crossterm::event::{KeyModifiers, ModifierKeyCode};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::*;
use crate::testing::{key, shown};
use crate::theme::Theme;
use ComposerOutcome as Outcome;

struct Rig {
    composer: Composer,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        Self { composer: Composer::default(), now: Instant::now() }
    }

    fn with_history(entries: &[&str]) -> Self {
        let mut rig = Self::new();
        rig.composer.load_history(entries.iter().map(|e| (*e).to_owned()).collect());
        rig
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Outcome {
        self.composer.handle(self.now, &Event::Key(KeyEvent::new(code, modifiers)))
    }

    /// Keys by name, separated by spaces: `a`, `enter`, `ctrl+c`, `alt+b`, `shift+enter`.
    fn keys(&mut self, names: &str) -> Outcome {
        let mut last = Outcome::Ignored;
        for name in names.split(' ') {
            last = self.composer.handle(self.now, &Event::Key(key(name)));
        }
        last
    }

    fn type_text(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.press(KeyCode::Char(c), KeyModifiers::NONE);
        }
        self
    }

    fn paste(&mut self, text: &str) {
        assert_eq!(
            self.composer.handle(self.now, &Event::Paste(text.to_owned())),
            Outcome::Consumed
        );
    }

    fn text(&self) -> String {
        self.composer.text()
    }

    /// The composer at this size, as the person sees it.
    fn screen(&mut self, width: u16, max: u16) -> String {
        let height = self.composer.height(width, max);
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        let caret = self.composer.draw(area, &mut buf, &Theme::plain());
        shown(&buf, caret)
    }

    fn list(&mut self, width: u16) -> String {
        let area = Rect::new(0, 0, width, self.composer.completion_height(20));
        let mut buf = Buffer::empty(area);
        self.composer.draw_completion(area, &mut buf, &Theme::plain());
        shown(&buf, None)
    }
}
