//! Failures below HTTP, by the codes that operating systems, Node and undici give them.

use std::fmt;
use std::io;
use std::str::FromStr;

/// Declares the codes once, so that the enum, its names and its parser can not drift apart.
macro_rules! transport_codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// A known code of a failed connection.
        ///
        /// ```
        /// use holdfast_reliability::retry::TransportCode;
        ///
        /// assert_eq!("econnreset".parse(), Ok(TransportCode::ConnReset));
        /// assert_eq!(TransportCode::ConnReset.as_str(), "ECONNRESET");
        /// assert!("ESOMETHING".parse::<TransportCode>().is_err());
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum TransportCode {
            $($(#[$doc])* $variant,)+
        }

        impl TransportCode {
            /// All known codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code as programs report it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

transport_codes! {
    /// No answer in time, from the operating system.
    TimedOut = "ETIMEDOUT",
    /// No answer in time, from older Node clients.
    SocketTimedOut = "ESOCKETTIMEDOUT",
    /// The peer dropped the connection.
    ConnReset = "ECONNRESET",
    /// Nobody listens there.
    ConnRefused = "ECONNREFUSED",
    /// The connection was given up on this side.
    ConnAborted = "ECONNABORTED",
    /// The connection was gone when something was written.
    Pipe = "EPIPE",
    /// The socket is not connected.
    NotConn = "ENOTCONN",
    /// The name does not exist.
    NotFound = "ENOTFOUND",
    /// The name could not be looked up right now.
    EaiAgain = "EAI_AGAIN",
    /// The name server failed for good.
    EaiFail = "EAI_FAIL",
    /// The name exists without an address.
    EaiNoData = "EAI_NODATA",
    /// The name or service is not known.
    EaiNoName = "EAI_NONAME",
    /// No route to the host.
    HostUnreach = "EHOSTUNREACH",
    /// The host is down.
    HostDown = "EHOSTDOWN",
    /// No route to the network.
    NetUnreach = "ENETUNREACH",
    /// The network is down.
    NetDown = "ENETDOWN",
    /// The network dropped the connection.
    NetReset = "ENETRESET",
    /// No local address or port was left.
    AddrNotAvail = "EADDRNOTAVAIL",
    /// undici: no connection in time.
    UndConnectTimeout = "UND_ERR_CONNECT_TIMEOUT",
    /// undici: no response headers in time.
    UndHeadersTimeout = "UND_ERR_HEADERS_TIMEOUT",
    /// undici: the response body stopped coming.
    UndBodyTimeout = "UND_ERR_BODY_TIMEOUT",
    /// undici: the socket failed.
    UndSocket = "UND_ERR_SOCKET",
    /// undici: the client had been closed.
    UndClosed = "UND_ERR_CLOSED",
    /// undici: the client had been destroyed.
    UndDestroyed = "UND_ERR_DESTROYED",
    /// undici: the request was aborted by its caller.
    UndAborted = "UND_ERR_ABORTED",
}

/// A code that is none of [`TransportCode::ALL`]. It stays what it is: nobody guesses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown transport code {0:?}")]
pub struct UnknownTransportCode(pub String);

/// Whether any part of the request can have reached the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestSent {
    /// The failure came while the connection was being made.
    No,
    /// It came later, or nobody knows when.
    Maybe,
}

impl TransportCode {
    /// The code of an I/O error of this kind, if it is about a connection.
    pub fn from_io_kind(kind: io::ErrorKind) -> Option<Self> {
        Some(match kind {
            io::ErrorKind::TimedOut => Self::TimedOut,
            // The peer closed in the middle of an answer: a lost connection by another name.
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => Self::ConnReset,
            io::ErrorKind::ConnectionRefused => Self::ConnRefused,
            io::ErrorKind::ConnectionAborted => Self::ConnAborted,
            io::ErrorKind::BrokenPipe => Self::Pipe,
            io::ErrorKind::NotConnected => Self::NotConn,
            io::ErrorKind::HostUnreachable => Self::HostUnreach,
            io::ErrorKind::NetworkUnreachable => Self::NetUnreach,
            io::ErrorKind::NetworkDown => Self::NetDown,
            io::ErrorKind::AddrNotAvailable => Self::AddrNotAvail,
            _ => return None,
        })
    }

    /// Whether this code can only come before anything was sent.
    ///
    /// An unreachable host is not among them: a route can vanish under a connection.
    pub(super) const fn only_before_sending(self) -> bool {
        matches!(
            self,
            Self::ConnRefused
                | Self::NotFound
                | Self::EaiAgain
                | Self::EaiFail
                | Self::EaiNoData
                | Self::EaiNoName
                | Self::AddrNotAvail
                | Self::UndConnectTimeout
        )
    }

    /// Whether this side ended it on purpose, so that trying again is not wanted.
    pub(super) const fn is_our_own_doing(self) -> bool {
        matches!(
            self,
            Self::UndClosed | Self::UndDestroyed | Self::UndAborted
        )
    }
}

impl fmt::Display for TransportCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TransportCode {
    type Err = UnknownTransportCode;

    fn from_str(text: &str) -> Result<Self, UnknownTransportCode> {
        let text = text.trim();
        let known = |code: &&Self| code.as_str().eq_ignore_ascii_case(text);
        Self::ALL
            .iter()
            .find(known)
            .copied()
            .ok_or_else(|| UnknownTransportCode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_read_in_any_case() {
        for code in TransportCode::ALL {
            assert_eq!(code.as_str().parse(), Ok(*code));
            assert_eq!(
                format!(" {} ", code.as_str().to_lowercase()).parse(),
                Ok(*code)
            );
        }
        for unknown in ["", "E", "ECONNRESET2", "CERT_HAS_EXPIRED", "UND_ERR"] {
            assert_eq!(
                unknown.parse::<TransportCode>(),
                Err(UnknownTransportCode(unknown.to_owned()))
            );
        }
    }
}
