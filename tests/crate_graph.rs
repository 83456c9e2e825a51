#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Structure of the workspace: dependencies between crates, cycles between modules, and files that packages share.
//!
//! The graph of modules is approximate. It contains the paths in source code that start with `crate`, `self` or
//! `super`; a name that `lib.rs` re-exports counts as a reference to the module that defines it. Paths that macros
//! generate, paths in string literals, and items that `lib.rs` defines are not edges.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The crates of the workspace, lowest layer first, and the crates that each of them depends on.
const LAYERS: &[(&str, &[&str])] = &[
    ("corbie-util", &[]),
    ("corbie-test-support", &[]),
    ("corbie-mcp-macros", &[]),
    ("corbie-mcp", &["corbie-mcp-macros"]),
    ("corbie-infer", &[]),
    ("corbie-extract", &[]),
    ("corbie-index", &[]),
    ("corbie-config", &["corbie-extract", "corbie-infer", "corbie-mcp", "corbie-util"]),
    ("corbie-llm", &["corbie-config", "corbie-mcp", "corbie-util"]),
    (
        "corbie-classify",
        &["corbie-config", "corbie-extract", "corbie-index", "corbie-infer", "corbie-llm", "corbie-mcp", "corbie-util"],
    ),
    (
        "corbie-knowledge",
        &[
            "corbie-classify",
            "corbie-config",
            "corbie-extract",
            "corbie-index",
            "corbie-infer",
            "corbie-llm",
            "corbie-mcp",
            "corbie-util",
        ],
    ),
    (
        "corbie-router",
        &[
            "corbie-classify",
            "corbie-config",
            "corbie-infer",
            "corbie-knowledge",
            "corbie-llm",
            "corbie-mcp",
            "corbie-util",
        ],
    ),
    (
        "corbie",
        &[
            "corbie-classify",
            "corbie-config",
            "corbie-extract",
            "corbie-index",
            "corbie-infer",
            "corbie-knowledge",
            "corbie-llm",
            "corbie-mcp",
            "corbie-router",
            "corbie-util",
        ],
    ),
];

/// Top-level modules that depend on each other in a cycle, by crate. The list may only shrink.
const KNOWN_CYCLES: &[(&str, &[&str])] = &[
    (
        "corbie-mcp",
        &[
            "admission",
            "builder",
            "client_requests",
            "connected_caller",
            "context",
            "deferred_progress",
            "discovery",
            "dispatch",
            "methods",
            "metrics",
            "outcome",
            "prompt",
            "registry",
            "reply",
            "resource",
            "resource_lister",
            "server",
            "session",
            "tasks",
            "tool",
            "transport",
        ],
    ),
    ("corbie-extract", &["image", "ooxml", "svg"]),
    ("corbie-classify", &["model_recommendation", "rules", "taxonomy"]),
    ("corbie-router", &["routed_request", "router", "stream"]),
];

/// Files that a package includes with `#[path]` although they belong to another package. The list may only shrink.
const SHARED_FILES: &[(&str, &str)] = &[
    ("corbie", "fuzz/invariants/mod.rs"),
    ("corbie-extract", "crates/extract/fuzz/invariants.rs"),
    ("corbie-index", "crates/index/fuzz/invariants.rs"),
    ("corbie-mcp", "crates/mcp/fuzz/invariants/mod.rs"),
];

#[test]
fn crates_depend_only_on_lower_layers() {
    let crates = crates();
    let names: BTreeSet<&str> = crates.iter().map(|member| member.name.as_str()).collect();
    let listed: BTreeSet<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, listed, "LAYERS in {} must list every crate of the workspace once", file!());

    let mut problems = Vec::new();
    for (place, (name, allowed)) in LAYERS.iter().enumerate() {
        let lower: BTreeSet<&str> = LAYERS[..place].iter().map(|(name, _)| *name).collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        for dependency in allowed.difference(&lower) {
            problems.push(format!("LAYERS: {name} depends on {dependency}, which is not in a lower layer"));
        }
        let member = crates.iter().find(|member| member.name == *name).unwrap();
        let declared: BTreeSet<&str> = member.dependencies.iter().map(String::as_str).collect();
        let declared: BTreeSet<&str> = declared.intersection(&names).copied().collect();
        let manifest = relative(&member.folder.join("Cargo.toml"));
        for dependency in declared.difference(&allowed) {
            problems.push(format!(
                "{name} must not depend on {dependency}: remove it from {manifest}, and move the shared code to a \
                 lower crate or pass it in as a trait; if the new edge is intended, add it to LAYERS in {} and to \
                 ARCHITECTURE.md",
                file!()
            ));
        }
        for dependency in allowed.difference(&declared) {
            problems
                .push(format!("{name} no longer depends on {dependency}: remove the edge from LAYERS in {}", file!()));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn top_level_modules_have_no_new_cycles() {
    let mut problems = Vec::new();
    for member in crates() {
        let files = rust_files(&member.folder.join("src"));
        let graph = module_graph(&files);
        assert!(!graph.modules.is_empty(), "{} has no modules: does the parser still work?", member.name);
        let actual = graph.cycles();
        let known: BTreeSet<BTreeSet<&str>> = KNOWN_CYCLES
            .iter()
            .filter(|(name, _)| *name == member.name)
            .map(|(_, modules)| modules.iter().copied().collect())
            .collect();
        problems.extend(actual.difference(&known).map(|cycle| graph.describe_cycle(&member.name, cycle, &known)));
        problems.extend(known.difference(&actual).map(|cycle| {
            format!(
                "{}: {cycle:?} is no longer a cycle: remove or shrink it in KNOWN_CYCLES ({})",
                member.name,
                file!()
            )
        }));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn packages_share_no_further_files() {
    let mut actual = BTreeMap::new();
    for member in crates() {
        for folder in ["src", "tests"] {
            let folder = member.folder.join(folder);
            for (file, text) in rust_files(&folder) {
                let source = folder.join(file);
                for target in path_attributes(&tokens(&text)) {
                    let target = normalize(&source.parent().unwrap().join(target));
                    if package_of(&target) != package_of(&source) {
                        actual.insert((member.name.clone(), relative(&target)), relative(&source));
                    }
                }
            }
        }
    }
    let known: BTreeSet<(String, String)> =
        SHARED_FILES.iter().map(|(package, file)| ((*package).to_owned(), (*file).to_owned())).collect();
    let mut problems = Vec::new();
    for (shared, source) in actual.iter().filter(|(shared, _)| !known.contains(*shared)) {
        let (package, target) = shared;
        problems.push(format!(
            "{source} includes {target} of another package: use a public item of that package, or move the file into \
             {package}"
        ));
    }
    for (package, target) in known.iter().filter(|shared| !actual.contains_key(*shared)) {
        problems.push(format!("{package} no longer includes {target}: remove it from SHARED_FILES in {}", file!()));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A crate of the workspace.
struct WorkspaceCrate {
    name: String,
    folder: PathBuf,
    /// The names of all dependencies except for those of tests.
    dependencies: BTreeSet<String>,
}

fn crates() -> Vec<WorkspaceCrate> {
    let members = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let members = members.filter(|folder| folder.join("Cargo.toml").is_file());
    let mut folders: Vec<PathBuf> = members.chain([root().to_owned()]).collect();
    folders.sort();
    folders.into_iter().map(|folder| read_crate(&folder)).collect()
}

fn read_crate(folder: &Path) -> WorkspaceCrate {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap();
    let name = manifest["package"]["name"].as_str().unwrap().to_owned();
    // Dependencies of a platform are in `target.'cfg(…)'.dependencies`.
    let platforms = manifest.get("target").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::values);
    let tables = platforms.filter_map(toml::Value::as_table).chain([&manifest]);
    let dependencies = tables
        .flat_map(|table| [table.get("dependencies"), table.get("build-dependencies")])
        .flatten()
        .filter_map(toml::Value::as_table)
        .flat_map(toml::Table::keys)
        .cloned()
        .collect();
    WorkspaceCrate { name, folder: folder.to_owned(), dependencies }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The path from the root of the repository, for messages.
fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Resolves `..` without following links.
fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        if component == Component::ParentDir {
            normalized.pop();
        } else {
            normalized.push(component);
        }
    }
    normalized
}

/// The nearest folder above a file that contains a manifest.
fn package_of(file: &Path) -> Option<&Path> {
    file.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").is_file())
}

/// The Rust files in a folder: path within the folder, and content. Empty if the folder does not exist.
fn rust_files(folder: &Path) -> Vec<(String, String)> {
    fn collect(folder: &Path, base: &Path, files: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, base, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(base).unwrap().to_str().unwrap().replace('\\', "/");
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut files = Vec::new();
    collect(folder, folder, &mut files);
    files.sort();
    files
}

/// References between the top-level modules of a crate.
struct ModuleGraph {
    modules: BTreeSet<String>,
    /// From module and to module, with the places of the references.
    edges: BTreeMap<(String, String), Vec<String>>,
}

/// The graph of a crate from its source files, whose paths are relative to `src`.
fn module_graph(files: &[(String, String)]) -> ModuleGraph {
    let mut parsed = Vec::new();
    let mut test_modules = BTreeSet::new();
    for (file, text) in files {
        let path = module_path(file);
        let tokens = tokens(text);
        let (tokens, tests) = without_tests(&tokens);
        for name in tests {
            test_modules.insert([path.as_slice(), &[name]].concat().join("::"));
        }
        parsed.push((file.as_str(), path, tokens));
    }
    let root = parsed.iter().find(|(file, ..)| *file == "lib.rs").map(|(.., tokens)| tokens.as_slice());
    let root = root.unwrap_or_default();
    let modules: BTreeSet<&str> = declared_modules(root).collect();
    let exports = re_exports(root, &modules);

    let names = modules.iter().map(ToString::to_string).collect();
    let mut graph = ModuleGraph { modules: names, edges: BTreeMap::new() };
    for (file, path, tokens) in &parsed {
        let is_test = (1..=path.len()).any(|length| test_modules.contains(&path[..length].join("::")));
        let Some(module) = path.first().filter(|_| !is_test && !path.contains(&"tests")) else { continue };
        for reference in references(tokens, path) {
            let name = reference.segments[0];
            let target = modules.get(name).copied().or_else(|| exports.get(name).copied());
            if let Some(target) = target.filter(|target| target != module) {
                let place = format!("{file}:{} uses {}", reference.line, reference.segments.join("::"));
                graph.edges.entry(((*module).to_owned(), target.to_owned())).or_default().push(place);
            }
        }
    }
    graph
}

impl ModuleGraph {
    /// The sets of modules that reach each other.
    fn cycles(&self) -> BTreeSet<BTreeSet<&str>> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.edges.keys().map(|(from, _)| (from.as_str(), self.reachable(from))).collect();
        let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|modules| modules.contains(to));
        let cyclic = reached.keys().filter(|module| reaches(module, module));
        cyclic.map(|module| reached[module].iter().copied().filter(|other| reaches(other, module)).collect()).collect()
    }

    fn reachable<'g>(&'g self, from: &'g str) -> BTreeSet<&'g str> {
        let mut reached = BTreeSet::new();
        let mut pending = vec![from];
        while let Some(module) = pending.pop() {
            let targets = self.edges.keys().filter(|(from, _)| from == module).map(|(_, to)| to.as_str());
            pending.extend(targets.filter(|target| reached.insert(*target)));
        }
        reached
    }

    /// A message about a cycle that is not among the known ones, with the references that form it.
    fn describe_cycle(&self, package: &str, cycle: &BTreeSet<&str>, known: &BTreeSet<BTreeSet<&str>>) -> String {
        if known.iter().any(|known| cycle.is_subset(known)) {
            return format!("{package}: a known cycle became smaller: it is now {cycle:?}");
        }
        let mut message = format!(
            "{package}: the modules {cycle:?} depend on each other. Remove one of these references, or move the item \
             that both sides use into a module of its own:"
        );
        for ((from, to), places) in &self.edges {
            let is_inside = |cycle: &BTreeSet<&str>| cycle.contains(from.as_str()) && cycle.contains(to.as_str());
            if is_inside(cycle) && !known.iter().any(is_inside) {
                for place in places {
                    write!(message, "\n    {from} -> {to}: {place}").unwrap();
                }
            }
        }
        message
    }
}

/// The path of the module that a file contains; empty for the root of a crate.
fn module_path(file: &str) -> Vec<&str> {
    let mut path: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if path.last() == Some(&"mod") {
        path.pop();
    }
    if path == ["lib"] || path == ["main"] || path.first() == Some(&"bin") { Vec::new() } else { path }
}

/// The modules that the root of a crate declares as files.
fn declared_modules<'s>(root: &[Token<'s>]) -> impl Iterator<Item = &'s str> {
    let is_declaration = move |at: &usize| text(root, *at) == "mod" && text(root, at + 2) == ";";
    (0..root.len()).filter(is_declaration).map(move |at| text(root, at + 1))
}

/// Names that the root of a crate imports from its modules, with the module.
fn re_exports<'s>(root: &[Token<'s>], modules: &BTreeSet<&'s str>) -> BTreeMap<&'s str, &'s str> {
    let mut exports = BTreeMap::new();
    for start in (0..root.len()).filter(|&at| text(root, at) == "use") {
        let mut paths = Vec::new();
        parse_tree(root, start + 1, &[], &mut paths);
        for UsePath { mut segments, alias, .. } in paths {
            if matches!(segments[0], "crate" | "self") {
                segments.remove(0);
            }
            if let [module, .., name] = segments[..]
                && modules.contains(module)
            {
                exports.insert(alias.unwrap_or(name), module);
            }
        }
    }
    exports
}

/// The references of a module that stay within its crate, as paths from the root of the crate. References to items of
/// the same top-level module through `self` or `super` are left out.
fn references<'s>(tokens: &[Token<'s>], module: &[&'s str]) -> Vec<UsePath<'s>> {
    let mut found = Vec::new();
    let mut current = module.to_vec();
    // Depth of braces outside each enclosing inline module.
    let mut inline = Vec::new();
    let (mut depth, mut at) = (0, 0);
    while at < tokens.len() {
        match text(tokens, at) {
            "mod" if text(tokens, at + 2) == "{" => {
                inline.push(depth);
                current.push(text(tokens, at + 1));
                // The next token is the brace.
                at += 1;
            }
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if inline.last() == Some(&depth) {
                    inline.pop();
                    current.pop();
                }
            }
            "crate" | "self" | "super" if text(tokens, at + 1) == "::" => {
                let mut paths = Vec::new();
                at = parse_tree(tokens, at, &[], &mut paths);
                found.extend(paths.into_iter().filter_map(|path| from_crate_root(path, &current)));
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Resolves `crate`, `self` and `super`. `None` if the path stays within a module, or names nothing in the root.
fn from_crate_root<'s>(mut path: UsePath<'s>, module: &[&'s str]) -> Option<UsePath<'s>> {
    let mut base: &[&str] = if path.segments[0] == "crate" { &[] } else { module };
    if path.segments[0] != "super" {
        path.segments.remove(0);
    }
    while path.segments.first() == Some(&"super") {
        path.segments.remove(0);
        base = base.split_last()?.1;
    }
    (base.is_empty() && !path.segments.is_empty()).then_some(path)
}

/// A path of a `use` declaration or an expression.
struct UsePath<'s> {
    segments: Vec<&'s str>,
    /// The name after `as`.
    alias: Option<&'s str>,
    line: usize,
}

/// Appends the paths of the tree at `start`, such as `a::{b, c::d}`. Returns the index of the token after the tree.
fn parse_tree<'s>(tokens: &[Token<'s>], start: usize, prefix: &[&'s str], paths: &mut Vec<UsePath<'s>>) -> usize {
    if text(tokens, start) == "{" {
        let end = closing(tokens, start);
        let mut at = start + 1;
        while at < end {
            at = parse_tree(tokens, at, prefix, paths);
            // Skips an alias.
            while at < end && text(tokens, at) != "," {
                at += 1;
            }
            at += 1;
        }
        return end + 1;
    }
    let Some(first) = tokens.get(start) else { return start + 1 };
    let segments = [prefix, &[first.text]].concat();
    let continues = tokens.get(start + 2).is_some_and(|next| next.kind == Kind::Word || matches!(next.text, "{" | "*"));
    if text(tokens, start + 1) == "::" && continues {
        return parse_tree(tokens, start + 2, &segments, paths);
    }
    let alias = (text(tokens, start + 1) == "as").then(|| text(tokens, start + 2));
    paths.push(UsePath { segments, alias, line: first.line });
    start + 1
}

/// Removes modules that are compiled only for tests. Also returns the names of those in separate files.
fn without_tests<'s>(tokens: &[Token<'s>]) -> (Vec<Token<'s>>, Vec<&'s str>) {
    let (mut rest, mut test_files) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if is_test_attribute(tokens, at) {
            let mut item = at;
            while text(tokens, item) == "#" {
                item = closing(tokens, item + 1) + 1;
            }
            if text(tokens, item) == "pub" {
                item += 1;
                if text(tokens, item) == "(" {
                    item = closing(tokens, item) + 1;
                }
            }
            if text(tokens, item) == "mod" {
                if text(tokens, item + 2) == ";" {
                    test_files.push(text(tokens, item + 1));
                    at = item + 3;
                } else {
                    at = closing(tokens, item + 2) + 1;
                }
                continue;
            }
        }
        rest.push(*token);
        at += 1;
    }
    (rest, test_files)
}

/// Whether `#[cfg(test)]` or `#[cfg(all(test, …))]` is at this place.
fn is_test_attribute(tokens: &[Token<'_>], at: usize) -> bool {
    if !starts_with(tokens, at, &["#", "[", "cfg", "("]) {
        return false;
    }
    let condition = &tokens[at + 4..closing(tokens, at + 3)];
    let mentions = |word: &str| (0..condition.len()).any(|at| text(condition, at) == word);
    mentions("test") && !mentions("not") && !mentions("any")
}

/// The values of the `#[path]` attributes.
fn path_attributes<'s>(tokens: &[Token<'s>]) -> Vec<&'s str> {
    let attributes = (0..tokens.len()).filter(|&at| starts_with(tokens, at, &["#", "[", "path", "="]));
    attributes.filter_map(|at| tokens.get(at + 4)).map(|value| value.text).collect()
}

/// Whether these words and symbols are at this place.
fn starts_with(tokens: &[Token<'_>], at: usize, expected: &[&str]) -> bool {
    expected.iter().enumerate().all(|(offset, part)| text(tokens, at + offset) == *part)
}

/// A token of Rust source code. Comments and white space are not tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Token<'s> {
    kind: Kind,
    /// The source text; of a literal, its content.
    text: &'s str,
    line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// A name, a keyword or a number.
    Word,
    /// `::`, or a single character.
    Symbol,
    /// A string or a character.
    Literal,
}

/// The text of a token, or an empty text at a literal and after the end.
fn text<'s>(tokens: &[Token<'s>], at: usize) -> &'s str {
    tokens.get(at).filter(|token| token.kind != Kind::Literal).map_or("", |token| token.text)
}

/// The index of the bracket that closes the bracket at `start`, or of the last token.
fn closing(tokens: &[Token<'_>], start: usize) -> usize {
    let mut depth = 0;
    for at in start..tokens.len() {
        match text(tokens, at) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth <= 0 {
            return at;
        }
    }
    tokens.len().saturating_sub(1)
}

fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(first) = rest.chars().next() {
        let (token, length) = next_token(rest, first);
        if let Some((kind, text)) = token {
            tokens.push(Token { kind, text, line });
        }
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// The token at the start of the text, if it is not white space or a comment, and its length in bytes.
fn next_token(rest: &str, first: char) -> (Option<(Kind, &str)>, usize) {
    if rest.starts_with("//") {
        return (None, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (None, block_comment_length(rest));
    }
    if let Some((content, length)) = raw_string(rest) {
        return (Some((Kind::Literal, content)), length);
    }
    match first {
        '"' => {
            let content = &rest[1..];
            let end = unescaped(content, '"');
            (Some((Kind::Literal, &content[..end])), (end + 2).min(rest.len()))
        }
        '\'' => {
            let content = &rest[1..];
            let mut letters = content.chars();
            let (character, after) = (letters.next(), letters.next());
            if character == Some('\\') || after == Some('\'') {
                let end = unescaped(content, '\'');
                (Some((Kind::Literal, &content[..end])), (end + 2).min(rest.len()))
            } else {
                // A lifetime.
                (Some((Kind::Symbol, "'")), 1)
            }
        }
        _ if is_word(first) => {
            let length = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
            (Some((Kind::Word, &rest[..length])), length)
        }
        _ if first.is_whitespace() => (None, first.len_utf8()),
        _ => {
            let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            (Some((Kind::Symbol, &rest[..length])), length)
        }
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The position of the first `quote` that no backslash precedes, or the length of the text.
fn unescaped(text: &str, quote: char) -> usize {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        if letter == quote {
            return at;
        }
        if letter == '\\' {
            letters.next();
        }
    }
    text.len()
}

/// Block comments can be nested.
fn block_comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The content and the length of a raw string such as `r#"…"#` at the start of the text.
fn raw_string(text: &str) -> Option<(&str, usize)> {
    let after_prefix = text.strip_prefix(['b', 'c']).unwrap_or(text).strip_prefix('r')?;
    let quoted = after_prefix.trim_start_matches('#');
    let hashes = after_prefix.len() - quoted.len();
    let content = quoted.strip_prefix('"')?;
    let end = format!("\"{}", &after_prefix[..hashes]);
    let length = content.find(&end).unwrap_or(content.len());
    let start = text.len() - content.len();
    Some((&content[..length], (start + length + end.len()).min(text.len())))
}

mod parser {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> ModuleGraph {
        let files: Vec<_> = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        module_graph(&files)
    }

    fn edges(graph: &ModuleGraph) -> Vec<String> {
        graph.edges.keys().map(|(from, to)| format!("{from} -> {to}")).collect()
    }

    fn words(source: &str) -> Vec<&str> {
        tokens(source).iter().filter(|token| token.kind == Kind::Word).map(|token| token.text).collect()
    }

    #[test]
    fn a_cycle_of_three_modules_is_found() {
        let graph = graph(&[
            ("lib.rs", "mod a;\nmod b;\npub mod c;\nmod d;\n"),
            ("a.rs", "use crate::b::B;\n"),
            ("b/mod.rs", "mod deep;\nuse crate::d::D;\n"),
            ("b/deep.rs", "\n\nuse super::super::c::C;\n"),
            ("c.rs", "fn call() { crate::a::A::new() }\n"),
            ("d.rs", "use std::fmt;\n"),
        ]);
        assert_eq!(edges(&graph), ["a -> b", "b -> c", "b -> d", "c -> a"]);
        let cycle = BTreeSet::from(["a", "b", "c"]);
        assert_eq!(graph.cycles(), BTreeSet::from([cycle.clone()]));
        let message = graph.describe_cycle("corbie-fake", &cycle, &BTreeSet::new());
        assert!(message.contains("b -> c: b/deep.rs:3 uses c::C"), "{message}");
        assert!(!message.contains("d.rs"), "{message}");
        let known = BTreeSet::from([BTreeSet::from(["a", "b", "c", "d"])]);
        assert!(graph.describe_cycle("corbie-fake", &cycle, &known).contains("smaller"));
    }

    #[test]
    fn modules_without_a_cycle_have_none() {
        let graph = graph(&[
            ("lib.rs", "mod a; mod b; mod c; use a::A; fn start() { b::run() }"),
            ("a.rs", "use crate::b; use crate::c::C;"),
            ("b.rs", "use super::c;"),
            ("c.rs", "use self::inner::X; mod inner { use super::Y; use crate::start; }"),
        ]);
        assert_eq!(edges(&graph), ["a -> b", "a -> c", "b -> c"]);
        assert_eq!(graph.cycles(), BTreeSet::new());
    }

    #[test]
    fn groups_aliases_and_re_exports_are_resolved() {
        let graph = graph(&[
            ("lib.rs", "mod a; mod b; mod c; mod d; mod e; pub use d::{D, deep::{Deep as Renamed}}; pub struct Own;"),
            ("a.rs", "use crate::{b::{self, X as Y}, c, Own, Renamed};"),
            ("b.rs", "impl super::D { fn e(&self) -> $crate::e::E { self.e } }"),
        ]);
        assert_eq!(edges(&graph), ["a -> b", "a -> c", "a -> d", "b -> d", "b -> e"]);
    }

    #[test]
    fn tests_comments_and_literals_are_left_out() {
        let graph = graph(&[
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod fixture; #[cfg(all(test, unix))]\n#[path = \"x.rs\"]\nmod c;"),
            (
                "a.rs",
                r####"
                // use crate::b::A;
                /* use crate::b::A; /* nested */ use crate::b::A; */
                const A: &str = "crate::b::A \" crate::b";
                const B: &str = r##"crate::b "# crate::b"##;
                const C: [char; 3] = ['"', '\'', '{'];
                fn same<'a>(text: &'a str) -> &'a str { text }
                #[cfg(test)]
                mod checks;
                #[cfg(test)]
                #[allow(unused)]
                pub(crate) mod tests { use crate::b::A; }
                "####,
            ),
            ("a/checks.rs", "use crate::b::A;"),
            ("a/tests/more.rs", "use crate::b::A;"),
            ("b.rs", "#[cfg(not(test))] mod real { use crate::a::A; }"),
            ("fixture/mod.rs", "use crate::a::A;"),
        ]);
        assert_eq!(edges(&graph), ["b -> a"]);
        assert_eq!(graph.modules, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn inline_modules_shift_super() {
        let graph = graph(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod inner { use super::b::Child; fn f() { { } } use super::super::b::B; } use super::b::B;"),
            ("b.rs", ""),
        ]);
        assert_eq!(graph.edges[&("a".to_owned(), "b".to_owned())].len(), 2);
    }

    #[test]
    fn literals_keep_their_content_and_lines_are_counted() {
        assert_eq!(words("b\"x\" br#\"y\"# 'z' '\\u{7A}' 'life r#type \"é\" word"), ["b", "life", "r", "type", "word"]);
        let tokens = tokens("\"two\nlines\"\n::'x'");
        let expected = [(Kind::Literal, "two\nlines", 1), (Kind::Symbol, "::", 3), (Kind::Literal, "x", 3)];
        assert_eq!(tokens, expected.map(|(kind, text, line)| Token { kind, text, line }));
    }

    #[test]
    fn path_attributes_are_read() {
        let source = "#[path = \"../a.rs\"] mod a; // #[path = \"b.rs\"]\n#[doc = \"#[path = 'c.rs']\"] mod c;";
        assert_eq!(path_attributes(&tokens(source)), ["../a.rs"]);
    }
}
