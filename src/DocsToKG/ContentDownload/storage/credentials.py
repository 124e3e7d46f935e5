"""The key that the AWS_* variables or the machine's role give: the same places, in the same order, as for objects.

The library for objects finds its key by itself and does not hand it out, so the few requests that it does not know need
one found here: variables, a web identity (EKS, OIDC), a container's role (ECS, EKS), a machine's role (EC2). Promises:
each place answers within seconds or is passed over; an answer is bounded; no key stands in an error.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

_WAIT_S = 2.0
_LARGEST_ANSWER = 64 * 1024
_CONTAINERS = "http://169.254.170.2"
_MACHINE = "http://169.254.169.254"
_ROLES = "/latest/meta-data/iam/security-credentials/"


@dataclass(frozen=True, slots=True)
class Key:
    """What requests are signed with. It is shown by name only."""

    name: str
    secret: str
    token: str = ""

    def __repr__(self) -> str:
        return f"Key({self.name!r})"


# A place that is not there, or answers something else than a key.
_NO_KEY = (OSError, ValueError, LookupError, TypeError, RecursionError, http.client.HTTPException)


def find_key(environment: Mapping[str, str] | None = None) -> Key | None:
    """The first that is there; None when there is none."""
    said = os.environ if environment is None else environment
    places: tuple[Callable[[Mapping[str, str]], Key | None], ...] = (_variables, _identity, _container, _machine)
    for place in places:
        with contextlib.suppress(*_NO_KEY):
            if (key := place(said)) is not None:
                return key
    return None


def _variables(said: Mapping[str, str]) -> Key | None:
    name, secret = said.get("AWS_ACCESS_KEY_ID"), said.get("AWS_SECRET_ACCESS_KEY")
    return Key(name, secret, said.get("AWS_SESSION_TOKEN", "")) if name and secret else None


def _identity(said: Mapping[str, str]) -> Key | None:
    """A signed statement of who we are, changed for a key at the security token service."""
    file, role = said.get("AWS_WEB_IDENTITY_TOKEN_FILE"), said.get("AWS_ROLE_ARN")
    if not file or not role:
        return None
    region = said.get("AWS_REGION") or said.get("AWS_DEFAULT_REGION") or "us-east-1"
    service = said.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.amazonaws.com"
    asked = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": role,
        "RoleSessionName": said.get("AWS_ROLE_SESSION_NAME") or "docstokg",
        "WebIdentityToken": Path(file).read_text("utf-8").strip(),
    }
    words = "&".join(f"{name}={quote(value, safe='')}" for name, value in asked.items())
    text = ask(f"{service.rstrip('/')}/?{words}")
    return Key(_field(text, "AccessKeyId"), _field(text, "SecretAccessKey"), _field(text, "SessionToken"))


def _container(said: Mapping[str, str]) -> Key | None:
    relative, full = said.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), said.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if not relative and not full:
        return None
    token = said.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    if file := said.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        token = Path(file).read_text("utf-8").strip()
    return _told(ask(full or f"{_CONTAINERS}{relative}", {"authorization": token} if token else {}))


def _machine(said: Mapping[str, str]) -> Key | None:
    """Version 2 of the metadata service, which hands out a token first."""
    if said.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return None
    service = said.get("AWS_METADATA_ENDPOINT") or said.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _MACHINE
    service = service.rstrip("/")
    ttl = {"x-aws-ec2-metadata-token-ttl-seconds": "600"}
    headers = {"x-aws-ec2-metadata-token": ask(f"{service}/latest/api/token", ttl, method="PUT").strip()}
    role = ask(f"{service}{_ROLES}", headers).split("\n")[0].strip()
    return _told(ask(f"{service}{_ROLES}{quote(role, safe='')}", headers)) if role else None


def _told(text: str) -> Key:
    said = json.loads(text)
    return Key(str(said["AccessKeyId"]), str(said["SecretAccessKey"]), str(said.get("Token") or ""))


def _field(text: str, name: str) -> str:
    found = re.search(f"<{name}>([^<]+)</{name}>", text)
    if found is None:
        raise ValueError(f"no {name}")
    return found[1].strip()


def ask(url: str, headers: Mapping[str, str] | None = None, *, method: str = "GET") -> str:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    with contextlib.closing(kind(parts.hostname or "", parts.port, timeout=_WAIT_S)) as connection:
        connection.request(method, path, headers={"accept": "*/*", **(headers or {})})
        answer = connection.getresponse()
        text = answer.read(_LARGEST_ANSWER).decode("utf-8", "replace")
    if answer.status != 200:
        raise ValueError(f"status {answer.status}")
    return text
