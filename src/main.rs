//! The `floodlab` command.

fn main() {}
