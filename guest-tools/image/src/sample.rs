//! Pictures for tests.

use image::codecs::gif::GifEncoder;
use image::{DynamicImage, Frame, ImageFormat, Rgb, RgbImage, RgbaImage};

use crate::format::Format;

/// A picture with a red, green, blue and white quarter, clockwise from the upper left.
pub(crate) fn quarters(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| match (x * 2 < width, y * 2 < height) {
        (true, true) => Rgb([255, 0, 0]),
        (false, true) => Rgb([0, 255, 0]),
        (false, false) => Rgb([0, 0, 255]),
        (true, false) => Rgb([255, 255, 255]),
    })
}

/// A picture that nothing compresses.
pub(crate) fn noise(width: u32, height: u32) -> RgbImage {
    let mut state = 1_u32;
    RgbImage::from_fn(width, height, |_, _| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        Rgb([0, 8, 16].map(|shift| u8::try_from(state >> shift & 255).unwrap_or_default()))
    })
}

pub(crate) fn file(picture: impl Into<DynamicImage>, format: Format) -> Vec<u8> {
    let format = match format {
        Format::Png => ImageFormat::Png,
        Format::Jpeg => ImageFormat::Jpeg,
        Format::Gif => ImageFormat::Gif,
        Format::Webp => ImageFormat::WebP,
        Format::Bmp => ImageFormat::Bmp,
    };
    let mut data = std::io::Cursor::new(Vec::new());
    let mut picture = picture.into();
    if format == ImageFormat::Gif {
        picture = picture.to_rgba8().into();
    }
    picture.write_to(&mut data, format).expect("encodable");
    data.into_inner()
}

/// A GIF with a red and a blue frame.
pub(crate) fn animated_gif(width: u32, height: u32) -> Vec<u8> {
    let mut data = Vec::new();
    let mut encoder = GifEncoder::new(&mut data);
    for color in [[255, 0, 0, 255], [0, 0, 255, 255]] {
        encoder.encode_frame(Frame::new(RgbaImage::from_pixel(width, height, color.into()))).expect("encodable");
    }
    drop(encoder);
    data
}

/// A WebP that shows one picture twice.
pub(crate) fn animated_webp(width: u32, height: u32) -> Vec<u8> {
    let still = file(quarters(width, height), Format::Webp);
    let three = |value: u32| value.to_le_bytes()[..3].to_vec();
    let (width, height) = (three(width - 1), three(height - 1));
    let frame = [vec![0; 6], width.clone(), height.clone(), vec![100, 0, 0, 0], still[12..].to_vec()].concat();
    let frame = riff_chunk(b"ANMF", &frame);
    let header = riff_chunk(b"VP8X", &[vec![2, 0, 0, 0], width, height].concat());
    riff(&[header, riff_chunk(b"ANIM", &[0; 6]), frame.clone(), frame])
}

pub(crate) fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    riff_chunk(b"RIFF", &[b"WEBP".to_vec(), chunks.concat()].concat())
}

pub(crate) fn riff_chunk(kind: &[u8], content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("short").to_le_bytes();
    let padding = vec![0; content.len() % 2];
    [kind, &length, content, &padding].concat()
}

/// An Exif block that says nothing but the orientation.
pub(crate) fn exif(orientation: u8) -> Vec<u8> {
    let entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0];
    [b"MM\0\x2a\0\0\0\x08\0\x01".as_slice(), &entry, &[0; 4]].concat()
}

/// A JPEG with an orientation.
pub(crate) fn oriented_jpeg(picture: RgbImage, orientation: u8) -> Vec<u8> {
    let plain = file(picture, Format::Jpeg);
    let block = [b"Exif\0\0".to_vec(), exif(orientation)].concat();
    let length = u16::try_from(block.len() + 2).expect("short").to_be_bytes();
    [&plain[..2], &[0xff, 0xe1], &length, &block, &plain[2..]].concat()
}

/// A PNG of chunks.
pub(crate) fn png(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let mut data = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, content) in chunks {
        data.extend(u32::try_from(content.len()).expect("short").to_be_bytes());
        let checked = [kind.as_slice(), content].concat();
        data.extend(&checked);
        data.extend(crc(&checked).to_be_bytes());
    }
    data
}

/// The header of a PNG: `color` as in the standard.
pub(crate) fn png_header(width: u32, height: u32, depth: u8, color: u8) -> (&'static [u8; 4], Vec<u8>) {
    (b"IHDR", [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, color, 0, 0, 0]].concat())
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// The headers of a JPEG with three components; `kind` of its frame as in the standard.
pub(crate) fn jpeg_headers(width: u16, height: u16, kind: u8) -> Vec<u8> {
    let frame = [&[8][..], &height.to_be_bytes(), &width.to_be_bytes(), &[3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0]];
    [
        b"\xff\xd8\xff".as_slice(),
        &[kind, 0, 17],
        &frame.concat(),
        &[0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0],
        &[0x55; 40],
        b"\xff\xd9",
    ]
    .concat()
}
