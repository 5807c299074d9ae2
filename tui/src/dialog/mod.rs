//! Questions in front of the conversation: the permission dialog and lists to choose from.

pub mod palette;
pub mod visible;

pub use palette::Palette;
