"""Tiers of sources: which are asked, in what order, how many at once, and when to stop."""

from DocsToKG.ContentDownload.fallback.orchestrator import FallbackOrchestrator

__all__ = ["FallbackOrchestrator"]
