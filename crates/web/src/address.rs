//! Which addresses no tool may reach.
//!
//! An agent's host can reach what a stranger can not: its own services, the machines beside it, the
//! cloud's metadata. A page that tells a model to fetch such an address would have it hand the answer
//! over. So only public addresses are connected to, unless the configuration names others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses and why it is refused.
type Range<A> = (A, u8, &'static str);

/// By the registries of special-purpose addresses (RFC 6890 and its successors).
const V4: &[Range<Ipv4Addr>] = &[
    (Ipv4Addr::UNSPECIFIED, 8, "this host"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private network"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a carrier's network"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (
        Ipv4Addr::new(169, 254, 0, 0),
        16,
        "link-local, where clouds keep their metadata",
    ),
    (
        Ipv4Addr::new(168, 63, 129, 16),
        32,
        "a cloud's own, with its metadata, although it looks public",
    ),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private network"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved for protocols"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
    (Ipv4Addr::new(192, 31, 196, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 52, 193, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private network"),
    (Ipv4Addr::new(192, 175, 48, 0), 24, "reserved"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

/// Only `2000::/3` is public; of it these are not.
const V6: &[Range<Ipv6Addr>] = &[
    (
        Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0),
        23,
        "reserved for protocols",
    ),
    (
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
        32,
        "for documentation",
    ),
    (
        Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0),
        20,
        "for documentation",
    ),
    (
        Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0),
        48,
        "reserved",
    ),
];

/// Why an address must not be reached, if so.
///
/// ```
/// use holdfast_web::address::forbidden;
/// assert!(forbidden("169.254.169.254".parse().unwrap()).is_some());
/// assert!(forbidden("::ffff:10.0.0.1".parse().unwrap()).is_some());
/// assert!(forbidden("93.184.215.14".parse().unwrap()).is_none());
/// ```
pub fn forbidden(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => forbidden_v4(v4),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => forbidden_v4(v4),
            // A host behind a tunnel (ISATAP, RFC 5214) is both, and has to be public as both.
            None => forbidden_v6(v6).or_else(|| forbidden_v4(behind_tunnel(v6)?)),
        },
    }
}

fn forbidden_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = u32::from(address);
    let within = |(net, length, _): &&Range<Ipv4Addr>| {
        let shift = 32 - u32::from(*length);
        bits >> shift == u32::from(*net) >> shift
    };
    V4.iter().find(within).map(|(.., why)| *why)
}

fn forbidden_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_loopback() {
        return Some("loopback");
    }
    let bits = u128::from(address);
    if bits >> 125 != 0b001 {
        return Some("not a public address");
    }
    let within = |(net, length, _): &&Range<Ipv6Addr>| {
        let shift = 128 - u32::from(*length);
        bits >> shift == u128::from(*net) >> shift
    };
    V6.iter().find(within).map(|(.., why)| *why)
}

/// The IPv4 address inside: mapped, compatible, translated (NAT64) or tunnelled (6to4). What is
/// connected to in the end is that one.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    // `::` and `::1` are IPv6's own.
    if address.is_unspecified() || address.is_loopback() {
        return None;
    }
    let low = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, a, b]
        | [0, 0, 0, 0, 0xffff, 0, a, b]
        | [0x64, 0xff9b, 0, 0, 0, 0, a, b]
        | [0x2002, a, b, ..] => Some(low(a, b)),
        _ => None,
    }
}

/// The IPv4 address by which a site's own tunnel reaches this one.
fn behind_tunnel(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [_, _, _, _, 0 | 0x200, 0x5efe, a, b] => {
            Some(Ipv4Addr::from((u32::from(a) << 16) | u32::from(b)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_is_refused_in_every_form() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.170",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "100::1",
            "::ffff:0:127.0.0.1",
            "4000::1",
            // Metadata of Azure, Alibaba, Oracle, AWS and Google.
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "64:ff9b::168.63.129.16",
            "2002:a83f:8110::1",
            "100.100.100.200",
            "192.0.0.192",
            "fd00:ec2::23",
            "fd20:ce::254",
            // The registries' other blocks: discard, dummy, Teredo, ORCHID, AS112, segment routing, site-local.
            "100:0:0:1::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:20::1",
            "2620:4f:8000::1",
            "5f00::1",
            "fec0::1",
            "2606:4700::5efe:10.0.0.1",
            "2606:4700::200:5efe:169.254.169.254",
        ] {
            assert!(
                forbidden(text.parse().expect("an address")).is_some(),
                "{text}"
            );
        }
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.215.14",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.0.1",
            "198.17.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "64:ff9b::8.8.8.8",
            "::ffff:8.8.8.8",
            "2002:808:808::",
            "168.63.129.15",
            "168.63.129.17",
            "2620:4f:8001::1",
            "2606:4700::5efe:8.8.8.8",
        ] {
            assert_eq!(forbidden(text.parse().expect("an address")), None, "{text}");
        }
    }
}
