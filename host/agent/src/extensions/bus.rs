//! What extensions say to each other.

use std::sync::Arc;

use atoll_table::{
    Error,
    extension::{Bus, Event, Who},
};
use serde_json::Value;

use super::Extensions;

impl Bus for Extensions {
    fn emit(&self, sender: &Who, topic: &str, data: Value) -> Result<(), Error> {
        let (topic, from, data): (Arc<str>, Arc<str>, _) =
            (topic.into(), sender.plugin.as_str().into(), Arc::new(data));
        let mut full = None;
        for extension in &*self.all() {
            let is_own = extension.name() == sender.plugin && extension.origin() == sender.origin;
            if is_own || !extension.subscription().topics.iter().any(|wanted| **wanted == *topic) {
                continue;
            }
            let event = Event::Bus { topic: Arc::clone(&topic), sender: Arc::clone(&from), data: Arc::clone(&data) };
            if !extension.tell(event) {
                full = Some(Error::Limit { name: "queue".to_owned(), value: crate::queue::MOST as u64 });
            }
        }
        full.map_or(Ok(()), Err)
    }
}
