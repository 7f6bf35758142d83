//! The fake Telegram as a program: the same as `floodlab serve`.

fn main() {}
