//! One test binary: links once.

mod reports;
