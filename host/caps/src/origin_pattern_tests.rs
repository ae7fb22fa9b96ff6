use super::*;
use proptest::prelude::*;

#[test]
fn matching() {
    for (pattern, scheme, host, port, expected) in [
        ("https://example.com", "https", "example.com", 443, true),
        ("HTTPS://Example.COM", "https", "example.com", 443, true),
        ("https://example.com", "http", "example.com", 80, false),
        ("https://example.com", "https", "example.com", 8443, false),
        ("https://example.com", "https", "www.example.com", 443, false),
        ("https://example.com", "https", "example.com.", 443, false),
        ("https://example.com:8443", "https", "example.com", 8443, true),
        ("https://example.com:8443", "https", "example.com", 443, false),
        ("https://example.com:*", "https", "example.com", 1, true),
        ("*://example.com", "http", "example.com", 80, true),
        ("*://example.com", "https", "example.com", 443, true),
        ("*://example.com", "https", "example.com", 80, false),
        ("*://example.com:443", "http", "example.com", 443, true),
        ("*://*:*", "ftp", "example.com", 21, false),
        ("*://*:*", "https", "::1", 7, true),
        ("https://*", "https", "", 443, false),
        ("https://*.example.com", "https", "a.example.com", 443, true),
        ("https://*.example.com", "https", "a.b.example.com", 443, true),
        ("https://*.example.com", "https", "example.com", 443, false),
        ("https://*.example.com", "https", ".example.com", 443, false),
        ("https://*.example.com", "https", "a..example.com", 443, false),
        ("https://*.example.com", "https", "evilexample.com", 443, false),
        ("https://*.example.com", "https", "evil.com/.example.com", 443, false),
        ("http://127.0.0.1:*", "http", "127.0.0.1", 8080, true),
        ("http://127.0.0.1:*", "http", "127.0.0.2", 8080, false),
        ("http://[::1]:8080", "http", "::1", 8080, true),
        ("http://[0:0::1]", "http", "::1", 80, true),
        ("http://[::1]", "http", "::2", 80, false),
        ("http://[::ffff:127.0.0.1]", "http", "127.0.0.1", 80, false),
        ("$models", "https", "example.com", 443, false),
    ] {
        let parsed = OriginPattern::parse(pattern).unwrap();
        assert_eq!(parsed.matches(scheme, host, port), expected, "{pattern} against {scheme}://{host}:{port}");
    }
}

#[test]
fn models() {
    let origin = |host: &str| Origin { scheme: "https".into(), host: host.into(), port: 443 };
    let models = [origin("api.example.com")];
    assert!(OriginPattern::Models.matches_with(&origin("api.example.com"), &models));
    assert!(!OriginPattern::Models.matches_with(&origin("example.com"), &models));
    assert!(!OriginPattern::Models.matches_with(&Origin { port: 80, ..origin("api.example.com") }, &models));
}

#[test]
fn canonical() {
    for (text, shown) in [
        ("HTTPS://Example.com:443", "https://example.com"),
        ("http://x:443", "http://x:443"),
        ("*://*.x:*", "*://*.x:*"),
        ("http://[0:0:0:0:0:0:0:1]:80", "http://[::1]"),
        ("$models", "$models"),
    ] {
        assert_eq!(OriginPattern::parse(text).unwrap().to_string(), shown);
    }
    assert_eq!(Origin { scheme: "http".into(), host: "::1".into(), port: 81 }.to_string(), "http://[::1]:81");
}

#[test]
fn errors_name_the_place() {
    for (text, column) in [
        ("", 1),
        ("example.com", 1),
        ("ftp://example.com", 1),
        ("$model", 1),
        ("https://", 9),
        ("https://example.com/", 20),
        ("https://example.com/a", 20),
        ("https://example.com?q", 20),
        ("https://example.com#f", 20),
        ("https://user@example.com", 13),
        ("https://user:pw@example.com", 16),
        ("https://example.com.", 20),
        ("https://*.", 11),
        ("https://.example.com", 9),
        ("https://a..b", 11),
        ("https://a.*.b", 11),
        ("https://*a.b", 9),
        ("https://**", 9),
        ("https://a b", 10),
        ("https://bücher.de", 10),
        ("https://ex%61mple.com", 11),
        ("https://-a.b", 9),
        ("https://a-.b", 10),
        ("https://example.com:", 21),
        ("https://example.com:0", 21),
        ("https://example.com:080", 21),
        ("https://example.com:65536", 21),
        ("https://example.com:8a", 22),
        ("https://example.com:+8", 21),
        ("http://2130706433", 8),
        ("http://0x7f.1", 8),
        ("http://0177.0.0.1", 8),
        ("http://127.0.0.01", 16),
        ("http://127.1", 8),
        ("http://127.0.0.256", 16),
        ("http://1.2.3.0x4", 14),
        ("http://*.0.0.1", 8),
        ("http://[::1", 8),
        ("http://[::g]", 9),
        ("http://[fe80::1%25eth0]", 16),
        ("http://[::1]x", 13),
        ("http://::1", 8),
    ] {
        assert_eq!(OriginPattern::parse(text).map_err(|error| error.column), Err(column), "{text}");
    }
}

prop_compose! {
    fn pattern_text()(
        scheme in prop_oneof![Just("http"), Just("https"), Just("*"), Just("ftp")],
        host in prop_oneof![
            r"(\*\.)?[ab]{1,2}(\.[ab]{1,2}){0,2}", Just("*".to_owned()), r"127\.0\.0\.[0-2]", r"\[::[0-2]\]", r"\PC{0,6}",
        ],
        port in prop_oneof![Just(String::new()), Just(":*".to_owned()), r":(80|443|81)", r":[0-9]{0,6}"],
    ) -> String {
        format!("{scheme}://{host}{port}")
    }
}

proptest! {
    #[test]
    fn never_panics(text in any::<String>()) {
        let _ = OriginPattern::parse(&text);
    }

    #[test]
    fn shows_what_it_reads(text in pattern_text()) {
        if let Ok(pattern) = OriginPattern::parse(&text) {
            prop_assert_eq!(OriginPattern::parse(&pattern.to_string()), Ok(pattern));
        }
    }

    #[test]
    fn common_origins_overlap(a in pattern_text(), b in pattern_text(), host in r"[ab]{1,2}(\.[ab]{1,2}){0,3}", port in prop_oneof![Just(80u16), Just(443), Just(81)]) {
        if let (Ok(a), Ok(b)) = (OriginPattern::parse(&a), OriginPattern::parse(&b)) {
            for scheme in ["http", "https"] {
                if a.matches(scheme, &host, port) && b.matches(scheme, &host, port) {
                    prop_assert!(a.may_overlap(&b) && b.may_overlap(&a));
                }
            }
        }
    }
}
