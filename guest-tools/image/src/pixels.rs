//! A decoded picture.

use image::metadata::Orientation;

/// A decoded picture of 8 bits a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// 1 grey, 2 grey and alpha, 3 colours, 4 colours and alpha.
    pub(crate) channels: usize,
    /// Row by row, `width * height * channels` bytes.
    pub(crate) data: Vec<u8>,
}

impl Pixels {
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Whether the last channel is alpha.
    pub(crate) fn has_alpha(&self) -> bool {
        self.channels.is_multiple_of(2)
    }

    /// The rows from the top; each has at least one byte.
    pub(crate) fn rows(&self) -> std::slice::ChunksExact<'_, u8> {
        self.data.chunks_exact((self.width as usize * self.channels).max(1))
    }

    /// Turned as an orientation asks.
    pub(crate) fn turned(self, orientation: Orientation) -> Self {
        // Where the pixels of the first row and the first column go: along which way and from which corner.
        let (across, right_to_left, bottom_up) = match orientation {
            Orientation::NoTransforms => return self,
            Orientation::FlipHorizontal => (false, true, false),
            Orientation::Rotate180 => (false, true, true),
            Orientation::FlipVertical => (false, false, true),
            Orientation::Rotate90FlipH => (true, false, false),
            Orientation::Rotate90 => (true, true, false),
            Orientation::Rotate270FlipH => (true, true, true),
            Orientation::Rotate270 => (true, false, true),
        };
        let (width, height) = turned_size(self.width, self.height, orientation);
        let (columns, rows, channels) = (width as usize, height as usize, self.channels);
        let mut data = Vec::with_capacity(self.data.len());
        for row in 0..rows {
            let row = if bottom_up { rows - 1 - row } else { row };
            for column in 0..columns {
                let column = if right_to_left { columns - 1 - column } else { column };
                let pixel = if across { column * rows + row } else { row * columns + column };
                data.extend_from_slice(&self.data[pixel * channels..(pixel + 1) * channels]);
            }
        }
        Self { width, height, channels, data }
    }

    /// Without its alpha if every pixel is opaque.
    pub(crate) fn without_plain_alpha(self) -> Self {
        if !self.has_alpha() || self.data.chunks_exact(self.channels).any(|pixel| pixel[self.channels - 1] != 255) {
            return self;
        }
        let kept = self.channels - 1;
        let data = self.data.chunks_exact(self.channels).flat_map(|pixel| &pixel[..kept]).copied().collect();
        Self { channels: kept, data, ..self }
    }

    /// Without its alpha, as seen on white paper.
    pub(crate) fn on_white(&self) -> Self {
        let kept = self.channels - 1;
        let mut data = Vec::with_capacity(self.width as usize * self.height as usize * kept);
        for pixel in self.data.chunks_exact(self.channels) {
            let alpha = u32::from(pixel[kept]);
            data.extend(pixel[..kept].iter().map(|&value| {
                let mixed = (u32::from(value) * alpha + 255 * (255 - alpha) + 127) / 255;
                u8::try_from(mixed).unwrap_or(u8::MAX)
            }));
        }
        Self { width: self.width, height: self.height, channels: kept, data }
    }
}

/// The size that a picture has after it was turned.
pub(crate) fn turned_size(width: u32, height: u32, orientation: Orientation) -> (u32, u32) {
    match orientation {
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH => {
            (height, width)
        }
        _ => (width, height),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(width: u32, height: u32, text: &str) -> Pixels {
        Pixels { width, height, channels: 1, data: text.as_bytes().to_vec() }
    }

    #[test]
    fn all_orientations() {
        // As the standard draws them: the picture is stored so that turning it as told gives the upright one.
        let upright = letters(2, 3, "abcdef");
        for (exif, stored) in [
            (1, letters(2, 3, "abcdef")),
            (2, letters(2, 3, "badcfe")),
            (3, letters(2, 3, "fedcba")),
            (4, letters(2, 3, "efcdab")),
            (5, letters(3, 2, "acebdf")),
            (6, letters(3, 2, "bdface")),
            (7, letters(3, 2, "fdbeca")),
            (8, letters(3, 2, "ecafdb")),
        ] {
            let orientation = Orientation::from_exif(exif).expect("one of eight");
            assert_eq!(stored.turned(orientation), upright, "{exif}");
        }
    }

    #[test]
    fn alpha_is_dropped_only_if_plain() {
        let grey = |data: &[u8]| Pixels { width: 2, height: 1, channels: 2, data: data.to_vec() };
        assert_eq!(grey(&[1, 255, 2, 255]).without_plain_alpha(), letters(2, 1, "\x01\x02"));
        assert_eq!(grey(&[1, 255, 2, 254]).without_plain_alpha().channels, 2);
        assert_eq!(grey(&[100, 255, 100, 0]).on_white().data, [100, 255]);
    }
}
