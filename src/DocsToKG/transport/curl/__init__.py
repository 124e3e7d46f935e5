"""libcurl behind the `Engine` protocol: connections, TLS and HTTP/2 are its, addresses and limits are judged here."""

from DocsToKG.transport.curl.engine import CurlEngine

__all__ = ["CurlEngine"]
