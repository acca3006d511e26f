//! Messages that are passed on without being read.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::{
    DecodeError,
    encoding::{self, DecodeContext, WireType},
};

/// The deepest nesting of groups that is read. Groups are long out of use; the limit bounds the
/// memory that a hostile message can claim.
const DEEPEST_GROUP: usize = 64;

/// A message whose fields are kept as bytes and not interpreted.
///
/// It stands for `xla.CompileOptionsProto` and `xla.OpMetadata`: what a newer compiler adds passes
/// through unchanged. Fields keep their order; a varint that was not in its shortest form is
/// rewritten in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpaqueMessage {
    fields: BytesMut,
}

impl OpaqueMessage {
    /// Creates the message from encoded `fields`.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are not a sequence of fields.
    pub fn from_fields(fields: &[u8]) -> Result<Self, DecodeError> {
        <Self as prost::Message>::decode(Bytes::copy_from_slice(fields))
    }

    /// Returns the encoded fields.
    pub fn fields(&self) -> &[u8] {
        &self.fields
    }

    /// Returns the encoded fields, without a copy.
    pub fn into_fields(self) -> Bytes {
        self.fields.freeze()
    }
}

impl prost::Message for OpaqueMessage {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.fields);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if wire_type == WireType::EndGroup {
            // The decoder of the enclosing message passes on only the end of a group that it
            // opened, so this is always an error.
            return encoding::skip_field(wire_type, tag, buf, ctx);
        }
        let (mut tag, mut wire_type) = (tag, wire_type);
        let mut open_groups = Vec::new();
        loop {
            encoding::encode_key(tag, wire_type, &mut self.fields);
            match wire_type {
                WireType::StartGroup if open_groups.len() == DEEPEST_GROUP => {
                    #[allow(
                        deprecated,
                        reason = "prost offers writers of messages no other error"
                    )]
                    return Err(DecodeError::new("groups are nested too deep"));
                }
                WireType::StartGroup => open_groups.push(tag),
                WireType::EndGroup if open_groups.pop() == Some(tag) => {}
                WireType::EndGroup => return encoding::skip_field(wire_type, tag, buf, ctx),
                _ => self.merge_value(wire_type, buf, &ctx)?,
            }
            if open_groups.is_empty() {
                return Ok(());
            }
            (tag, wire_type) = encoding::decode_key(buf)?;
        }
    }

    fn encoded_len(&self) -> usize {
        self.fields.len()
    }

    fn clear(&mut self) {
        self.fields.clear();
    }
}

impl OpaqueMessage {
    fn merge_value(
        &mut self,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: &DecodeContext,
    ) -> Result<(), DecodeError> {
        match wire_type {
            WireType::Varint => {
                encoding::encode_varint(encoding::decode_varint(buf)?, &mut self.fields);
            }
            WireType::SixtyFourBit => {
                let mut value = 0u64;
                encoding::fixed64::merge(wire_type, &mut value, buf, ctx.clone())?;
                self.fields.put_u64_le(value);
            }
            WireType::ThirtyTwoBit => {
                let mut value = 0u32;
                encoding::fixed32::merge(wire_type, &mut value, buf, ctx.clone())?;
                self.fields.put_u32_le(value);
            }
            WireType::LengthDelimited => {
                let mut value = Bytes::new();
                encoding::bytes::merge(wire_type, &mut value, buf, ctx.clone())?;
                encoding::encode_varint(value.len() as u64, &mut self.fields);
                self.fields.put_slice(&value);
            }
            WireType::StartGroup | WireType::EndGroup => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[test]
    fn unknown_fields_of_every_wire_type_pass_through() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x11, 1, 2, 3, 4, 5, 6, 7, 8, // 2: fixed64
            0x1a, 0x03, b'a', b'b', b'c', // 3: length-delimited
            0x23, 0x08, 0x01, 0x24, // 4: a group with a varint
            0x2d, 1, 2, 3, 4, // 5: fixed32
        ];
        let message = OpaqueMessage::from_fields(&bytes).unwrap();
        assert_eq!(message.fields(), bytes);
        assert_eq!(message.encode_to_vec(), bytes);
    }

    #[test]
    fn truncated_fields_and_unbalanced_groups_are_errors() {
        for bytes in [&[0x08][..], &[0x0a, 5, 1], &[0x11, 1], &[0x23, 0x08], &[0x23, 0x2c], &[0x24]]
        {
            assert!(OpaqueMessage::from_fields(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn groups_nested_beyond_the_limit_are_an_error() {
        let bytes = vec![0x23; 100_000];
        assert!(OpaqueMessage::from_fields(&bytes).is_err());
    }
}
