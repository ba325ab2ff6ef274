//! Which addresses deliveries may connect to. An endpoint's URL is an instruction to this machine to connect somewhere:
//! only public addresses are allowed, and what the operator has allowed beside them.
//!
//! Names are resolved first and the addresses vetted afterwards, so that a name is never asked twice: what was vetted
//! is what is connected to.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::Url;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::Host;

/// What is not public among IPv4 addresses: IANA's registry of special purposes, multicast, the reserved space behind
/// it, and a public address that stands for the host of a cloud.
const NOT_PUBLIC_4: [(&str, &str); 18] = [
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-grade NAT"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "a cloud's own service"),
    ("169.254.0.0/16", "link-local, metadata services"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignments"),
    ("192.0.2.0/24", "documentation"),
    ("192.31.196.0/24", "AS112"),
    ("192.52.193.0/24", "multicast relays"),
    ("192.88.99.0/24", "6to4 relays"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "AS112"),
    ("198.18.0.0/15", "benchmarks"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/3", "multicast, reserved or broadcast"),
];

/// What has been given to networks among IPv6 addresses. Everything else is not public: loopback, unspecified,
/// v4-mapped and v4-compatible, NAT64, unique local, link-local, site-local, multicast.
const GLOBAL_6: &str = "2000::/3";

/// What is not public within `GLOBAL_6`.
const NOT_PUBLIC_6: [(&str, &str); 5] = [
    (
        "2001::/23",
        "protocol assignments: Teredo, ORCHID, benchmarks",
    ),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "6to4"),
    ("2620:4f:8000::/48", "AS112"),
    ("3fff::/20", "documentation"),
];

/// Names of this machine and its network. Their addresses would be refused as well; names are refused before anything
/// is asked.
const LOCAL_NAMES: [&str; 6] = [
    "localhost",
    "local",
    "internal",
    "home.arpa",
    "localdomain",
    "onion",
];

/// Why an URL or an address is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Scheme(String),
    Credentials,
    NoHost,
    LocalName(String),
    Address(IpAddr, &'static str),
    /// None of a name's addresses is left.
    Name(String, IpAddr, &'static str),
}

/// What deliveries may connect to.
#[derive(Clone, Debug)]
pub struct Policy {
    not_public_4: Vec<(Ipv4Net, &'static str)>,
    not_public_6: Vec<(Ipv6Net, &'static str)>,
    global_6: Ipv6Net,
    reach: Reach,
    allows_http: bool,
}

#[derive(Clone, Debug)]
enum Reach {
    /// Public addresses, and these networks.
    Public(Vec<IpNet>),
    /// Every address.
    All,
}

impl Policy {
    /// Public addresses, and those of the networks that the operator has allowed; HTTPS only, unless allowed.
    pub fn public(allowed: Vec<IpNet>, allows_http: bool) -> Policy {
        Policy::new(Reach::Public(allowed), allows_http)
    }

    /// For endpoints that the operator has configured to be private.
    pub fn private() -> Policy {
        Policy::new(Reach::All, true)
    }

    fn new(reach: Reach, allows_http: bool) -> Policy {
        let parsed = "the lists of this module are networks";
        Policy {
            not_public_4: NOT_PUBLIC_4
                .map(|(net, why)| (net.parse().expect(parsed), why))
                .to_vec(),
            not_public_6: NOT_PUBLIC_6
                .map(|(net, why)| (net.parse().expect(parsed), why))
                .to_vec(),
            global_6: GLOBAL_6.parse().expect(parsed),
            reach,
            allows_http,
        }
    }

    /// May a delivery go to this URL? An address in it is vetted here, since no resolver is asked for it; a name is
    /// vetted when it is resolved.
    ///
    /// # Errors
    /// With the reason, if not.
    pub fn vet_url(&self, url: &Url) -> Result<(), Refusal> {
        match url.scheme() {
            "https" => {}
            "http" if self.allows_http => {}
            scheme => return Err(Refusal::Scheme(scheme.to_owned())),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::Credentials);
        }
        match url.host() {
            None => Err(Refusal::NoHost),
            Some(Host::Ipv4(ip)) => self.vet(ip.into()),
            Some(Host::Ipv6(ip)) => self.vet(ip.into()),
            Some(Host::Domain(name)) => self.vet_name(name),
        }
    }

    fn vet_name(&self, name: &str) -> Result<(), Refusal> {
        // With networks of the operator's, local names may be right.
        if !matches!(&self.reach, Reach::Public(allowed) if allowed.is_empty()) {
            return Ok(());
        }
        let lower = name.trim_end_matches('.').to_ascii_lowercase();
        let is_local = |suffix: &&str| {
            let rest = lower.strip_suffix(*suffix);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if LOCAL_NAMES.iter().any(is_local) {
            return Err(Refusal::LocalName(name.to_owned()));
        }
        Ok(())
    }

    /// May a delivery connect to this address?
    ///
    /// # Errors
    /// With the reason, if not.
    pub fn vet(&self, ip: IpAddr) -> Result<(), Refusal> {
        match &self.reach {
            Reach::All => return Ok(()),
            Reach::Public(allowed) if allowed.iter().any(|net| net.contains(&ip)) => return Ok(()),
            Reach::Public(_) => {}
        }
        let why = match ip {
            IpAddr::V4(ip) => self.not_public_4(ip),
            IpAddr::V6(ip) => self.not_public_6(ip),
        };
        why.map_or(Ok(()), |why| Err(Refusal::Address(ip, why)))
    }

    /// The addresses of a name that may be connected to.
    ///
    /// # Errors
    /// When there were some, and all of them are refused.
    pub fn vet_all<T>(
        &self,
        name: &str,
        addresses: impl IntoIterator<Item = T>,
        ip: impl Fn(&T) -> IpAddr,
    ) -> Result<Vec<T>, Refusal> {
        let mut allowed = Vec::new();
        let mut refused = None;
        for address in addresses {
            match self.vet(ip(&address)) {
                Ok(()) => allowed.push(address),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        match refused {
            Some(Refusal::Address(ip, why)) if allowed.is_empty() => {
                Err(Refusal::Name(name.to_owned(), ip, why))
            }
            _ => Ok(allowed),
        }
    }

    fn not_public_4(&self, ip: Ipv4Addr) -> Option<&'static str> {
        let mut nets = self.not_public_4.iter();
        nets.find_map(|(net, why)| net.contains(&ip).then_some(*why))
    }

    fn not_public_6(&self, ip: Ipv6Addr) -> Option<&'static str> {
        if !self.global_6.contains(&ip) {
            return Some("not a global address");
        }
        let mut nets = self.not_public_6.iter();
        nets.find_map(|(net, why)| net.contains(&ip).then_some(*why))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Scheme(scheme) => write!(f, "the scheme {scheme} is not allowed"),
            Refusal::Credentials => f.write_str("an URL must not contain a user or a password"),
            Refusal::NoHost => f.write_str("the URL has no host"),
            Refusal::LocalName(name) => write!(f, "the name {name} is not public"),
            Refusal::Address(ip, why) => write!(f, "the address {ip} is not public: {why}"),
            // The endpoint's owner reads this, and is not to learn what an internal name server says.
            Refusal::Name(name, _, _) => write!(f, "the name {name} has no public address"),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict() -> Policy {
        Policy::public(Vec::new(), true)
    }

    fn vet_url(policy: &Policy, url: &str) -> Result<(), Refusal> {
        policy.vet_url(&Url::parse(url).unwrap_or_else(|error| panic!("{url}: {error}")))
    }

    #[test]
    fn addresses_that_are_not_public_are_refused() {
        for address in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "192.168.255.255",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::8.8.8.8",
            "64:ff9b:1::7f00:1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2002:808:808::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff::1",
            "fe80::1",
            "fe80::a9fe:a9fe",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
        ] {
            let ip: IpAddr = address.parse().unwrap();
            assert!(strict().vet(ip).is_err(), "{address}");
        }
    }

    #[test]
    fn their_neighbours_are_public() {
        for address in [
            "1.0.0.0",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450::1",
        ] {
            let ip: IpAddr = address.parse().unwrap();
            assert_eq!(strict().vet(ip), Ok(()), "{address}");
        }
    }

    /// Every spelling of an address is the address, once the URL is parsed.
    #[test]
    fn spellings_do_not_help() {
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1/",
            "http://017700000001/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://%31%32%37.0.0.1/",
            "http://１２７.０.０.１/",
            "http://①②⑦.⓪.⓪.①/",
            "http://127。0。0。1/",
            "http://0/",
            "http://0.0.0.0:8080/",
            "http://[::1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::ffff:169.254.169.254]/latest/meta-data/",
            "http://[64:ff9b::169.254.169.254]/",
            "http://[fe80::1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://localhost/",
            "http://LOCALHOST/",
            "http://localhost./",
            "http://a.localhost/",
            "http://metadata.google.internal/",
            "http://printer.local/",
            "http://user@example.com/",
            "http://user:password@example.com/",
            "http://:password@example.com/",
            "http://example.com@127.0.0.1/",
            "http:\\\\127.0.0.1\\",
            "ftp://example.com/",
            "file:///etc/passwd",
            "gopher://example.com/",
            "unix:/var/run/docker.sock",
            "data:text/plain,x",
            "javascript:alert(1)",
        ] {
            assert!(vet_url(&strict(), url).is_err(), "{url}");
        }
        for url in [
            "http://example.com/",
            "https://example.com:8443/hook?x=1#y",
            "https://localhost.example.com/",
            "https://notlocal/",
            "https://8.8.8.8/",
            "https://[2606:4700:4700::1111]/",
        ] {
            assert_eq!(vet_url(&strict(), url), Ok(()), "{url}");
        }
    }

    #[test]
    fn plain_http_has_to_be_allowed() {
        let policy = Policy::public(Vec::new(), false);
        assert_eq!(vet_url(&policy, "https://example.com/"), Ok(()));
        let refused = vet_url(&policy, "http://example.com/").unwrap_err();
        assert_eq!(refused.to_string(), "the scheme http is not allowed");
    }

    #[test]
    fn what_the_operator_allows_is_allowed_and_nothing_beside_it() {
        let policy = Policy::public(vec!["10.1.0.0/16".parse().unwrap()], false);
        assert_eq!(vet_url(&policy, "https://10.1.2.3/"), Ok(()));
        assert!(vet_url(&policy, "https://10.2.0.1/").is_err());
        assert!(vet_url(&policy, "https://[::ffff:10.1.2.3]/").is_err());
        assert_eq!(vet_url(&policy, "https://hooks.internal/"), Ok(()));
        let all = Policy::private();
        assert_eq!(vet_url(&all, "http://127.0.0.1:9/"), Ok(()));
        assert!(vet_url(&all, "ftp://127.0.0.1/").is_err());
    }

    #[test]
    fn of_a_names_addresses_only_public_ones_are_left() {
        let of = |addresses: &[&str]| {
            let ips = addresses.iter().map(|text| text.parse::<IpAddr>().unwrap());
            strict().vet_all("example.com", ips, |ip| *ip)
        };
        assert_eq!(of(&[]), Ok(Vec::new()));
        assert_eq!(of(&["127.0.0.1", "8.8.8.8", "::1"]).unwrap().len(), 1);
        let refused = of(&["10.1.2.3", "::1"]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the name example.com has no public address"
        );
        assert!(format!("{refused:?}").contains("10.1.2.3"));
    }
}
