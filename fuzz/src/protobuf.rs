//! Changes to a message that keep it well-formed: fields are removed, doubled, exchanged,
//! renumbered or filled with other content of the message, and enclosing lengths are corrected.
//!
//! Uses the wire format only and does not depend on a schema: a text that happens to parse as a
//! message is changed as one.

/// Limit on the depth to which a message is parsed.
const MOST_DEPTH: usize = 24;
/// Limit on the texts of a message that are kept to be inserted elsewhere.
const MOST_TEXTS: usize = 256;

/// Numbers at the limits of the types of fields.
const NUMBERS: [u64; 18] = [
    0,
    1,
    2,
    3,
    7,
    9,
    20,
    21,
    29,
    99,
    101,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0001,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Names that the importer treats specially.
const NAMES: [&[u8]; 12] = [
    b"PartitionedCall",
    b"StatefulPartitionedCall",
    b"Merge",
    b"NextIteration",
    b"_class",
    b"_output_shapes",
    b"_disable_call_shape_inference",
    b"loc:@x",
    b"T",
    b"N",
    b"Conv",
    b"x:0",
];

/// A generator of random numbers from a seed (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `sides`, or 0 if `sides` is 0.
    fn below(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll() % (sides.max(1) as u64)).unwrap_or_default()
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> Option<&'t T> {
        from.get(self.below(from.len()))
    }
}

#[derive(Clone)]
enum Content {
    Number(u64),
    Four([u8; 4]),
    Eight([u8; 8]),
    Bytes(Vec<u8>),
}

#[derive(Clone)]
struct Field {
    number: u64,
    content: Content,
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns the fields of a message, or `None` if the bytes are not a message or have groups.
fn fields(mut bytes: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let content = match key & 7 {
            0 => Content::Number(varint(&mut bytes)?),
            1 => {
                let (eight, rest) = bytes.split_first_chunk()?;
                bytes = rest;
                Content::Eight(*eight)
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (content, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Content::Bytes(content.to_vec())
            }
            5 => {
                let (four, rest) = bytes.split_first_chunk()?;
                bytes = rest;
                Content::Four(*four)
            }
            _ => return None,
        };
        if key >> 3 == 0 {
            return None;
        }
        fields.push(Field { number: key >> 3, content });
    }
    Some(fields)
}

fn bytes_of(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for Field { number, content } in fields {
        let wire_type = match content {
            Content::Number(_) => 0,
            Content::Eight(_) => 1,
            Content::Bytes(_) => 2,
            Content::Four(_) => 5,
        };
        put_varint(number << 3 | wire_type, &mut out);
        match content {
            Content::Number(value) => put_varint(*value, &mut out),
            Content::Eight(eight) => out.extend_from_slice(eight),
            Content::Four(four) => out.extend_from_slice(four),
            Content::Bytes(bytes) => {
                put_varint(bytes.len() as u64, &mut out);
                out.extend_from_slice(bytes);
            }
        }
    }
    out
}

/// Collects texts and nested messages in the order of the file, up to the limit.
fn collect(message: &[u8], depth: usize, texts: &mut Vec<Vec<u8>>) {
    let Some(fields) = fields(message).filter(|_| depth < MOST_DEPTH) else { return };
    for field in fields {
        if let Content::Bytes(bytes) = field.content
            && texts.len() < MOST_TEXTS
        {
            texts.push(bytes.clone());
            collect(&bytes, depth + 1, texts);
        }
    }
}

/// Returns the message with one to three changes.
pub fn changed(message: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut texts = Vec::new();
    collect(message, 0, &mut texts);
    let mut message = message.to_vec();
    for _ in 0..=dice.below(3) {
        message = change(&message, 0, dice, &texts);
    }
    message
}

fn change(message: &[u8], depth: usize, dice: &mut Dice, texts: &[Vec<u8>]) -> Vec<u8> {
    let Some(mut fields) = fields(message).filter(|fields| !fields.is_empty()) else {
        return changed_text(message, dice, texts);
    };
    let at = dice.below(fields.len());
    let inside = depth < MOST_DEPTH && dice.below(6) > 0;
    if let Content::Bytes(bytes) = &fields[at].content
        && inside
    {
        let bytes = change(bytes, depth + 1, dice, texts);
        fields[at].content = Content::Bytes(bytes);
        return bytes_of(&fields);
    }
    let other = dice.below(fields.len());
    match dice.below(7) {
        0 => drop(fields.remove(at)),
        1 => fields.insert(other, fields[at].clone()),
        2 => fields.swap(at, other),
        3 => fields[at].number = 1 + dice.below(12) as u64,
        4 => fields[at].content = fields[other].content.clone(),
        5 => {
            let bytes = dice.pick(texts).cloned().unwrap_or_default();
            let number = 1 + dice.below(12) as u64;
            fields.insert(other, Field { number, content: Content::Bytes(bytes) });
        }
        _ => fields[at].content = changed_content(&fields[at].content, dice, texts),
    }
    bytes_of(&fields)
}

fn changed_content(content: &Content, dice: &mut Dice, texts: &[Vec<u8>]) -> Content {
    match content {
        Content::Bytes(bytes) => Content::Bytes(changed_text(bytes, dice, texts)),
        Content::Number(_) if dice.below(8) == 0 => Content::Four([dice.roll() as u8; 4]),
        _ => Content::Number(*dice.pick(&NUMBERS).unwrap_or(&0)),
    }
}

fn changed_text(text: &[u8], dice: &mut Dice, texts: &[Vec<u8>]) -> Vec<u8> {
    match dice.below(5) {
        0 => text.get(..dice.below(text.len())).unwrap_or_default().to_vec(),
        1 => [text, text].concat(),
        2 => dice.pick(&NAMES).copied().unwrap_or_default().to_vec(),
        3 => {
            let mut text = text.to_vec();
            let at = dice.below(text.len());
            if let Some(byte) = text.get_mut(at) {
                *byte = dice.roll() as u8;
            }
            text
        }
        _ => dice.pick(texts).cloned().unwrap_or_default(),
    }
}
