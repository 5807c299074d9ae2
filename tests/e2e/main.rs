//! End-to-end tests, one binary: linking dominates.

mod architecture;
mod turn;
mod wire;
