//! Who is at the other end of a connection.
//!
//! A token says that somebody knew it, and a command may have found one: in the arguments of a
//! process, in a file, on the wire. So whoever is asked for something that no command may ask for
//! looks at the process as well: the kernel lists every connection of this machine with the number
//! of its socket, and every process with the sockets that it holds. What carries the mark is a
//! command, and what can not be found is not trusted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

use crate::mark;

/// Where the kernel lists connections.
const TABLES: &[&str] = &["/proc/net/tcp", "/proc/net/tcp6"];

/// Who made a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A process on another machine; nothing more is known of it.
    Elsewhere,
    /// A process of this machine that no command has started.
    Other,
    /// A command, or something that a command has started.
    Command,
    /// A process of this machine that was not found: it is gone, or hides.
    Unknown,
}

/// A socket, as the kernel lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Socket {
    owner: u32,
    inode: u64,
}

/// Who is behind `peer`, on a connection that was taken at `local`. Reads many small files.
///
/// Asked while the connection is open: a socket whose process has closed it is nobody's.
pub fn of(peer: SocketAddr, local: SocketAddr) -> Peer {
    if !is_of_this_machine(peer.ip(), local.ip()) {
        return Peer::Elsewhere;
    }
    let Some(socket) = socket(peer, local) else {
        return Peer::Unknown;
    };
    match behind(socket) {
        // Who let go of it meanwhile may be one that was not seen.
        Peer::Other if self::socket(peer, local) != Some(socket) => Peer::Unknown,
        found => found,
    }
}

/// The socket at the other end, as long as a process holds it.
fn socket(peer: SocketAddr, local: SocketAddr) -> Option<Socket> {
    let listed = TABLES.iter().find_map(|table| {
        let text = std::fs::read_to_string(table).ok()?;
        text.lines().find_map(|line| listed(line, peer, local))
    });
    listed.filter(|socket| socket.inode != 0)
}

/// Whether an address is one of our own: then the connection began here.
fn is_of_this_machine(peer: IpAddr, local: IpAddr) -> bool {
    let peer = peer.to_canonical();
    peer.is_loopback()
        || peer == local.to_canonical()
        // The kernel lets nobody bind what is not its own.
        || UdpSocket::bind((peer, 0)).is_ok()
}

/// Whose socket it is. Where several processes share it, one command is enough.
///
/// One that is found nowhere is held by a process that can not be looked at: of another user, of
/// another container that shares the network, or a command that hides. So while a command runs
/// that might have made it, nobody is trusted to be another.
fn behind(socket: Socket) -> Peer {
    let name = format!("socket:[{}]", socket.inode);
    let (mut is_found, mut is_suspect) = (false, false);
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let path = process.path();
        let is_process = process.file_name().to_string_lossy().parse::<u32>().is_ok();
        if !is_process {
            continue;
        }
        let (holds, is_command) = (holds(&path, &name), is_marked(&path));
        if holds && is_command {
            return Peer::Command;
        }
        is_found |= holds;
        is_suspect |= is_command && may_be_of(&path, socket.owner);
    }
    if is_found || !is_suspect {
        Peer::Other
    } else {
        Peer::Unknown
    }
}

/// Whether a process may have made a socket of this user: it is that user, or one that can become
/// every other.
fn may_be_of(process: &Path, owner: u32) -> bool {
    let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    // One that is gone by now is suspect too.
    users.is_none_or(|users| {
        let mut users = users.split_ascii_whitespace();
        users.any(|user| user == "0" || user.parse() == Ok(owner))
    })
}

/// Whether a process is seen to hold a socket.
fn holds(process: &Path, socket: &str) -> bool {
    let open = std::fs::read_dir(process.join("fd")).into_iter().flatten();
    open.flatten().any(|entry| {
        let target = std::fs::read_link(entry.path());
        target.is_ok_and(|target| target.as_os_str() == socket)
    })
}

fn is_marked(process: &Path) -> bool {
    let limits = std::fs::read_to_string(process.join("limits")).unwrap_or_default();
    mark::is_in_any(&limits)
}

/// The socket of a line of the kernel's table, if it is that end of that connection.
fn listed(line: &str, from: SocketAddr, to: SocketAddr) -> Option<Socket> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let is_one = |field: Option<&str>, end: SocketAddr| {
        let found = field.and_then(address);
        found.is_some_and(|it| it.port() == end.port() && it.ip() == end.ip().to_canonical())
    };
    if !is_one(fields.next(), from) || !is_one(fields.next(), to) {
        return None;
    }
    // The state, the queues, the timer and the retries stand between.
    let owner = fields.nth(4)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    Some(Socket { owner, inode })
}

/// An address as the kernel writes it: words of 32 bits in the machine's own order, and the port.
fn address(field: &str) -> Option<SocketAddr> {
    let (ip, port) = field.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for at in (0..ip.len()).step_by(8) {
        let word = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip = if let Ok(four) = <[u8; 4]>::try_from(&*bytes) {
        IpAddr::V4(Ipv4Addr::from(four))
    } else {
        let sixteen = <[u8; 16]>::try_from(&*bytes).ok()?;
        IpAddr::V6(Ipv6Addr::from(sixteen)).to_canonical()
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn both_ends_are_read_from_the_kernels_table() {
        let line = "   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  \
                    1000        0 91234 1 0000000000000000 20 4 30 10 -1";
        let (from, to) = ("127.0.0.1:8080", "127.0.0.1:50000");
        let end = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let socket = Socket {
            owner: 1000,
            inode: 91234,
        };
        if cfg!(target_endian = "little") {
            assert_eq!(listed(line, end(from), end(to)), Some(socket));
            let mapped = end("[::ffff:127.0.0.1]:8080");
            assert_eq!(listed(line, mapped, end(to)), Some(socket));
            let six = address("0000000000000000FFFF00000100007F:0050");
            assert_eq!(six, Some(end("127.0.0.1:80")));
        }
        assert_eq!(listed(line, end(to), end(from)), None);
        assert_eq!(listed(line, end(from), end("127.0.0.1:50001")), None);
        for wrong in ["", "x", "0: x y", "0: 0100007F:1F90"] {
            assert_eq!(listed(wrong, end(from), end(to)), None, "{wrong}");
        }
    }

    #[test]
    fn who_holds_the_other_end_is_found_and_who_let_go_is_not() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let local = listener.local_addr().expect("bound");
            let client = TcpStream::connect(local).expect("connects");
            let (_taken, peer) = listener.accept().expect("taken");
            assert_eq!(of(peer, local), Peer::Other);
            drop(client);
            assert_eq!(of(peer, local), Peer::Unknown);
        }
        let elsewhere = SocketAddr::from(([192, 0, 2, 1], 5));
        let local = SocketAddr::from(([127, 0, 0, 1], 80));
        assert_eq!(of(elsewhere, local), Peer::Elsewhere);
    }
}
