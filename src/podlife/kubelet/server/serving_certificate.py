"""The serving certificate: signed by the cluster, or self-signed.

The server starts with what it has, the last one that the cluster signed or a self-signed one, so that it is reachable
at once. Meanwhile it requests one with a CertificateSigningRequest (`kubernetes.io/kubelet-serving`) and changes over
when it is signed; while the request is not approved it keeps its own. A certificate is renewed well before it expires.
Keys are readable by their owner only, and never leave the node.
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

_SIGNED, _OWN = "kubelet-server.pem", "kubelet-self-signed.pem"
_OWN_LIFETIME = timedelta(days=365)
_CLOCK_SKEW = timedelta(minutes=5)
# Of the lifetime that is left over when a new one is asked for.
_RENEW_AT = 0.3
_LOOK_SECONDS = 60.0
_RETRY_SECONDS = 300.0
_SOON_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class CertificateSettings:
    """`folder` is where the node keeps its own; `names` are the names and addresses it is reached by.
    `client_authority` (PEM) is whose certificates callers may show; without it only tokens count."""

    node_name: str
    folder: Path
    names: tuple[str, ...] = ()
    client_authority: bytes = b""


class ServingCertificate:
    """Keeps one TLS context up to date: connections made from then on see the new certificate."""

    def __init__(self, settings: CertificateSettings, clock: Clock, signing: CertificateSigner) -> None:
        self._settings = settings
        self._clock = clock
        self._signing = signing
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def open(self) -> ssl.SSLContext:
        """A context that is ready to serve; raises ConfigError where the authority cannot be used."""
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
        if not (self._is_signed_here and self._load_kept(_SIGNED)):
            self._load_own()
        return self._context

    async def run(self) -> None:
        """Renew in time, until cancelled. After a failure the old certificate stays in use: a full disk must not end a
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
        """How many seconds until the next look."""
        if self._is_signed_here and self._is_fresh(_SIGNED):
            return _LOOK_SECONDS
        try:
            key, certificate = await self._signing.signed(self._settings.node_name, self._settings.names)
        except (PodlifeError, ValueError) as error:
            return self._explain(error)
        # PEM allows lines of text before it: which cluster it was that signed.
        self._write(_SIGNED, self._cluster + key + certificate)
        if not self._load_kept(_SIGNED):
            raise NotSignedError("what the cluster has signed cannot be used")
        log.info("serving with a certificate signed by the cluster")
        return _LOOK_SECONDS

    def _explain(self, error: Exception) -> float:
        level = logging.DEBUG if isinstance(error, ApiError) and error.code == 404 else logging.WARNING
        log.log(level, "the cluster has not signed a certificate for this node: %s", error)
        if not (self._is_signed_here and self._load_kept(_SIGNED)):
            self._load_own()
        return _SOON_SECONDS if isinstance(error, UnreachableError) else _RETRY_SECONDS

    @property
    def _cluster(self) -> bytes:
        return b"cluster: " + sha256(self._settings.client_authority).hexdigest().encode() + b"\n"

    @property
    def _is_signed_here(self) -> bool:
        """Whether what is kept as signed was signed by the cluster that the node belongs to now."""
        try:
            return self._path(_SIGNED).read_bytes().startswith(self._cluster)
        except OSError:
            return False

    def _load_kept(self, name: str) -> bool:
        """Even one that is due for renewal: it is still trusted, a self-signed one is not."""
        if not self._is_fresh(name, left_over=0.0):
            return False
        try:
            self._context.load_cert_chain(self._path(name))
        except (OSError, ssl.SSLError) as error:
            log.warning("stored certificate %s cannot be used: %s", self._path(name), error)
            self._path(name).unlink(missing_ok=True)
            return False
        return True

    def _load_own(self) -> None:
        if not self._is_fresh(_OWN):
            from podlife.pki.certificates import self_signed

            now = self._clock.now().replace(microsecond=0)
            made = self_signed(
                self._settings.node_name, self._settings.names, now - _CLOCK_SKEW, now + _OWN_LIFETIME
            )
            self._write(_OWN, made)
        self._context.load_cert_chain(self._path(_OWN))

    def _is_fresh(self, name: str, *, left_over: float = _RENEW_AT) -> bool:
        """Whether it is there, and more than this part of its lifetime is left."""
        from podlife.pki.certificates import validity_of

        try:
            begin, end = validity_of(self._path(name).read_bytes())
        except (OSError, ValueError):
            return False
        return end - self._clock.now() > (end - begin) * left_over

    def _path(self, name: str) -> Path:
        return self._settings.folder / name

    def _write(self, name: str, content: bytes) -> None:
        folder = self._settings.folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(folder / name, content)
        except OSError as error:
            raise ConfigError(f"cannot keep the node's certificate in {folder}: {error.strerror}") from None
