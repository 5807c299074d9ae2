//! The lines, the machine behind them, and real processes that speak them.

mod lines;
mod machine;
mod processes;
mod scripted;
