//! Base64 with padding, as signing secrets are written.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn encode(bytes: &[u8]) -> String {
    let group = |group: &[u8]| {
        let word = group.iter().enumerate().fold(0, |word, (place, byte)| {
            word | u32::from(*byte) << (16 - 8 * place)
        });
        let digit = move |place: usize| match place <= group.len() {
            true => char::from(ALPHABET[(word >> (18 - 6 * place)) as usize & 0x3f]),
            false => '=',
        };
        [digit(0), digit(1), digit(2), digit(3)]
    };
    bytes.chunks(3).flat_map(group).collect()
}

/// How many bytes a text stands for; none if it is no base64.
pub fn decoded_length(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let is_complete = text.len().is_multiple_of(4) && padding <= 2;
    let is_known = digits.bytes().all(|digit| ALPHABET.contains(&digit));
    (is_complete && is_known).then_some(digits.len() * 6 / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 4648.
    #[test]
    fn encodes_as_the_standard_says() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decoded_length(text), Some(bytes.len()));
        }
        assert_eq!(encode(&[0xff, 0xef, 0xbe]), "/+++");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["Zg", "Zg=", "Z===", "Zm9-", "Zm 9", "Zg==Zg==", "=", "ü"] {
            assert_eq!(decoded_length(text), None, "{text}");
        }
    }
}
