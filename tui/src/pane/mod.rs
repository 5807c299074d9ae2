//! The screen of another program inside ours: what it shows, as cells that are safe to draw, and what
//! a key, a paste or the mouse is in its terminal's language.
//!
//! Knows nothing of that program: pictures come in, bytes go out. None of its control sequences can
//! pass: a picture takes in text, cell by cell, and cleans it on the way.

mod keys;
mod picture;

pub use keys::{key_bytes, mouse_bytes, paste_bytes};
pub use picture::Picture;

/// How the program wants to be talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PaneModes {
    /// Arrow keys are `ESC O A` instead of `ESC [ A`.
    pub application_cursor: bool,
    pub bracketed_paste: bool,
    /// None when it wants to know nothing of the mouse.
    pub mouse: Option<PaneMouse>,
    /// It has the whole screen, and so no scrollback of its own.
    pub full_screen: bool,
}

/// What the program wants to know of the mouse besides its buttons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaneMouse {
    /// Movement while a button is held.
    pub drags: bool,
    /// All movement.
    pub moves: bool,
    /// Reports are `CSI < ... M`; otherwise of the old form with single bytes.
    pub sgr: bool,
}

/// A colour as the program named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PaneColour {
    #[default]
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// How a cell looks, besides its text.
#[expect(clippy::struct_excessive_bools, reason = "the attributes of a cell are independent")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PaneLook {
    pub fg: PaneColour,
    pub bg: PaneColour,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub inverse: bool,
}

/// What the source of pictures tells.
#[derive(Debug)]
pub enum PaneEvent {
    /// It looks like this now.
    Shown(Box<Picture>),
    /// There is no screen: none yet, or not any more.
    Gone,
}

/// Orders to whoever has the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaneOrder {
    /// Send pictures from now on, and give the screen this size.
    Look { columns: u16, rows: u16 },
    /// The screen gets this size.
    Resize { columns: u16, rows: u16 },
    /// The person typed this.
    Type(Vec<u8>),
    /// Send no more pictures.
    Leave,
}
