//! How much a bench does: enough to measure, or just enough to see that it works.

/// `measured`, or `tested` when nobody measures: under `cargo bench -- --test` and `cargo test --benches`.
pub(crate) fn size<T>(measured: T, tested: T) -> T {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    if has("--bench") && !has("--test") { measured } else { tested }
}
