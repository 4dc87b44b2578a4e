//! A small payment service on a loopback port that misbehaves on command.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// How the service treats a payment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Temper {
    /// Books it, and answers later than anybody waits.
    BooksThenStalls(Duration),
    /// Turns away every fourth.
    Flaps,
    /// Turns everything away, slowly.
    Down(Duration),
}

struct Shared {
    temper: Temper,
    ledger: PathBuf,
    requests: AtomicU32,
    stopping: AtomicBool,
}

/// A running service; stops when it is dropped.
pub(super) struct Service {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl Service {
    pub(super) fn start(temper: Temper, ledger: PathBuf) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            temper,
            ledger,
            requests: AtomicU32::new(0),
            stopping: AtomicBool::new(false),
        });
        let serving = shared.clone();
        std::thread::Builder::new()
            .name("demo-service".to_owned())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    if serving.stopping.load(Ordering::Relaxed) {
                        return;
                    }
                    let shared = serving.clone();
                    // One thread a connection: a stalled answer must not stall the next caller.
                    std::thread::spawn(move || {
                        // A caller that hung up is what this demo is about.
                        let _ = shared.serve(&stream);
                    });
                }
            })?;
        Ok(Self { shared, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests that really arrived.
    pub(super) fn requests(&self) -> u32 {
        self.shared.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        // Wakes the accept loop, so that it sees the flag.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let order = read_request(stream)?;
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        match self.temper {
            Temper::BooksThenStalls(stall) => {
                self.book(&order)?;
                std::thread::sleep(stall);
                answer(stream, "200 OK", "booked")
            }
            Temper::Flaps if number.is_multiple_of(4) => {
                answer(stream, "503 Service Unavailable", "busy")
            }
            Temper::Flaps => {
                self.book(&order)?;
                answer(stream, "200 OK", "booked")
            }
            Temper::Down(delay) => {
                std::thread::sleep(delay);
                answer(stream, "503 Service Unavailable", "down")
            }
        }
    }

    fn book(&self, order: &str) -> std::io::Result<()> {
        let mut ledger = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.ledger)?;
        writeln!(ledger, "{order}")
    }
}

/// Reads the body of a small HTTP request.
fn read_request(stream: &TcpStream) -> std::io::Result<String> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn answer(mut stream: &TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}
