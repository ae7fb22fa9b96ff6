//! Running code of the program's own images where it is in the program, without a copy of it.
//!
//! An image of several megabytes takes longer to copy than all else that a start does with it. It is a part of the program's
//! file, which the system reads page by page as it is needed, and shares among processes. Must never make a page writable, and
//! never be used for an image that is in use already: code is known by its address, which has to be one image's only.

use std::{
    collections::BTreeSet,
    ptr::NonNull,
    sync::{Mutex, PoisonError},
};

use rustix::mm::{MprotectFlags, mprotect};
use wasmtime::{CustomCodeMemory, Engine, component::Component};

/// The pages of x86-64. Elsewhere they are of several sizes, and processors have to be told of new code.
const PAGE: usize = 4096;

/// Those that have been used in place.
static USED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// The component of an image, in place. `None` if that can not be done, or has been done before.
pub(crate) fn component(engine: &Engine, image: &'static [u8]) -> Option<Component> {
    let is_aligned = cfg!(target_arch = "x86_64") && image.as_ptr().addr().is_multiple_of(PAGE);
    if !is_aligned || !USED.lock().unwrap_or_else(PoisonError::into_inner).insert(image.as_ptr().addr()) {
        return None;
    }
    // SAFETY: the bytes were made by the build, they are part of this program for as long as it runs, and nothing writes to
    // them. No other component is made of them in place.
    unsafe { Component::deserialize_raw(engine, NonNull::from(image)) }.ok()
}

/// Makes pages executable, and leaves them so: they are gone with what was copied, and stay as they are in the program.
pub(crate) struct Pages;

impl CustomCodeMemory for Pages {
    fn required_alignment(&self) -> usize {
        PAGE
    }

    fn publish_executable(&self, start: *const u8, length: usize) -> wasmtime::Result<()> {
        // SAFETY: wasmtime gives whole pages that it has filled with code, and that nothing writes to any more.
        unsafe { mprotect(start.cast_mut().cast(), length, MprotectFlags::READ | MprotectFlags::EXEC)? };
        Ok(())
    }

    fn unpublish_executable(&self, _: *const u8, _: usize) -> wasmtime::Result<()> {
        Ok(())
    }
}
