//! What each `sslmode` accepts, against servers with and without TLS.

use crate::server::{Seen, Server, certificate};
use recur_client::rustls::{ClientConfig, RootCertStore};
use recur_client::{Error, Session};
use std::io::Write;
use tempfile::NamedTempFile;

async fn connect(port: u16, options: &str) -> Result<Session, Error> {
    Session::connect(&format!(
        "host=localhost hostaddr=127.0.0.1 port={port} user=me {options}"
    ))
    .await
}

fn root_file(pem: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(pem.as_bytes()).unwrap();
    file
}

#[tokio::test]
async fn a_server_without_tls() {
    let mut server = Server::start(None).await;
    for options in ["", "sslmode=disable", "sslmode=prefer"] {
        connect(server.port, options).await.unwrap();
        assert_eq!(
            server.seen.recv().await,
            Some(Seen::PlainConnection),
            "{options}"
        );
    }
    let error = connect(server.port, "sslmode=require").await.unwrap_err();
    assert!(
        error.to_string().contains("does not support TLS"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_whose_certificate_fits() {
    let (config, authority) = certificate("localhost");
    let mut server = Server::start(Some(config)).await;
    let (_, foreign) = certificate("localhost");
    let (authority, foreign) = (root_file(&authority), root_file(&foreign));
    let (authority, foreign) = (authority.path().display(), foreign.path().display());

    connect(server.port, "sslmode=disable").await.unwrap();
    assert_eq!(server.seen.recv().await, Some(Seen::PlainConnection));
    for options in [
        String::new(),
        "sslmode=prefer".to_owned(),
        "sslmode=require".to_owned(),
        format!("sslmode=require sslrootcert={authority}"),
        format!("sslmode=verify-ca sslrootcert={authority}"),
        format!("sslmode=verify-full sslrootcert='{authority}'"),
    ] {
        connect(server.port, &options).await.unwrap();
        assert_eq!(
            server.seen.recv().await,
            Some(Seen::TlsConnection),
            "{options}"
        );
    }
    for options in [
        "sslmode=verify-full".to_owned(),
        "sslrootcert=system".to_owned(),
        format!("sslmode=require sslrootcert={foreign}"),
        format!("sslmode=verify-ca sslrootcert={foreign}"),
        format!("sslmode=verify-full sslrootcert={foreign}"),
    ] {
        let error = connect(server.port, &options).await.unwrap_err();
        assert!(
            error.to_string().contains("certificate"),
            "{options}: {error}"
        );
    }
}

#[tokio::test]
async fn a_server_with_another_name() {
    let (config, authority) = certificate("db.example.com");
    let mut server = Server::start(Some(config)).await;
    let authority = root_file(&authority);
    let roots = format!("sslrootcert={}", authority.path().display());

    let error = connect(server.port, &format!("sslmode=verify-full {roots}"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("not valid for name"), "{error}");
    connect(server.port, &format!("sslmode=verify-ca {roots}"))
        .await
        .unwrap();
    assert_eq!(server.seen.recv().await, Some(Seen::TlsConnection));
    let url = format!(
        "postgresql://me@db.example.com:{}/app?hostaddr=127.0.0.1&sslmode=verify-full&{roots}",
        server.port
    );
    Session::connect(&url).await.unwrap();
    assert_eq!(server.seen.recv().await, Some(Seen::TlsConnection));
}

#[tokio::test]
async fn an_address_is_a_name_too() {
    let (config, authority) = certificate("127.0.0.1");
    let mut server = Server::start(Some(config)).await;
    let authority = root_file(&authority);
    for host in ["host", "hostaddr"] {
        Session::connect(&format!(
            "{host}=127.0.0.1 port={} user=me sslmode=verify-full sslrootcert={}",
            server.port,
            authority.path().display()
        ))
        .await
        .unwrap();
        assert_eq!(server.seen.recv().await, Some(Seen::TlsConnection));
    }
}

#[tokio::test]
async fn a_configuration_of_ones_own_replaces_the_verification() {
    let (config, _) = certificate("localhost");
    let mut server = Server::start(Some(config)).await;
    let trusts_no_authority = || {
        ClientConfig::builder()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth()
    };
    let connection = format!(
        "host=localhost hostaddr=127.0.0.1 port={} user=me",
        server.port
    );
    let error = Session::connect_with(
        &format!("{connection} sslmode=require"),
        trusts_no_authority(),
    )
    .await
    .unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    Session::connect_with(
        &format!("{connection} sslmode=disable"),
        trusts_no_authority(),
    )
    .await
    .unwrap();
    assert_eq!(server.seen.recv().await, Some(Seen::PlainConnection));
    let error = Session::connect_with(
        &format!("{connection} sslrootcert=/ca"),
        trusts_no_authority(),
    )
    .await
    .unwrap_err();
    assert!(matches!(error, Error::Configuration(_)), "{error}");
}
