//! The terminal as a thing that was lent: taken with all its modes, given back exactly as it was.
//!
//! [`session`] is what the loop holds: the [`screen`] that draws, the [`input`] thread and the
//! [`signals`] thread. [`restore`] gives the terminal back from wherever the program ends, and the
//! [`mod@panic`] hook makes sure that a panic's words land on the normal screen. [`modes`] are the
//! bytes. [`clipboard`], [`capabilities`] and [`farewell`] are pure.
//!
//! Refuses to ask the terminal questions: a terminal that does not answer would cost time, and one
//! that answers late would type into the prompt. No file and no process is touched here.

pub mod capabilities;
pub mod clipboard;
pub mod farewell;
pub mod input;
pub mod modes;
pub mod panic;
mod prefixed;
pub mod restore;
pub mod screen;
pub mod session;
pub mod signals;

pub use restore::Restorer;
pub use session::{Options, Session};
