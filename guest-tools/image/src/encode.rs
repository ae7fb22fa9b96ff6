//! Making files of pixels.

use std::io::{self, Write};

use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;

use crate::format::Format;
use crate::pixels::Pixels;

/// The qualities of JPEG to try, the best first.
const QUALITIES: [u8; 4] = [80, 70, 55, 40];

/// A new file.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) data: Vec<u8>,
    pub(crate) format: Format,
}

/// The smaller of a PNG and a JPEG of good quality, or else the best JPEG, in at most `most` bytes.
pub(crate) fn smallest(pixels: &Pixels, most: usize) -> Option<Encoded> {
    let flat = pixels.has_alpha().then(|| pixels.on_white());
    let flat = flat.as_ref().unwrap_or(pixels);
    let [good, poorer @ ..] = QUALITIES;
    let first = jpeg(flat, good);
    // A photo as PNG is many times larger: giving up on it early saves most of the time.
    let bound = first.as_ref().map_or(most, |jpeg| jpeg.len().min(most));
    if let Some(data) = png(pixels, bound) {
        return Some(Encoded { data, format: Format::Png });
    }
    let fits = |data: &Vec<u8>| data.len() <= most;
    let data =
        first.filter(fits).or_else(|| poorer.into_iter().filter_map(|quality| jpeg(flat, quality)).find(fits))?;
    Some(Encoded { data, format: Format::Jpeg })
}

/// A JPEG of pixels without alpha.
fn jpeg(pixels: &Pixels, quality: u8) -> Option<Vec<u8>> {
    let color = if pixels.channels == 1 { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
    let mut data = Vec::new();
    JpegEncoder::new_with_quality(&mut data, quality).encode(&pixels.data, pixels.width, pixels.height, color).ok()?;
    Some(data)
}

/// A PNG in at most `most` bytes.
pub(crate) fn png(pixels: &Pixels, most: usize) -> Option<Vec<u8>> {
    let mut output = Bounded { data: Vec::new(), most };
    let mut encoder = png::Encoder::new(&mut output, pixels.width, pixels.height);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_color(match pixels.channels {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        3 => png::ColorType::Rgb,
        _ => png::ColorType::Rgba,
    });
    let mut writer = encoder.write_header().ok()?;
    let mut stream = writer.stream_writer().ok()?;
    for row in pixels.rows() {
        stream.write_all(row).ok()?;
    }
    stream.finish().ok()?;
    writer.finish().ok()?;
    Some(output.data)
}

/// Takes so many bytes and no more.
struct Bounded {
    data: Vec<u8>,
    most: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.data.len() + bytes.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.data.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
