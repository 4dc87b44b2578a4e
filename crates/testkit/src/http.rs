//! A plain HTTP/1.1 client over a real socket, for tests that want to see the bytes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A test that waits longer than this has found a hang.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a server answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            host: address.to_string(),
        })
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Says that nothing more will be sent.
    pub fn finish(&self) -> io::Result<()> {
        self.stream.get_ref().shutdown(std::net::Shutdown::Write)
    }

    /// Sends a request and takes its answer.
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        self.send_request(method, path, headers, body)?;
        self.answer()
    }

    /// Sends a request.
    pub fn send_request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        if !headers.iter().any(|(name, _)| is_host(name)) {
            write!(bytes, "host: {}\r\n", self.host)?;
        }
        for (name, value) in headers {
            write!(bytes, "{name}: {value}\r\n")?;
        }
        if !body.is_empty() {
            write!(bytes, "content-length: {}\r\n", body.len())?;
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        self.send(&bytes)
    }

    /// Takes the head of an answer; the body is empty still.
    pub fn head(&mut self) -> io::Result<Answer> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(bad)?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Answer {
            status,
            headers,
            body: Vec::new(),
        })
    }

    /// Takes one chunk of a body that comes in chunks; nothing after the last.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let size = usize::from_str_radix(line.trim(), 16).map_err(|_| bad())?;
        let mut part = vec![0; size + 2];
        self.stream.read_exact(&mut part)?;
        part.truncate(size);
        Ok((size > 0).then_some(part))
    }

    /// Takes one answer.
    pub fn answer(&mut self) -> io::Result<Answer> {
        let mut answer = self.head()?;
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        let status = answer.status;
        let length = answer.header("content-length").map(str::parse::<usize>);
        match length {
            Some(length) => {
                answer.body = vec![0; length.map_err(|_| bad())?];
                self.stream.read_exact(&mut answer.body)?;
            }
            None if answer.header("transfer-encoding") == Some("chunked") => {
                while let Some(part) = self.chunk()? {
                    answer.body.extend(part);
                }
            }
            // No body, or one that ends with the connection.
            None if status == 204 || status < 200 => {}
            None => {
                self.stream.read_to_end(&mut answer.body)?;
            }
        }
        Ok(answer)
    }

    /// Reads until the server closes the connection; everything it sent.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            // A reset is a closed connection too.
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
            _ => Ok(rest),
        }
    }
}
