//! A tiny adapter.
