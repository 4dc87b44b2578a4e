//! The other end: how our own command line talks to a server.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits::{ANSWER_BYTES_MAX, ANSWER_MS_MAX};
use crate::token::Token;

/// Why a server could not be asked, or did not do it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address makes no sense.
    #[error("{0:?} is no address of a server; one looks like http://127.0.0.1:8001")]
    Address(String),
    /// Nobody answers there.
    #[error("{url} does not answer: {reason}")]
    Silent {
        /// Where.
        url: String,
        /// Why.
        reason: String,
    },
    /// It said no.
    #[error("{message} (HTTP {status})")]
    Refused {
        /// The status.
        status: StatusCode,
        /// In its own words.
        message: String,
    },
}

/// Talks to one server with one token.
pub struct Client {
    url: String,
    authority: String,
    token: Token,
}

impl Client {
    /// Of the server at `url`.
    pub fn new(url: &str, token: Token) -> Result<Self, ClientError> {
        let refuse = || ClientError::Address(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| refuse())?;
        // There is no TLS in the server, and a token is not sent where it can be read.
        if uri.scheme_str() != Some("http") || !matches!(uri.path(), "" | "/") {
            return Err(refuse());
        }
        let authority = uri.authority().ok_or_else(refuse)?;
        let port = authority.port_u16().unwrap_or(80);
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            authority: format!("{}:{port}", authority.host()),
            token,
        })
    }

    /// Where the server is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks.
    pub async fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.send(Method::GET, path, Bytes::new()).await
    }

    /// Tells.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        let body = Bytes::from(body.to_string());
        self.send(Method::POST, path, body).await
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Value, ClientError> {
        let silent = |reason: String| ClientError::Silent {
            url: self.url.clone(),
            reason,
        };
        let limit = Duration::from_millis(ANSWER_MS_MAX);
        let (status, bytes) = timeout(limit, self.exchange(method, path, body))
            .await
            .map_err(|_| silent(format!("nothing came within {ANSWER_MS_MAX} ms")))?
            .map_err(|error| silent(error.to_string()))?;
        let answer: Value = serde_json::from_slice(&bytes)
            .map_err(|_| silent("the answer is not JSON; is this Holdfast?".to_owned()))?;
        if status.is_success() {
            return Ok(answer);
        }
        let message = answer["error"]["message"]
            .as_str()
            .unwrap_or("refused without a reason")
            .to_owned();
        Err(ClientError::Refused { status, message })
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(&self.authority).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .header(AUTHORIZATION, self.token.bearer())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        let answer = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
            Ok((status, body.collect().await?.to_bytes()))
        };
        // The connection moves the bytes; it ends after the answer, which is what counts.
        let mut connection = std::pin::pin!(connection);
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            answer = answer.as_mut() => answer,
            moved = connection.as_mut() => {
                moved?;
                answer.await
            }
        }
    }
}
