//! The real program on a real terminal: it starts, shows, resizes, is quiet, and gives the terminal
//! back however it ends.

mod leaving;
mod living;
