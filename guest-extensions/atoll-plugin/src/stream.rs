//! Reading byte streams.

use wit_bindgen::{StreamReader, StreamResult};

/// Waits for the next bytes of a stream, up to `max` of them; `None` at its end. A stream that ends early looks
/// the same as one that is complete: the interface that gave it says how to tell.
pub async fn next_chunk(stream: &mut StreamReader<u8>, max: usize) -> Option<Vec<u8>> {
    loop {
        let (result, bytes) = stream.read(Vec::with_capacity(max.max(1))).await;
        match result {
            // A writer may complete a write of nothing.
            StreamResult::Complete(0) => {}
            StreamResult::Complete(_) => return Some(bytes),
            StreamResult::Dropped | StreamResult::Cancelled => return None,
        }
    }
}
