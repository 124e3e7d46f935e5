"""The shipped settings, and what a configuration means for a source, a tier and a host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from DocsToKG.ContentDownload.config import config_hash, load_config, to_printable
from DocsToKG.ContentDownload.config.aliases import LONG_NAMES, UnknownSource, canonical_source, long_source
from DocsToKG.ContentDownload.config.explain import SourceStatus, explain
from DocsToKG.ContentDownload.config.models import BucketConfig, ContentDownloadConfig, PolicyConfig
from DocsToKG.ContentDownload.config.rules import (
    all_source_rules,
    host_rules,
    source_rules,
    source_shares,
    tier_plan,
    user_agent,
)
from DocsToKG.core.bucket import Rate

SHIPPED = load_config(environ={})
SECRET = "s3cr3t-Zq9"


def loaded(**overrides: Any) -> ContentDownloadConfig:
    return load_config(None, overrides, environ={})


def test_the_shipped_numbers_are_the_promised_ones() -> None:
    """CFG-08, CFG-11, CFG-12, CFG-14, CFG-17, CFG-19, CFG-30."""
    engine = SHIPPED.orchestrator
    numbers = (engine.max_workers, engine.max_per_resolver, engine.max_per_host, engine.lease_ttl_seconds)
    assert numbers == (8, {}, 4, 600)
    waits = (engine.heartbeat_seconds, engine.max_job_attempts, engine.retry_backoff_seconds, engine.jitter_seconds)
    assert waits == (30, 3, 60, 15)
    assert (SHIPPED.queue.backend, SHIPPED.queue.path, SHIPPED.queue.wal_mode) == (
        "sqlite",
        "state/workqueue.sqlite",
        True,
    )
    cache = SHIPPED.hishel
    assert (cache.enabled, cache.backend, cache.base_path) == (True, "file", "state/hishel-cache")
    assert (cache.ttl_seconds, cache.check_ttl_every_seconds, cache.cacheable_methods) == (2592000, 600, ("GET",))
    assert not any((cache.force_cache, cache.allow_heuristics, cache.allow_stale, cache.always_revalidate))
    assert cache.cache_private
    http = SHIPPED.http
    assert (http.timeout_connect_s, http.timeout_read_s, http.max_connections, http.max_keepalive) == (10, 60, 128, 64)
    download = SHIPPED.download
    assert (download.atomic_write, download.verify_content_length, download.chunk_size_bytes) == (True, True, 1048576)
    assert SHIPPED.storage.root_dir == "data/docs"
    assert SHIPPED.telemetry.sinks == ("csv", "jsonl", "sqlite")


def test_a_source_without_a_slot_limit_may_use_all_workers() -> None:
    """CFG-09: an empty table never means one."""
    assert loaded(workers=12).orchestrator.default_per_resolver is None
    assert loaded(**{"orchestrator.default_per_resolver": 3}).orchestrator.default_per_resolver == 3
    assert loaded(workers=12).orchestrator.leases_held == 64 * 12


def test_the_shipped_tiers_are_in_the_promised_order() -> None:
    """RES-01, with two tiers between them for the sources that came later."""
    assert [(tier.name, tier.parallel, tier.sources) for tier in SHIPPED.tiers] == [
        ("direct_oa", 2, ("unpaywall_pdf", "arxiv_pdf", "pmc_pdf")),
        ("repositories", 2, ("zenodo", "figshare", "biorxiv", "datacite")),
        ("doi_follow", 1, ("doi_redirect_pdf",)),
        (
            "indexes",
            2,
            ("openalex", "crossref", "hal", "osti", "semantic_scholar", "core", "doaj", "openaire", "fatcat", "dspace"),
        ),
        ("landing_scrape", 2, ("landing_scrape_pdf", "europe_pmc_pdf")),
        ("archive", 1, ("wayback_pdf",)),
    ]


@pytest.mark.parametrize(
    ("source", "timeout_s", "retries", "rate", "robots"),
    [
        ("unpaywall_pdf", 10, 3, "10/second", False),
        ("arxiv_pdf", 30, 5, "0.33/second", True),
        ("pmc_pdf", 20, 3, "3/second", True),
    ],
)
def test_the_promised_policies_hold(source: str, timeout_s: float, retries: int, rate: str, robots: bool) -> None:
    """RES-05, RES-06, RES-07."""
    policy = SHIPPED.policies[source]
    assert (policy.timeout_s, policy.max_retries, policy.rate_limit, policy.obey_robots) == (
        timeout_s,
        retries,
        rate,
        robots,
    )


def test_every_source_ships_a_complete_policy() -> None:
    """RES-08: pages obey robots.txt, APIs opt out."""
    rules = all_source_rules(SHIPPED)
    assert set(rules) == set(LONG_NAMES)
    assert all(isinstance(rule.pace, Rate) for rule in rules.values())
    assert {name for name, rule in rules.items() if rule.obey_robots} == {
        "index",
        "arxiv",
        "pmc",
        "doi_redirect",
        "landing",
        "dspace",
    }


def test_arxiv_is_told_who_asks() -> None:
    """RES-06, SEC-03."""
    config = loaded(contact="me@uni.edu")
    assert "mailto:me@uni.edu" in source_rules(config, "arxiv").headers["User-Agent"]
    assert user_agent(config).endswith("(+mailto:me@uni.edu)")
    assert "{" not in user_agent(SHIPPED)
    assert "mailto" not in user_agent(SHIPPED)


def test_names_of_sources_work_both_ways() -> None:
    """CFG-28."""
    for short, long in LONG_NAMES.items():
        assert canonical_source(long) == canonical_source(short) == short
        assert long_source(short) == long_source(long) == long
    with pytest.raises(UnknownSource, match="did you mean 'unpaywall'"):
        canonical_source("unpaywal")


def test_a_policy_is_changed_field_by_field_under_either_name() -> None:
    for name in ("arxiv", "arxiv_pdf"):
        policy = loaded(policies={name: {"timeout_s": 7}}).policies["arxiv_pdf"]
        assert (policy.timeout_s, policy.max_retries, policy.rate_limit) == (7, 5, "0.33/second")


def test_other_spellings_of_a_policy_mean_the_same() -> None:
    """CFG-25."""
    policy = loaded(policies={"pmc_pdf": {"timeout_ms": 1500, "retries_max": 1, "robots_respect": False}}).policies[
        "pmc_pdf"
    ]
    assert (policy.timeout_s, policy.max_retries, policy.obey_robots) == (1.5, 1, False)


@pytest.mark.parametrize(
    ("settings", "attempts"),
    [
        ({}, 4),
        ({"policies": {"unpaywall": {"max_retries": 1}}}, 2),
        ({"resolvers": {"unpaywall": {"retry": {"max_attempts": 7}}}}, 7),
        (
            {"policies": {"unpaywall": {"max_retries": 5}}, "resolvers": {"unpaywall": {"retry": {"max_attempts": 2}}}},
            2,
        ),
    ],
)
def test_retries_and_attempts_say_the_same(settings: dict[str, Any], attempts: int) -> None:
    """CFG-27: n retries are n + 1 attempts, and of two given ones the tighter governs."""
    config = loaded(**settings)
    assert source_rules(config, "unpaywall").retry.max_attempts == attempts
    assert config.resolvers.unpaywall.retry.max_attempts == attempts
    assert config.policies["unpaywall_pdf"].max_retries == attempts - 1


BUCKET = {"capacity": 5, "refill_per_sec": 1.0, "burst": 2}


@pytest.mark.parametrize(
    ("policy", "bucket", "pace"),
    [
        ({}, None, Rate(10, 1)),
        ({"rate_limit": "4/second"}, None, Rate(4, 1)),
        ({}, BUCKET, BucketConfig(**BUCKET)),
        ({}, {**BUCKET, "refill_per_sec": 50}, BucketConfig(capacity=5, refill_per_sec=50, burst=2)),
        ({"rate_limit": "4/second"}, BUCKET, BucketConfig(**BUCKET)),
        ({"rate_limit": "0.5/second"}, BUCKET, Rate(0.5, 1)),
        ({"rate_limit": None}, None, BucketConfig()),
    ],
)
def test_of_a_rate_and_a_bucket_the_tighter_governs(policy: Any, bucket: Any, pace: object) -> None:
    """CFG-16, CFG-27: only what was set by somebody counts; the bucket's default never slows a source with a rate."""
    config = loaded(policies={"unpaywall": policy}, resolvers={"unpaywall": {"rate_limit": bucket}})
    assert source_rules(config, "unpaywall").pace == pace


def test_robots_can_only_be_switched_off_by_name() -> None:
    """SEC-01."""
    assert not source_rules(loaded(**{"robots.enabled": False}), "landing").obey_robots
    assert source_rules(SHIPPED, "landing").obey_robots


def test_the_order_moves_sources_within_their_tier_only() -> None:
    """RES-20."""
    plan = tier_plan(loaded(**{"resolvers.order": ["pmc_pdf", "europe_pmc", "unpaywall"]}))
    assert [tier.sources for tier in plan] == [
        ("pmc", "unpaywall", "arxiv"),
        ("zenodo", "figshare", "biorxiv", "datacite"),
        ("doi_redirect",),
        ("openalex", "crossref", "hal", "osti", "semantic_scholar", "core", "doaj", "openaire", "fatcat", "dspace"),
        ("europe_pmc", "landing"),
        ("wayback",),
    ]


def test_a_source_of_no_tier_joins_one_when_it_is_named() -> None:
    """RES-18."""
    plan = {tier.name: tier.sources for tier in tier_plan(loaded(**{"resolvers.order": "openalex, crossref"}))}
    assert plan["doi_follow"] == ("crossref", "doi_redirect")
    assert "crossref" not in plan["indexes"]
    assert plan["direct_oa"] == ("unpaywall", "arxiv", "pmc")
    own = loaded(tiers=[{"name": "mine", "sources": ["arxiv"]}], resolvers={"order": ["crossref"]})
    assert [tier.sources for tier in tier_plan(own)] == [("crossref", "arxiv")]


def test_a_plan_for_some_sources_has_no_empty_tier() -> None:
    plan = tier_plan(SHIPPED, only={"arxiv", "wayback"})
    assert [(tier.name, tier.sources) for tier in plan] == [("direct_oa", ("arxiv",)), ("archive", ("wayback",))]


def test_every_listed_host_has_a_rate_and_the_default_follows_the_engine() -> None:
    default, hosts = host_rules(loaded(**{"orchestrator.max_per_host": 3}))
    assert default.max_concurrent == 3
    assert all(host.rates for host in [default, *hosts.values()])
    arxiv = hosts["export.arxiv.org"]
    assert (arxiv.max_concurrent, arxiv.burst, arxiv.rates["*"][0].per_second) == (1, 1, pytest.approx(1 / 3))


def test_a_host_can_be_added_without_losing_the_others() -> None:
    _, hosts = host_rules(loaded(limits={"hosts": {"Repo.Org": {"rates": {"*": "1/second, 10/hour"}}}}))
    assert hosts["repo.org"].rates["*"] == (Rate(1, 1), Rate(10, 3600))
    assert "api.crossref.org" in hosts


def test_explain_tells_the_state_of_every_source() -> None:
    """CLI-06, RES-19."""
    config = loaded(**{"resolvers.arxiv.enabled": False, "resolvers.order": ["core"]})
    explanation = explain(config, installed=("unpaywall", "arxiv", "landing", "core"))
    states = {view.name: view.status for tier in explanation.tiers for view in tier.sources}
    assert states["unpaywall"] is SourceStatus.MISSING_CREDENTIAL
    assert states["core"] is SourceStatus.MISSING_CREDENTIAL
    assert states["arxiv"] is SourceStatus.DISABLED
    assert states["pmc"] is SourceStatus.NOT_INSTALLED
    assert states["landing"] is SourceStatus.ENABLED
    assert explanation.order == ("landing",)


def test_explain_says_whether_a_key_is_set_and_never_the_key() -> None:
    """CLI-06, SEC-03."""
    config = loaded(**{"resolvers.core.api_key": "hush-hush", "resolvers.zenodo.api_key": "  "})
    explanation = explain(config, installed=tuple(LONG_NAMES))
    keys = {view.name: view.key for tier in explanation.tiers for view in tier.sources}
    assert (keys["core"], keys["zenodo"], keys["semantic_scholar"], keys["arxiv"]) == (
        "set",
        "optional",
        "optional",
        None,
    )
    assert "hush" not in str(explanation.to_dict())
    blank = explain(loaded(**{"resolvers.core.api_key": " "}), installed=tuple(LONG_NAMES))
    [core] = [view for tier in blank.tiers for view in tier.sources if view.name == "core"]
    assert (core.key, core.status) == ("missing", SourceStatus.MISSING_CREDENTIAL)


def test_a_source_without_a_timeout_of_its_own_gets_that_of_the_budget() -> None:
    """RES-26."""
    config = loaded(**{"budgets.per_source_s": 7})
    assert source_rules(config, "arxiv").timeout_s == 30
    bare = config.model_copy(update={"policies": {**config.policies, "doaj": PolicyConfig(max_retries=1)}})
    assert source_rules(bare, "doaj").timeout_s == 7
    shares = source_shares(bare)
    assert (shares["doaj"], shares["arxiv"]) == (7, 30), "each may make one request as long as it is allowed to be"
    assert source_shares(loaded(**{"budgets.per_source_s": 45}))["arxiv"] == 45


def test_the_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        SHIPPED.http.max_redirects = 3  # type: ignore[misc]


def test_equal_settings_have_equal_hashes_however_they_were_written() -> None:
    """CFG-29."""
    one = load_config(None, {"workers": 4, "http": {"timeout_read_s": 20}}, environ={})
    two = load_config(environ={"DTKG_HTTP__TIMEOUT_READ_S": "20.0", "DOCSTOKG_CONTENT_WORKERS": "4"})
    assert config_hash(one) == config_hash(two)
    assert config_hash(one) != config_hash(SHIPPED)
    assert config_hash(one).startswith("sha256:")
    assert len(config_hash(one)) == 7 + 64


def test_the_hash_knows_whether_a_secret_is_set_but_not_which() -> None:
    """CFG-29."""
    hashes = [config_hash(load_config(environ={"CORE_API_KEY": key})) for key in ("one", "two", "")]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_configuration_read_back_is_the_same() -> None:
    for config in (
        SHIPPED,
        loaded(resolvers={"unpaywall": {"rate_limit": BUCKET}}, policies={"arxiv": {"max_retries": 0}}),
    ):
        again = ContentDownloadConfig.model_validate(config.model_dump())
        assert again == config
        assert config_hash(again) == config_hash(config)


def test_no_printed_form_shows_a_secret() -> None:
    """SEC-04, CFG-29."""
    config = load_config(
        None,
        {
            "queue": {"connection_string": f"postgresql://u:{SECRET}@h/d"},
            "rate_limit": {"redis_url": f"redis://:{SECRET}@h"},
        },
        environ=dict.fromkeys(
            ["CORE_API_KEY", "S2_API_KEY", "DOAJ_API_KEY", "OPENALEX_API_KEY", "HTTPS_PROXY"], SECRET
        ),
    )
    forms = [
        repr(config),
        str(config),
        config.model_dump_json(),
        str(to_printable(config)),
        repr(all_source_rules(config)),
    ]
    forms.append(str(explain(config, installed=LONG_NAMES).to_dict()))
    assert [form for form in forms if SECRET in form] == []
    assert source_rules(config, "core").api_key == SECRET
    assert to_printable(config)["queue"]["connection_string"] == "***"


def models(model: type[BaseModel] = ContentDownloadConfig) -> Iterator[type[BaseModel]]:
    yield model
    for value in vars(model()).values() if model is ContentDownloadConfig else ():
        for item in value if isinstance(value, tuple) else value.values() if isinstance(value, dict) else (value,):
            yield from _models_in(item)


def _models_in(value: object) -> Iterator[type[BaseModel]]:
    if isinstance(value, BaseModel) and not isinstance(value, SecretStr):
        yield type(value)
        for inner in vars(value).values():
            yield from _models_in(inner)


def test_every_setting_is_described_and_every_section_refuses_strangers() -> None:
    """CFG-06, CFG-31."""
    every = {*models(), BucketConfig}
    assert len(every) > 15
    for model in every:
        assert model.model_config["extra"] == "forbid"
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"
