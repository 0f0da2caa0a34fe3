//! The XML inside of the maintenance API's envelope: read strictly, written plainly.

use quick_xml::Reader;
use quick_xml::escape::escape;
use quick_xml::events::Event;
use std::fmt::Write as _;

/// Deeper than any documented message.
const DEEPEST: usize = 8;

/// An element. Attributes of requests carry nothing that the fake uses and are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    /// Its own text, without the spaces around it.
    pub(super) text: String,
    pub(super) children: Vec<Self>,
}

impl Element {
    /// The root of a document; `None` when it is not well-formed, has a DOCTYPE, or goes too deep.
    pub(super) fn parse(document: &str) -> Option<Self> {
        let mut reader = Reader::from_str(document);
        // The elements that are open, outermost first; the first is the document itself.
        let mut open = vec![Self::default()];
        loop {
            match reader.read_event().ok()? {
                Event::Start(tag) => {
                    if open.len() > DEEPEST {
                        return None;
                    }
                    open.push(Self::named(tag.name().as_ref()));
                }
                Event::Empty(tag) => open.last_mut()?.children.push(Self::named(tag.name().as_ref())),
                Event::End(_) => {
                    let mut closed = open.pop()?;
                    closed.text = closed.text.trim().to_owned();
                    open.last_mut()?.children.push(closed);
                }
                Event::Text(text) => open.last_mut()?.text.push_str(&text.xml10_content()),
                Event::CData(text) => open.last_mut()?.text.push_str(&text.xml10_content()),
                Event::GeneralRef(name) => {
                    let character = match name.resolve_char_ref().ok()? {
                        Some(character) => character,
                        None => predefined(&name.xml10_content())?,
                    };
                    open.last_mut()?.text.push(character);
                }
                Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
                Event::DocType(_) => return None,
                Event::Eof => break,
            }
        }
        let document = open.pop().filter(|_| open.is_empty())?;
        let [root] = <[Self; 1]>::try_from(document.children).ok()?;
        document.text.trim().is_empty().then_some(root)
    }

    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// The text of a child; `None` when it is missing or empty.
    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.children
            .iter()
            .find(|child| child.name == name)
            .map(|child| child.text.as_str())
            .filter(|text| !text.is_empty())
    }
}

fn predefined(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

/// A document under construction.
#[derive(Debug)]
pub(super) struct Document {
    root: &'static str,
    text: String,
}

impl Document {
    pub(super) fn new(root: &'static str) -> Self {
        Self {
            root,
            text: format!("<{root}>"),
        }
    }

    /// An element with a text. One without a text is left out, as the gateway's samples do.
    pub(super) fn put(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            let _ = write!(self.text, "<{name}>{}</{name}>", escape(text));
        }
    }

    /// A piece that is XML already.
    pub(super) fn put_raw(&mut self, xml: &str) {
        self.text.push_str(xml);
    }

    pub(super) fn finish(self) -> String {
        format!("{}</{}>", self.text, self.root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn c44_texts_come_back_as_they_were_written() {
        let text = "A&B<1> ]]> \" ' é";
        let mut document = Document::new("PaymentProcessRequest");
        document.put("userDefined1", text);
        document.put("notes", "");
        let root = Element::parse(&document.finish()).unwrap();
        assert_eq!(root.name, "PaymentProcessRequest");
        assert_eq!(root.text_of("userDefined1"), Some(text));
        assert_eq!(root.children.len(), 1);
        let cdata = Element::parse("<?xml version=\"1.0\"?><a> <b>\n x<![CDATA[<&]]>&#65;\n</b><c/></a>").unwrap();
        assert_eq!(cdata.text_of("b"), Some("x<&A"));
        assert_eq!(cdata.text_of("c"), None);
    }

    #[test]
    fn c44_what_is_not_plain_xml_is_refused() {
        let deep = format!("{}{}", "<a>".repeat(40), "</a>".repeat(40));
        for document in [
            "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>",
            "<a>&x;</a>",
            "<a><b></a></b>",
            "<a>",
            "<a/><b/>",
            "<a/>text",
            "",
            "text",
            &deep,
        ] {
            assert_eq!(Element::parse(document), None, "{document}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,120}", markup in "[<>/&;!\\[\\]a-c# x0-9?-]{0,60}") {
            let _ = Element::parse(&text);
            let _ = Element::parse(&markup);
            let mut document = Document::new("a");
            document.put("b", &text);
            let _ = Element::parse(&document.finish());
        }
    }
}
