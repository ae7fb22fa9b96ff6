use std::time::{Duration, Instant};

use image::{DynamicImage, GrayAlphaImage, GrayImage, Rgb, RgbImage, Rgba, RgbaImage};
use proptest::prelude::*;

use super::*;
use crate::sample::*;

const ALL: [Format; 5] = [Format::Png, Format::Jpeg, Format::Gif, Format::Webp, Format::Bmp];

fn fitted(data: &[u8], format: Format) -> Result<Picture, Problem> {
    fit(data.to_vec(), format, Bounds::default()).map(|picture| picture.expect("small enough"))
}

fn shown(data: &[u8], format: Format) -> Picture {
    fitted(data, format).expect("a picture")
}

fn open(picture: &Picture) -> DynamicImage {
    image::load_from_memory(&picture.data).expect("a picture")
}

fn refused(data: &[u8], format: Format) -> String {
    let start = Instant::now();
    let problem = fitted(data, format).expect_err("must be refused");
    assert!(start.elapsed() < Duration::from_secs(1), "refused too late");
    problem.to_string()
}

#[test]
fn small_pictures_stay_as_they_are() {
    for format in ALL {
        let data = file(quarters(7, 5), format);
        assert_eq!(Format::of(&data), Some(format));
        let picture = shown(&data, format);
        if format == Format::Bmp {
            assert_eq!(picture.format, Format::Png);
            assert_eq!(picture.hints, ["[Image converted from image/bmp to image/png.]"]);
            assert_eq!(open(&picture).to_rgb8(), quarters(7, 5));
        } else {
            assert_eq!(picture, Picture { data, format, hints: Vec::new() });
        }
    }
}

#[test]
fn large_pictures_of_all_formats_are_scaled() {
    for format in ALL {
        let picture = shown(&file(quarters(2200, 1100), format), format);
        let hint = "[Image: original 2200x1100, displayed at 2000x1000. Multiply coordinates by 1.10 to map to original image.]";
        assert_eq!(picture.hints[0], hint);
        assert_eq!(picture.hints.len(), if format == Format::Bmp { 2 } else { 1 });
        assert_eq!(picture.format, Format::Png, "flat colours are smaller as PNG");
        let image = open(&picture).to_rgb8();
        assert_eq!(image.dimensions(), (2000, 1000));
        for ((x, y), color) in [((9, 9), [255, 0, 0]), ((1990, 9), [0, 255, 0]), ((1990, 990), [0, 0, 255])] {
            let close = image.get_pixel(x, y).0.iter().zip(color).all(|(&a, b)| a.abs_diff(b) < 12);
            assert!(close, "{format} {x} {y} {:?}", image.get_pixel(x, y));
        }
    }
}

#[test]
fn one_pixel_and_the_thinnest() {
    for format in ALL {
        assert_eq!(open(&shown(&file(quarters(1, 1), format), format)).to_rgb8().dimensions(), (1, 1));
        let picture = shown(&file(quarters(1, 4000), format), format);
        assert_eq!(open(&picture).to_rgb8().dimensions(), (1, 2000));
    }
}

#[test]
fn exactly_at_the_limit_of_sides() {
    let data = file(GrayImage::new(2000, 2000), Format::Png);
    assert_eq!(shown(&data, Format::Png).data, data);
    for (size, scaled) in [((2001, 2000), (2000, 1999)), ((2000, 2001), (1999, 2000))] {
        let picture = shown(&file(GrayImage::new(size.0, size.1), Format::Png), Format::Png);
        assert_eq!(open(&picture).to_rgb8().dimensions(), scaled);
        assert!(picture.hints[0].contains("Multiply coordinates by 1.00 to"));
    }
}

#[test]
fn exactly_at_the_limit_of_bytes() {
    let data = file(noise(40, 40), Format::Png);
    let base64 = data.len().div_ceil(3) * 4;
    let fit = |base64| fit(data.clone(), Format::Png, Bounds { side: 2000, base64 }).ok().flatten().expect("a picture");
    assert_eq!(fit(base64 + 1).data, data);
    let picture = fit(base64);
    assert_ne!(picture.data, data);
    assert!(picture.data.len().div_ceil(3) * 4 < base64);
    assert_eq!(picture.format, Format::Jpeg);
    assert!(picture.hints.is_empty(), "as many pixels as before");
    assert_eq!(Bounds::default().bytes(), 3_538_941);
}

#[test]
fn what_stays_too_large_loses_quality_then_pixels_then_all() {
    let data = file(noise(100, 80), Format::Png);
    let fit = |base64| fit(data.clone(), Format::Png, Bounds { side: 2000, base64 }).expect("a picture");
    let mut last = usize::MAX;
    for base64 in [12_000, 9_000, 6_000, 2_000, 1_000] {
        let picture = fit(base64).expect("small enough");
        assert!(picture.data.len().div_ceil(3) * 4 < base64 && picture.data.len() < last);
        last = picture.data.len();
    }
    let tiny = fit(200).expect("small enough");
    assert!(tiny.hints[0].starts_with("[Image: original 100x80, displayed at "), "{:?}", tiny.hints);
    assert_eq!(fit(60), None);
}

#[test]
fn a_photo_becomes_a_jpeg() {
    let photo = RgbImage::from_fn(2400, 1800, |x, y| {
        let grain = (x.wrapping_mul(31) ^ y.wrapping_mul(17)) % 23;
        Rgb([x / 10, y / 8, (x + y) / 18].map(|value| u8::try_from((value + grain) % 256).unwrap_or_default()))
    });
    let picture = shown(&file(photo, Format::Png), Format::Png);
    assert_eq!(picture.format, Format::Jpeg);
    assert_eq!(open(&picture).to_rgb8().dimensions(), (2000, 1500));
}

#[test]
fn all_kinds_of_pixels() {
    let pictures: [DynamicImage; 7] = [
        GrayImage::from_pixel(2100, 9, image::Luma([77])).into(),
        GrayAlphaImage::from_pixel(2100, 9, image::LumaA([77, 100])).into(),
        RgbImage::from_pixel(2100, 9, Rgb([77; 3])).into(),
        RgbaImage::from_pixel(2100, 9, Rgba([77, 77, 77, 100])).into(),
        DynamicImage::from(RgbaImage::from_pixel(2100, 9, Rgba([77, 77, 77, 255]))).to_rgba16().into(),
        DynamicImage::from(GrayImage::from_pixel(2100, 9, image::Luma([77]))).to_luma16().into(),
        DynamicImage::from(RgbImage::from_pixel(2100, 9, Rgb([77; 3]))).to_rgb16().into(),
    ];
    for picture in pictures {
        let expected = *picture.to_rgba8().get_pixel(0, 0);
        let found = shown(&file(picture, Format::Png), Format::Png);
        assert_eq!(found.format, Format::Png);
        assert_eq!(*open(&found).to_rgba8().get_pixel(1, 1), expected);
    }
}

#[test]
fn exif_orientations_of_jpegs() {
    let upright = quarters(32, 64);
    for exif in 1..=8 {
        let orientation = image::metadata::Orientation::from_exif(exif).expect("one of eight");
        // The picture as a camera stores it: the inverse of what the orientation asks for.
        let inverse = match exif {
            6 => image::metadata::Orientation::Rotate270,
            8 => image::metadata::Orientation::Rotate90,
            _ => orientation,
        };
        let mut stored = DynamicImage::from(upright.clone());
        stored.apply_orientation(inverse);
        let data = oriented_jpeg(stored.to_rgb8(), exif);
        let picture = shown(&data, Format::Jpeg);
        assert_eq!(picture.data == data, exif == 1);
        assert!(picture.hints.is_empty());
        let image = open(&picture).to_rgb8();
        assert_eq!(image.dimensions(), (32, 64), "{exif}");
        for (x, y) in [(4, 4), (28, 4), (28, 60), (4, 60)] {
            let (found, wanted) = (image.get_pixel(x, y).0, upright.get_pixel(x, y).0);
            assert!(found.iter().zip(wanted).all(|(a, b)| a.abs_diff(b) < 12), "{exif}: {found:?} {wanted:?}");
        }
    }
}

#[test]
fn exif_orientations_of_other_formats_and_sizes() {
    let plain = file(quarters(8, 6), Format::Png);
    let block = png(&[(b"eXIf", exif(6))])[8..].to_vec();
    let picture = shown(&[&plain[..33], &block, &plain[33..]].concat(), Format::Png);
    assert_eq!((picture.format, open(&picture).to_rgb8()), (Format::Png, image::imageops::rotate90(&quarters(8, 6))));

    let still = file(quarters(8, 6), Format::Webp);
    let header = riff_chunk(b"VP8X", &[8, 0, 0, 0, 7, 0, 0, 5, 0, 0]);
    let data = riff(&[header, still[12..].to_vec(), riff_chunk(b"EXIF", &exif(3))]);
    assert_eq!(open(&shown(&data, Format::Webp)).to_rgb8(), image::imageops::rotate180(&quarters(8, 6)));

    let picture = shown(&oriented_jpeg(quarters(2400, 1200), 6), Format::Jpeg);
    assert!(picture.hints[0].starts_with("[Image: original 1200x2400, displayed at 1000x2000."));
    assert_eq!(open(&picture).to_rgb8().dimensions(), (1000, 2000));
}

#[test]
fn animations() {
    for (data, format) in [(animated_gif(20, 10), Format::Gif), (animated_webp(20, 10), Format::Webp)] {
        assert_eq!(shown(&data, format), Picture { data, format, hints: Vec::new() });
    }
    for (data, format) in [(animated_gif(2020, 10), Format::Gif), (animated_webp(2020, 10), Format::Webp)] {
        let picture = shown(&data, format);
        assert_eq!(picture.hints[1], "[The image is animated; only its first frame is shown.]");
        let [red, green, blue] = open(&picture).to_rgb8().get_pixel(3, 3).0;
        assert!(red > 250 && green < 5 && blue < 5, "{format}");
    }
    assert_eq!(shown(&file(quarters(2020, 10), Format::Gif), Format::Gif).hints.len(), 1);
}

#[test]
fn bombs_are_refused_by_their_headers() {
    let many =
        "it has 60000x60000 pixels, more than 64 million altogether or 65535 on a side; make a smaller copy of it";
    let bomb = png(&[png_header(60_000, 60_000, 8, 2), (b"IDAT", vec![0; 20_000]), (b"IEND", Vec::new())]);
    assert!(refused(&bomb, Format::Png).starts_with(many));
    assert!(refused(&jpeg_headers(60_000, 60_000, 0xc0), Format::Jpeg).starts_with(many));
    let mut bomb = file(quarters(1, 1), Format::Gif);
    bomb[6..10].copy_from_slice(&[0x60, 0xea, 0x60, 0xea]);
    assert!(refused(&bomb, Format::Gif).starts_with(many));
    let mut bomb = file(quarters(1, 1), Format::Bmp);
    bomb[18..22].copy_from_slice(&60_000_u32.to_le_bytes());
    bomb[22..26].copy_from_slice(&60_000_u32.to_le_bytes());
    assert!(refused(&bomb, Format::Bmp).starts_with(many));
    let size = [0xfe, 0xbf, 0xff, 0x0f];
    let bomb = riff(&[riff_chunk(b"VP8L", &[&[0x2f][..], &size, &[0; 9]].concat())]);
    assert!(refused(&bomb, Format::Webp).starts_with("it has 16383x16383 pixels"));
}

#[test]
fn frames_larger_than_their_picture_are_refused() {
    let frame = [&[0x10, 0, 0, 0x9d, 0x01, 0x2a][..], &[0xff, 0x3f, 0xff, 0x3f], &[0; 30]].concat();
    let bomb = riff(&[riff_chunk(b"VP8X", &[0, 0, 0, 0, 9, 0, 0, 9, 0, 0]), riff_chunk(b"VP8 ", &frame)]);
    assert!(refused(&bomb, Format::Webp).starts_with("it has a frame of more than 64 million pixels;"));
    let mut bomb = file(quarters(9, 9), Format::Gif);
    let start = bomb.windows(10).rposition(|bytes| bytes == [0x2c, 0, 0, 0, 0, 9, 0, 9, 0, bytes[9]]).expect("a frame");
    bomb[start + 5..start + 9].fill(0xff);
    refused(&bomb, Format::Gif);
}

#[test]
fn memory_counts_whatever_decoding_needs() {
    let baseline = jpeg_headers(8000, 6000, 0xc0);
    assert_eq!(header::needs(&baseline, Format::Jpeg, 48_000_000).extra, baseline.len() as u64 + 21);
    let progressive = jpeg_headers(8000, 6000, 0xc2);
    let needs = header::needs(&progressive, Format::Jpeg, 48_000_000);
    assert_eq!(needs.extra, 144_000_000 + progressive.len() as u64 + 21);
    let text = refused(&progressive, Format::Jpeg);
    assert!(text.starts_with("it has 8000x6000 pixels and takes 275 MB of memory to decode, more than 208 MB;"));
    let deep = png(&[png_header(8000, 6000, 16, 6), (b"IDAT", vec![0; 9]), (b"IEND", Vec::new())]);
    assert!(refused(&deep, Format::Png).contains("takes 367 MB of memory"));
    let long = png(&[png_header(1, 65_536, 8, 0), (b"IDAT", vec![0; 9]), (b"IEND", Vec::new())]);
    assert!(refused(&long, Format::Png).contains("65535 on a side"));
    let file = vec![0; usize::try_from(MAX_FILE).expect("short") + 1];
    assert_eq!(
        refused(&file, Format::Png),
        "it is a file of 65 MB, more than 64 MB; make a smaller copy of it with another program"
    );
}

#[test]
fn damaged_pictures_are_refused_with_a_reason() {
    for format in ALL {
        let whole = file(noise(60, 60), format);
        for part in [whole.len() - whole.len() / 3, whole.len() / 2, 40] {
            let text = refused(&whole[..part], format);
            assert!(text.starts_with("it is damaged ("), "{format} {part}: {text}");
        }
        let text = refused(&whole[..20], format);
        assert!(text.starts_with("it is damaged (") && !text.contains("()"), "{format}: {text}");
    }
    let mut broken = file(noise(60, 60), Format::Png);
    let middle = broken.len() / 2;
    broken[middle] ^= 0x55;
    assert!(refused(&broken, Format::Png).starts_with("it is damaged ("));
    let none = png(&[png_header(0, 5, 8, 2), (b"IDAT", vec![0; 9]), (b"IEND", Vec::new())]);
    assert!(refused(&none, Format::Png).starts_with("it is damaged ("));
}

/// The first bytes of each format, with headers that decoders accept.
fn start(format: Format) -> Vec<u8> {
    file(quarters(3, 2), format)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_after_a_signature(index in 0_usize..5, bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let format = ALL[index];
        let signature = match format {
            Format::Png => 8,
            Format::Jpeg => 3,
            Format::Gif => 6,
            Format::Webp => 12,
            Format::Bmp => 18,
        };
        let data = [&start(format)[..signature], &bytes].concat();
        let _ = fit(data.clone(), format, Bounds::default());
        let _ = is_animated_png(&data);
    }

    #[test]
    fn any_change_to_a_picture(index in 0_usize..7, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let (mut data, format) = match index {
            5 => (animated_gif(5, 4), Format::Gif),
            6 => (animated_webp(5, 4), Format::Webp),
            index => (start(ALL[index]), ALL[index]),
        };
        for (place, byte) in changes {
            let place = place.index(data.len());
            data[place] = byte;
        }
        let _ = fit(data, format, Bounds { side: 4, base64: 200 });
    }

    #[test]
    fn any_headers_are_measured(index in 0_usize..5, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = header::needs(&bytes, ALL[index], u64::MAX);
        let _ = header::needs(&[b"RIFF....WEBPVP8X".as_slice(), &bytes].concat(), Format::Webp, 9);
        let _ = header::needs(&[b"\xff\xd8\xff\xc2".as_slice(), &bytes].concat(), Format::Jpeg, 9);
    }
}
