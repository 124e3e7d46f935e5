"""A wrong setting is named with its key, its origin and the nearest right one; a secret never is."""

from __future__ import annotations

import contextlib
import math
import traceback
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError
from tests.examples import examples

from DocsToKG.ContentDownload.config import load_config, load_config_verbose
from DocsToKG.ContentDownload.config.files import MAX_FILE_BYTES, parse_yaml
from DocsToKG.ContentDownload.config.messages import setting_message
from DocsToKG.ContentDownload.errors import ConfigError

SECRET = "s3cr3t-Zq9"


def refusal(tmp_path: Path, text: str, name: str = "content.yaml", **environ: str) -> str:
    """The message with which the file is refused."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path, environ=environ)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        ("http: {user_agnet: x}", "http.user_agnet", "http.user_agent"),
        ("htpp: {user_agent: x}", "htpp", "http"),
        ("user_agent: x", "user_agent", "http.user_agent"),
        ("resolvers: {unpaywal: {enabled: true}}", "resolvers.unpaywal", "resolvers.unpaywall"),
        ("resolvers: {arxiv_pdf: {enabld: true}}", "resolvers.arxiv_pdf.enabld", "resolvers.arxiv_pdf.enabled"),
        ("tiers: [{name: a, paralel: 2, sources: [arxiv]}]", "tiers.0.paralel", "tiers.0.parallel"),
        ("policies: {arxiv: {timeout: 3}}", "policies.arxiv.timeout", "policies.arxiv.timeout_s"),
        ("artifacts: {rot: x}", "artifacts.rot", "artifacts.root"),
    ],
)
def test_an_unknown_key_in_a_file_is_named_with_the_nearest_one(
    tmp_path: Path, text: str, wrong: str, right: str
) -> None:
    """CFG-06."""
    message = refusal(tmp_path, text)
    assert f"content.yaml: {wrong} is not a setting; did you mean {right}?" in message


def test_a_key_like_no_other_gets_the_list_of_those_that_exist(tmp_path: Path) -> None:
    assert "known here: enabled, exempt, ttl_seconds" in refusal(tmp_path, "robots: {zzzzqq: 1}")


def test_a_layout_that_no_store_has_is_refused_when_it_is_read(tmp_path: Path) -> None:
    assert "storage.layout: should be 'policy_path'" in refusal(tmp_path, "storage: {layout: cas}")


def test_an_unknown_variable_is_an_error_with_the_nearest_name() -> None:
    """CFG-07."""
    with pytest.raises(ConfigError, match=r"ROBOTS_OBY is not a setting; did you mean DOCSTOKG_CONTENT_ROBOTS_OBEY\?"):
        load_config(environ={"DOCSTOKG_CONTENT_ROBOTS_OBY": "x"})
    with pytest.raises(ConfigError, match=r"DOCSTOKG_CONTENT_HTTP__USERAGENT .*DOCSTOKG_CONTENT_HTTP__USER_AGENT\?"):
        load_config(environ={"DOCSTOKG_CONTENT_HTTP__USERAGENT": "x"})
    with pytest.raises(ConfigError, match=r"DOCSTOKG_CONTENT_RATE_LIMIT_arxv.*did you mean 'arxiv'"):
        load_config(environ={"DOCSTOKG_CONTENT_RATE_LIMIT_arxv": "1/second"})


def test_an_unknown_old_variable_is_only_a_warning() -> None:
    """CFG-07."""
    loaded = load_config_verbose(environ={"DTKG_HTTP__USERAGENT": "x", "DTKG_RATE_LIMIT_nope": "1/second"})
    assert "DTKG_HTTP__USER_AGENT?" in " ".join(loaded.warnings)
    assert len(loaded.warnings) == 2
    assert loaded.config == load_config(environ={})


def test_each_kind_of_error_is_told_in_words_of_our_own() -> None:
    """None of those that a setting can have leaks the name of a class or the library's own text."""
    shown = {
        "int_parsing": int, "int_from_float": int, "float_parsing": float, "bool_parsing": bool, "string_type": str,
        "list_type": list[int], "tuple_type": tuple[int, ...], "dict_type": dict[str, int],
        "greater_than": Annotated[int, Field(gt=0)], "less_than_equal": Annotated[float, Field(le=0.5)],
        "string_too_long": Annotated[str, Field(max_length=2)],
        "finite_number": Annotated[float, Field(allow_inf_nan=False)],
    }  # fmt: skip
    given = {
        "int_from_float": 1.5,
        "greater_than": 0,
        "string_type": 5,
        "string_too_long": "abc",
        "finite_number": math.inf,
    }
    for kind, form in shown.items():
        with pytest.raises(ValidationError) as caught:
            TypeAdapter(form).validate_python(given.get(kind, "x" if kind != "less_than_equal" else 9))
        [problem] = caught.value.errors()
        assert problem["type"] == kind
        said = setting_message(problem)
        assert not said.startswith(("Input", "unable")), said
        assert "valid" not in said
        assert "{" not in said


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, "http: {bad: 1, timeout_read_s: soon}\nworkers: -3", DOCSTOKG_CONTENT_NOPE="1")
    lines = message.splitlines()
    assert lines[0] == "4 settings are wrong:"
    for part in ("http.bad", "http.timeout_read_s", "orchestrator.max_workers", "DOCSTOKG_CONTENT_NOPE"):
        assert part in message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("hishel: {backend: memcached}", "hishel.backend: should be 'file', 'sqlite', 'redis' or 's3'"),
        ("orchestrator: {lease_ttl_seconds: 30, heartbeat_seconds: 30}", "greater than heartbeat_seconds"),
        ("orchestrator: {max_per_resolver: {unpaywall: 0}}", "at least 1"),
        ("orchestrator: {max_per_resolver: {nowhere: 1}}", "'nowhere' is not a source"),
        ("http: 5", "http: should be a group of settings, written as name: value"),
        ("http: {timeout_read_s: soon}", "http.timeout_read_s: should be a number"),
        ("orchestrator: {max_workers: 0}", "orchestrator.max_workers: should be at least 1"),
        ("orchestrator: {max_workers: 1.5}", "orchestrator.max_workers: should be a whole number"),
        ("robots: {enabled: perhaps}", "robots.enabled: should be true or false"),
        ("tiers: [{name: a, sources: []}]", "tiers.0.sources: should have 1 or more entries"),
        ("version: 2", "version: should be 1"),
        ("tiers: []", "tiers"),
        ("tiers: [{name: a, sources: [arxiv, arxiv_pdf]}]", "names a source twice"),
        ("tiers: [{name: a, sources: [arxiv]}, {name: b, sources: [arxiv]}]", "'arxiv_pdf' is there twice"),
        ("tiers: [{name: a, sources: [arxiv]}, {name: a, sources: [pmc]}]", "tier 'a' is there twice"),
        ("tiers: [{name: a, sources: [arxvi]}]", "did you mean 'arxiv'"),
        ("resolvers: {order: [unpaywall, sci]}", "'sci' is not a source"),
        ("policies: {unpaywall: {timeout_s: 1}, unpaywall_pdf: {timeout_s: 2}}", "the same source; keep one"),
        ("policies: {arxiv: {timeout_s: 1, timeout_ms: 2}}", "the same setting; keep one"),
        ("policies: {arxiv: {custom_headers: {Authorization: x}}}", "looks like a credential"),
        ("policies: {arxiv: {custom_headers: {Host: x}}}", "cannot be set"),
        ('policies: {arxiv: {custom_headers: {Accept: "a\\r\\nb"}}}', "one printable line"),
        ("contact: me@example.com", "your own mail address"),
        ("contact: me", "must be a mail address"),
        ("queue: {backend: postgres}", "queue.connection_string is needed"),
        ("hishel: {backend: redis}", "hishel.redis_url is needed"),
        ("storage: {backend: s3}", "s3_bucket"),
        ("artifacts: {root: ./x, cas_backend: s3}", "disagree"),
        ("limits: {default: {rates: {images: [1/second]}}}", "limits.default.rates.images"),
        ("limits: {rate_factor: .inf}", "limits.rate_factor"),
        ("telemetry: {sinks: [csv, excel]}", "'excel' is not a sink"),
        ('http: {user_agent: "a\\nb"}', "one line"),
        ('resolvers: {core: {base_url: "ftp://x"}}', "must be an http or https address"),
        ('resolvers: {core: {base_url: "https://x/?key=1"}}', "must be an http or https address"),
        ("http: 5", "http"),
        ("resolvers: [1]", "resolvers"),
        ("policies: {arxiv: 5}", "policies.arxiv_pdf"),
        ("[1, 2]", "must hold settings"),
        ("just a text", "must hold settings"),
    ],
)
def test_wrong_values_are_refused_in_readable_words(tmp_path: Path, text: str, part: str) -> None:
    """CFG-06, CFG-10, CFG-24, CFG-27."""
    message = refusal(tmp_path, text)
    assert part in message
    assert "validation error" not in message
    assert "pydantic" not in message


@pytest.mark.parametrize(
    "rate", ["10", "10/", "/second", "10 per second", "0/second", "-1/second", "10/week", "x/second", ""]
)
def test_malformed_rates_are_refused_at_load(tmp_path: Path, rate: str) -> None:
    """CFG-26."""
    assert "policies.arxiv_pdf.rate_limit" in refusal(tmp_path, f'policies: {{arxiv: {{rate_limit: "{rate}"}}}}')
    assert "limits.hosts.a.org.rates" in refusal(
        tmp_path, f'limits: {{hosts: {{a.org: {{rates: {{"*": ["{rate}"]}}}}}}}}'
    )


@pytest.mark.parametrize(
    "rate", ["10/second", "0.33/second", "3/second", "1/3 seconds", "60/minute", "5/hour", "9/day"]
)
def test_rates_are_read_for_every_unit(rate: str) -> None:
    """CFG-26."""
    config = load_config(environ={"DOCSTOKG_CONTENT_RATE_LIMIT_arxiv": rate})
    assert config.policies["arxiv_pdf"].rate_limit == rate


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "name", "part"),
    [
        ("a: 1\na: 2", "f.yaml", "line 2, column 1): the key a is there twice"),
        ("http: {timeout: 1, timeout: 2}", "f.yaml", "the key timeout is there twice"),
        ('{"a": 1, "a": 2}', "f.json", "the key a is there twice"),
        ("a: &x [1]\nb: *x", "f.yaml", "anchors and aliases are not supported"),
        ("a: [1", "f.yaml", "not valid YAML (line"),
        ("a: !!python/object/apply:os.system [ls]", "f.yaml", "not valid YAML"),
        ("workers: " + "9" * 5000, "f.yaml", "makes no sense"),
        ("when: 2020-99-99", "f.yaml", "makes no sense"),
        ("[" * 20_000, "f.yaml", "nested too deeply"),
        ("[" * 20_000, "f.json", "not valid JSON"),
        ('{"a": NaN}', "f.json", "NaN is not a number"),
        ('{"a": }', "f.json", "line 1, column 7"),
        ("#" * (MAX_FILE_BYTES + 1), "f.yaml", "larger than 1 MiB"),
    ],
)
def test_files_that_cannot_be_read_safely_are_refused(tmp_path: Path, text: str, name: str, part: str) -> None:
    message = refusal(tmp_path, text, name)
    assert part in message
    assert name in message


def test_files_that_are_not_there_or_not_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    for path, part in ((tmp_path / "none.yaml", "no such file"), (tmp_path, "cannot be read")):
        with pytest.raises(ConfigError, match=part):
            load_config(path, environ={})
    with pytest.raises(ConfigError, match=r"binary\.yaml: not UTF-8"):
        load_config(tmp_path / "binary.yaml", environ={})


@pytest.mark.parametrize(
    "text",
    [
        f"catalog: {{connection_string: [{SECRET}]}}",
        f"catalog: {{connection_string: {{a: {SECRET}}}}}",
        f"resolvers: {{core: {{api_key: {{{SECRET}: 1}}}}}}",
        f"resolvers: {{core: {{api_key: *{SECRET}}}}}",
        f"resolvers: {{core: {{api_key: '{SECRET}}}}}",
        f"resolvers: {{core: {{api_key: @{SECRET}}}}}",
        f"queue: {{backend: postgres, connection_string: {SECRET}, bad: 1}}",
        f"http: {{proxy: {{https: [{SECRET}]}}}}",
    ],
)
def test_errors_never_show_a_secret(tmp_path: Path, text: str) -> None:
    """SEC-04: nor does the traceback, which Python prints with everything that was chained."""
    path = tmp_path / "content.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path, environ={})
    printed = "".join(traceback.format_exception(caught.value))
    assert SECRET not in str(caught.value)
    assert SECRET not in printed


def test_a_variable_that_is_no_yaml_is_named_without_its_value() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(environ={"DOCSTOKG_CONTENT_WORKERS": f"[{SECRET}"})
    assert "DOCSTOKG_CONTENT_WORKERS" in str(caught.value)
    assert SECRET not in str(caught.value)


@examples(150)
@given(st.text(max_size=80))
def test_any_text_is_either_settings_or_a_plain_refusal(text: str) -> None:
    problem = "not valid YAML"
    try:
        parse_yaml(text)
    except ValueError as error:
        problem = str(error)
    assert problem.startswith("not valid YAML")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_SECTIONS = st.sampled_from(
    ["http", "storage", "artifacts", "workers", "resolvers", "policies", "tiers", "limits", "orchestrator"]
)


@pytest.mark.slow
@examples(150)
@given(st.dictionaries(_SECTIONS | st.text(max_size=8), _VALUES, max_size=4))
def test_any_shape_of_settings_loads_or_is_refused_by_us(shape: dict[str, object]) -> None:
    # Anything but a ConfigError fails the test.
    with contextlib.suppress(ConfigError):
        assert load_config(None, shape, environ={}).tiers
