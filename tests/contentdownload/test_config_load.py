"""Where settings come from and which one holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.config import load_config, load_config_verbose
from DocsToKG.ContentDownload.config.loader import set_user_value
from DocsToKG.ContentDownload.errors import ConfigError

DEVELOPMENT = """\
storage:
  backend: sqlite
  path: ./data/catalog.db
artifacts:
  root: ./data/artifacts
  cas_enabled: false
workers: 4
http:
  timeout: 15
  cache_enabled: true
"""
PRODUCTION = """\
storage:
  backend: postgres
  connection_string: postgresql://user:pass@host:5432/catalog
  pool_size: 20
artifacts:
  root: s3://bucket/artifacts
  cas_enabled: true
  cas_backend: s3
workers: 64
http:
  timeout: 30
  cache_enabled: true
  cache_backend: redis
rate_limit:
  backend: redis
  redis_url: redis://host:6379/0
"""
CACHE_GUIDE = """\
hishel:
  enabled: true
  backend: file               # file | sqlite | redis | s3
  base_path: state/hishel-cache
  ttl_seconds: 2592000        # at-rest storage TTL (not RFC freshness)
  check_ttl_every_seconds: 600

  # RFC controller knobs
  force_cache: false
  allow_heuristics: false
  allow_stale: false
  always_revalidate: false
  cache_private: true
  cacheable_methods: ["GET"]
http:
  user_agent: "DocsToKG/ContentDownload (+mailto:data@example.org)"
  timeout_connect_s: 10
  timeout_read_s: 60
resolvers:
  order: ["unpaywall","crossref","landing","wayback"]
  unpaywall:
    enabled: true
    retry: { max_attempts: 4, retry_statuses: [429,500,502,503,504], base_delay_ms: 200, max_delay_ms: 4000, jitter_ms: 100 }
    rate_limit: { capacity: 5, refill_per_sec: 1.0, burst: 2 }
download:
  atomic_write: true
  verify_content_length: true
  chunk_size_bytes: 1048576
"""  # noqa: E501 - the block as it is published


def write(folder: Path, text: str, name: str = "content.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def workers(path: Path | None = None, overrides: dict[str, Any] | None = None, **environ: str) -> int:
    return load_config(path, overrides, environ=environ).orchestrator.max_workers


def test_each_level_beats_the_ones_below_it(tmp_path: Path) -> None:
    """CFG-01, CFG-03: one key set at every level, taken away from the top."""
    own = write(tmp_path, "orchestrator: {max_workers: 2}", "own.yaml")
    file = write(tmp_path, "orchestrator: {max_workers: 3}")
    old, new = {"DTKG_ORCHESTRATOR__MAX_WORKERS": "4"}, {"DOCSTOKG_CONTENT_ORCHESTRATOR__MAX_WORKERS": "5"}
    top = {"orchestrator": {"max_workers": 6}}

    def held(path: Path | None, user_file: Path | None, environ: dict[str, str], overrides: Any) -> int:
        return load_config(path, overrides, environ=environ, user_file=user_file).orchestrator.max_workers

    seen = [
        held(None, None, {}, None),
        held(None, own, {}, None),
        held(file, own, {}, None),
        held(file, own, old, None),
        held(file, own, old | new, None),
        held(file, own, old | new, top),
    ]
    assert seen == [8, 2, 3, 4, 5, 6]


def test_the_order_of_variables_does_not_matter() -> None:
    pairs = {"DOCSTOKG_CONTENT_WORKERS": "5", "DTKG_WORKERS": "4"}
    assert workers(**pairs) == workers(**dict(reversed(pairs.items()))) == 5


def test_the_full_name_of_a_setting_beats_its_short_one() -> None:
    assert workers(DOCSTOKG_CONTENT_WORKERS="5", DOCSTOKG_CONTENT_ORCHESTRATOR__MAX_WORKERS="7") == 7


@pytest.mark.parametrize("prefix", ["DOCSTOKG_CONTENT_", "DTKG_"])
@pytest.mark.parametrize(
    ("name", "text", "key", "expected"),
    [
        ("WORKERS", "16", "orchestrator.max_workers", 16),
        ("TIMEOUT", "30", "http.timeout_read_s", 30.0),
        ("ROBOTS_OBEY", "false", "robots.enabled", False),
        ("CACHE_ENABLED", "false", "hishel.enabled", False),
        ("RATE_LIMIT_arxiv", "0.2/second", "policies.arxiv_pdf.rate_limit", "0.2/second"),
        ("RATE_LIMIT_ARXIV_PDF", "0.2/second", "policies.arxiv_pdf.rate_limit", "0.2/second"),
        ("HTTP__USER_AGENT", "Mine/1.0", "http.user_agent", "Mine/1.0"),
        ("TELEMETRY__SINKS", "csv, jsonl", "telemetry.sinks", ("csv", "jsonl")),
        (
            "RESOLVERS__UNPAYWALL__RETRY__RETRY_STATUSES",
            "429,503",
            "resolvers.unpaywall.retry.retry_statuses",
            (429, 503),
        ),
        ("ORCHESTRATOR__MAX_PER_RESOLVER__UNPAYWALL", "2", "orchestrator.max_per_resolver", {"unpaywall": 2}),
        ("ORCHESTRATOR__MAX_PER_RESOLVER", '{"arxiv_pdf": 1}', "orchestrator.max_per_resolver", {"arxiv": 1}),
        ("RATE_LIMIT__BACKEND", "local", "rate_limit.backend", "local"),
    ],
)
def test_settings_come_from_the_environment(prefix: str, name: str, text: str, key: str, expected: object) -> None:
    """CFG-02 to CFG-05: both prefixes, nested names, short names, rates by source."""
    value: Any = load_config(environ={prefix + name: text})
    for part in key.split("."):
        value = value[part] if isinstance(value, dict) else getattr(value, part)
    assert value == expected


@pytest.mark.parametrize("name", ["DOCSTOKG_CONTENT_CONFIG", "DTKG_CONFIG"])
def test_the_file_may_be_named_by_the_environment(tmp_path: Path, name: str) -> None:
    """CFG-07: the two reserved variables."""
    assert workers(**{name: str(write(tmp_path, "workers: 9"))}) == 9


def test_a_given_file_beats_the_one_in_the_environment(tmp_path: Path) -> None:
    named = write(tmp_path, "workers: 9", "named.yaml")
    assert workers(write(tmp_path, "workers: 3"), DOCSTOKG_CONTENT_CONFIG=str(named)) == 3


def test_an_empty_variable_is_not_set() -> None:
    assert workers(DOCSTOKG_CONTENT_WORKERS="") == 8


@pytest.mark.parametrize(
    ("name", "source", "field"),
    [
        ("CORE_API_KEY", "core", "api_key"),
        ("S2_API_KEY", "semantic_scholar", "api_key"),
        ("DOAJ_API_KEY", "doaj", "api_key"),
        ("OPENALEX_API_KEY", "openalex", "api_key"),
    ],
)
def test_credentials_come_under_their_usual_names(name: str, source: str, field: str) -> None:
    """CFG-32. A key of digits only stays a text."""
    config = load_config(environ={name: "0123456"})
    assert getattr(getattr(config.resolvers, source), field).get_secret_value() == "0123456"


def test_the_unpaywall_address_and_proxies_come_under_their_usual_names() -> None:
    environ = {"UNPAYWALL_EMAIL": "me@uni.edu", "HTTPS_PROXY": "http://u:p@proxy:3128", "NO_PROXY": "a.org,b.org"}
    config = load_config(environ=environ)
    assert config.resolvers.unpaywall.email == "me@uni.edu"
    assert config.http.proxy.mapping() == {"https_proxy": "http://u:p@proxy:3128", "no_proxy": "a.org,b.org"}


def test_the_development_shape_loads_unchanged(tmp_path: Path) -> None:
    """CFG-20, CFG-22."""
    config = load_config(write(tmp_path, DEVELOPMENT), environ={})
    assert (config.catalog.backend, config.catalog.path, config.queue.backend) == (
        "sqlite",
        "./data/catalog.db",
        "sqlite",
    )
    assert (config.storage.backend, config.storage.root_dir, config.storage.cas_enabled) == (
        "fs",
        "./data/artifacts",
        False,
    )
    assert (config.orchestrator.max_workers, config.hishel.enabled) == (4, True)
    assert (config.http.timeout_read_s, config.http.timeout_connect_s) == (15, 10)


def test_the_production_shape_loads_unchanged(tmp_path: Path) -> None:
    """CFG-21, CFG-22."""
    config = load_config(write(tmp_path, PRODUCTION), environ={})
    assert (config.catalog.backend, config.catalog.pool_size, config.queue.backend) == ("postgres", 20, "postgres")
    for section in (config.catalog, config.queue):
        assert section.connection_string is not None
        assert section.connection_string.get_secret_value() == "postgresql://user:pass@host:5432/catalog"
    assert (config.storage.backend, config.storage.s3_bucket, config.storage.s3_prefix) == ("s3", "bucket", "artifacts")
    assert (config.hishel.backend, config.rate_limit.backend) == ("redis", "redis")
    # The cache uses the one Redis that is named.
    assert config.hishel.redis_url == config.rate_limit.redis_url


def test_the_blocks_of_the_cache_guide_load_unchanged(tmp_path: Path) -> None:
    """CFG-12, CFG-15, CFG-16, CFG-17."""
    config = load_config(write(tmp_path, CACHE_GUIDE), environ={})
    assert config.resolvers.order == ("unpaywall", "crossref", "landing", "wayback")
    assert config.http.user_agent == "DocsToKG/ContentDownload (+mailto:data@example.org)"
    assert config.resolvers.unpaywall.rate_limit is not None


def test_one_timeout_lowers_the_connect_timeout_but_never_raises_it() -> None:
    """CFG-23, also when the two are set in different places."""
    short = load_config(None, {"http": {"timeout_connect_s": 8}}, environ={"DOCSTOKG_CONTENT_TIMEOUT": "5"}).http
    long = load_config(environ={"DOCSTOKG_CONTENT_TIMEOUT": "300"}).http
    assert (short.timeout_read_s, short.timeout_connect_s) == (5, 5)
    assert (long.timeout_read_s, long.timeout_connect_s) == (300, 10)


def test_two_spellings_of_one_setting_must_agree(tmp_path: Path) -> None:
    path = write(tmp_path, "workers: 4\norchestrator: {max_workers: 8}")
    with pytest.raises(ConfigError, match=r"workers and orchestrator\.max_workers are the same setting"):
        load_config(path, environ={})
    assert workers(write(tmp_path, "workers: 4\norchestrator: {max_workers: 4}")) == 4


def test_json_files_load_like_yaml(tmp_path: Path) -> None:
    assert workers(write(tmp_path, json.dumps({"workers": 5}), "content.json")) == 5


def test_empty_files_and_empty_sections_change_nothing(tmp_path: Path) -> None:
    shipped = load_config(environ={})
    for text in ("", "# nothing\n", "http:\nresolvers:\n  unpaywall:\n", "{}"):
        assert load_config(write(tmp_path, text), environ={}) == shipped


def test_overrides_may_be_dotted_and_none_means_not_given() -> None:
    assert workers(overrides={"orchestrator.max_workers": 5, "http.timeout_read_s": None}) == 5


def test_origins_say_where_each_setting_was_set(tmp_path: Path) -> None:
    path = write(tmp_path, "workers: 4\nhttp: {timeout: 3}")
    loaded = load_config_verbose(path, {"robots.enabled": False}, environ={"DTKG_HTTP__USER_AGENT": "x"})
    assert loaded.origins["orchestrator.max_workers"] == str(path)
    assert loaded.origins["http.user_agent"] == "DTKG_HTTP__USER_AGENT"
    assert loaded.origins["robots.enabled"] == "command line"
    assert "http.max_redirects" not in loaded.origins


def test_the_user_file_is_found_below_the_home(tmp_path: Path) -> None:
    for environ, place in (({"HOME": str(tmp_path)}, ".config"), ({"XDG_CONFIG_HOME": str(tmp_path / "x")}, "x")):
        folder = tmp_path / place / "docstokg"
        folder.mkdir(parents=True)
        write(folder, "contact: me@uni.edu")
        assert load_config(environ=environ).contact == "me@uni.edu"


def test_a_user_setting_is_written_whole_private_and_beside_the_others(tmp_path: Path) -> None:
    own = tmp_path / "deep" / "content.yaml"
    set_user_value("contact", "me@uni.edu", user_file=own)
    set_user_value("http.timeout_read_s", "20", user_file=own)
    config = load_config(environ={}, user_file=own)
    assert (config.contact, config.http.timeout_read_s) == ("me@uni.edu", 20)
    assert own.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in own.parent.iterdir()] == ["content.yaml"]


@pytest.mark.parametrize(
    ("key", "value"), [("contact", "nobody"), ("htp.timeout", "3"), ("http", "3"), ("workers", "[1"), ("workers", "0")]
)
def test_a_bad_user_setting_leaves_the_file_as_it_was(tmp_path: Path, key: str, value: str) -> None:
    own = write(tmp_path, "contact: me@uni.edu\n")
    with pytest.raises(ConfigError):
        set_user_value(key, value, user_file=own)
    assert own.read_text(encoding="utf-8") == "contact: me@uni.edu\n"


def test_without_a_home_the_user_is_told_what_to_set() -> None:
    with pytest.raises(ConfigError, match="XDG_CONFIG_HOME"):
        set_user_value("contact", "me@uni.edu", environ={})
