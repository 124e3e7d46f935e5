"""Certificates for tests on loopback, made in memory."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from DocsToKG.transport.curl.trust import TrustStore

_DAY = datetime.timedelta(days=1)


class Certificate(NamedTuple):
    """A self-signed certificate, which is its own authority."""

    file: Path
    key: Path

    def server_side(self, *protocols: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context

    @property
    def trust(self) -> TrustStore:
        return TrustStore(str(self.file))


def make_certificate(folder: Path, *names: str, starts_in_days: int = -2, ends_in_days: int = 2) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + starts_in_days * _DAY)
        .not_valid_after(now + ends_in_days * _DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    certificate = Certificate(folder / "cert.pem", folder / "key.pem")
    certificate.file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    certificate.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate
