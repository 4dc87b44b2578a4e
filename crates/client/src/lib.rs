//! How every part of Holdfast that asks other servers over HTTP begins its client.

/// A client without redirects, whose TLS uses the cryptography that this binary carries.
///
/// Redirects are off because a key or a token goes to the server it was meant for, and nowhere that
/// server sends us on to.
///
/// ```
/// let client = holdfast_client::builder().http1_only().build();
/// assert!(client.is_ok());
/// ```
pub fn builder() -> reqwest::ClientBuilder {
    install_cryptography();
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none())
}

/// Chooses the cryptography for TLS in this process, unless somebody chose before.
///
/// `reqwest` and `redis` are built without one of their own, and refuse to speak TLS until it is chosen.
pub fn install_cryptography() {
    // An error says that another provider was installed before, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
