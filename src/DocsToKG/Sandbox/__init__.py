"""The scholarly web on loopback: index services, publishers and archives of an invented literature, with faults."""

from __future__ import annotations

from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer, sandbox_profile
from DocsToKG.Sandbox.world import World

__all__ = ["Faults", "SandboxServer", "World", "sandbox_profile"]
