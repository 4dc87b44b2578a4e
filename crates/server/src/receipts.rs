//! Answers of one connection, and whether they have arrived.
//!
//! An answer that was written has not been read yet. It has arrived when its client asks for more on
//! the same connection, or ends it in good order.

use std::sync::Arc;

use holdfast_reliability::guard::Receipt;
use parking_lot::Mutex;

/// The receipts of one connection. It answers one request at a time, so they are few.
#[derive(Clone, Default)]
pub(crate) struct Receipts(Arc<Mutex<Vec<Receipt>>>);

impl Receipts {
    /// An answer is on its way.
    pub(crate) fn keep(&self, receipt: Receipt) {
        self.0.lock().push(receipt);
    }

    /// Everything that was on its way has arrived.
    pub(crate) async fn delivered(&self) {
        let arrived = std::mem::take(&mut *self.0.lock());
        for receipt in arrived {
            receipt.delivered().await;
        }
    }
}
