//! To be built.
pub struct Highlighter;
