//! Draws frames: one synchronized block and one write for each, and no write for a frame that
//! changed nothing.
//!
//! Refuses to look at the terminal's size by itself: sizes come as events, so that a frame costs no
//! system call but its write.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};

use super::modes;

/// Collects the bytes of a frame; flushing is the screen's business.
#[derive(Debug, Clone, Default)]
struct FrameBytes(Rc<RefCell<Vec<u8>>>);

impl Write for FrameBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Turns what the application draws into the bytes of a frame.
pub struct Screen {
    bytes: FrameBytes,
    terminal: Terminal<CrosstermBackend<FrameBytes>>,
    size: (u16, u16),
    /// The bytes of the frame before. A frame only says what differs, so two equal ones in a row
    /// mean that the second changes nothing.
    last: Vec<u8>,
}

impl Screen {
    /// A blank screen of this many columns and rows.
    pub fn new(size: (u16, u16)) -> io::Result<Self> {
        let bytes = FrameBytes::default();
        let terminal = blank(&bytes, size)?;
        Ok(Self { bytes, terminal, size, last: Vec::new() })
    }

    /// Columns and rows.
    pub fn size(&self) -> (u16, u16) {
        self.size
    }

    /// The next frame is drawn from nothing, at this size.
    pub fn reset(&mut self, size: (u16, u16)) -> io::Result<()> {
        self.size = size;
        self.terminal = blank(&self.bytes, size)?;
        let mut bytes = self.bytes.0.borrow_mut();
        bytes.clear();
        bytes.extend_from_slice(modes::CLEAR.as_bytes());
        self.last.clear();
        Ok(())
    }

    /// The bytes that bring the terminal from the frame before to this one; none when they are equal.
    pub fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>)) -> io::Result<Option<Vec<u8>>> {
        self.terminal.draw(paint)?;
        let bytes = self.bytes.0.take();
        if bytes == self.last {
            return Ok(None);
        }
        let mut frame =
            Vec::with_capacity(bytes.len() + modes::FRAME_BEGIN.len() + modes::FRAME_END.len());
        frame.extend_from_slice(modes::FRAME_BEGIN.as_bytes());
        frame.extend_from_slice(&bytes);
        frame.extend_from_slice(modes::FRAME_END.as_bytes());
        self.last = bytes;
        Ok(Some(frame))
    }
}

fn blank(
    bytes: &FrameBytes,
    (width, height): (u16, u16),
) -> io::Result<Terminal<CrosstermBackend<FrameBytes>>> {
    let viewport = Viewport::Fixed(Rect::new(0, 0, width, height));
    Terminal::with_options(CrosstermBackend::new(bytes.clone()), TerminalOptions { viewport })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(screen: &mut Screen, text: &str) -> Option<String> {
        let frame = screen
            .draw(|frame| {
                frame.render_widget(text, frame.area());
                frame.set_cursor_position((0, 1));
            })
            .unwrap();
        frame.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_frame_is_one_synchronized_block() {
        let mut screen = Screen::new((20, 4)).unwrap();
        let frame = show(&mut screen, "hello").unwrap();
        assert!(frame.starts_with(modes::FRAME_BEGIN) && frame.ends_with(modes::FRAME_END));
        assert!(frame.contains("hello"));
    }

    #[test]
    fn a_frame_that_changes_nothing_is_not_written() {
        let mut screen = Screen::new((20, 4)).unwrap();
        show(&mut screen, "hello");
        // The first repetition still says where the cursor is.
        show(&mut screen, "hello");
        assert_eq!(show(&mut screen, "hello"), None);
        assert!(show(&mut screen, "hellO").unwrap().contains('O'));
    }

    #[test]
    fn only_changed_cells_are_written_and_nothing_is_cleared() {
        let mut screen = Screen::new((20, 4)).unwrap();
        show(&mut screen, "hello world");
        let frame = show(&mut screen, "hello worlk").unwrap();
        assert!(!frame.contains("hello") && !frame.contains("[2J"), "{frame:?}");
    }

    #[test]
    fn a_new_size_paints_everything_again_inside_the_block() {
        let mut screen = Screen::new((20, 4)).unwrap();
        show(&mut screen, "hello");
        screen.reset((10, 3)).unwrap();
        let frame = show(&mut screen, "hello").unwrap();
        assert!(frame.starts_with(&format!("{}{}", modes::FRAME_BEGIN, modes::CLEAR)), "{frame:?}");
        assert!(frame.contains("hello"));
    }
}
