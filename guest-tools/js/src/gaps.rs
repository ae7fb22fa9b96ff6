//! Gaps in memory between what a warm engine holds.
//!
//! An engine whose picture is kept for many instances should have none: what a script makes would go into them, a little on
//! each of many pages, and every page that is written has to be copied, and put back afterwards. With the gaps filled it
//! lies together. This must only be done once to an engine, before anything runs: what fills a gap is never given back.

use rquickjs::{Ctx, qjs};

/// Room that is left in one piece, so that few scripts need more memory, in bytes.
const ROOM: usize = 1 << 20;
/// The largest gap that is looked for is twice this, in bytes. The smallest is the least that is ever given.
const LARGEST: usize = 64 << 10;
/// How many blocks of one size are taken at most, whatever the allocator does.
const MOST: usize = 100_000;

/// The sizes of blocks that the engine keeps stocks of, without what it puts before each: up to 128, 256 and 512 bytes in
/// steps of 8, 16 and 32.
fn stocks() -> impl Iterator<Item = usize> {
    let blocks = (16..=128).step_by(8).chain((144..=256).step_by(16)).chain((288..=512).step_by(32));
    blocks.map(|block| block - 8)
}

/// Fills the gaps, and has every stock of the engine begin anew behind them.
pub(crate) fn fill(ctx: &Ctx<'_>) {
    let room = Vec::<u8>::with_capacity(ROOM);
    let end = room.as_ptr().addr();
    let mut size = LARGEST;
    while size >= 8 {
        for _ in 0..MOST {
            let block = Vec::<u8>::with_capacity(size);
            if block.as_ptr().addr() > end {
                break;
            }
            std::mem::forget(block);
        }
        size /= 2;
    }
    drop(room);
    // SAFETY: the context is alive, so its runtime is.
    let runtime = unsafe { qjs::JS_GetRuntime(ctx.as_raw().as_ptr()) };
    for size in stocks() {
        for _ in 0..MOST {
            // SAFETY: the runtime is alive; what is allocated is its own to free with everything else.
            let block = unsafe { qjs::js_malloc_rt(runtime, size as qjs::size_t) };
            if block.is_null() || block.addr() >= end {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stocks;

    #[test]
    fn all_stocks_are_known() {
        let all: Vec<usize> = stocks().collect();
        assert_eq!(all.len(), 31);
        assert_eq!((all.first(), all.last()), (Some(&8), Some(&504)));
    }
}
