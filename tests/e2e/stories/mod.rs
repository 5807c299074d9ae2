//! Whole stories on the real program: a real terminal, real HTTP, real files. Each test is named
//! after what it shows.

mod streaming;
mod thinking;
mod tools;
