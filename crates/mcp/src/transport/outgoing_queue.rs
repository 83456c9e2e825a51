//! Outgoing message queue of one peer, bounded in number and bytes: backpressure from a client that reads slowly.
//!
//! Counting messages alone would let a client that does not read accumulate the largest responses. A message takes a
//! byte permit when it is queued and releases it when it has been written.

use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The sending end. Clones share the capacity.
#[derive(Debug, Clone)]
pub(crate) struct Sender(Arc<Inner>);

/// The receiving end before first use. Most HTTP requests are answered without further messages, so the queue (2 kB,
/// three allocations) is created when the first message is sent or the receiver is opened.
#[derive(Debug)]
pub(crate) struct LazyReceiver(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    max_messages: usize,
    max_bytes: usize,
    /// `None` once the receiver was dropped unopened.
    channel: OnceLock<Option<Channel>>,
}

#[derive(Debug)]
struct Channel {
    messages: mpsc::Sender<QueuedMessage>,
    byte_permits: Arc<Semaphore>,
    receiver: Mutex<Option<Receiver>>,
}

/// A queued message; dropping it releases its capacity.
#[derive(Debug)]
pub(crate) struct QueuedMessage {
    pub(crate) bytes: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

pub(crate) type Receiver = mpsc::Receiver<QueuedMessage>;

/// Creates a queue limited in messages and total bytes. A single larger message is accepted when the queue is empty.
pub(crate) fn queue(max_messages: usize, max_bytes: usize) -> (Sender, LazyReceiver) {
    let max_bytes = max_bytes.clamp(1, u32::MAX as usize);
    let shared = Arc::new(Inner { max_messages, max_bytes, channel: OnceLock::new() });
    (Sender(shared.clone()), LazyReceiver(shared))
}

impl LazyReceiver {
    /// Whether no message was ever queued.
    pub(crate) fn is_unused(&self) -> bool {
        self.0.channel.get().is_none()
    }

    pub(crate) fn open(self) -> Receiver {
        self.0.channel().and_then(Channel::take_receiver).expect(
            "opened once, because opening consumes the only \
            handle",
        )
    }
}

/// The receiver was dropped: reject further messages instead of storing them.
impl Drop for LazyReceiver {
    fn drop(&mut self) {
        drop(self.0.channel.get_or_init(|| None).as_ref().and_then(Channel::take_receiver));
    }
}

impl Inner {
    fn channel(&self) -> Option<&Channel> {
        let make = || {
            let (messages, receiver) = mpsc::channel(self.max_messages);
            Channel {
                messages,
                byte_permits: Arc::new(Semaphore::new(self.max_bytes)),
                receiver: Mutex::new(Some(receiver)),
            }
        };
        self.channel.get_or_init(|| Some(make())).as_ref()
    }
}

impl Channel {
    fn take_receiver(&self) -> Option<Receiver> {
        self.receiver.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }
}

impl Sender {
    /// Waits for capacity (backpressure on the handler); returns false if the receiver was dropped.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> bool {
        let Some(made) = self.0.channel() else { return false };
        let room = made.byte_permits.clone().acquire_many_owned(self.size(&bytes));
        tokio::select! {
            room = room => match room {
                Ok(room) => made.messages.send(QueuedMessage { bytes, _permit: room }).await.is_ok(),
                Err(_) => false,
            },
            () = made.messages.closed() => false,
        }
    }

    /// Queues if there is capacity; otherwise drops the message.
    pub(crate) fn try_send(&self, bytes: Vec<u8>) {
        let Some(made) = self.0.channel() else { return };
        if let Ok(room) = made.byte_permits.clone().try_acquire_many_owned(self.size(&bytes)) {
            let _ = made.messages.try_send(QueuedMessage { bytes, _permit: room });
        }
    }

    fn size(&self, bytes: &[u8]) -> u32 {
        u32::try_from(bytes.len().clamp(1, self.0.max_bytes)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_full_queue_makes_the_sender_wait_until_a_message_was_written() {
        let (sender, receiver) = queue(10, 8);
        let mut receiver = receiver.open();
        assert!(sender.send(vec![1; 6]).await);
        let mut second = Box::pin(sender.send(vec![2; 6]));
        assert!(second.as_mut().now_or_never().is_none(), "there is room for two bytes only");
        sender.try_send(vec![3; 3]);
        let first = receiver.recv().await.expect("queued");
        assert!(second.as_mut().now_or_never().is_none(), "taken, but not written yet");
        drop(first);
        assert!(second.await);
        assert_eq!(receiver.recv().await.expect("queued").bytes, [2; 6]);
        assert!(receiver.try_recv().is_err(), "what was offered without room is gone");
    }

    #[tokio::test]
    async fn a_message_larger_than_the_queue_passes_alone() {
        let (sender, receiver) = queue(10, 8);
        let mut receiver = receiver.open();
        assert!(sender.send(vec![1; 100]).await);
        assert_eq!(receiver.recv().await.expect("queued").bytes.len(), 100);
    }

    #[tokio::test]
    async fn a_sender_is_not_stuck_when_the_reader_is_gone() {
        let (sender, receiver) = queue(1, 1);
        let receiver = receiver.open();
        assert!(sender.send(vec![1]).await);
        drop(receiver);
        assert!(!sender.send(vec![2]).await);
    }

    #[tokio::test]
    async fn a_queue_that_nobody_opened_keeps_nothing() {
        for was_used in [false, true] {
            let (sender, receiver) = queue(10, 8);
            if was_used {
                sender.try_send(vec![1]);
            }
            drop(receiver);
            sender.try_send(vec![2]);
            assert!(!sender.send(vec![3]).await);
            let room = sender.0.channel().map_or(8, |made| made.byte_permits.available_permits());
            assert_eq!(room, 8, "what was offered is gone");
        }
    }
}
