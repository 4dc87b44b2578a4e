//! Texts that one call after another repeats, kept once.
//!
//! Tens of thousands of records of one session would otherwise each hold its key.

use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static SESSION: RefCell<Arc<str>> = RefCell::new(Arc::from(""));
    static WORKSPACE: RefCell<Arc<str>> = RefCell::new(Arc::from(""));
    static ACTOR: RefCell<Arc<str>> = RefCell::new(Arc::from(""));
}

/// The session's key, shared with the call before this one if that was of the same session.
pub(super) fn session(text: &str) -> Arc<str> {
    SESSION.with_borrow_mut(|last| shared(last, text))
}

/// The workspace, in the same way.
pub(super) fn workspace(text: &str) -> Arc<str> {
    WORKSPACE.with_borrow_mut(|last| shared(last, text))
}

/// The actor's id, in the same way.
pub(super) fn actor(text: &str) -> Arc<str> {
    ACTOR.with_borrow_mut(|last| shared(last, text))
}

fn shared(last: &mut Arc<str>, text: &str) -> Arc<str> {
    if **last != *text {
        *last = Arc::from(text);
    }
    last.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_and_others_are_not() {
        let (first, second) = (session("a"), session("a"));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!((&*session("b"), &*actor("a")), ("b", "a"));
        assert_eq!((&*first, &*session("a")), ("a", "a"));
    }
}
