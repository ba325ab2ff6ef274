//! How many tests may have a server at the same time.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

/// A server of its own costs a test some 100 MB and a dozen processes. Most tests wait most of the time, for an
/// instant or for another process: six of them keep two cores busy.
const MOST: usize = 6;

static TAKEN: Mutex<usize> = Mutex::new(0);
static RETURNED: Condvar = Condvar::new();

/// Given back when dropped.
pub(crate) struct Permit(());

impl Drop for Permit {
    fn drop(&mut self) {
        *taken() -= 1;
        RETURNED.notify_one();
    }
}

/// The permit of this test, which every server of the test holds: a test with two servers that had to wait for the
/// second could wait for another test that does the same.
pub(crate) fn permit() -> Arc<Permit> {
    thread_local! {
        static OURS: RefCell<Weak<Permit>> = const { RefCell::new(Weak::new()) };
    }
    OURS.with_borrow_mut(|ours| {
        ours.upgrade().unwrap_or_else(|| {
            let mut taken = RETURNED
                .wait_while(taken(), |taken| *taken >= MOST)
                .unwrap_or_else(PoisonError::into_inner);
            *taken += 1;
            let permit = Arc::new(Permit(()));
            *ours = Arc::downgrade(&permit);
            permit
        })
    })
}

fn taken() -> MutexGuard<'static, usize> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}
