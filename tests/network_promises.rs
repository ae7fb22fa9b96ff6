//! What a plugin can not reach over the network, each test named for the promise. The servers are real ones on loopback
//! addresses; what must not be reached is there and would answer.

use std::{fs, io::Read as _, net::TcpListener};

use serde_json::{Value, json};

use crate::common::{
    Finished, Sandbox, components, plugins,
    server::{Reply, Server},
    skipped,
};

/// The plugin with these origins, each asked for and granted.
fn reaching(origins: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    let component = plugins::misbehave();
    let tables: String = origins
        .iter()
        .map(|origin| format!("[[http]]\norigin = \"{origin}\"\nmethods = [\"GET\", \"POST\"]\nreason = \"x\"\n"))
        .collect();
    // What else it imports has to be granted too.
    let manifest = format!(
        "name = \"misbehave\"\nversion = \"1\"\ncontract = \"0.1\"\n\
         [[files]]\nroot = \"$workspace\"\nreason = \"x\"\n[[process]]\nprogram = \"/bin/true\"\nreason = \"x\"\n{tables}"
    );
    sandbox.plugin("misbehave", &component, Some(&manifest));
    sandbox.grant("misbehave", &component, "all = true");
    sandbox
}

fn fetch(sandbox: &Sandbox, url: &str, redirects: u32, headers: &Value) -> Finished {
    let arguments = json!({"how": "fetch", "target": url, "count": redirects, "headers": headers});
    sandbox.atoll().args(["tool", "call", "misbehave", &arguments.to_string()]).run()
}

#[track_caller]
fn fetched(sandbox: &Sandbox, url: &str) -> String {
    fetch(sandbox, url, 5, &json!({})).ok().stdout
}

/// Fails unless the request is denied for where it goes.
#[track_caller]
fn denied(sandbox: &Sandbox, url: &str) -> String {
    let run = fetch(sandbox, url, 5, &json!({})).code(3);
    assert!(run.stderr.contains("not allowed: http on "), "{url}: {run:#?}");
    run.stderr
}

/// Fails unless the request is refused as malformed.
#[track_caller]
fn malformed(sandbox: &Sandbox, url: &str) {
    let run = fetch(sandbox, url, 5, &json!({})).code(1);
    assert!(!run.stdout.contains("200"), "{url}: {run:#?}");
}

fn port(server: &Server) -> String {
    server.origin().rsplit_once(':').unwrap().1.to_owned()
}

/// A server that would tell, and that nobody may reach.
fn forbidden() -> Server {
    Server::start((0..9).map(|_| Reply::status(200, &[], "reached")).collect())
}

#[track_caller]
fn unreached(server: &Server) {
    assert_eq!(server.requests().len(), 0, "it was reached");
}

fn redirect(to: &str) -> Server {
    Server::start(
        ["301", "302", "303", "307", "308"]
            .map(|status| Reply::status(status.parse().unwrap(), &[("location", to)], ""))
            .into(),
    )
}

#[test]
fn one_granted_origin_opens_that_origin_and_nothing_else() {
    let (granted, other) = (Server::start(vec![Reply::status(200, &[], "hello")]), forbidden());
    let sandbox = reaching(&[&granted.origin()]);
    assert_eq!(fetched(&sandbox, &granted.origin()), "200 hello\n");
    let hint = denied(&sandbox, &other.origin());
    assert!(hint.contains(&other.origin()), "{hint}");
    denied(&sandbox, &format!("http://localhost:{}", port(&granted)));
    denied(&sandbox, &format!("http://[::1]:{}", port(&granted)));
    denied(&sandbox, &format!("https://127.0.0.1:{}", port(&granted)));
    denied(&sandbox, "http://127.0.0.1/");
    unreached(&other);
    assert_eq!(granted.requests().len(), 1);
}

#[test]
fn a_redirect_does_not_lead_to_a_port_that_is_not_granted() {
    let target = forbidden();
    let server = redirect(&target.origin());
    let sandbox = reaching(&[&server.origin()]);
    for _ in 0..5 {
        denied(&sandbox, &server.origin());
    }
    unreached(&target);
}

#[test]
fn a_redirect_does_not_lead_to_a_host_that_is_not_granted() {
    let target = forbidden();
    let server = redirect(&format!("http://localhost:{}/", port(&target)));
    let sandbox = reaching(&[&server.origin()]);
    denied(&sandbox, &server.origin());
    // Nor does one without a scheme.
    let server = redirect(&format!("//localhost:{}/", port(&target)));
    denied(&reaching(&[&server.origin()]), &server.origin());
    unreached(&target);
}

#[test]
fn a_redirect_does_not_lead_to_another_scheme() {
    for to in ["https://127.0.0.1:PORT/", "http://127.0.0.1:PORT@127.0.0.1:1/"] {
        let target = forbidden();
        let to = to.replace("PORT", &port(&target));
        let server = redirect(&to);
        let run = fetch(&reaching(&[&server.origin()]), &server.origin(), 5, &json!({}));
        assert_ne!(run.status.code(), Some(0), "{to}: {run:#?}");
        unreached(&target);
    }
    for to in ["file:///etc/passwd", "ftp://127.0.0.1/", "data:text/plain,x", "javascript:1", "gopher://127.0.0.1/"] {
        let server = redirect(to);
        let run = fetch(&reaching(&[&server.origin()]), &server.origin(), 5, &json!({})).code(1);
        assert!(run.stderr.contains("only http and https can be fetched"), "{to}: {run:#?}");
    }
}

#[test]
fn a_redirect_beyond_the_bound_is_handed_back_and_not_followed() {
    let server = redirect("/again");
    let sandbox = reaching(&[&server.origin()]);
    assert!(fetch(&sandbox, &server.origin(), 2, &json!({})).ok().stdout.starts_with("303 "));
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn what_identifies_the_user_is_not_redirected_to_another_origin() {
    let target = Server::start(vec![Reply::status(200, &[], "x")]);
    let server = redirect(&target.origin());
    let sandbox = reaching(&[&server.origin(), &target.origin()]);
    // Keys come in headers of any name.
    let headers = json!({"Authorization": "Bearer mine", "Cookie": "mine", "X-Api-Key": "mine", "Accept": "kept"});
    fetch(&sandbox, &server.origin(), 5, &headers).ok();
    let asked = &target.requests()[0];
    for name in ["authorization", "cookie", "x-api-key"] {
        assert_eq!(asked.header(name), None, "{name}");
    }
    assert_eq!(asked.header("accept"), Some("kept"));
}

#[test]
fn an_address_in_another_spelling_is_the_same_address() {
    let server = Server::start((0..9).map(|_| Reply::status(200, &[], "x")).collect());
    let port = port(&server);
    let granted = reaching(&[&server.origin()]);
    let other = reaching(&["http://127.0.0.2:*", "http://example.test:*"]);
    let spellings = ["127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.0.0.1."];
    for host in spellings {
        let url = format!("http://{host}:{port}/");
        // Whoever is granted it reaches it, and whoever is not can not get there by spelling it otherwise.
        assert_eq!(fetched(&granted, &url), "200 x\n", "{host}");
        denied(&other, &url);
    }
    assert_eq!(server.requests().len(), spellings.len());
}

#[test]
fn ipv6_and_ipv4_mapped_addresses_are_granted_by_themselves_only() {
    let server = forbidden();
    let port = port(&server);
    let sandbox = reaching(&[&server.origin()]);
    for host in
        ["[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[0:0:0:0:0:ffff:7f00:0001]", "[::]"]
    {
        denied(&sandbox, &format!("http://{host}:{port}/"));
    }
    for host in ["0.0.0.0", "0", "127.0.0.2"] {
        denied(&sandbox, &format!("http://{host}:{port}/"));
    }
    malformed(&sandbox, &format!("http://[::1%25lo]:{port}/"));
    unreached(&server);
    let Ok(listener) = TcpListener::bind("[::1]:0") else { return skipped("there is no IPv6 here") };
    let origin = format!("http://[::1]:{}", listener.local_addr().unwrap().port());
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nv6").unwrap();
    });
    assert_eq!(fetched(&reaching(&[&origin]), &origin.replace("[::1]", "[0:0::1]")), "200 v6\n");
    serving.join().unwrap();
}

#[test]
fn the_case_of_a_host_does_not_matter_and_a_dot_at_its_end_makes_it_another() {
    let server = Server::start(vec![Reply::status(200, &[], "x")]);
    let origin = format!("http://localhost:{}", port(&server));
    let sandbox = reaching(&[&origin]);
    assert_eq!(fetched(&sandbox, &origin.replace("localhost", "LocalHost")), "200 x\n");
    denied(&sandbox, &origin.replace("localhost", "localhost."));
    denied(&sandbox, &origin.replace("localhost", "localhost.evil.test"));
    denied(&sandbox, &origin.replace("localhost", "evil.localhost"));
}

#[test]
fn a_host_in_other_letters_is_what_it_is_in_ascii() {
    let sandbox = reaching(&["http://xn--bcher-kva.test:9", "http://paypal.test:9"]);
    // Granted, so that it fails for want of a server and not for want of a grant.
    for host in ["bücher.test", "BÜCHER.test"] {
        let run = fetch(&sandbox, &format!("http://{host}:9/"), 0, &json!({})).code(1);
        assert!(run.stderr.contains("could not connect"), "{run:#?}");
    }
    // The same letters as `paypal`, from another alphabet.
    denied(&sandbox, "http://\u{440}\u{430}ypal.test:9/");
    malformed(&sandbox, "http://xn--\u{7f}.test:9/");
}

#[test]
fn user_information_does_not_disguise_a_host() {
    let (granted, other) = (forbidden(), forbidden());
    let sandbox = reaching(&[&granted.origin()]);
    let (here, there) = (format!("127.0.0.1:{}", port(&granted)), format!("localhost:{}", port(&other)));
    for url in [
        format!("http://{here}@{there}/"),
        format!("http://{here}:x@{there}/"),
        format!("http://user:pw@{here}/"),
        format!("http://{here}%40{there}/"),
        format!("http://{here}\\@{there}/"),
        format!("http://{here}#@{there}/"),
    ] {
        let run = fetch(&sandbox, &url, 0, &json!({}));
        // What is before a `\` or a `#` is the host, by the URL standard.
        let same_host = url.contains('\\') || url.contains('#');
        assert_eq!(run.status.code() == Some(0), same_host, "{url}: {run:#?}");
    }
    unreached(&other);
}

#[test]
fn other_schemes_are_not_fetched() {
    let server = forbidden();
    let sandbox = reaching(&["*://*:*"]);
    sandbox.file("a.txt", "x");
    let host = format!("127.0.0.1:{}", port(&server));
    for url in [
        format!("file://{}/a.txt", sandbox.work().display()),
        "file:///etc/passwd".to_owned(),
        format!("ftp://{host}/"),
        format!("ws://{host}/"),
        format!("wss://{host}/"),
        format!("gopher://{host}/"),
        "data:text/plain,hello".to_owned(),
        "unix:///var/run/docker.sock".to_owned(),
        format!("//{host}/"),
        host,
        String::new(),
    ] {
        malformed(&sandbox, &url);
    }
    unreached(&server);
}

#[test]
fn raw_sockets_are_not_there() {
    for interface in ["wasi:sockets/tcp@0.2.0", "wasi:sockets/udp@0.2.3", "wasi:sockets/ip-name-lookup@0.2.0"] {
        let sandbox = Sandbox::new();
        sandbox.plugin("raw", &components::importing(interface), None);
        let run = sandbox.atoll().args(["tool", "list"]).run().ok();
        assert!(run.one_line().contains("the plugin raw is left out") && run.stderr.contains(interface), "{run:#?}");
    }
    for interface in ["wasi:http/outgoing-handler@0.2.0", "wasi:http/client@0.3.0"] {
        let sandbox = Sandbox::new();
        sandbox.plugin("raw", &components::importing(interface), None);
        let run = sandbox.atoll().args(["tool", "list"]).run().ok();
        assert!(run.one_line().contains("the plugin raw is left out"), "{run:#?}");
    }
}

#[test]
fn proxies_of_the_environment_see_nothing_of_plugins() {
    let (server, proxy) = (Server::start(vec![Reply::status(200, &[], "direct")]), forbidden());
    let sandbox = reaching(&[&server.origin()]);
    let mut command = sandbox.atoll();
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        command = command.env(name, proxy.origin());
    }
    command = command.env("NO_PROXY", "").env("no_proxy", "");
    let arguments = json!({"how": "fetch", "target": server.origin()}).to_string();
    let run = command.args(["tool", "call", "misbehave", &arguments]).run().ok();
    assert_eq!(run.stdout, "200 direct\n");
    unreached(&proxy);
}

#[test]
fn headers_that_belong_to_the_connection_are_refused() {
    let server = forbidden();
    let sandbox = reaching(&[&server.origin()]);
    for name in [
        "Host",
        "host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "Proxy-Authorization",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "HTTP2-Settings",
        ":authority",
        "x\r\nhost",
        "",
    ] {
        let run = fetch(&sandbox, &server.origin(), 0, &json!({name: "evil.test"})).code(1);
        assert!(run.stderr.contains("header"), "{name:?}: {run:#?}");
    }
    for value in ["x\r\nHost: evil.test", "x\nY: z", "\0"] {
        fetch(&sandbox, &server.origin(), 0, &json!({"x-plain": value})).code(1);
    }
    for method in ["CONNECT", "TRACE", "GET / HTTP/1.1\r\nX: y", ""] {
        let run = fetch(&sandbox, &server.origin(), 0, &json!({":method": method}));
        assert_ne!(run.status.code(), Some(0), "{method:?}: {run:#?}");
    }
    unreached(&server);
}

#[test]
fn a_method_that_is_not_granted_is_denied() {
    let server = forbidden();
    let sandbox = reaching(&[&server.origin()]);
    for method in ["DELETE", "PUT", "get", "OPTIONS"] {
        fetch(&sandbox, &server.origin(), 0, &json!({":method": method})).code(3);
    }
    unreached(&server);
}

/// A name of this machine's hosts file, other than `localhost`, that leads to an address outside of the public internet.
fn inward_name() -> Option<(String, String)> {
    let text = fs::read_to_string("/etc/hosts").ok()?;
    text.lines().map(|line| line.split('#').next().unwrap_or_default()).find_map(|line| {
        let mut words = line.split_whitespace();
        let address: std::net::IpAddr = words.next()?.parse().ok()?;
        let inward = match address {
            std::net::IpAddr::V4(address) => address.is_loopback() || address.is_private(),
            std::net::IpAddr::V6(address) => address.is_loopback(),
        };
        let name = words.find(|name| *name != "localhost" && !name.ends_with(".localhost") && !name.contains('_'))?;
        inward.then(|| (name.to_ascii_lowercase(), address.to_string()))
    })
}

#[test]
fn a_granted_name_that_leads_into_this_machine_is_refused_unless_its_address_is_granted_too() {
    let Some((name, address)) = inward_name() else { return skipped("no name of the hosts file leads inward") };
    let host = if address.contains(':') { format!("[{address}]") } else { address.clone() };
    let Ok(listener) = TcpListener::bind(format!("{host}:0")) else {
        return skipped("the address in the hosts file is not this machine's");
    };
    let port = listener.local_addr().unwrap().port();
    let accepted = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let length = stream.read(&mut request).unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nin").unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let url = format!("http://{name}:{port}/");
    for origins in [&[url.trim_end_matches('/')][..], &["http://*.test:*", &format!("http://{name}:*")]] {
        let said = denied(&reaching(origins), &url);
        assert!(said.contains(&format!("which leads to {address}")), "{said}");
        assert!(said.contains(&format!("http://{host}:{port}")), "{said}");
    }
    let both = reaching(&[url.trim_end_matches('/'), &format!("http://{host}:{port}")]);
    assert_eq!(fetched(&both, &url), "200 in\n");
    // The first that came through is the one that was granted.
    assert!(accepted.join().unwrap().to_ascii_lowercase().contains(&format!("host: {name}:{port}")));
}
