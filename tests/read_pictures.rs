//! The tool `read` on pictures: what a model is shown, and what is refused before it costs anything. What is done to
//! the pixels is tested with the code that does it, in `guest-tools/image`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::common::{Sandbox, text_of};

/// A chunk of a PNG.
fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let body = [&kind[..], data].concat();
    let length = u32::try_from(data.len()).unwrap().to_be_bytes();
    [&length[..], &body, &crc(&body).to_be_bytes()].concat()
}

/// The checksum of PNG.
fn crc(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// Data in the form of zlib, not compressed.
fn stored(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = data.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap();
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    let (a, b) = data.iter().fold((1_u32, 0_u32), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    out.extend((b << 16 | a).to_be_bytes());
    out
}

/// A grey PNG with these pixels, row after row, and chunks before them.
fn png(width: u32, height: u32, extra: &[u8], pixel: impl Fn(u32, u32) -> u8) -> Vec<u8> {
    let rows: Vec<u8> = (0..height)
        .flat_map(|y| std::iter::once(0).chain((0..width).map(|x| pixel(x, y)).collect::<Vec<_>>()))
        .collect();
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 0, 0, 0, 0]].concat();
    [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &header),
        extra.to_vec(),
        chunk(b"IDAT", &stored(&rows)),
        chunk(b"IEND", &[]),
    ]
    .concat()
}

pub(crate) fn grey(width: u32, height: u32) -> Vec<u8> {
    png(width, height, &[], |_, _| 77)
}

/// The note, the media type and the bytes of the picture that a model gets.
#[track_caller]
fn shown(sandbox: &Sandbox, path: &str) -> (String, String, Vec<u8>) {
    let record = sandbox.call("read", &json!({"path": path}));
    assert_eq!(record["isError"], false, "{:.2000}", record.to_string());
    let block = &record["content"][1];
    assert_eq!(block["type"], "image");
    let base64 = block["data"].as_str().unwrap();
    assert!(base64.len() < 4_718_592, "{} characters", base64.len());
    // Scripts get the same.
    let data = &record["structuredContent"];
    assert_eq!((&data["type"], &data["data"]), (&json!("image"), &block["data"]));
    assert_eq!(data["mimeType"], block["mimeType"]);
    (text_of(&record["content"]), block["mimeType"].as_str().unwrap().to_owned(), STANDARD.decode(base64).unwrap())
}

/// The size that a PNG states.
fn size(png: &[u8]) -> (u32, u32) {
    let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (side(16), side(20))
}

#[test]
fn a_picture_that_fits_stays_as_it_is() {
    let sandbox = Sandbox::new();
    let data = grey(2000, 20);
    sandbox.file("a.png", &data);
    assert_eq!(shown(&sandbox, "a.png"), ("Read image file [image/png]".to_owned(), "image/png".to_owned(), data));
}

#[test]
fn a_large_picture_is_scaled_and_says_by_how_much() {
    let sandbox = Sandbox::new();
    sandbox.file("a.png", grey(3000, 1500));
    let (note, media_type, data) = shown(&sandbox, "a.png");
    assert_eq!((media_type.as_str(), size(&data)), ("image/png", (2000, 1000)));
    let hint =
        "[Image: original 3000x1500, displayed at 2000x1000. Multiply coordinates by 1.50 to map to original image.]";
    assert!(note.contains(hint), "{note}");
}

#[test]
fn a_picture_of_too_many_bytes_is_made_smaller() {
    let sandbox = Sandbox::new();
    // Not compressed, it is over the limit; its colours are few, so it need not lose any.
    let data = png(2000, 1900, &[], |x, y| u8::try_from((x ^ y) & 3).unwrap());
    assert!(data.len() / 3 * 4 > 4_718_592);
    sandbox.file("a.png", data);
    let (_, media_type, data) = shown(&sandbox, "a.png");
    assert_eq!((media_type.as_str(), size(&data)), ("image/png", (2000, 1900)));
}

#[test]
fn a_bitmap_becomes_a_png() {
    let sandbox = Sandbox::new();
    let header = [&b"BM"[..], &66_u32.to_le_bytes(), &[0; 4], &54_u32.to_le_bytes()].concat();
    let mut info = [&40_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &3_u32.to_le_bytes(), &[1, 0, 24, 0]].concat();
    info.resize(40, 0);
    let rows = [[255, 0, 0, 0], [0, 255, 0, 0], [0, 0, 255, 0]].concat();
    sandbox.file("a.bmp", [header, info, rows].concat());
    let (note, media_type, data) = shown(&sandbox, "a.bmp");
    assert_eq!((media_type.as_str(), size(&data)), ("image/png", (1, 3)));
    assert!(note.contains("[Image converted from image/bmp to image/png.]"), "{note}");
}

#[test]
fn a_photo_is_shown_upright() {
    let sandbox = Sandbox::new();
    // Orientation 6: to be turned by a quarter.
    let exif = chunk(b"eXIf", b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0");
    sandbox.file("a.png", png(64, 32, &exif, |_, y| if y < 16 { 0 } else { 255 }));
    assert_eq!(size(&shown(&sandbox, "a.png").2), (32, 64));
}

#[test]
fn an_animated_png_is_refused_with_a_way_out() {
    let sandbox = Sandbox::new();
    let control = chunk(b"acTL", &[0, 0, 0, 2, 0, 0, 0, 0]);
    sandbox.file("a.png", png(4, 4, &control, |_, _| 0));
    let text = sandbox.bad_call("read", &json!({"path": "a.png"}));
    assert!(text.contains("animated PNG") && text.contains("ffmpeg"), "{text}");
}

#[test]
fn a_file_is_a_picture_by_its_bytes_not_by_its_name() {
    let sandbox = Sandbox::new();
    sandbox.file("a.png", "not a picture\n");
    assert_eq!(sandbox.good_call("read", &json!({"path": "a.png"})), "not a picture\n");
    sandbox.file("a.txt", grey(4, 4));
    assert_eq!(shown(&sandbox, "a.txt").1, "image/png");
}

#[test]
fn a_damaged_picture_says_so() {
    let sandbox = Sandbox::new();
    let whole = png(80, 80, &[], |x, y| u8::try_from(x * y % 251).unwrap());
    sandbox.file("a.png", &whole[..whole.len() / 2]);
    let text = sandbox.bad_call("read", &json!({"path": "a.png"}));
    assert!(text.contains("a.png (image/png) can not be shown: it is damaged ("), "{text}");
}

#[test]
fn a_small_file_with_a_huge_picture_is_refused_by_its_header() {
    let sandbox = Sandbox::new();
    for (width, height, reason) in
        [(60_000_u32, 60_000_u32, "60000x60000 pixels"), (9_000, 9_000, "64 million"), (70_000, 1, "65535 on a side")]
    {
        let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
        let data = [
            b"\x89PNG\r\n\x1a\n".to_vec(),
            chunk(b"IHDR", &header),
            chunk(b"IDAT", &stored(&[0; 100])),
            chunk(b"IEND", &[]),
        ];
        sandbox.file("bomb.png", data.concat());
        let text = sandbox.bad_call("read", &json!({"path": "bomb.png"}));
        assert!(text.contains(reason), "{width}x{height}: {text}");
    }
}

#[test]
fn the_largest_picture_that_is_taken_stays_in_the_plugins_memory() {
    let sandbox = Sandbox::new();
    sandbox.file("a.png", png(7_900, 7_900, &[], |_, _| 0));
    let record: Value = sandbox.call("read", &json!({"path": "a.png"}));
    let text = text_of(&record["content"]);
    assert!(text.contains("displayed at 2000x2000") || text.contains("MB"), "{text}");
}
