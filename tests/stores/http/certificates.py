"""A certificate authority for a test, and a server's certificate from it."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def make_authority(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Path of the authority's certificate, and what a server on 127.0.0.1 and localhost needs."""
    day = timedelta(days=1)
    now = datetime.now(UTC)
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        built = x509.CertificateBuilder(issuer_name=authority, subject_name=subject, public_key=key.public_key())
        return built.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)

    root = builder(authority, authority_key).add_extension(x509.BasicConstraints(True, None), critical=True)
    root = root.add_extension(
        x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True
    ).add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    leaf = builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), server_key)
    leaf = leaf.add_extension(x509.SubjectAlternativeName(names), critical=False).add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
    )
    pem = serialization.Encoding.PEM
    trusted, served = folder / "authority.pem", folder / "server.pem"
    trusted.write_bytes(root.sign(authority_key, hashes.SHA256()).public_bytes(pem))
    served.write_bytes(
        server_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + leaf.sign(authority_key, hashes.SHA256()).public_bytes(pem)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(served)
    return trusted, context
