//! Decoding UTF-8 that comes in pieces.

/// Decodes UTF-8 piece by piece. A character that is split between pieces is not harmed; bytes that are not
/// UTF-8 become U+FFFD.
#[derive(Debug, Default)]
pub struct Utf8Decoder {
    /// The start of a character whose end has not come yet; at most 3 bytes.
    pending: Vec<u8>,
    /// How many U+FFFD were put in.
    replaced: usize,
}

impl Utf8Decoder {
    /// The text of the next piece, as far as its characters are complete.
    pub fn decode(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = bytes;
        if !self.pending.is_empty() {
            joined = [self.pending.as_slice(), bytes].concat();
            self.pending.clear();
            rest = &joined;
        }
        let mut text = String::with_capacity(rest.len());
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, bad) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    match error.error_len() {
                        Some(length) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            self.replaced += 1;
                            rest = &bad[length..];
                        }
                        None => {
                            self.pending = bad.to_vec();
                            return text;
                        }
                    }
                }
            }
        }
    }

    /// What is left at the end: U+FFFD if a character was never completed.
    pub fn finish(&mut self) -> &'static str {
        if self.pending.is_empty() {
            return "";
        }
        self.pending.clear();
        self.replaced += 1;
        "\u{fffd}"
    }

    /// How many U+FFFD stand for bytes that are not UTF-8 so far.
    pub fn replaced(&self) -> usize {
        self.replaced
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_incomplete_end_is_replaced() {
        let mut decoder = Utf8Decoder::default();
        assert_eq!(decoder.decode(b"a\xe2\x82"), "a");
        assert_eq!(decoder.finish(), "\u{fffd}");
        assert_eq!(decoder.finish(), "");
        assert_eq!(decoder.replaced(), 1);
    }

    proptest! {
        #[test]
        fn pieces_decode_like_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..40), text in "\\PC{0,10}", size in 1usize..7) {
            let whole = [bytes.as_slice(), text.as_bytes(), bytes.as_slice()].concat();
            let mut decoder = Utf8Decoder::default();
            let mut decoded = String::new();
            for piece in whole.chunks(size) {
                decoded.push_str(&decoder.decode(piece));
            }
            decoded.push_str(decoder.finish());
            prop_assert_eq!(decoded, String::from_utf8_lossy(&whole));
        }
    }
}
