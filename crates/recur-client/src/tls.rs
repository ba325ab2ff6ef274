//! rustls configurations for libpq's modes.

use crate::Error;
use crate::options::{Mode, Roots};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore};
use rustls::{Error as TlsError, SignatureScheme};
use std::sync::Arc;

/// Verifies what the mode demands: nothing, the authority, or the authority and the host name.
pub(crate) fn client_config(mode: Mode, roots: Option<&Roots>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier {
        roots: match (mode, roots) {
            (Mode::Disable | Mode::Prefer | Mode::Require, _) => None,
            (_, None | Some(Roots::System)) => Some(system_roots()?),
            (_, Some(Roots::File(path))) => Some(root_file(path)?),
        },
        verifies_name: mode == Mode::VerifyFull,
        algorithms: provider.signature_verification_algorithms,
    };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Configuration(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

/// Some stores hold certificates that rustls can't read; the readable ones are enough.
fn system_roots() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        return Err(Error::Configuration(
            "the system has no root certificates (Debian: package ca-certificates); name a file with sslrootcert"
                .to_owned(),
        ));
    }
    Ok(store)
}

/// A file that was named must be readable as a whole.
fn root_file(path: &str) -> Result<RootCertStore, Error> {
    let problem = |reason: String| Error::Configuration(format!("sslrootcert {path:?}: {reason}"));
    let mut store = RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| problem(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| problem(error.to_string()))?;
        store
            .add(certificate)
            .map_err(|error| problem(error.to_string()))?;
    }
    if store.is_empty() {
        return Err(problem("no certificate in this file".to_owned()));
    }
    Ok(store)
}

#[derive(Debug)]
struct Verifier {
    /// `None` accepts any certificate.
    roots: Option<RootCertStore>,
    verifies_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                algorithms,
            )?;
            if self.verifies_name {
                verify_server_name(&certificate, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    // The server must own its certificate's key in every mode.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
