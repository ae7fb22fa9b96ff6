//! Telling pictures from other files.

use std::fmt;

/// A format of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Portable Network Graphics, not animated.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    Webp,
    /// Windows bitmap.
    Bmp,
}

impl Format {
    /// The format of a file with these first bytes, or none if it is no picture. An animated PNG counts as PNG.
    pub fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(PNG) {
            Some(Self::Png)
        } else if start.starts_with(b"\xff\xd8\xff") {
            Some(Self::Jpeg)
        } else if start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a") {
            Some(Self::Gif)
        } else if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
            Some(Self::Webp)
        } else if start.starts_with(b"BM")
            && matches!(start.get(14..18), Some([12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0]))
        {
            // Two letters could start a text; the size of the header that follows could not.
            Some(Self::Bmp)
        } else {
            None
        }
    }

    /// Its media type.
    pub fn mime_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Bmp => "image/bmp",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mime_type())
    }
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Whether these are the first bytes of an animated PNG: the chunk that says so comes before the picture's data.
pub fn is_animated_png(start: &[u8]) -> bool {
    let Some(mut rest) = start.strip_prefix(PNG) else { return false };
    while let [a, b, c, d, kind @ ..] = rest {
        match kind.get(..4) {
            Some(b"acTL") => return true,
            None | Some(b"IDAT") => return false,
            Some(_) => {}
        }
        // The chunk's content and its checksum.
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let Some(next) = length.checked_add(8).and_then(|skip| kind.get(skip..)) else { return false };
        rest = next;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_by_their_first_bytes() {
        assert_eq!(Format::of(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"), Some(Format::Png));
        assert_eq!(Format::of(b"\xff\xd8\xff\xe0"), Some(Format::Jpeg));
        assert_eq!(Format::of(b"GIF89a..."), Some(Format::Gif));
        assert_eq!(Format::of(b"RIFF\x10\0\0\0WEBPVP8 "), Some(Format::Webp));
        assert_eq!(Format::of(b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"), Some(Format::Bmp));
        assert_eq!(Format::of(b"BMW is a make of car"), None);
        assert_eq!(Format::of(b"RIFF of the year"), None);
        assert_eq!(Format::of(b""), None);
    }

    #[test]
    fn animated_pngs() {
        let chunk = |kind: &[u8], content: &[u8]| {
            let length = u32::try_from(content.len()).unwrap_or_default().to_be_bytes();
            [&length, kind, content, &[0; 4]].concat()
        };
        let header = [PNG, &chunk(b"IHDR", &[0; 13])].concat();
        let animation = chunk(b"acTL", &[0; 8]);
        let data = chunk(b"IDAT", &[0; 9]);
        assert!(is_animated_png(&[&header[..], &animation, &data].concat()));
        assert!(!is_animated_png(&[&header[..], &data, &animation].concat()));
        assert!(!is_animated_png(&header));
        assert!(!is_animated_png(&[PNG, &[0xff; 20]].concat()));
        assert!(!is_animated_png(b"acTL"));
    }
}
