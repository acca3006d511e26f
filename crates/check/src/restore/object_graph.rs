//! The objects that a checkpoint describes (`tensorflow.TrackableObjectGraph`).
//!
//! Parses the message. Does not depend on the objects of a model.

use std::collections::HashMap;

use serdes_wire::{Dialect, Field, FieldValue, Malformed, WireReader};

/// The name of the tensor with the description.
pub(super) const DESCRIPTION: &[u8] = b"_CHECKPOINTABLE_OBJECT_GRAPH";

/// An object of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TrackedObject {
    /// The ranges of its parts in the lists for all objects.
    children: (usize, usize),
    keys: (usize, usize),
    slots: (usize, usize),
    /// True if a registered class restores it.
    pub(super) is_registered: bool,
}

/// A variable that an optimizer keeps for another variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TrackedSlot<'b> {
    pub(super) original: i32,
    pub(super) name: &'b [u8],
    pub(super) slot: i32,
}

/// All objects, by number.
#[derive(Debug, Default)]
pub(super) struct TrackedObjects<'b> {
    pub(super) objects: Vec<TrackedObject>,
    children: Vec<(&'b [u8], i32)>,
    keys: Vec<&'b [u8]>,
    /// The keys of variables' values, by the names of the variables in a graph.
    pub(super) graph_names: HashMap<&'b [u8], &'b [u8]>,
    slots: Vec<TrackedSlot<'b>>,
}

fn within<T>(list: &[T], (start, end): (usize, usize)) -> &[T] {
    list.get(start..end).unwrap_or_default()
}

impl<'b> TrackedObjects<'b> {
    /// Returns the names and numbers of an object's children.
    pub(super) fn children(&self, object: &TrackedObject) -> &[(&'b [u8], i32)] {
        within(&self.children, object.children)
    }

    /// Returns the keys of an object's values.
    pub(super) fn keys(&self, object: &TrackedObject) -> &[&'b [u8]] {
        within(&self.keys, object.keys)
    }

    /// Returns the slots of an object, if it is an optimizer.
    pub(super) fn slots(&self, object: &TrackedObject) -> &[TrackedSlot<'b>] {
        within(&self.slots, object.slots)
    }

    /// Returns the position of an object by its number, interpreted as an index into a Python list.
    pub(super) fn position(&self, number: i32) -> Option<usize> {
        let count = i64::try_from(self.objects.len()).ok()?;
        let number = i64::from(number);
        let position = if number < 0 { number + count } else { number };
        usize::try_from(position).ok().filter(|position| *position < self.objects.len())
    }

    /// Reads the message.
    pub(super) fn parse(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let mut found = Self::default();
        let mut fields = WireReader::new(Dialect::Tensorflow, bytes);
        while let Some(Field { number, value, .. }) = fields.next_field()? {
            if let (1, FieldValue::Bytes(bytes)) = (number, value) {
                found.object(fields.nested(bytes)?)?;
            }
        }
        Ok(found)
    }

    fn object(&mut self, mut fields: WireReader<'b>) -> Result<(), Malformed> {
        let starts = (self.children.len(), self.keys.len(), self.slots.len());
        let mut is_registered = false;
        while let Some(Field { number, value, .. }) = fields.next_field()? {
            let FieldValue::Bytes(bytes) = value else { continue };
            match number {
                1 => self.children.push(reference(fields.nested(bytes)?)?),
                2 => {
                    let [_, graph_name, key] = texts(fields.nested(bytes)?)?;
                    self.keys.push(key);
                    self.graph_names.insert(graph_name, key);
                }
                3 => self.slots.push(slot(fields.nested(bytes)?)?),
                4 => {
                    let [name, ..] = texts(fields.nested(bytes)?)?;
                    is_registered = !name.is_empty();
                }
                _ => {}
            }
        }
        self.objects.push(TrackedObject {
            children: (starts.0, self.children.len()),
            keys: (starts.1, self.keys.len()),
            slots: (starts.2, self.slots.len()),
            is_registered,
        });
        Ok(())
    }
}

fn text(bytes: &[u8]) -> Result<&[u8], Malformed> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(bytes),
        Err(_) => Err(Malformed { reason: "a text that is not UTF-8", at: 0 }),
    }
}

/// Returns the strings in the fields 1 to 3.
fn texts(mut fields: WireReader<'_>) -> Result<[&[u8]; 3], Malformed> {
    let mut found: [&[u8]; 3] = [b""; 3];
    while let Some(Field { number, value, .. }) = fields.next_field()? {
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        if let FieldValue::Bytes(bytes) = value
            && let Some(slot) = place.and_then(|place| found.get_mut(place))
        {
            *slot = text(bytes)?;
        }
    }
    Ok(found)
}

fn reference(mut fields: WireReader<'_>) -> Result<(&[u8], i32), Malformed> {
    let mut found: (&[u8], i32) = (b"", 0);
    while let Some(Field { number, value, .. }) = fields.next_field()? {
        match (number, value) {
            (1, FieldValue::Varint(value)) => found.1 = value as i32,
            (2, FieldValue::Bytes(bytes)) => found.0 = text(bytes)?,
            _ => {}
        }
    }
    Ok(found)
}

fn slot(mut fields: WireReader<'_>) -> Result<TrackedSlot<'_>, Malformed> {
    let mut found = TrackedSlot::default();
    while let Some(Field { number, value, .. }) = fields.next_field()? {
        match (number, value) {
            (1, FieldValue::Varint(value)) => found.original = value as i32,
            (2, FieldValue::Bytes(bytes)) => found.name = text(bytes)?,
            (3, FieldValue::Varint(value)) => found.slot = value as i32,
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }

    #[test]
    fn tracked_objects_are_read_with_children_keys_and_slots() {
        let child = [&[8, 1][..], &field(2, b"w")].concat();
        let value = [field(1, b"VARIABLE_VALUE"), field(2, b"w"), field(3, b"key")].concat();
        let slot = [&[8, 1][..], &field(2, b"m"), &[24, 2]].concat();
        let root = [field(1, &child), field(3, &slot)].concat();
        let bytes = [field(1, &root), field(1, &field(2, &value))].concat();
        let found = TrackedObjects::parse(&bytes).unwrap();
        let [root, variable] = found.objects.as_slice() else { panic!("{found:?}") };
        assert_eq!(found.children(root), [(&b"w"[..], 1)]);
        assert_eq!(found.slots(root), [TrackedSlot { original: 1, name: b"m", slot: 2 }]);
        assert_eq!(found.keys(variable), [b"key"]);
        assert_eq!((found.position(-1), found.position(2)), (Some(1), None));
    }

    #[test]
    fn tracked_objects_with_a_text_that_is_none_are_refused() {
        let bytes = field(1, &field(1, &field(2, b"\xff")));
        assert!(TrackedObjects::parse(&bytes).is_err());
        assert!(TrackedObjects::parse(b"\xff\xff").is_err());
    }
}
