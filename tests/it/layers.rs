//! The list of modules in `lib.rs` is the architecture: a module uses only those listed above it. And what else clippy
//! cannot see.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use floodlab::Registry;

/// The crates whose `lib.rs` lists its modules bottom up.
const CRATES: [&str; 2] = ["", "fake-telegram"];
/// Of a file in `src`, tests included.
const LINES_MAX: usize = 500;
/// Files that are longer because they are tables.
const TABLES: [&str; 0] = [];

/// A source file: its path from `src` on, and its text.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.to_owned() }
    }

    /// The module of the list that it belongs to: the first part of its path.
    fn module(&self) -> String {
        let first = self.path.iter().next().expect("a path").to_string_lossy();
        first.trim_end_matches(".rs").to_owned()
    }
}

/// All files of `src`, in order of their paths.
fn sources(root: &Path) -> Vec<Source> {
    let (mut sources, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("UTF-8");
                sources.push(Source { path: path.strip_prefix(root).expect("below").to_owned(), text });
            }
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    sources
}

fn crate_sources(name: &str) -> Vec<Source> {
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(name).join("src"))
}

/// The text with comments, texts and characters blanked out, lines kept.
fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let length = skipped(rest);
        if length == 0 {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            code.extend(rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
    }
    code
}

/// How long the comment, text or character is that `rest` begins with; 0 if it begins with code.
fn skipped(rest: &str) -> usize {
    let to = |pattern: &str, from: usize| rest[from..].find(pattern).map_or(rest.len(), |at| from + at);
    if rest.starts_with("//") {
        return to("\n", 0);
    }
    if rest.starts_with("/*") {
        return (to("*/", 2) + 2).min(rest.len());
    }
    if rest.starts_with("r\"") || rest.starts_with("r#") {
        let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
        if rest[1 + hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            return (to(&end, 2 + hashes) + end.len()).min(rest.len());
        }
    }
    let mut chars = rest.char_indices();
    match chars.next() {
        Some((_, '"')) => {
            let mut escaped = false;
            for (at, c) in chars {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '"' => return at + 1,
                    _ => {}
                }
            }
            rest.len()
        }
        // A character, not a lifetime: it ends after one character or an escape.
        Some((_, '\'')) if rest[1..].starts_with('\\') => to("'", 3) + 1,
        Some((_, '\'')) => match (chars.next(), chars.next()) {
            (Some(_), Some((at, '\''))) => at + 1,
            _ => 0,
        },
        _ => 0,
    }
}

/// Blanks out what is for tests only: `#[cfg(test)]` and the item after it.
fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut code = code.to_owned();
    while let Some(begin) = code.find(MARK) {
        let after = begin + MARK.len();
        let end = match code[after..].find([';', '{']).map(|at| after + at) {
            Some(open) if code.as_bytes()[open] == b'{' => closing(&code, open),
            Some(end) => end + 1,
            None => code.len(),
        };
        let blank: String = code[begin..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        code.replace_range(begin..end, &blank);
    }
    code
}

/// Behind the brace that closes the one at `open`.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, c) in code[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + at + 1;
        }
    }
    code.len()
}

/// The modules in the order of their list.
fn list(lib: &str) -> Vec<String> {
    let lib = without_tests(&code(lib));
    let lines = lib.lines().map(str::trim).filter_map(|line| line.strip_suffix(';'));
    lines.filter_map(|line| Some(line.rsplit_once("mod ")?.1.to_owned())).collect()
}

/// The names that follow `crate::` (in a file right below `src`, `super::` too), each with its line.
fn used(source: &Source) -> Vec<(usize, String)> {
    let code = without_tests(&code(&source.text));
    let mut roots = vec!["crate::"];
    if source.path.iter().count() == 1 {
        roots.push("super::");
    }
    let mut used = Vec::new();
    for root in roots {
        for (at, _) in code.match_indices(root) {
            let own =
                code[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':');
            if !own {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            let rest = &code[at + root.len()..];
            used.extend(heads(rest).into_iter().map(|name| (line, name)));
        }
    }
    used.sort();
    used
}

/// The first names of a path, or of all paths of a group in braces.
fn heads(path: &str) -> Vec<String> {
    let name = |path: &str| path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    if !path.starts_with('{') {
        return vec![name(path)];
    }
    let group = &path[1..closing(path, 0) - 1];
    let (mut heads, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                heads.push(name(group[begin..at].trim()));
                begin = at + 1;
            }
            _ => {}
        }
    }
    heads.retain(|head| !head.is_empty());
    heads
}

/// Every use of a module that is not listed above the user, as `file:line: why`.
fn violations(sources: &[Source]) -> Vec<String> {
    let lib = sources.iter().find(|source| source.path == Path::new("lib.rs")).expect("there is a lib.rs");
    let list = list(&lib.text);
    let place = |module: &str| list.iter().position(|listed| listed == module);
    let mut violations = Vec::new();
    for source in sources {
        let module = source.module();
        if module == "lib" || module == "main" || source.path.ends_with("tests.rs") {
            continue;
        }
        let path = source.path.display();
        let Some(own) = place(&module) else {
            violations.push(format!("{path}: `{module}` is not in the list of lib.rs"));
            continue;
        };
        for (line, name) in used(source) {
            match place(&name) {
                Some(other) if other <= own => {}
                Some(_) => violations
                    .push(format!("{path}:{line}: `{module}` uses `{name}`, which is listed below it")),
                None => violations.push(format!(
                    "{path}:{line}: `{name}` is no module; use the path to where it is defined"
                )),
            }
        }
    }
    violations
}

#[test]
fn modules_use_only_those_listed_above_them() {
    for name in CRATES {
        let sources = crate_sources(name);
        assert!(sources.len() > 10, "the sources are where they are looked for");
        let violations = violations(&sources);
        assert!(violations.is_empty(), "{name}:\n{}", violations.join("\n"));
    }
}

#[test]
fn the_check_finds_what_is_wrong_and_nothing_else() {
    let lib = r#"
        //! pub mod commented;
        pub(crate) mod low;
        pub mod middle;
        pub mod high;
        #[cfg(test)]
        mod helpers;
        pub use high::Thing;
    "#;
    let check = |path: &str, text: &str, expected: &[&str]| {
        let sources = [Source::new("lib.rs", lib), Source::new(path, text)];
        assert_eq!(violations(&sources), expected, "{text}");
    };
    check("middle.rs", "use crate::low::A;\nuse crate::middle::B;\nuse super::low::C;", &[]);
    check("middle.rs", "use crate::high;", &["middle.rs:1: `middle` uses `high`, which is listed below it"]);
    check(
        "middle/part.rs",
        "\n\nfn f() -> crate::high::A {}",
        &["middle/part.rs:3: `middle` uses `high`, which is listed below it"],
    );
    check(
        "low.rs",
        "use crate::{\n    low::{A, B},\n    middle::{self, high},\n    high::C,\n};",
        &[
            "low.rs:1: `low` uses `high`, which is listed below it",
            "low.rs:1: `low` uses `middle`, which is listed below it",
        ],
    );
    check("low.rs", "use super::middle;", &["low.rs:1: `low` uses `middle`, which is listed below it"]);
    check("middle/part.rs", "use super::high;", &[]); // Its own module's.
    check(
        "middle.rs",
        "use crate::Thing;",
        &["middle.rs:1: `Thing` is no module; use the path to where it is defined"],
    );
    check("stray.rs", "", &["stray.rs: `stray` is not in the list of lib.rs"]);
    // Comments, texts and tests may say what they like.
    check("low.rs", "/// [`crate::high`]\n// crate::high\n/* crate::high */", &[]);
    check(
        "low.rs",
        "const A: &str = \"crate::high\"; const B: &str = r#\"\"crate::high\"#; const C: char = '\"';",
        &[],
    );
    check("low.rs", "#[cfg(test)]\nmod tests {\n    use crate::high;\n    fn f() { {} }\n}", &[]);
    check("low/tests.rs", "use crate::high;", &[]);
    check(
        "low.rs",
        "#[cfg(test)]\nmod tests;\nfn f<'a>(c: char) -> bool { c == '{' }\nuse crate::high;",
        &["low.rs:4: `low` uses `high`, which is listed below it"],
    );
}

#[test]
fn a_module_with_parts_is_a_file_beside_its_directory() {
    for name in CRATES {
        let sources = crate_sources(name);
        assert!(!sources.iter().any(|source| source.path.ends_with("mod.rs")), "{name}: no mod.rs");
        let files: BTreeSet<&Path> = sources.iter().map(|source| source.path.as_path()).collect();
        for path in &files {
            let parent = path.parent().filter(|parent| *parent != Path::new(""));
            let beside = parent.map(|parent| parent.with_extension("rs"));
            assert!(beside.is_none_or(|beside| files.contains(beside.as_path())), "{}", path.display());
        }
    }
}

#[test]
fn a_file_reads_in_one_sitting() {
    for name in CRATES {
        for Source { path, text } in crate_sources(name) {
            let lines = text.lines().count();
            let table = TABLES.iter().any(|table| path.ends_with(table));
            assert!(
                lines <= LINES_MAX || table,
                "{} has {lines} lines: which second idea does it hold?",
                path.display()
            );
        }
    }
}

/// A strategy's or workload's file, type and `KIND` are one name in three spellings.
#[test]
fn a_file_a_type_and_a_kind_are_one_name() {
    let registry = Registry::builtin();
    let strategies: BTreeSet<&str> = registry.strategies().iter().map(|strategy| strategy.kind).collect();
    let workloads: BTreeSet<&str> = registry.workloads().iter().map(|workload| workload.kind).collect();
    let traits: [(&str, &[&str], BTreeSet<&str>); 2] =
        [("strategy", &["Strategy", "Composition"], strategies), ("workload", &["Workload"], workloads)];
    for (module, traits, registered) in traits {
        let mut kinds = BTreeSet::new();
        for Source { path, text } in crate_sources("").iter().filter(|source| source.path.starts_with(module))
        {
            let production = text.split("#[cfg(test)]").next().expect("a first part");
            // A composition is a strategy of one file too; what turns one into the other is not.
            let implementation =
                traits.iter().find_map(|of| production.split_once(&format!("impl {of} for ")));
            let Some((_, after)) = implementation else { continue };
            let type_name = after.split([' ', '<']).next().expect("a type");
            let kind =
                after.split_once("const KIND: &'static str = \"").and_then(|(_, rest)| rest.split_once('"'));
            let (kind, _) = kind.expect("a kind");
            let file = path.file_stem().expect("a name").to_string_lossy().replace('_', "-");
            assert_eq!(
                (kind, kebab(type_name).as_str()),
                (file.as_str(), file.as_str()),
                "{}",
                path.display()
            );
            kinds.insert(kind.to_owned());
        }
        assert_eq!(kinds.iter().map(String::as_str).collect::<BTreeSet<_>>(), registered, "{module}");
    }
}

fn kebab(camel: &str) -> String {
    let mut kebab = String::new();
    for c in camel.chars() {
        if c.is_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.extend(c.to_lowercase());
    }
    kebab
}
