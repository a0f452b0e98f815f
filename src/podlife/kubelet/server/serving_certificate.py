"""The serving certificate: signed by the cluster, or self-signed.

The server starts with the last certificate that the cluster signed, or a self-signed one, so that it is reachable at
once. Meanwhile it creates a CertificateSigningRequest (`kubernetes.io/kubelet-serving`) and switches when that is
signed; until it is approved, the current certificate stays in use. A certificate is renewed well before it expires.
Keys are readable by their owner only and never leave the node.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

from podlife.clock import Clock
from podlife.errors import ApiError, ConfigError, PodlifeError, UnreachableError
from podlife.pki import write_private
from podlife.pki.csr import CertificateSigner, NotSignedError

log = logging.getLogger(__name__)

_SIGNED, _SELF_SIGNED = "kubelet-server.pem", "kubelet-self-signed.pem"
_SELF_SIGNED_LIFETIME = timedelta(days=365)
_CLOCK_SKEW = timedelta(minutes=5)
# Renew when this share of the lifetime is left.
_RENEW_AT = 0.3
_CHECK_SECONDS = 60.0
_RETRY_SECONDS = 300.0
_SOON_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class CertificateSettings:
    """Certificates are stored in `folder`; `names` are the node's names and addresses. `client_authority` (PEM) signs
    client certificates; without it only tokens are accepted."""

    node_name: str
    folder: Path
    names: tuple[str, ...] = ()
    client_authority: bytes = b""


class ServingCertificate:
    """Keeps one TLS context up to date: new connections get the new certificate."""

    def __init__(self, settings: CertificateSettings, clock: Clock, signing: CertificateSigner) -> None:
        self._settings = settings
        self._clock = clock
        self._signing = signing
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def open(self) -> ssl.SSLContext:
        """A context that is ready to serve. Raises ConfigError if the client authority is invalid."""
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.set_alpn_protocols(["http/1.1"])
        if self._settings.client_authority:
            try:
                self._context.load_verify_locations(cadata=self._settings.client_authority.decode("ascii"))
            except (ssl.SSLError, ValueError):
                raise ConfigError(
                    "the authority of client certificates is not in PEM: give its file"
                ) from None
            self._context.verify_mode = ssl.CERT_OPTIONAL
        if not (self._is_signed_here and self._load_stored(_SIGNED)):
            self._load_self_signed()
        return self._context

    async def run(self) -> None:
        """Renew certificates until cancelled. After a failure the old one stays in use: a full disk must not stop the
        node."""
        while True:
            try:
                seconds = await self._renew()
            except Exception as error:
                defect = None if isinstance(error, (PodlifeError, OSError, ValueError)) else error
                log.warning("renewal of the serving certificate failed: %s", error, exc_info=defect)
                seconds = _RETRY_SECONDS
            await asyncio.sleep(seconds)

    async def _renew(self) -> float:
        """Returns the seconds until the next check."""
        if self._is_signed_here and self._is_fresh(_SIGNED):
            return _CHECK_SECONDS
        try:
            key, certificate = await self._signing.signed(self._settings.node_name, self._settings.names)
        except (PodlifeError, ValueError) as error:
            return self._on_failure(error)
        # PEM allows leading text: record which cluster signed it.
        self._write(_SIGNED, self._cluster + key + certificate)
        if not self._load_stored(_SIGNED):
            raise NotSignedError("what the cluster has signed cannot be used")
        log.info("serving with a certificate signed by the cluster")
        return _CHECK_SECONDS

    def _on_failure(self, error: Exception) -> float:
        level = logging.DEBUG if isinstance(error, ApiError) and error.code == 404 else logging.WARNING
        log.log(level, "the cluster has not signed a certificate for this node: %s", error)
        if not (self._is_signed_here and self._load_stored(_SIGNED)):
            self._load_self_signed()
        return _SOON_SECONDS if isinstance(error, UnreachableError) else _RETRY_SECONDS

    @property
    def _cluster(self) -> bytes:
        return b"cluster: " + sha256(self._settings.client_authority).hexdigest().encode() + b"\n"

    @property
    def _is_signed_here(self) -> bool:
        """Whether the stored certificate was signed by the node's current cluster."""
        try:
            return self._path(_SIGNED).read_bytes().startswith(self._cluster)
        except OSError:
            return False

    def _load_stored(self, name: str) -> bool:
        """Accepts a certificate that is due for renewal: it is still trusted, unlike a self-signed one."""
        if not self._is_fresh(name, share_left=0.0):
            return False
        try:
            self._context.load_cert_chain(self._path(name))
        except (OSError, ssl.SSLError) as error:
            log.warning("stored certificate %s cannot be used: %s", self._path(name), error)
            self._path(name).unlink(missing_ok=True)
            return False
        return True

    def _load_self_signed(self) -> None:
        if not self._is_fresh(_SELF_SIGNED):
            from podlife.pki.certificates import self_signed

            now = self._clock.now().replace(microsecond=0)
            made = self_signed(
                self._settings.node_name, self._settings.names, now - _CLOCK_SKEW, now + _SELF_SIGNED_LIFETIME
            )
            self._write(_SELF_SIGNED, made)
        self._context.load_cert_chain(self._path(_SELF_SIGNED))

    def _is_fresh(self, name: str, *, share_left: float = _RENEW_AT) -> bool:
        """Whether it exists and more than this share of its lifetime is left."""
        from podlife.pki.certificates import validity_of

        try:
            begin, end = validity_of(self._path(name).read_bytes())
        except (OSError, ValueError):
            return False
        return end - self._clock.now() > (end - begin) * share_left

    def _path(self, name: str) -> Path:
        return self._settings.folder / name

    def _write(self, name: str, content: bytes) -> None:
        folder = self._settings.folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(folder / name, content)
        except OSError as error:
            raise ConfigError(f"cannot keep the node's certificate in {folder}: {error.strerror}") from None
