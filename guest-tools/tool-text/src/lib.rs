//! What the built-in tools have in common: limits, truncation, footers, sizes and path arguments. No host calls.

mod footer;
mod number;
mod order;
mod path;
mod problem;
mod truncate;
mod utf8;

pub use footer::{format_size, showing, with_footer};
pub use number::{at_least, whole_number};
pub use order::{compare_paths, in_order};
pub use path::{path_argument, path_spellings};
pub use problem::{is_not_found, name_path};
pub use truncate::{Cut, Head, Tail, ceil_boundary, count_lines, floor_boundary, head, tail};
pub use utf8::Utf8Decoder;

/// Lines of text that a tool gives the model at most.
pub const MAX_LINES: usize = 2000;

/// Bytes of UTF-8 that a tool gives the model at most, footers not counted.
pub const MAX_BYTES: usize = 51_200;
