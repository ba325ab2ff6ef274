//! Endpoints that lead into this machine or its network, in every spelling: nothing connects.

use super::Site;
use pg_recur_tests::receiver::{Reaction, Receiver};
use pg_recur_tests::{database_error, eventually};
use std::net::TcpListener;
use uuid::Uuid;

/// Hosts that stand for this machine, its network, or a service that hands out credentials. `{}` is a port where
/// something listens.
const HOSTS: [&str; 62] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0x7f.0x0.0x0.0x1",
    "017700000001",
    "0177.0.0.1",
    "0177.0.0.01",
    "127.0.0.1.",
    "%31%32%37.0.0.1",
    "１２７.０.０.１",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "0",
    "0.0.0.0",
    "0.0.0.1",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000::0001]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:7f00:1::1]",
    "[2001:0:7f00:1::]",
    "[fe80::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[2001:db8::1]",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "169.254.169.254.",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::1]",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "metadata.google.internal",
];

/// What only a resolver leads to this machine: the system's own names for it.
fn local_names() -> Vec<String> {
    let mut names = vec!["ip6-localhost".to_owned(), "ip6-loopback".to_owned()];
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    names.push(name.trim().to_owned());
    let resolves = |name: &String| {
        use std::net::ToSocketAddrs;
        (name.as_str(), 1).to_socket_addrs().is_ok()
    };
    names.retain(resolves);
    names
}

#[test]
fn nothing_connects_to_what_is_not_public() {
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    let receiver = Receiver::on(listener, |_| Reaction::ok());
    let on_6 = TcpListener::bind(("::1", receiver.address.port())).ok();
    let on_6 = on_6.map(|listener| Receiver::on(listener, |_| Reaction::ok()));
    let port = receiver.address.port();
    let mut site = Site::start();
    // Neither a proxy of the environment nor plain HTTP, which is allowed here, opens a way.
    let proxy = format!("http://127.0.0.1:{port}");
    let environment = [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ]
    .map(|name| (name, proxy.as_str()));
    let recurd = site.deliver(
        "recurd",
        &site.config("allow_http = true", ""),
        &environment,
    );
    let mut hosts: Vec<String> = HOSTS.map(str::to_owned).to_vec();
    hosts.extend(local_names());
    let mut attempts = 0;
    let mut sent: Vec<(Uuid, String)> = Vec::new();
    for host in &hosts {
        for scheme in ["http", "https"] {
            attempts += 1;
            let url = format!("{scheme}://{host}:{port}/latest/meta-data/");
            let enqueued = site.session.0.query_one(
                "SELECT recur.enqueue_webhook(url => $1, payload => '{}', max_attempts => 1)",
                &[&url],
            );
            match enqueued {
                Ok(row) => sent.push((row.get(0), url)),
                // The database refuses some of them before recurd can.
                Err(error) => assert_eq!(database_error(&error).0, "22023", "{url}"),
            }
        }
    }
    assert!(
        attempts >= 120 && sent.len() > 60,
        "{attempts} {}",
        sent.len()
    );
    for (id, url) in &sent {
        site.wait_for(*id, "failed");
        let error = site.error(*id);
        assert!(
            error.starts_with("refused: ") || error.contains("no public address"),
            "{url}: {error}"
        );
    }
    let connections = receiver.connections() + on_6.as_ref().map_or(0, Receiver::connections);
    assert_eq!(connections, 0, "{}", recurd.log());
}

#[test]
fn plain_http_is_closed_unless_it_is_opened() {
    let mut site = Site::start();
    let _recurd = site.deliver("recurd", &site.config("", ""), &[]);
    let id: Uuid = site.session.value(
        "SELECT recur.enqueue_webhook(url => 'http://8.8.8.8/', payload => '{}', max_attempts => 1)",
        &[],
    );
    site.wait_for(id, "failed");
    assert_eq!(site.error(id), "refused: the scheme http is not allowed");
}

/// A network that the operator has allowed is open to users, and stays signed with their own secret.
#[test]
fn a_network_of_the_operators_choice_is_open() {
    let receiver = Receiver::start(|_| Reaction::ok());
    let mut site = Site::start();
    let config = site.config("allow_http = true\nallow_networks = [\"127.0.0.0/8\"]", "");
    let _recurd = site.deliver("recurd", &config, &[]);
    let secret: String = site.session.value(
        "SELECT recur.create_endpoint('mine', $1, patterns => '{task:*}', headers => '{\"x-mine\": \"yes\"}')",
        &[&receiver.url("/mine")],
    );
    let id: Uuid = site.session.value(
        "SELECT recur.enqueue_webhook(action_type => 'task:created', payload => '{\"a\": 1}')",
        &[],
    );
    site.wait_for(id, "completed");
    let received = &receiver.received()[0];
    assert_eq!(
        (received.path.as_str(), received.header("x-mine")),
        ("/mine", Some("yes"))
    );
    super::verify(&secret, received);

    // While the secret is rotated, receivers with either of them accept.
    let new: String = site
        .session
        .value("SELECT recur.rotate_webhook_secret('mine')", &[]);
    let id: Uuid = site.session.value(
        "SELECT recur.enqueue_webhook(endpoint => 'mine', payload => '{}')",
        &[],
    );
    site.wait_for(id, "completed");
    let received = &receiver.received()[1];
    for secret in [&secret, &new] {
        super::verify(secret, received);
    }
    eventually("two signatures", || {
        received
            .header("webhook-signature")
            .is_some_and(|text| text.matches("v1,").count() == 2)
    });
}
