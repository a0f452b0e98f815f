"""TLS contexts.

Python loads a client's key from files only, so an inline key passes through a private temporary file that is removed
before `tls_context` returns.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from podlife.client.connection import Connection
from podlife.errors import ConfigError

if TYPE_CHECKING:
    import ssl


def tls_context(connection: Connection, *, certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    """The context for a connection. A certificate given here (a plugin's) replaces the configured one."""
    import ssl

    try:
        authority = connection.certificate_authority.decode("ascii") or None
        context = ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            f"{connection.origin}: the certificate authority is not PEM; check certificate-authority"
        ) from None
    # As Go does: whatever certificate is given as trusted is trusted, and authorities that clusters made for
    # themselves need not have every extension that Python 3.13 asks for.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # As Go: no renegotiation.
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    if connection.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = certificate or connection.client_certificate, key or connection.client_key
    if certificate:
        _load_identity(context, certificate, key, connection.origin)
    return context


def _load_identity(context: ssl.SSLContext, certificate: bytes, key: bytes, origin: str) -> None:
    import ssl

    def no_password() -> str:
        raise ConfigError(f"{origin}: the client key is encrypted; decrypt it first")

    # The directory has mode 0700 and the file 0600, so other users can never open it.
    with tempfile.TemporaryDirectory(prefix="podlife-") as folder:
        path = Path(folder) / "identity.pem"
        path.touch(mode=0o600)
        path.write_bytes(certificate.rstrip() + b"\n" + key)
        try:
            context.load_cert_chain(path, password=no_password)
        except (ssl.SSLError, ValueError):
            raise ConfigError(
                f"{origin}: the client certificate and key are not PEM or do not belong together; renew them"
            ) from None
