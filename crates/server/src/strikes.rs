//! Who sent wrong tokens lately.
//!
//! A peer that guesses is told to wait. From another machine it is then not listened to at all
//! until the window is over. On this machine every program has the same address, so one that is
//! set up wrongly must not lock out the others: there the right token still counts, and the limit
//! only keeps wrong ones from being answered at full speed. A token of ours has 256 random bits.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::limits::{PEERS_MAX, WRONG_TOKENS_WINDOW_MS};

const WINDOW: Duration = Duration::from_millis(WRONG_TOKENS_WINDOW_MS);

/// Wrong tokens of one peer.
#[derive(Debug, Clone, Copy)]
struct Window {
    began: Instant,
    wrong: u32,
}

/// Counts wrong tokens by peer.
#[derive(Debug)]
pub struct Strikes {
    wrong_max: u32,
    peers: Mutex<HashMap<IpAddr, Window>>,
}

impl Strikes {
    /// Lets each peer be wrong `wrong_max` times in a window.
    pub fn new(wrong_max: u32) -> Self {
        Self {
            wrong_max,
            peers: Mutex::default(),
        }
    }

    /// How long the peer still has to wait; none for one that is welcome.
    pub fn wait(&self, peer: IpAddr) -> Option<Duration> {
        let peers = self.peers.lock();
        let window = peers.get(&network(peer))?;
        let left = WINDOW.checked_sub(window.began.elapsed())?;
        (window.wrong >= self.wrong_max && !left.is_zero()).then_some(left)
    }

    /// Notes a wrong token.
    pub fn count(&self, peer: IpAddr) {
        let now = Instant::now();
        let peer = network(peer);
        let mut peers = self.peers.lock();
        if peers.len() >= PEERS_MAX && !peers.contains_key(&peer) {
            make_room(&mut peers, now);
        }
        let window = peers.entry(peer).or_insert(Window {
            began: now,
            wrong: 0,
        });
        if now.duration_since(window.began) >= WINDOW {
            *window = Window {
                began: now,
                wrong: 0,
            };
        }
        window.wrong = window.wrong.saturating_add(1);
    }
}

fn make_room(peers: &mut HashMap<IpAddr, Window>, now: Instant) {
    peers.retain(|_, window| now.duration_since(window.began) < WINDOW);
    if peers.len() >= PEERS_MAX
        && let Some(oldest) = peers
            .iter()
            .min_by_key(|(_, window)| window.began)
            .map(|(peer, _)| *peer)
    {
        peers.remove(&oldest);
    }
}

/// One IPv6 customer has a whole network of addresses to guess from.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let mut parts = address.segments();
            parts[4..].fill(0);
            IpAddr::from(parts)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_wrong_tokens_have_to_wait_for_the_window() {
        let strikes = Strikes::new(3);
        let (guesser, other) = (peer("192.0.2.1"), peer("192.0.2.2"));
        for _ in 0..3 {
            assert_eq!(strikes.wait(guesser), None);
            strikes.count(guesser);
        }
        assert_eq!(strikes.wait(guesser), Some(WINDOW));
        assert_eq!(strikes.wait(other), None);
        tokio::time::advance(WINDOW / 2).await;
        strikes.count(guesser);
        assert_eq!(strikes.wait(guesser), Some(WINDOW / 2));
        tokio::time::advance(WINDOW / 2).await;
        assert_eq!(strikes.wait(guesser), None);
        strikes.count(guesser);
        assert_eq!(strikes.wait(guesser), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_of_addresses_is_one_peer() {
        let strikes = Strikes::new(1);
        strikes.count(peer("2001:db8::1"));
        assert!(strikes.wait(peer("2001:db8::ffff:2")).is_some());
        assert!(strikes.wait(peer("2001:db8:0:1::1")).is_none());
        strikes.count(peer("::ffff:192.0.2.9"));
        assert!(strikes.wait(peer("192.0.2.9")).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_of_peers_is_bounded() {
        let strikes = Strikes::new(1);
        for number in 0..PEERS_MAX + 100 {
            let number = u32::try_from(number).expect("small");
            strikes.count(IpAddr::from((0x0a00_0000 + number).to_be_bytes()));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(strikes.peers.lock().len(), PEERS_MAX);
        assert!(strikes.wait(peer("10.0.0.0")).is_none(), "the oldest went");
    }
}
