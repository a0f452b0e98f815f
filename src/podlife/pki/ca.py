"""Certificate authority of a data folder, and the certificates it has signed.

`DIR/pki` holds the CA (`ca.crt` is public, `ca.pem` includes the key), the server's own certificate and the one it
presents to kubelets. Files are written atomically; keys are readable by their owner only. A certificate that is
missing, damaged, about to expire or lacks a name is made again. A CA that is damaged, or missing beside what it
signed, is an error: a new one would lock out every node and every user.

Every `.pem` begins with a few lines of plain text about its validity, and a checksum of all that follows (PEM allows
that), so that a server whose files are in order starts without loading a cryptography library.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

from podlife.api.codec import format_time, parse_time
from podlife.clock import Clock
from podlife.errors import ConfigError
from podlife.pki.credentials import KeyPair, Subject, node_subject

log = logging.getLogger(__name__)

_AUTHORITY_LIFETIME = timedelta(days=3650)
_LEAF_LIFETIME = timedelta(days=365)
_RENEW_BEFORE = timedelta(days=30)
# Tolerated difference between the clocks of two machines.
_CLOCK_SKEW = timedelta(minutes=5)
_CHECKSUM = b"checksum: "
_CLUSTER_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class CertificateAuthority:
    """The CA in `folder`. Everything is created on demand."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    @property
    def authority_file(self) -> Path:
        """The CA certificate that clients trust."""
        return self._folder / "ca.crt"

    def ensure_authority(self) -> None:
        """Create or renew the CA if needed; raises ConfigError if it is damaged, or was lost."""
        if not self._authority_pem.exists():
            self._refuse_lost_authority()
            self._make_authority()
        elif not self._is_valid(_read_header(self._authority_pem)):
            self._check_authority()
            self._make_authority()
        pem = self._check_authority()
        certificate = pem[pem.index(b"-----BEGIN CERTIFICATE-----") :]
        if not self.authority_file.exists() or self.authority_file.read_bytes() != certificate:
            write_private(self.authority_file, certificate, mode=0o644)

    def ensure(self, file_name: str, subject: Subject) -> Path:
        """Return the file with certificate and key of the subject, created or renewed if needed."""
        self.ensure_authority()
        path = self._folder / file_name
        authority = _read_header(self._authority_pem).get("authority", "")
        if path.exists() and not _is_intact(path):
            log.warning("%s is damaged, creating a new certificate", path)
            path.unlink()
        if not self._is_fresh(path, authority, subject.names):
            _, end = self._validity(_LEAF_LIFETIME)
            self._write(path, self.issue(subject), end, authority, subject.names)
        return path

    def issue(self, subject: Subject) -> KeyPair:
        """Sign a new certificate; raises ConfigError if there is no CA yet, or it is damaged."""
        if not self._authority_pem.exists():
            raise ConfigError(
                f"{self._folder} holds no certificate authority: start the API server on it once"
            )
        authority = self._check_authority()
        from podlife.pki.certificates import sign

        begin, end = self._validity(_LEAF_LIFETIME)
        return sign(authority, subject, begin, end)

    def sign_node_request(self, request: bytes, node_name: str, *, serves: bool = True) -> bytes:
        """Sign a node's certificate: for serving, under its name alone, or for client authentication. Without
        `node_name` it is the node of the request. Raises ValueError for an invalid request."""
        from podlife.pki.certificates import node_in_request, sign_request

        node_name = node_name or node_in_request(request)
        subject = node_subject(node_name, (node_name,) if serves else ())
        begin, end = self._validity(_LEAF_LIFETIME)
        return sign_request(self._authority_pem.read_bytes(), request, subject, begin, end)

    def server_context(self, serving_file: Path) -> ssl.SSLContext:
        """TLS of the server: clients may authenticate with a certificate of this CA."""
        return server_context(serving_file, None, self.authority_file)

    def client_context(self, client_file: Path) -> ssl.SSLContext:
        """TLS to kubelets: both sides present a certificate of this CA."""
        context = ssl.create_default_context(cafile=str(self.authority_file))
        context.load_cert_chain(client_file)
        return context

    @property
    def _authority_pem(self) -> Path:
        return self._folder / "ca.pem"

    def _make_authority(self) -> None:
        from podlife.pki.certificates import make_authority

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        begin, end = self._validity(_AUTHORITY_LIFETIME)
        made = make_authority(begin, end)
        self._write(self._authority_pem, made, end, secrets.token_hex(8), ())

    def _refuse_lost_authority(self) -> None:
        if any(self._folder.glob("*.pem")) or self.authority_file.exists():
            raise ConfigError(
                f"{self._authority_pem} is missing, but certificates it signed exist: restore it from a backup; or "
                f"remove {self._folder} for a new authority, and let every node and user join again"
            )

    def _check_authority(self) -> bytes:
        """Return the content of its file; raises ConfigError if it is damaged."""
        if not _is_intact(self._authority_pem):
            raise ConfigError(
                f"{self._authority_pem} is damaged: restore it from a backup; or remove {self._folder} for a new "
                "authority, and let every node and user join again"
            )
        return self._authority_pem.read_bytes()

    def _validity(self, lifetime: timedelta) -> tuple[datetime, datetime]:
        now = self._clock.now().replace(microsecond=0)
        return now - _CLOCK_SKEW, now + lifetime

    def _is_fresh(self, path: Path, authority: str, names: Iterable[str]) -> bool:
        header = _read_header(path)
        if header.get("authority") != authority or not set(names) <= set(header.get("names", "").split()):
            return False
        return self._is_valid(header)

    def _is_valid(self, header: Mapping[str, str]) -> bool:
        try:
            return parse_time(header.get("not-after", "")) - self._clock.now() > _RENEW_BEFORE
        except ValueError:
            return False

    def _write(self, path: Path, made: KeyPair, end: datetime, authority: str, names: Sequence[str]) -> None:
        header = f"authority: {authority}\nnot-after: {format_time(end)}\nnames: {' '.join(names)}\n\n"
        content = header.encode() + made.key + made.certificate
        write_private(path, b"%b%b\n%b" % (_CHECKSUM, sha256(content).hexdigest().encode(), content))


def server_context(cert_file: Path, key_file: Path | None, client_ca_file: Path | None) -> ssl.SSLContext:
    """TLS of a server whose clients may authenticate with a certificate of the CA, if one is given; raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Without a password, OpenSSL would prompt on the terminal for that of an encrypted key.
    context.load_cert_chain(cert_file, key_file, password="")
    if client_ca_file is not None:
        context.load_verify_locations(client_ca_file)
        context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def names_for(bind: str, extra: Iterable[str] = ()) -> tuple[str, ...]:
    """Names by which clients may reach a server that is bound to this address."""
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname(), *_CLUSTER_NAMES, *extra]
    if not _is_wildcard(bind):
        names.append(bind)
    return tuple(dict.fromkeys(name for name in names if name))


def _is_wildcard(bind: str) -> bool:
    try:
        return ip_address(bind).is_unspecified
    except ValueError:
        return False


def _read_header(path: Path) -> dict[str, str]:
    """The plain lines before the first PEM block; empty for a foreign file."""
    header: dict[str, str] = {}
    try:
        with path.open(encoding="ascii") as file:
            for line in file:
                if line.startswith("-----BEGIN"):
                    return header
                key, _, value = line.partition(":")
                header[key.strip()] = value.strip()
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    return {}


def _is_intact(path: Path) -> bool:
    """Whether a file is unchanged since it was written, and its key matches its certificate."""
    checksum, _, content = path.read_bytes().partition(b"\n")
    # Earlier versions wrote no checksum.
    if checksum.startswith(_CHECKSUM) and checksum != _CHECKSUM + sha256(content).hexdigest().encode():
        return False
    header = _read_header(path)
    try:
        parse_time(header.get("not-after", ""))
        # Without a password, OpenSSL would prompt on the terminal for that of a damaged key.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(path, password="")
    except (ValueError, OSError):
        return False
    return b"\n-----BEGIN CERTIFICATE-----" in content and bool(header.get("authority"))


def write_private(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a file atomically and durably; it never has more permissions than `mode`."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
