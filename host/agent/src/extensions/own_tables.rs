//! The table for what an extension does by itself: in the middle of an event, of a command, or of its own accord.
//!
//! As for nested calls, everything goes through the pipeline.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use atoll_table::{
    TableAccess,
    extension::{Tables, Who},
    nesting::{Depth, NestedIds},
};

use crate::{
    nested_calls::{CallAccess, Watch},
    pipeline::Pipeline,
};

/// Gives extensions the table.
pub struct OwnTables {
    pipeline: Pipeline,
    watch: Watch,
    /// Of calls that belong to nothing, by plugin: their numbers go on for as long as the session.
    ids: Mutex<HashMap<Who, Arc<NestedIds>>>,
}

impl OwnTables {
    /// For this table. `watch` is told of the calls.
    pub fn new(pipeline: Pipeline, watch: Watch) -> Self {
        Self { pipeline, watch, ids: Mutex::default() }
    }
}

impl Tables for OwnTables {
    fn access(&self, who: &Who, parent: Option<&str>, depth: u32) -> Arc<dyn TableAccess> {
        let ids = match parent {
            Some(parent) => Arc::new(NestedIds::new(parent)),
            None => {
                let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
                let new = || Arc::new(NestedIds::new(who.plugin.clone()));
                Arc::clone(ids.entry(who.clone()).or_insert_with(new))
            }
        };
        let around = depth.checked_sub(1).map(Depth::of);
        Arc::new(CallAccess::own(self.pipeline.clone(), who, ids, around, Arc::clone(&self.watch)))
    }
}
