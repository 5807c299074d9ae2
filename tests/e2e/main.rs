//! End-to-end tests, one binary: linking dominates.

mod architecture;
mod smoke;
mod turn;
mod wire;
