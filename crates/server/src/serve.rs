//! Takes connections, holds them to their limits, and ends in good order.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::connection::Patient;
use crate::limits::{RETRY_AFTER_S, SHUTDOWN_LAST_WORDS_MS_MAX};
use crate::receipts::Receipts;
use crate::server::{Entrance, Server, Stage, Taken};

/// How often the end of the last requests is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// A pause after a connection could not be taken: the process has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every request was answered.
    Idle,
    /// Calls that took too long were cancelled; their records say so.
    Cancelled {
        /// How many there were.
        requests: usize,
    },
}

/// Serves until `end` is ready, then takes no more connections and lets requests in flight finish.
/// When `hurry` is ready, or their time is over, calls are cancelled.
pub async fn serve(
    server: Arc<Server>,
    listener: TcpListener,
    end: impl Future<Output = ()>,
    hurry: impl Future<Output = ()>,
) -> Ended {
    let connections_max = server.settings.connections_max;
    let connections = Arc::new(Semaphore::new(connections_max));
    let entrance = Entrance::new(&server);
    tokio::select! {
        () = end => {}
        never = accept(&server, &listener, &connections, &entrance) => match never {},
    }
    drop(listener);
    // Replaced, not sent: what is sent to nobody is forgotten.
    server.stage.send_replace(Stage::Draining);
    let ended = drain(&server, hurry).await;
    // Runs that nobody waits for are left as they were kept.
    server.leave_runs().await;
    // Answers are on their way out; whoever does not take them has had the time.
    let all = u32::try_from(connections_max).unwrap_or(u32::MAX);
    let last_words = Duration::from_millis(SHUTDOWN_LAST_WORDS_MS_MAX);
    let _ = timeout(last_words, connections.acquire_many(all)).await;
    server.stage.send_replace(Stage::Gone);
    let _ = timeout(last_words, connections.acquire_many(all)).await;
    ended
}

async fn drain(server: &Server, hurry: impl Future<Output = ()>) -> Ended {
    let idle = async {
        while server.requests.load(Ordering::SeqCst) > 0 {
            sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        () = idle => return Ended::Idle,
        () = hurry => {}
        () = sleep(server.settings.shutdown_time) => {}
    }
    let requests = server.requests.load(Ordering::SeqCst);
    server.stage.send_replace(Stage::Cancelling);
    server.leave_runs().await;
    let until = Instant::now() + Duration::from_millis(SHUTDOWN_LAST_WORDS_MS_MAX);
    while server.requests.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        sleep(LOOK_EVERY).await;
    }
    Ended::Cancelled { requests }
}

async fn accept(
    server: &Arc<Server>,
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
    entrance: &Entrance,
) -> Infallible {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(taken) => taken,
            Err(error) => {
                if !is_the_clients(&error) {
                    server.http.count_refused("no_descriptors");
                    sleep(ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        match connections.clone().try_acquire_owned() {
            Ok(permit) => {
                let connection = Connection {
                    server: server.clone(),
                    entrance: entrance.clone(),
                    peer,
                    stage: server.stage.subscribe(),
                    _permit: permit,
                };
                tokio::spawn(connection.run(stream));
            }
            Err(_) => turn_away(server, &stream),
        }
    }
}

/// The client went away before it was taken; the next one is not at fault.
fn is_the_clients(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

/// There is no room. Said in one small write, which a new connection always takes.
fn turn_away(server: &Server, stream: &TcpStream) {
    server.http.count_refused("too_many_connections");
    let body = r#"{"error":{"message":"Too many connections","type":"overloaded"}}"#;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json; charset=utf-8\r\n\
         retry-after: {RETRY_AFTER_S}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.try_write(answer.as_bytes());
}

/// One connection.
struct Connection {
    server: Arc<Server>,
    entrance: Entrance,
    peer: SocketAddr,
    stage: watch::Receiver<Stage>,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        let Self {
            server,
            entrance,
            peer,
            mut stage,
            _permit,
        } = self;
        // Answers are small and whole: waiting for more of them only costs time.
        let _ = stream.set_nodelay(true);
        let local = stream.local_addr().ok();
        let settings = &server.settings;
        let stream = TokioIo::new(Patient::new(stream, settings.write_stall_time));
        let receipts = Receipts::default();
        let of_connection = receipts.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let mut entrance = entrance.clone();
            let receipts = of_connection.clone();
            async move {
                // Whoever asks for more has read the answer before.
                receipts.delivered().await;
                let mut request: Request = request.map(Body::new);
                request.extensions_mut().insert(Taken(local));
                request.extensions_mut().insert(receipts);
                Ok::<_, Infallible>(entrance.respond(request, peer).await)
            }
        });
        server.http.connections.inc();
        // A client that goes away in mid-call ends the connection, which drops the call.
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            // The library counts from the end of the answer before.
            .header_read_timeout(settings.idle_time.unwrap_or(settings.head_time))
            .max_buf_size(settings.head_bytes_max)
            .serve_connection(stream, service);
        let mut connection = std::pin::pin!(connection);
        let mut draining = stage.clone();
        let mut told = std::pin::pin!(
            async move {
                let _ = draining.wait_for(|stage| *stage >= Stage::Draining).await;
            }
            .fuse()
        );
        let in_good_order = loop {
            tokio::select! {
                // What is wrong with a connection was told to its client, or can not be.
                ended = connection.as_mut() => break ended.is_ok(),
                () = told.as_mut() => connection.as_mut().graceful_shutdown(),
                _ = stage.wait_for(|stage| *stage >= Stage::Gone) => break false,
            }
        };
        if in_good_order {
            receipts.delivered().await;
        }
        server.http.connections.dec();
    }
}
