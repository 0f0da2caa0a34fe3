//! The XML of the maintenance API: flat documents with a list or two in them.
//!
//! What is read was signed by 2C2P; even so, nothing in it can make this code ask a file or the network, or grow: there
//! are no document types, no entities but the five and numbers, and a limit to everything.

use quick_xml::escape::{escape, resolve_xml_entity};
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// In bytes.
const LONGEST: usize = 256 * 1024;

/// The root is at depth 1.
const DEEPEST: usize = 8;

const MOST_ELEMENTS: usize = 4096;

/// Of one element. The reader compares each with each.
const MOST_ATTRIBUTES: usize = 64;

/// A document could not be written or read. Nothing of it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::gateway::twoc2p) enum XmlError {
    /// A text for this element has a character that XML 1.0 has no way to write, such as a NUL.
    #[error("{0} has a character that XML cannot express")]
    Inexpressible(&'static str),
    #[error("the document is longer than 256 KiB")]
    TooLong,
    #[error("the document is deeper than 8 elements, or has more than 4096 of them, or more than 64 attributes of one")]
    TooMany,
    #[error("the document is not UTF-8")]
    NotUtf8,
    #[error("the document has a document type")]
    DocumentType,
    #[error("the document refers to an entity of its own")]
    Entity,
    #[error("the document is not well-formed")]
    Malformed,
}

/// Writes a document, element by element, in the order of the calls: 2C2P's templates have one, and it may matter.
#[derive(Debug)]
pub(in crate::gateway::twoc2p) struct XmlWriter {
    root: &'static str,
    text: String,
    /// The first element that could not be written.
    failed: Option<&'static str>,
}

impl XmlWriter {
    /// Names are our own and are written as they are.
    pub(in crate::gateway::twoc2p) fn new(root: &'static str) -> Self {
        let text = format!("<{root}>");
        Self {
            root,
            text,
            failed: None,
        }
    }

    /// `<name>text</name>`.
    pub(in crate::gateway::twoc2p) fn element(mut self, name: &'static str, text: &str) -> Self {
        self.check(name, text);
        self.text.push_str(&format!("<{name}>{}</{name}>", escape(text)));
        self
    }

    /// Nothing at all without a text: an empty element would be a value.
    pub(in crate::gateway::twoc2p) fn optional(self, name: &'static str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.element(name, text),
            None => self,
        }
    }

    /// `<name attribute="value"/>`.
    pub(in crate::gateway::twoc2p) fn empty(mut self, name: &'static str, attributes: &[(&str, &str)]) -> Self {
        self.text.push_str(&format!("<{name}"));
        for (attribute, value) in attributes {
            self.check(name, value);
            // In an attribute a line end and a tab would be read as a space.
            let value = escape(*value).replace('\n', "&#10;").replace('\t', "&#9;");
            self.text.push_str(&format!(r#" {attribute}="{value}""#));
        }
        self.text.push_str("/>");
        self
    }

    /// `<name>` around what `content` writes.
    pub(in crate::gateway::twoc2p) fn group(mut self, name: &'static str, content: impl FnOnce(Self) -> Self) -> Self {
        self.text.push_str(&format!("<{name}>"));
        let mut this = content(self);
        this.text.push_str(&format!("</{name}>"));
        this
    }

    /// The document.
    pub(in crate::gateway::twoc2p) fn finish(mut self) -> Result<String, XmlError> {
        if let Some(name) = self.failed {
            return Err(XmlError::Inexpressible(name));
        }
        self.text.push_str(&format!("</{}>", self.root));
        Ok(self.text)
    }

    fn check(&mut self, name: &'static str, text: &str) {
        if self.failed.is_none() && !text.chars().all(is_character) {
            self.failed = Some(name);
        }
    }
}

/// An element that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::gateway::twoc2p) struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Self>,
    /// All of its own text, that between its children included.
    text: String,
}

impl Element {
    pub(in crate::gateway::twoc2p) fn name(&self) -> &str {
        &self.name
    }

    /// The child of that name, when there is exactly one: two that differ would be a choice.
    pub(in crate::gateway::twoc2p) fn child(&self, name: &str) -> Option<&Self> {
        let mut children = self.children(name);
        let child = children.next()?;
        children.next().is_none().then_some(child)
    }

    pub(in crate::gateway::twoc2p) fn children(&self, name: &str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text of the one child of that name, without white space around it; none when nothing is left.
    pub(in crate::gateway::twoc2p) fn text_of(&self, name: &str) -> Option<String> {
        let text = self.child(name)?.text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The value of an attribute, as it stands there.
    pub(in crate::gateway::twoc2p) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(attribute, _)| attribute == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Reads a document.
pub(in crate::gateway::twoc2p) fn parse(document: &[u8]) -> Result<Element, XmlError> {
    if document.len() > LONGEST {
        return Err(XmlError::TooLong);
    }
    let document = std::str::from_utf8(document).map_err(|_| XmlError::NotUtf8)?;
    let document = document.strip_prefix('\u{feff}').unwrap_or(document);
    let mut reader = Reader::from_str(document);
    let mut tree = Tree::default();
    loop {
        match reader.read_event().map_err(|_| XmlError::Malformed)? {
            Event::Start(start) => tree.open(&start)?,
            Event::Empty(start) => {
                tree.open(&start)?;
                tree.close()?;
            }
            // That it is the end of what was opened, the reader has seen to.
            Event::End(_) => tree.close()?,
            Event::Text(text) => tree.text(&text.xml10_content())?,
            Event::CData(text) => tree.content(&text.xml10_content())?,
            Event::GeneralRef(reference) => tree.content(character(&reference)?.encode_utf8(&mut [0; 4]))?,
            Event::Decl(declaration) => tree.declaration(&declaration)?,
            Event::DocType(_) => return Err(XmlError::DocumentType),
            Event::Comment(_) | Event::PI(_) => tree.begun = true,
            Event::Eof => return tree.finish(),
        }
    }
}

/// What was read so far.
#[derive(Default)]
struct Tree {
    /// Anything at all, after which there can be no declaration.
    begun: bool,
    /// The elements that are not closed, the root first.
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl Tree {
    /// The encoding in it is not looked at: a document that passed through a text in memory often claims UTF-16, and
    /// what is read here is UTF-8 or nothing.
    fn declaration(&mut self, declaration: &BytesDecl<'_>) -> Result<(), XmlError> {
        let first = !std::mem::replace(&mut self.begun, true);
        let version = declaration.version().map_err(|_| XmlError::Malformed)?;
        (first && version == "1.0").then_some(()).ok_or(XmlError::Malformed)
    }

    fn open(&mut self, start: &BytesStart<'_>) -> Result<(), XmlError> {
        self.begun = true;
        self.elements += 1;
        if self.open.len() >= DEEPEST || self.elements > MOST_ELEMENTS {
            return Err(XmlError::TooMany);
        }
        if self.root.is_some() {
            return Err(XmlError::Malformed);
        }
        let mut element = Element {
            name: name(start.name().as_ref())?,
            ..Element::default()
        };
        for attribute in start.attributes() {
            if element.attributes.len() >= MOST_ATTRIBUTES {
                return Err(XmlError::TooMany);
            }
            let attribute = attribute.map_err(|_| XmlError::Malformed)?;
            let value = attribute
                .normalized_value_with(XmlVersion::Implicit1_0, 1, resolve_xml_entity)
                .map_err(|_| XmlError::Entity)?;
            if attribute.value.contains('<') || !value.chars().all(is_character) {
                return Err(XmlError::Malformed);
            }
            element
                .attributes
                .push((name(attribute.key.as_ref())?, value.into_owned()));
        }
        self.open.push(element);
        Ok(())
    }

    fn close(&mut self) -> Result<(), XmlError> {
        let element = self.open.pop().ok_or(XmlError::Malformed)?;
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }

    /// Text as it stands in the document; around the root that is white space.
    fn text(&mut self, text: &str) -> Result<(), XmlError> {
        self.begun = true;
        let space = |text: &str| text.chars().all(|it| matches!(it, ' ' | '\t' | '\r' | '\n'));
        if self.open.is_empty() && space(text) {
            return Ok(());
        }
        self.content(text)
    }

    /// Text that has its place in an element only.
    fn content(&mut self, text: &str) -> Result<(), XmlError> {
        let element = self.open.last_mut().ok_or(XmlError::Malformed)?;
        if !text.chars().all(is_character) {
            return Err(XmlError::Malformed);
        }
        element.text.push_str(text);
        Ok(())
    }

    fn finish(self) -> Result<Element, XmlError> {
        match self.root {
            Some(root) if self.open.is_empty() => Ok(root),
            _ => Err(XmlError::Malformed),
        }
    }
}

/// What `&amp;` or `&#38;` stands for.
fn character(reference: &BytesRef<'_>) -> Result<char, XmlError> {
    let numeric = reference.resolve_char_ref().map_err(|_| XmlError::Malformed)?;
    let named = || resolve_xml_entity(reference)?.chars().next();
    numeric.or_else(named).ok_or(XmlError::Entity)
}

/// The reader takes anything up to a space for a name.
fn name(name: &str) -> Result<String, XmlError> {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|it| it.is_alphabetic() || it == '_');
    let well = first && letters.all(|it| it.is_alphanumeric() || matches!(it, '_' | '-' | '.' | ':'));
    well.then(|| name.to_owned()).ok_or(XmlError::Malformed)
}

/// The characters of XML 1.0.
fn is_character(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests;
