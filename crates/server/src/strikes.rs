//! Who sent wrong tokens lately.
//!
//! A peer that guesses is told to wait. From another machine it is then not listened to at all
//! until the window is over. On this machine every program has the same address, so one that is
//! set up wrongly must not lock out the others: there the right token still counts, and the limit
//! only keeps wrong ones from being answered at full speed. A token of ours has 256 random bits.

use std::net::IpAddr;
use std::time::Duration;

use crate::limits::WRONG_TOKENS_WINDOW_MS;
use crate::windows::Windows;

const WINDOW: Duration = Duration::from_millis(WRONG_TOKENS_WINDOW_MS);

/// Counts wrong tokens by peer.
#[derive(Debug)]
pub struct Strikes {
    peers: Windows<IpAddr>,
}

impl Strikes {
    /// Lets each peer be wrong `wrong_max` times in a window.
    pub fn new(wrong_max: u32) -> Self {
        Self {
            peers: Windows::new(WINDOW, wrong_max),
        }
    }

    /// How long the peer still has to wait; none for one that is welcome.
    pub fn wait(&self, peer: IpAddr) -> Option<Duration> {
        self.peers.wait(&network(peer))
    }

    /// Notes a wrong token.
    pub fn count(&self, peer: IpAddr) {
        self.peers.count(network(peer));
    }
}

/// One IPv6 customer has a whole network of addresses to guess from.
pub(crate) fn network(peer: IpAddr) -> IpAddr {
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
}
