//! Reads Rust text closely enough to see which names it uses. No types, no macro expansion: a name that is written
//! out is seen, whether in code, in a macro call or in an attribute. Comments, doc tests and test code are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// One file under `src/`.
#[derive(Debug)]
pub(super) struct Source {
    /// As `src/journal/row/mod.rs`.
    pub(super) path: String,
    /// As `journal::row`; empty for the crate root.
    pub(super) module: String,
    /// Without comments and without test code.
    pub(super) tokens: Vec<Token>,
    /// The imports and re-exports.
    pub(super) imports: Vec<Import>,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) what: What,
    pub(super) line: usize,
    /// The module that the token stands in: the file's own, or one written inside of it.
    pub(super) module: Rc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Word(String),
    Text(String),
    /// `::`
    Path,
    Mark(char),
}

impl Token {
    pub(super) fn is(&self, word: &str) -> bool {
        matches!(&self.what, What::Word(own) if own == word)
    }

    pub(super) fn mark(&self, mark: char) -> bool {
        self.what == What::Mark(mark)
    }
}

/// One name brought in by `use`.
#[derive(Debug)]
pub(super) struct Import {
    /// As written: `super`, `record`, `Record`. A star ends in `*`.
    pub(super) path: Vec<String>,
    /// Under which name.
    pub(super) name: String,
    /// It is handed on to others: `pub use`, `pub(crate) use`.
    pub(super) handed_on: bool,
    /// It is handed on to everybody: `pub use`.
    pub(super) public: bool,
    pub(super) line: usize,
    pub(super) module: Rc<str>,
}

/// All files, with what is needed to follow a name from one to another.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) sources: Vec<Source>,
    /// The crates in `[dependencies]`, as Rust spells them.
    pub(super) crates: BTreeSet<String>,
    modules: BTreeSet<String>,
    /// Module and name -> what was imported there.
    names: BTreeMap<(String, String), Vec<String>>,
}

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A module of this crate, and the name in it.
    Own { module: String, name: String },
    /// Another crate, `std` included: the whole path.
    Outside(String),
}

impl Tree {
    /// `files` are paths and texts. What only tests compile is dropped here, whole files included.
    pub(super) fn new(manifest: &str, files: &[(String, String)]) -> Self {
        let mut sources = Vec::new();
        let mut only_tests = BTreeSet::new();
        for (path, text) in files {
            let (source, tests) = Source::read(path, text);
            only_tests.extend(tests);
            sources.push(source);
        }
        for source in &mut sources {
            if only_tests.iter().any(|tests| is_within(&source.module, tests)) {
                source.tokens.clear();
                source.imports.clear();
            }
        }
        let mut modules: BTreeSet<String> = sources.iter().map(|source| source.module.clone()).collect();
        let mut names = BTreeMap::new();
        for source in &sources {
            modules.extend(source.tokens.iter().map(|token| token.module.to_string()));
            for import in &source.imports {
                names.insert((import.module.to_string(), import.name.clone()), import.path.clone());
            }
        }
        Self {
            sources,
            crates: dependencies(manifest),
            modules,
            names,
        }
    }

    /// Where `path`, written in `module`, leads; `None` for a name of the language, of a prelude or of the file itself.
    pub(super) fn resolve(&self, module: &str, path: &[String]) -> Option<Target> {
        self.follow(module, path, 0)
    }

    fn follow(&self, module: &str, path: &[String], hops: usize) -> Option<Target> {
        let first = path.first()?;
        if hops > 16 {
            return None;
        }
        let in_module = match first.as_str() {
            "crate" => return self.descend("", &path[1..], hops),
            "self" => return self.descend(module, &path[1..], hops),
            "super" => {
                let mut parent = parent(module);
                let mut rest = &path[1..];
                while rest.first().is_some_and(|next| next == "super") {
                    parent = self::parent(parent);
                    rest = &rest[1..];
                }
                return self.descend(parent, rest, hops);
            }
            name => join(module, name),
        };
        if self.modules.contains(&in_module) {
            return self.descend(module, path, hops);
        }
        if let Some(import) = self.names.get(&(module.to_owned(), first.clone()))
            && import.first() != Some(first)
        {
            let whole: Vec<String> = import.iter().chain(&path[1..]).cloned().collect();
            return self.follow(module, &whole, hops + 1);
        }
        let outside = self.crates.contains(first) || matches!(first.as_str(), "std" | "core" | "alloc");
        (outside && path.len() > 1).then(|| Target::Outside(path.join("::")))
    }

    /// From `module` downwards, through child modules and through what they hand on.
    fn descend(&self, module: &str, path: &[String], hops: usize) -> Option<Target> {
        let Some(first) = path.first() else {
            let (module, name) = (module.to_owned(), String::new());
            return Some(Target::Own { module, name });
        };
        let child = join(module, first);
        if self.modules.contains(&child) {
            return self.descend(&child, &path[1..], hops);
        }
        if let Some(import) = self.names.get(&(module.to_owned(), first.clone())) {
            let whole: Vec<String> = import.iter().chain(&path[1..]).cloned().collect();
            if let Some(target) = self.follow(module, &whole, hops + 1) {
                return Some(target);
            }
        }
        let (module, name) = (module.to_owned(), first.clone());
        Some(Target::Own { module, name })
    }
}

impl Source {
    /// The file, and the modules that it declares for tests alone.
    fn read(path: &str, text: &str) -> (Self, Vec<String>) {
        let module = module_of(path);
        let (mut tokens, tests) = without_tests(lex(text));
        place(&mut tokens, &module);
        let tests = tests.iter().map(|name| join(&module, name)).collect();
        let source = Self {
            path: path.to_owned(),
            module,
            imports: imports(&tokens),
            tokens,
        };
        (source, tests)
    }
}

/// The paths in `tokens`, imports left out: words joined by `::`, with the line they begin in.
pub(super) fn paths(tokens: &[Token]) -> Vec<(Vec<String>, &Token)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if begins_import(tokens, at) {
            at += tokens[at..].iter().take_while(|token| !token.mark(';')).count();
        }
        let begins = !continues(&tokens[..at]);
        let start = at;
        let mut path = Vec::new();
        while let Some(What::Word(word)) = tokens.get(at).map(|token| &token.what) {
            path.push(word.clone());
            at += 1;
            let goes_on = tokens.get(at).is_some_and(|token| token.what == What::Path)
                && matches!(tokens.get(at + 1).map(|token| &token.what), Some(What::Word(_)));
            if !goes_on {
                break;
            }
            at += 1;
        }
        if begins && !path.is_empty() {
            found.push((path, &tokens[start]));
        }
        at = at.max(start + 1);
    }
    found
}

/// Is the word after `before` a field, a method, or the rest of a path?
fn continues(before: &[Token]) -> bool {
    match before {
        [.., owner, path] if path.what == What::Path => matches!(owner.what, What::Word(_)) || owner.mark('>'),
        [.., dot] => dot.mark('.'),
        [] => false,
    }
}

/// Does `module` lie in `room`, or is it the same?
pub(super) fn is_within(module: &str, room: &str) -> bool {
    room.is_empty() || module == room || module.strip_prefix(room).is_some_and(|rest| rest.starts_with("::"))
}

pub(super) fn parent(module: &str) -> &str {
    module.rsplit_once("::").map_or("", |(parent, _)| parent)
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() {
        name.to_owned()
    } else {
        format!("{module}::{name}")
    }
}

fn module_of(path: &str) -> String {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" {
        String::new()
    } else {
        path.replace('/', "::")
    }
}

/// The crates in `[dependencies]` of a manifest that names each on a line of its own.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    manifest
        .lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim().replace('-', "_"))
        .collect()
}

fn begins_import(tokens: &[Token], at: usize) -> bool {
    // `impl Trait + use<'a>` is not an import.
    tokens[at].is("use") && !tokens.get(at + 1).is_some_and(|token| token.mark('<'))
}

fn imports(tokens: &[Token]) -> Vec<Import> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        if !begins_import(tokens, at) {
            continue;
        }
        let public = at > 0 && tokens[at - 1].is("pub");
        let handed_on = public || (at > 0 && tokens[at - 1].mark(')'));
        let mut leaves = Vec::new();
        branch(tokens, &mut (at + 1), Vec::new(), &mut leaves);
        found.extend(leaves.into_iter().map(|(path, name)| Import {
            path,
            name,
            handed_on,
            public,
            line: tokens[at].line,
            module: Rc::clone(&tokens[at].module),
        }));
    }
    found
}

/// One branch of a `use` tree; leaves `at` on the mark that ends it.
fn branch(tokens: &[Token], at: &mut usize, mut path: Vec<String>, leaves: &mut Vec<(Vec<String>, String)>) {
    let mut renamed = None;
    while let Some(token) = tokens.get(*at) {
        match &token.what {
            What::Word(word) if word == "as" => {
                *at += 1;
                if let Some(What::Word(name)) = tokens.get(*at).map(|token| &token.what) {
                    renamed = Some(name.clone());
                }
            }
            What::Word(word) if word == "self" && !path.is_empty() => {}
            What::Word(word) => path.push(word.clone()),
            What::Mark('*') => path.push("*".to_owned()),
            What::Mark('{') => {
                while tokens.get(*at).is_some_and(|token| !token.mark('}')) {
                    *at += 1;
                    branch(tokens, at, path.clone(), leaves);
                }
                *at += 1;
                return;
            }
            What::Mark(',' | '}' | ';') => break,
            What::Path | What::Mark(_) | What::Text(_) => {}
        }
        *at += 1;
    }
    if let Some(last) = path.last() {
        let name = renamed.unwrap_or_else(|| last.clone());
        leaves.push((path, name));
    }
}

/// Says for each token in which module it stands.
fn place(tokens: &mut [Token], file: &str) {
    let mut open: Vec<(Rc<str>, usize)> = vec![(file.into(), 0)];
    let mut depth = 0_usize;
    for at in 0..tokens.len() {
        let begins_module = at >= 2 && tokens[at].mark('{') && tokens[at - 2].is("mod");
        if begins_module && let What::Word(name) = &tokens[at - 1].what {
            let inner = join(&open[open.len() - 1].0, name);
            open.push((inner.into(), depth));
        }
        tokens[at].module = Rc::clone(&open[open.len() - 1].0);
        if tokens[at].mark('{') {
            depth += 1;
        } else if tokens[at].mark('}') {
            depth = depth.saturating_sub(1);
            if open.len() > 1 && open[open.len() - 1].1 == depth {
                open.pop();
            }
        }
    }
}

/// Drops every item under `#[cfg(test)]` or `#[cfg(all(test, ...))]`, and names the modules so declared in files of
/// their own.
fn without_tests(tokens: Vec<Token>) -> (Vec<Token>, Vec<String>) {
    let mut kept = Vec::new();
    let mut files = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !begins_test(&tokens[at..]) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let end = end_of_item(&tokens, at);
        if tokens[end - 1].mark(';')
            && end >= 3
            && tokens[end - 3].is("mod")
            && let What::Word(name) = &tokens[end - 2].what
        {
            files.push(name.clone());
        }
        at = end;
    }
    (kept, files)
}

fn begins_test(tokens: &[Token]) -> bool {
    let spelled = |pattern: &[&str]| {
        tokens.len() >= pattern.len()
            && pattern.iter().zip(tokens).all(|(expected, token)| match &token.what {
                What::Word(word) => word == expected,
                What::Mark(mark) => expected.chars().eq([*mark]),
                What::Path | What::Text(_) => false,
            })
    };
    spelled(&["#", "[", "cfg", "(", "test", ")", "]"]) || spelled(&["#", "[", "cfg", "(", "all", "(", "test", ","])
}

/// One past the last token of what begins at `at` with its attributes: an item, a statement, or a field, which ends with
/// a comma or where the brackets around it close.
fn end_of_item(tokens: &[Token], mut at: usize) -> usize {
    while tokens.get(at).is_some_and(|token| token.mark('#')) {
        at += 1;
        at = end_of_brackets(tokens, at);
    }
    let item = is_item(&tokens[at..]);
    while let Some(token) = tokens.get(at) {
        match token.what {
            What::Mark('(' | '[') => at = end_of_brackets(tokens, at),
            What::Mark('{') => return end_of_brackets(tokens, at),
            What::Mark(';') => return at + 1,
            What::Mark(',') if !item => return at + 1,
            What::Mark(')' | ']' | '}') => return at,
            What::Mark(_) | What::Word(_) | What::Text(_) | What::Path => at += 1,
        }
    }
    at
}

/// Does an item begin here, and not a field, a variant or a statement?
fn is_item(tokens: &[Token]) -> bool {
    let begins = [
        "async",
        "const",
        "enum",
        "extern",
        "fn",
        "impl",
        "macro_rules",
        "mod",
        "static",
        "struct",
        "trait",
        "type",
        "unsafe",
        "use",
    ];
    let mut at = 0;
    if tokens.first().is_some_and(|token| token.is("pub")) {
        at = if tokens.get(1).is_some_and(|token| token.mark('(')) {
            end_of_brackets(tokens, 1)
        } else {
            1
        };
    }
    tokens
        .get(at)
        .is_some_and(|token| begins.iter().any(|word| token.is(word)))
}

/// One past the bracket that closes the one at `at`.
fn end_of_brackets(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, token) in tokens[at..].iter().enumerate() {
        match token.what {
            What::Mark('(' | '[' | '{') => depth += 1,
            What::Mark(')' | ']' | '}') => depth -= 1,
            What::Mark(_) | What::Word(_) | What::Text(_) | What::Path => {}
        }
        if depth == 0 {
            return at + offset + 1;
        }
    }
    tokens.len()
}

fn lex(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        let (what, end) = match c {
            '/' if next == Some('/') => (None, find(&chars, at, |rest| rest.starts_with(&['\n']))),
            '/' if next == Some('*') => (None, end_of_comment(&chars, at)),
            '"' => quoted(&chars, at, 0, true),
            '\'' if next == Some('\\') => (None, find(&chars, at + 3, |rest| rest.starts_with(&['\''])) + 1),
            '\'' if chars.get(at + 2) == Some(&'\'') => (None, at + 3),
            '\'' => (None, end_of_word(&chars, at + 1)),
            ':' if next == Some(':') => (Some(What::Path), at + 2),
            c if c.is_alphanumeric() || c == '_' => word(&chars, at),
            c if c.is_whitespace() => (None, at + 1),
            c => (Some(What::Mark(c)), at + 1),
        };
        if let Some(what) = what {
            let module = Rc::from("");
            tokens.push(Token { what, line, module });
        }
        let end = end.clamp(at + 1, chars.len());
        line += chars[at..end].iter().filter(|c| **c == '\n').count();
        at = end;
    }
    tokens
}

/// A word, or the literal whose prefix it is: `r#"..."#`, `b"..."`, `br"..."`.
fn word(chars: &[char], at: usize) -> (Option<What>, usize) {
    let end = end_of_word(chars, at);
    let word: String = chars[at..end].iter().collect();
    let hashes = chars[end..].iter().take_while(|c| **c == '#').count();
    let raw = matches!(word.as_str(), "r" | "br" | "cr");
    match chars.get(end + if raw { hashes } else { 0 }) {
        Some('"') if raw => quoted(chars, end + hashes, hashes, false),
        Some('"') if matches!(word.as_str(), "b" | "c") => quoted(chars, end, 0, true),
        _ => (Some(What::Word(word)), end),
    }
}

/// The literal whose opening quote is at `at`.
fn quoted(chars: &[char], at: usize, hashes: usize, escapes: bool) -> (Option<What>, usize) {
    let mut end = at + 1;
    while let Some(&c) = chars.get(end) {
        let closes = c == '"' && chars[end + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
        if closes {
            break;
        }
        end += if escapes && c == '\\' { 2 } else { 1 };
    }
    let end = end.min(chars.len());
    (Some(What::Text(chars[at + 1..end].iter().collect())), end + 1 + hashes)
}

fn end_of_word(chars: &[char], at: usize) -> usize {
    find(chars, at, |rest| !(rest[0].is_alphanumeric() || rest[0] == '_'))
}

fn end_of_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < chars.len() {
        if chars[at..].starts_with(&['/', '*']) {
            depth += 1;
            at += 2;
        } else if chars[at..].starts_with(&['*', '/']) {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// The first place from `at` on where `stop` holds, or the end.
fn find(chars: &[char], at: usize, stop: impl Fn(&[char]) -> bool) -> usize {
    (at..chars.len())
        .find(|at| stop(&chars[*at..]))
        .unwrap_or(chars.len().max(at))
}
