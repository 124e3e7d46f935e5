"""Which certificate authorities are trusted: the machine's own, else those of certifi.

libcurl as its wheel brings it looks where the machine that built it had them, so it is always told.
"""

from __future__ import annotations

import os
import ssl
from typing import NamedTuple


class TrustStore(NamedTuple):
    """A file of certificates, a folder of them by hash, or both."""

    file: str | None
    folder: str | None = None


def machine_trust_store() -> TrustStore:
    """As Python finds it: SSL_CERT_FILE and SSL_CERT_DIR, then OpenSSL's places."""
    paths = ssl.get_default_verify_paths()
    file = paths.cafile if paths.cafile and os.path.isfile(paths.cafile) else None
    folder = paths.capath if paths.capath and _has_files(paths.capath) else None
    if file is None and folder is None:
        import certifi  # seldom needed, and it takes longer than all the rest of an engine

        return TrustStore(certifi.where())
    return TrustStore(file, folder)


def _has_files(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return False
