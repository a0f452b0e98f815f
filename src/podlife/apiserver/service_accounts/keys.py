"""The keys of service account tokens, in files that may change while the server runs.

One private key signs. Tokens are verified with its public key and with those of further files, so that a key can be
replaced without invalidating the tokens it has signed: add the old key to the files, then replace the signing key. A
changed file that cannot be read is logged, and the keys read before stay in use.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from podlife.apiserver.authn import file_version
from podlife.errors import ConfigError
from podlife.pki import write_private

if TYPE_CHECKING:
    from podlife.pki.jwt import SigningKey, VerificationKey

log = logging.getLogger(__name__)

T = TypeVar("T")


class ServiceAccountKeys:
    """Nothing is read before the first use: a server without tokens loads no cryptography."""

    def __init__(self, signing_file: Path, key_files: Sequence[Path] = (), *, creates: bool = False) -> None:
        self._signing_file = signing_file
        self._key_files = tuple(key_files)
        self._creates = creates
        self._seen: list[object] = []
        self._signing: SigningKey | None = None
        self._public: Mapping[str, VerificationKey] = {}

    @property
    def signing(self) -> SigningKey:
        return self._refreshed()

    @property
    def public(self) -> Mapping[str, VerificationKey]:
        """By key ID. Another object whenever the keys have changed."""
        self._refreshed()
        return self._public

    def _refreshed(self) -> SigningKey:
        """Read the files if they have changed; raises ConfigError if there are no usable keys yet."""
        files = (self._signing_file, *self._key_files)
        seen = [file_version(each) for each in files]
        if self._signing is not None and seen == self._seen:
            return self._signing
        try:
            signing = self._signing = self._read()
        except (OSError, ValueError) as error:
            if self._signing is None:
                raise ConfigError(f"cannot read the service account keys: {error}") from None
            log.error("cannot read the service account keys, keeping the previous ones: %s", error)
            signing = self._signing
        self._seen = [file_version(each) for each in files]
        return signing

    def _read(self) -> SigningKey:
        from podlife.pki.jwt import load_signing_key, load_verification_keys, make_signing_key

        if self._creates and not self._signing_file.exists():
            self._signing_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(self._signing_file, make_signing_key())
        signing = _load(self._signing_file, load_signing_key)
        public = {signing.public.id: signing.public}
        for path in self._key_files:
            public |= {each.id: each for each in _load(path, load_verification_keys)}
        self._public = public
        return signing


def _load(path: Path, load: Callable[[bytes], T]) -> T:
    try:
        return load(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
