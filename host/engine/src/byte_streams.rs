//! Streams of bytes between the host's queues and a guest.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::sync::mpsc;
use wasmtime::{
    AsContextMut as _, StoreContextMut,
    component::{Destination, Source, StreamConsumer, StreamProducer, StreamResult, VecBuffer},
};

/// Gives a guest what arrives in a queue.
pub(crate) struct FromQueue {
    queue: mpsc::Receiver<Bytes>,
}

impl FromQueue {
    pub(crate) fn new(queue: mpsc::Receiver<Bytes>) -> Self {
        Self { queue }
    }

    /// A stream that has ended.
    pub(crate) fn empty() -> Self {
        Self { queue: mpsc::channel(1).1 }
    }
}

impl<D: 'static> StreamProducer<D> for FromQueue {
    type Item = u8;
    type Buffer = VecBuffer<u8>;

    fn poll_produce<'a>(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'a, D>,
        mut destination: Destination<'a, u8, VecBuffer<u8>>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        if destination.remaining(&mut store) == Some(0) {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let queue = &mut self.get_mut().queue;
        match queue.poll_recv(context) {
            Poll::Ready(Some(first)) => {
                let mut bytes = Vec::from(first);
                // What has arrived meanwhile goes along: one crossing instead of many.
                while bytes.len() < (256 << 10)
                    && let Ok(more) = queue.try_recv()
                {
                    bytes.extend_from_slice(&more);
                }
                destination.set_buffer(VecBuffer::from(bytes));
                Poll::Ready(Ok(StreamResult::Completed))
            }
            Poll::Ready(None) => Poll::Ready(Ok(StreamResult::Dropped)),
            Poll::Pending if finish => Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Puts what a guest gives into a queue.
pub(crate) struct IntoQueue<T: Send + 'static> {
    queue: tokio_util::sync::PollSender<T>,
}

impl<T: Send + 'static> IntoQueue<T> {
    pub(crate) fn new(queue: mpsc::Sender<T>) -> Self {
        Self { queue: tokio_util::sync::PollSender::new(queue) }
    }
}

impl<D: 'static> StreamConsumer<D> for IntoQueue<Bytes> {
    type Item = u8;

    fn poll_consume(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'_, D>,
        source: Source<'_, u8>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let queue = &mut self.get_mut().queue;
        match queue.poll_reserve(context) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => return Poll::Ready(Ok(StreamResult::Dropped)),
            Poll::Pending if finish => return Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => return Poll::Pending,
        }
        let mut source = source.as_direct(store.as_context_mut());
        let bytes = Bytes::copy_from_slice(source.remaining());
        if bytes.is_empty() {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        source.mark_read(bytes.len());
        let sent = queue.send_item(bytes).is_ok();
        Poll::Ready(Ok(if sent { StreamResult::Completed } else { StreamResult::Dropped }))
    }
}

/// How many events of a batch are taken at once.
const BATCH: usize = 256;

/// Puts a guest's typed events into a queue, a batch at a time.
pub(crate) struct EventsIntoQueue<T: Send + 'static> {
    queue: tokio_util::sync::PollSender<Vec<T>>,
}

impl<T: Send + 'static> EventsIntoQueue<T> {
    pub(crate) fn new(queue: mpsc::Sender<Vec<T>>) -> Self {
        Self { queue: tokio_util::sync::PollSender::new(queue) }
    }
}

impl<D: 'static, T: wasmtime::component::Lift + Send + Unpin + 'static> StreamConsumer<D> for EventsIntoQueue<T> {
    type Item = T;

    fn poll_consume(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'_, D>,
        mut source: Source<'_, T>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let queue = &mut self.get_mut().queue;
        if finish && queue.poll_reserve(context).is_pending() {
            return Poll::Ready(Ok(StreamResult::Cancelled));
        }
        if ready!(queue.poll_reserve(context)).is_err() {
            return Poll::Ready(Ok(StreamResult::Dropped));
        }
        let available = source.remaining(&mut store).min(BATCH);
        let mut events = Vec::with_capacity(available);
        if available > 0 {
            source.read(&mut store, &mut events)?;
        }
        if events.is_empty() {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let sent = queue.send_item(events).is_ok();
        Poll::Ready(Ok(if sent { StreamResult::Completed } else { StreamResult::Dropped }))
    }
}
