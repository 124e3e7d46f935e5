"""The key for requests that are signed here comes from where the library for objects takes its own. STO-06"""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from DocsToKG.ContentDownload.storage.credentials import Key, find_key

TOLD = {"AccessKeyId": "ours", "SecretAccessKey": "planted-secret", "Token": "a-token"}
STS = """<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ours</AccessKeyId>
<SecretAccessKey>planted-secret</SecretAccessKey><SessionToken>a-token</SessionToken></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"""
NOWHERE = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"}


class Service(http.server.ThreadingHTTPServer):
    """Every place that hands out keys, on one port."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.spoiled = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(http.server.BaseHTTPRequestHandler):
    server: Service

    def answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.command, self.path, headers))
        status, text = self.page(urlsplit(self.path).path, headers)
        body = ("x" * 1_000_000 if self.server.spoiled else text).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def page(self, path: str, headers: dict[str, str]) -> tuple[int, str]:
        token = headers.get("x-aws-ec2-metadata-token")
        if (self.command, path) == ("PUT", "/latest/api/token"):
            return (200, "one") if "x-aws-ec2-metadata-token-ttl-seconds" in headers else (400, "")
        if path.endswith("/security-credentials/"):
            return (200, "my role\n") if token == "one" else (401, "")
        if path.endswith("/security-credentials/my%20role"):
            return (200, json.dumps(TOLD)) if token == "one" else (401, "")
        if path == "/container":
            return (200, json.dumps(TOLD)) if headers.get("authorization") == "let me in" else (403, "")
        if path == "/":
            asked = parse_qs(urlsplit(self.path).query)
            is_right = asked["WebIdentityToken"] == ["signed words"] and asked["RoleArn"] == ["arn:aws:iam::1:role/x"]
            return (200, STS) if is_right else (403, "")
        return 404, ""

    do_GET = do_PUT = answer  # noqa: N815

    def log_message(self, *words: object) -> None:
        """Nothing."""


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_the_variables_go_first(service: Service) -> None:
    said = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "planted-secret", "AWS_SESSION_TOKEN": "t"}
    assert find_key({**said, "AWS_EC2_METADATA_SERVICE_ENDPOINT": service.url}) == Key("a", "planted-secret", "t")
    assert service.asked == []


def test_a_machine_s_role_is_asked_with_a_token(service: Service) -> None:
    assert find_key({"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{service.url}/"}) == Key(
        "ours", "planted-secret", "a-token"
    )
    assert [method for method, _, _ in service.asked] == ["PUT", "GET", "GET"]


def test_a_container_s_role_is_asked_as_its_file_says(service: Service, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("let me in\n")
    said = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{service.url}/container",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
    }
    assert find_key(said) == Key("ours", "planted-secret", "a-token")


def test_a_web_identity_is_changed_for_a_key(service: Service, tmp_path: Path) -> None:
    (tmp_path / "identity").write_text("signed words\n")
    said = {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "identity"),
        "AWS_ROLE_ARN": "arn:aws:iam::1:role/x",
        "AWS_ENDPOINT_URL_STS": service.url,
    }
    assert find_key(said) == Key("ours", "planted-secret", "a-token")


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/x"},
        {"AWS_WEB_IDENTITY_TOKEN_FILE": "/no/such/file", "AWS_ROLE_ARN": "arn:x"},
        {"AWS_ACCESS_KEY_ID": "half"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "not an address"},
    ],
)
def test_where_nobody_gives_a_key_there_is_none(said: dict[str, str]) -> None:
    assert find_key({**NOWHERE, **said}) is None


def test_a_machine_that_is_told_to_have_no_role_is_not_asked(service: Service) -> None:
    said = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": service.url, "AWS_EC2_METADATA_DISABLED": "true"}
    assert find_key(said) is None
    assert service.asked == []


def test_an_answer_that_never_ends_or_means_nothing_is_passed_over(service: Service) -> None:
    service.spoiled = True
    assert find_key({"AWS_EC2_METADATA_SERVICE_ENDPOINT": service.url}) is None


def test_a_key_that_is_shown_does_not_show_its_secret() -> None:
    assert "planted" not in repr(Key("ours", "planted-secret", "planted-token"))
