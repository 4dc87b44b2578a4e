//! Somebody whom no command may touch.

/// A process of the same user that no command started; it ends with the test.
pub(crate) struct Bystander(pub(crate) std::process::Child);

impl Bystander {
    pub(crate) fn new() -> Self {
        let mut sleep = std::process::Command::new("sleep");
        Self(sleep.arg("1000").spawn().expect("starts"))
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
