"""The console's files: every view's address opens the page, and no other script can run in it."""

from __future__ import annotations

import re

import pytest

from DocsToKG.Orchestrator.console.files import assets


@pytest.mark.parametrize("path", ["/", "/console", "/console/", "/console/jobs", "/console/job/7", "/console/anything"])
def test_every_address_of_the_console_opens_the_page_without_a_token(client, path):
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.url.path.startswith("/console/")
    [policy] = answer.headers.get_list("content-security-policy")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "frame-ancestors 'none'" in policy


def test_files_are_served_with_their_kind_and_asked_for_again_for_little(client):
    script = client.get("/console/assets/js/main.js")
    assert (script.status_code, script.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    again = client.get("/console/assets/js/main.js", headers={"If-None-Match": script.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["../app.py", "%2e%2e/app.py", "..%2fapp.py", "js/../../app.py", "js", "", "js/none.js", "/etc/passwd"]
)
def test_nothing_beyond_the_folder_is_served(client, path):
    answer = client.get(f"/console/assets/{path}")
    assert answer.status_code == 404 or answer.headers["content-type"].startswith("text/html")
    assert b"import" not in answer.content


def test_the_page_and_its_scripts_hold_no_inline_code_and_name_no_other_host():
    page = assets()["index.html"].content.decode()
    assert not re.findall(r"<script(?![^>]*src=)|\son\w+=|<style|\sstyle=", page)
    for name, asset in assets().items():
        text = asset.content.decode()
        hosts = set(re.findall(r"https?://[^\s\"'`)/]+", text)) - {"http://www.w3.org"}
        assert not hosts, f"{name} names {hosts}"
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in text, f"{name} uses {word}"


def test_every_script_that_is_imported_is_there():
    for name, asset in assets().items():
        for wanted in re.findall(r'from "(\.[^"]+)"|import "(\.[^"]+)"', asset.content.decode()):
            path = (wanted[0] or wanted[1]).removeprefix("./")
            parts = name.split("/")[:-1]
            while path.startswith("../"):
                path, parts = path.removeprefix("../"), parts[:-1]
            assert "/".join([*parts, path]) in assets(), f"{name} imports {path}"
