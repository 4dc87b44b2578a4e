//! Walks the syntax tree of one text. Where the tree and bash could disagree, the text is unreadable.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use crate::check;
use crate::limits::{
    DEPTH_MAX, KEPT_BYTES_MAX, NODES_MAX, PARSE_MS_MAX, PARSE_STEPS_MAX, TEXT_BYTES_MAX,
};
use crate::reading::Simple;
use crate::values::source_of;
use crate::variables::Variables;
use crate::word::{From, Word, resolve};

/// Words that begin a construct. As a program's name they say that the tree has missed one.
const RESERVED: &[&str] = &[
    "!", "[[", "]]", "{", "}", "case", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "select", "then", "until", "while", "coproc", "time", "((", "))",
];
/// Parts of a word that the shell replaces.
const EXPANSIONS: &[&str] = &[
    "simple_expansion",
    "expansion",
    "command_substitution",
    "process_substitution",
    "arithmetic_expansion",
];

/// What one text holds.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) commands: Vec<Simple>,
    pub(crate) variables: Variables,
    pub(crate) functions: HashSet<String>,
    /// Whether bash may take the value of a variable for an expression.
    pub(crate) reevaluates: bool,
    /// Quoted texts that would start commands if bash took them for an expression.
    pub(crate) sleeping: Vec<String>,
}

/// Says that the tree does not hold what bash would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsure;

pub(crate) fn walk(text: &str) -> Result<Found, Unsure> {
    check::text(text)?;
    let tree = parse(text).ok_or(Unsure)?;
    if tree.root_node().has_error() {
        return Err(Unsure);
    }
    let mut walk = Walk {
        text,
        found: Found::default(),
        more: HashMap::new(),
        expansions: HashSet::new(),
        quoted: Vec::new(),
    };
    walk.tree(&tree)?;
    check::expansions(text, &walk.expansions, &mut walk.quoted)?;
    Ok(walk.found)
}

fn parse(text: &str) -> Option<Tree> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    let mut steps = 0;
    let end = Instant::now() + Duration::from_millis(PARSE_MS_MAX as u64);
    let mut stop = |_: &ParseState| {
        steps += 1;
        steps > PARSE_STEPS_MAX || Instant::now() > end
    };
    let options = ParseOptions::new().progress_callback(&mut stop);
    let bytes = text.as_bytes();
    let mut piece = |at: usize, _| bytes.get(at..).unwrap_or_default();
    parser.parse_with_options(&mut piece, None, Some(options))
}

/// What stands outside of a command's node and belongs to it.
#[derive(Debug, Default, Clone)]
struct More<'t> {
    words: Vec<Node<'t>>,
    targets: Vec<Word>,
    fed: Vec<String>,
}

pub(crate) struct Walk<'t> {
    pub(crate) text: &'t str,
    pub(crate) found: Found,
    more: HashMap<usize, More<'t>>,
    /// Where expansions begin, and where those with backquotes end.
    expansions: HashSet<usize>,
    /// Quoted texts and comments, in which nothing expands.
    quoted: Vec<Range<usize>>,
}

impl<'t> Walk<'t> {
    fn tree(&mut self, tree: &'t Tree) -> Result<(), Unsure> {
        let mut cursor = tree.walk();
        let mut nodes = 0;
        loop {
            nodes += 1;
            if nodes > NODES_MAX || cursor.depth() as usize > DEPTH_MAX {
                return Err(Unsure);
            }
            self.node(cursor.node())?;
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Ok(());
                }
            }
        }
    }

    fn node(&mut self, node: Node<'t>) -> Result<(), Unsure> {
        let source = self.of(node);
        check::gaps(node, self.text)?;
        if EXPANSIONS.contains(&node.kind()) {
            self.expansions.insert(self.expansion_range(node).start);
            self.expansions.insert(node.end_byte().saturating_sub(1));
        }
        match node.kind() {
            "raw_string" | "ansi_c_string" => self.quoted.push(node.byte_range()),
            "command" => self.command(node)?,
            "redirected_statement" => self.redirected(node)?,
            "heredoc_redirect" => self.heredoc(node)?,
            "pipeline" => self.pipeline(node)?,
            "variable_assignment" => self.assignment(node)?,
            "for_statement" => self.loops(node)?,
            "function_definition" => {
                let name = node.child_by_field_name("name").ok_or(Unsure)?;
                self.found.functions.insert(self.of(name).to_owned());
            }
            "declaration_command" => self.declaration(node)?,
            "comment" => {
                check::comment(node, self.text)?;
                self.quoted.push(node.byte_range());
            }
            "test_command" => {
                check::test(node, self.text)?;
                self.found.reevaluates |= source.contains(['-', '(']);
            }
            "command_substitution" if source.trim_start().starts_with(['`', '$']) => {
                let source = source.trim_start();
                let old = source.starts_with('`') || source.starts_with("$`");
                if old && source.contains('\\') {
                    return Err(Unsure);
                }
            }
            "expansion" => {
                // In double quotes a single quote in here is no quote.
                if source.contains(['\'', '\\']) && source.contains(['`', '(']) {
                    return Err(Unsure);
                }
                self.expansion(source);
            }
            "compound_statement" if source.starts_with("((") => {
                check::arithmetic(source)?;
                self.found.reevaluates = true;
            }
            "arithmetic_expansion" => {
                check::arithmetic(source)?;
                self.found.reevaluates = true;
            }
            "unset_command" | "c_style_for_statement" | "subscript" => {
                self.found.reevaluates = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// In double quotes the grammar counts the blanks in front of a substitution as a part of it.
    fn expansion_range(&self, node: Node<'_>) -> Range<usize> {
        let source = self.of(node);
        let blanks = source.len() - source.trim_start_matches([' ', '\t', '\n']).len();
        node.start_byte() + blanks..node.end_byte()
    }

    pub(crate) fn of(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn command(&mut self, node: Node<'t>) -> Result<(), Unsure> {
        let mut more = self.more.remove(&node.id()).unwrap_or_default();
        let mut words = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_assignment" => {}
                // Behind assignments and redirections alone the grammar makes up a name.
                "command_name" if child.byte_range().is_empty() => {}
                "file_redirect" => self.redirect(child, &mut more)?,
                "herestring_redirect" => self.herestring(child, &mut more)?,
                "subshell" => return Err(Unsure),
                _ => words.push(child),
            }
        }
        words.append(&mut more.words);
        self.simple(words, more, node.byte_range())
    }

    fn simple(
        &mut self,
        mut nodes: Vec<Node<'t>>,
        more: More<'t>,
        place: Range<usize>,
    ) -> Result<(), Unsure> {
        nodes.sort_by_key(Node::start_byte);
        let words = self.words(&nodes)?;
        for word in &words {
            self.note(word);
        }
        let starts = |word: &Word| RESERVED.contains(&word.raw());
        match words.first().map(Word::raw) {
            // In front of a simple command these are looked through as wrappers.
            Some("time" | "coproc") if !words.iter().skip(1).take(3).any(starts) => {}
            Some(raw) if RESERVED.contains(&raw) => return Err(Unsure),
            _ => {}
        }
        // A builtin may stand behind others: `time command read x`.
        let shown = |word: &Word| word.literal().unwrap_or_default().into_owned();
        let passed = |word: &&Word| {
            let word = shown(word);
            word.starts_with('-') || ["time", "coproc", "command", "builtin"].contains(&&*word)
        };
        let before = words.iter().take_while(passed).count();
        let builtin = words.get(before..).unwrap_or_default();
        // Behind a reserved word assignments are still assignments, which the grammar misses.
        if before > 0 && builtin.first().is_some_and(|word| word.raw().contains('=')) {
            return Err(Unsure);
        }
        check::changes_the_grammar(builtin, self.text)?;
        self.found.reevaluates |= matches!(
            builtin.first().and_then(Word::basename),
            Some(
                "let"
                    | "test"
                    | "["
                    | "read"
                    | "printf"
                    | "mapfile"
                    | "readarray"
                    | "wait"
                    | "unset"
            )
        );
        self.found.variables.by_builtin(builtin);
        if !words.is_empty() || !more.targets.is_empty() {
            self.found.commands.push(Simple {
                words,
                targets: more.targets,
                fed: more.fed,
                place,
                ..Simple::default()
            });
        }
        Ok(())
    }

    /// Nodes that touch are one word.
    pub(crate) fn words(&self, nodes: &[Node<'t>]) -> Result<Vec<Word>, Unsure> {
        let mut groups: Vec<Vec<Node<'t>>> = Vec::new();
        for node in nodes {
            match groups.last_mut() {
                Some(group)
                    if group
                        .last()
                        .is_some_and(|it| it.end_byte() == node.start_byte()) =>
                {
                    group.push(*node);
                }
                _ => groups.push(vec![*node]),
            }
        }
        groups.iter().map(|group| self.word(group)).collect()
    }

    pub(crate) fn word(&self, group: &[Node<'t>]) -> Result<Word, Unsure> {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            return Err(Unsure);
        };
        let mut expansions = Vec::new();
        for node in group {
            self.expansions(*node, &mut expansions);
        }
        resolve(self.text, first.start_byte()..last.end_byte(), &expansions).ok_or(Unsure)
    }

    /// The outermost expansions of a word, in order.
    fn expansions(&self, node: Node<'t>, found: &mut Vec<(Range<usize>, From)>) {
        let mut cursor = node.walk();
        loop {
            let here = cursor.node();
            let expands = EXPANSIONS.contains(&here.kind());
            if expands {
                let range = self.expansion_range(here);
                let source = self.text.get(range.clone()).unwrap_or_default();
                found.push((range, source_of(source)));
            }
            if !expands && cursor.goto_first_child() {
                continue;
            }
            loop {
                if cursor.node() == node {
                    return;
                }
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    fn redirect(&mut self, node: Node<'t>, more: &mut More<'t>) -> Result<(), Unsure> {
        // `{name}>file` sets a variable, which the grammar takes for a word.
        if self
            .text
            .get(..node.start_byte())
            .is_some_and(|it| it.ends_with('}'))
        {
            return Err(Unsure);
        }
        let mut cursor = node.walk();
        let named: Vec<_> = node
            .children_by_field_name("destination", &mut cursor)
            .filter(Node::is_named)
            .collect();
        if let Some(descriptor) = node.child_by_field_name("descriptor") {
            check::apart(descriptor, self.text)?;
        }
        let Some(first) = named.first() else {
            return Ok(());
        };
        // The grammar takes every word behind a redirection for its target. Bash takes one.
        let mut end = first.end_byte();
        let touching = named.iter().skip(1).take_while(|node| {
            let touches = node.start_byte() == end;
            end = node.end_byte();
            touches
        });
        let count = 1 + touching.count();
        let (target, rest) = named.split_at_checked(count).ok_or(Unsure)?;
        let target = self.word(target)?;
        let source = self.of(node);
        if source.contains('>') && !source.contains(">(") {
            more.targets.push(target);
        }
        more.words.extend(rest);
        Ok(())
    }

    fn herestring(&mut self, node: Node<'t>, more: &mut More<'t>) -> Result<(), Unsure> {
        let last = node.named_child(node.named_child_count().saturating_sub(1));
        let word = self.word(&[last.ok_or(Unsure)?])?;
        self.note(&word);
        more.fed.push(kept(&word.shown()));
        Ok(())
    }

    fn redirected(&mut self, node: Node<'t>) -> Result<(), Unsure> {
        let mut more = More::default();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "file_redirect" => self.redirect(child, &mut more)?,
                "herestring_redirect" => self.herestring(child, &mut more)?,
                "heredoc_redirect" => {
                    let mut inner = child.walk();
                    more.words
                        .extend(child.children_by_field_name("argument", &mut inner));
                    for redirect in child.children_by_field_name("redirect", &mut inner) {
                        match redirect.kind() {
                            "file_redirect" => self.redirect(redirect, &mut more)?,
                            _ => self.herestring(redirect, &mut more)?,
                        }
                    }
                    more.fed.push(self.body(child));
                }
                _ => {}
            }
        }
        let Some(body) = node.child_by_field_name("body") else {
            return self.simple(more.words.clone(), more, node.byte_range());
        };
        match last_command(body) {
            Some(command) => {
                let known = self.more.entry(command.id()).or_default();
                known.words.append(&mut more.words);
                known.targets.append(&mut more.targets);
                known.fed.append(&mut more.fed);
            }
            // More words behind a loop or a group are a mistake, so the tree is wrong.
            None if !more.words.is_empty() => return Err(Unsure),
            None => {}
        }
        Ok(())
    }

    fn body(&self, node: Node<'t>) -> String {
        let mut cursor = node.walk();
        let body = node
            .children(&mut cursor)
            .find(|child| child.kind() == "heredoc_body");
        kept(body.map(|body| self.of(body)).unwrap_or_default())
    }

    fn heredoc(&mut self, node: Node<'t>) -> Result<(), Unsure> {
        if let Some(body) = check::heredoc(node, self.text)? {
            self.quoted.push(body);
        }
        let mut cursor = node.walk();
        let pipeline = node
            .children(&mut cursor)
            .find(|child| child.kind() == "pipeline");
        if let Some(command) = pipeline
            .and_then(|it| it.named_child(0))
            .and_then(last_command)
        {
            let body = self.body(node);
            self.more.entry(command.id()).or_default().fed.push(body);
        }
        Ok(())
    }

    /// What `echo` and `printf` write is fed to the next command.
    fn pipeline(&mut self, node: Node<'t>) -> Result<(), Unsure> {
        let mut cursor = node.walk();
        let parts: Vec<_> = node.named_children(&mut cursor).collect();
        for pair in parts.windows(2) {
            let [left, right] = pair else { continue };
            let source = self.of(*left);
            if source.starts_with("echo ") || source.starts_with("printf ") {
                let mut inner = left.walk();
                let words: Vec<_> = left
                    .children_by_field_name("argument", &mut inner)
                    .collect();
                let words = self.words(&words)?;
                let words: Vec<_> = words.iter().map(Word::shown).collect();
                if let Some(command) = last_command(*right) {
                    let text = kept(&words.join(" ").replace("\\n", "\n"));
                    self.more.entry(command.id()).or_default().fed.push(text);
                }
            }
        }
        Ok(())
    }

    /// Keeps quoted text that would be a command in an expression.
    pub(crate) fn note(&mut self, word: &Word) {
        for piece in &word.pieces {
            if let crate::word::Piece::Text(text) = piece
                && may_start(text)
            {
                self.found.sleeping.push(kept(text));
            }
        }
    }
}

/// Whether a quoted text would start a command in an expression, alone or with what follows it.
fn may_start(text: &str) -> bool {
    text.contains('`') || text.contains("$(") || text.contains("${") || text.ends_with('$')
}

fn kept(text: &str) -> String {
    let mut end = text.len().min(KEPT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// The command to which a redirection behind this statement belongs.
fn last_command(mut node: Node<'_>) -> Option<Node<'_>> {
    loop {
        match node.kind() {
            "command" => return Some(node),
            "list" | "pipeline" | "negated_command" => {
                node = node.named_child(node.named_child_count().checked_sub(1)?)?;
            }
            "redirected_statement" => node = node.child_by_field_name("body")?,
            _ => return None,
        }
    }
}
