//! Which network addresses belong to everybody, and which to this machine or its surroundings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public internet: not of this machine, of a private network, of a link, or kept for
/// a special purpose. An IPv6 address that carries an IPv4 one is what that one is.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        // 240/4, with the broadcast address.
        || a >= 240
        // Shared by a provider's customers.
        || (a == 100 && (64..128).contains(&b))
        // Of protocols, and of benchmarks.
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b)))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| {
        let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        // Loopback, unspecified, `::ffff:a.b.c.d` and the old `::a.b.c.d`.
        (0, 0) if [c, d, e] == [0, 0, 0] => matches!(f, 0 | 0xffff) && v4(g, h),
        // Translated to IPv4 by a gateway.
        (0x64, 0xff9b) => [c, d, e, f] == [0, 0, 0, 0] && v4(g, h),
        // Carried in IPv4, whose address follows.
        (0x2002, _) => v4(b, c),
        // Teredo and its neighbours, ORCHID, documentation.
        (0x2001, 0..=0x01ff | 0x0db8) => false,
        // All that is given out to anybody.
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("1.1.1.1", true),
            ("93.184.216.34", true),
            ("100.63.0.1", true),
            ("172.32.0.1", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("192.0.0.8", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("203.0.113.1", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700:4700::1111", true),
            ("2a00:1450::1", true),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:1.1.1.1", true),
            ("64:ff9b::127.0.0.1", false),
            ("64:ff9b::1.1.1.1", true),
            ("64:ff9b:1::1.1.1.1", false),
            ("2002:7f00:1::", false),
            ("2002:101:101::", true),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("fc00::1", false),
            ("fd12::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_ipv4_address_is_the_same_in_an_ipv6_one(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            prop_assert_eq!(is_public(IpAddr::V4(address)), is_public(IpAddr::V6(address.to_ipv6_mapped())));
        }
    }
}
