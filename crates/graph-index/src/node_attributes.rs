//! Reads the attributes of nodes from their places in the file, those of equal nodes once.
//!
//! Detects equal nodes. Does not depend on their operations.

use std::rc::Rc;

use super::{
    GraphError,
    attributes::{AttributeReader, AttributeValue, Attributes},
    node_at,
    raw_nodes::SignatureCache,
    source::{Extent, Source},
};
use crate::{
    scan::{Progress, Scanner},
    schema::{NODE_DEF, TENSORFLOW},
};

/// Limit on the attributes that are remembered; real graphs have some hundred different ones. At
/// the limit the memory is cleared.
const MOST_REMEMBERED: usize = 1 << 10;

/// Length in bytes above which a node is read again.
const LONGEST: usize = 1 << 10;

/// Reads the attributes of one node after another.
#[derive(Debug)]
pub struct NodeAttributes {
    /// By number, the attributes of the nodes that are known.
    remembered: Vec<Rc<Attributes>>,
    known: SignatureCache<u32>,
    reader: AttributeReader,
    scanner: Scanner,
    bytes: Vec<u8>,
}

impl Default for NodeAttributes {
    fn default() -> Self {
        Self {
            remembered: Vec::new(),
            known: SignatureCache::default(),
            reader: AttributeReader::default(),
            scanner: Scanner::new(TENSORFLOW, NODE_DEF, 0),
            bytes: Vec::new(),
        }
    }
}

impl NodeAttributes {
    /// Returns the attributes of the node at `place`, which an earlier walk went through.
    pub fn read(
        &mut self,
        source: Source<'_>,
        place: Extent,
        release: i32,
    ) -> Result<Rc<Attributes>, GraphError> {
        // Nodes in the text form do not have comparable bytes.
        if source.is_text() || !source.read_part(place, &mut self.bytes)? {
            return Ok(Rc::new(node_at::read(source, place, None, release)?.attributes));
        }
        let canonical = self.known.read(&self.bytes, 1, |_| true);
        let known = canonical.and_then(|canonical| self.known.find(canonical.operation));
        if let Some(known) = known.and_then(|number| self.remembered.get(number as usize)) {
            return Ok(Rc::clone(known));
        }
        self.reader.clear();
        self.scanner.restart(NODE_DEF, self.bytes.len() as u64, 1);
        let run = self.scanner.run(&self.bytes, 0, &mut self.reader);
        if !matches!(run, Ok(Progress::Done)) {
            return Ok(Rc::new(node_at::read(source, place, None, release)?.attributes));
        }
        let attributes = Rc::new(self.reader.attributes().clone());
        self.remember(&attributes);
        Ok(attributes)
    }

    /// Remembers the attributes of the last node, except those with a tensor: nodes are equal
    /// independent of tensor contents.
    fn remember(&mut self, attributes: &Rc<Attributes>) {
        let is_tensor = |(_, value)| matches!(value, AttributeValue::Tensor(_));
        let is_long = self.bytes.len() > LONGEST || attributes.is_oversized();
        if is_long || attributes.iter().any(is_tensor) {
            return self.known.forget();
        }
        if self.remembered.len() >= MOST_REMEMBERED {
            (self.remembered, self.known) = (Vec::new(), SignatureCache::default());
            return;
        }
        self.known.learn(self.remembered.len() as u32);
        self.remembered.push(Rc::clone(attributes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes_testkit::fields::field;

    use crate::{Form, Message};

    fn attribute(key: &str, value: &[u8]) -> Vec<u8> {
        field(5, &[field(1, key.as_bytes()), field(2, value)].concat())
    }

    /// Returns an attribute `value` with a tensor of one byte.
    fn tensor(content: u8) -> Vec<u8> {
        attribute(
            "value",
            &field(8, &[&[8, 4][..], &field(2, &[]), &field(4, &[content])].concat()),
        )
    }

    #[test]
    fn nodes_have_their_own_attributes_whatever_was_read_before() {
        let number = |number: u8| attribute("axis", &[0x18, number]);
        let contents = [number(1), number(2), tensor(3), tensor(4), number(1), tensor(3)];
        let mut bytes = Vec::new();
        let mut places = Vec::new();
        for content in &contents {
            let node = [field(1, b"n"), field(2, b"Op"), content.clone()].concat();
            bytes.extend(field(1, &node));
            let end = bytes.len() as u64;
            places.push(Extent { start: end - node.len() as u64, end });
        }
        let source = Source::new(&bytes, Message::GraphDef, Form::Binary);
        let mut attributes = NodeAttributes::default();
        for _ in 0..2 {
            for place in &places {
                let whole = node_at::read(source, *place, None, i32::MAX).unwrap().attributes;
                let found = attributes.read(source, *place, i32::MAX).unwrap();
                let texts =
                    [&whole, &*found].map(|of| format!("{:?}", of.iter().collect::<Vec<_>>()));
                assert_eq!(texts[0], texts[1]);
            }
        }
        assert_eq!(attributes.remembered.len(), 2, "tensors are read again");
    }
}
