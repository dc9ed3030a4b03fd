"""The campaign YAML as a frozen model: what a user states once for a whole curve.

Every field is described; the JSON schema in `campaigns/` is generated from this module. The
model holds statements only: what follows from them by the rules is `core/plan.py`'s.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, StrictBool, StrictInt, StrictStr, field_validator, model_validator

from core.campaign_client import Client
from core.campaign_datasets import Datasets
from core.campaign_disclosure import Disclosure
from core.campaign_probes import FingerprintSection
from core.redact import looks_secret
from core.section import Level, Name, PositiveInt, Section

#: Model names that the official checker accepts (checker 1.5.3, `point.yaml: model_name`).
BENCHMARKS = (
    "llama3_1-8b",
    "gpt-oss-120b",
    "deepseek-r1",
    "kimi-k3",
    "qwen3_6-35b-a3b",
    "deepseek-v4_1-flash",
)
#: The benchmark name for a model of the user's own: no official thresholds apply.
CUSTOM = "custom"
#: Benchmarks whose points are multi-turn conversations (§3.2; checker `agentic_targets`).
AGENTIC_BENCHMARKS = ("kimi-k3", "qwen3_6-35b-a3b", "deepseek-v4_1-flash")

#: A variable in an address.
_REFERENCE = re.compile(r"\$\{[^}]*\}")
#: Name of an environment variable.
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Model(Section):
    """The served model."""

    name: StrictStr = Field(min_length=1, description="Model name as the endpoint serves it.")
    tokenizer: StrictStr | None = Field(
        None,
        description="Tokenizer for token metrics: a folder (relative to this file) or a hub name."
        " Without one the client falls back to the model name.",
    )


class Endpoint(Section):
    """The endpoint under test."""

    urls: tuple[StrictStr, ...] = Field(
        min_length=1, description="Base URLs, each with scheme, without the /v1 path."
    )
    api_type: Literal["openai", "openai_completions", "sglang"] = Field(
        "openai", description="Request form the client uses."
    )
    api_key_env: StrictStr | None = Field(
        None,
        description="Name of the environment variable that holds the API key; never the key.",
    )
    health_path: StrictStr = Field(
        "/v1/models", pattern=r"^/", description="Path that answers 200 when the endpoint is up."
    )

    @field_validator("urls")
    @classmethod
    def _urls_are_plain(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        urls = tuple(url.rstrip("/") for url in urls)
        for url in urls:
            parts = _split(url)
            if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("each must be an http:// or https:// URL with a host")
            if parts.username or parts.password or parts.query or parts.fragment:
                raise ValueError(
                    "must not carry credentials, a query or a fragment; name the key's variable in"
                    " endpoint.api_key_env"
                )
            if parts.path.endswith("/v1"):
                raise ValueError("must be without the /v1 path, which the client adds")
        if len(set(urls)) != len(urls):
            raise ValueError("lists a URL twice; remove one")
        return urls

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, name: str | None) -> str | None:
        if name is not None and not _ENV_NAME.fullmatch(name):
            raise ValueError(
                "this is not the name of an environment variable (the value is not shown: it may"
                " be a key); put the key into a variable, e.g. ENDPOINT_API_KEY, and name it here"
            )
        return name


class Instance(Section):
    """The exclusive thing measured: one running copy of the system under test."""

    name: Name = Field(description="Name of the instance; one campaign at a time may load it.")
    accelerators: PositiveInt = Field(
        1,
        le=1_000_000,
        description="Number of accelerators in the instance, for accelerator-hours.",
    )


class Curve(Section):
    """Which levels the curve has (§5.3–5.7)."""

    c_max: Level = Field(description="Declared maximum supported concurrency; above 32.")
    c_min: Level | None = Field(
        None, description="Lowest level to measure; default 1 (levels: auto) or the list's lowest."
    )
    levels: Literal["auto"] | tuple[Level, ...] = Field(
        "auto", description="auto, or the list of concurrency levels."
    )
    spares: Annotated[StrictInt, Field(ge=0, le=25)] = Field(
        1, description="Points beyond the minimum (levels: auto): one withdrawn can't be replaced."
    )
    offline: Literal["elected", "dedicated", "none"] | None = Field(
        None,
        description="Offline result: the C_max point elected, a dedicated run, or none (agentic)."
        " Default: elected, or none on an agentic benchmark.",
    )
    agentic: StrictBool | None = Field(
        None, description="Multi-turn benchmark; default: follows from the benchmark's name."
    )
    c_min_override: Annotated[StrictInt, Field(ge=1, le=32)] | None = Field(
        None, description="Declared lower boundary (§5.4), instead of the lowest point."
    )


class Pilot(Section):
    """A short run ahead of a point whose rate is not known; never a measurement."""

    enabled: StrictBool = Field(True, description="Run pilots; without them rates are guessed.")
    seconds: Annotated[float, Field(strict=True, gt=0)] = Field(
        60.0,
        description="Length of a pilot, and until two requests per stream completed; scaled in a"
        " rehearsal.",
    )
    dataset: Path | None = Field(
        None,
        description="Its dataset; default: the first accuracy dataset. Performance samples are"
        " forbidden outside the timed phase.",
    )


class Run(Section):
    """How points are run."""

    retries: Annotated[StrictInt, Field(ge=0, le=10)] = Field(
        2, description="Further attempts at a point in one run, for failures that can differ."
    )
    order: Literal["boundaries-first", "ascending", "descending", "listed"] = Field(
        "boundaries-first",
        description="boundaries-first: C_max, the lowest level, the other mandatory points, the"
        " rest; or by level; or as listed.",
    )
    duration_margin: Annotated[float, Field(strict=True, ge=1, le=10)] = Field(
        1.25, description="Planned issue time over the region's minimum duration."
    )
    min_passes: PositiveInt = Field(1, description="Fewest passes over the performance dataset.")
    basis: (
        Literal["windowable", "minimum"]
        | dict[
            Literal["ultra_low", "low", "medium", "high", "margin"],
            Literal["windowable", "minimum"],
        ]
        | None
    ) = Field(
        None,
        description="windowable: long enough for a steady-state window; minimum: the minimum"
        " duration; for all points or by region. Default: windowable where the point takes at most"
        " max_point_hours.",
    )
    max_point_hours: Annotated[float, Field(strict=True, gt=0)] = Field(
        6.0, description="Longest point that is made windowable by itself, hours."
    )
    expected_qps: dict[Level, Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]] = (
        Field(
            default_factory=dict,
            description="Expected queries per second by level, used until a rate was measured.",
        )
    )
    pilot: Pilot = Field(default_factory=Pilot, description="How unknown rates are measured.")
    fail_fast: StrictBool = Field(
        True, description="End a run that can no longer become valid, and size it anew."
    )
    budget_hours: Annotated[float, Field(strict=True, gt=0)] | None = Field(
        None,
        description="Most hours of the instance that the campaign may take; points that don't fit"
        " are skipped, mandatory ones last.",
    )
    backoff_s: Annotated[float, Field(strict=True, ge=0)] = Field(
        5.0, description="Pause before the first retry of a point, doubled for each further one."
    )
    recovery_timeout_s: Annotated[float, Field(strict=True, ge=0)] = Field(
        600.0,
        description="How long to wait for a lost endpoint to answer again, and for a records"
        " database that is locked, read-only or away.",
    )
    endpoint_lost_after_s: Annotated[float, Field(strict=True, gt=0)] = Field(
        30.0,
        description="A run is ended when the endpoint's health path could not be reached for this"
        " long.",
    )
    startup_timeout_s: Annotated[float, Field(strict=True, gt=0)] = Field(
        600.0, description="Longest start-up of the client before its first request."
    )
    stall_timeout_s: Annotated[float, Field(strict=True, gt=0)] = Field(
        300.0, description="A client without progress for this long is ended."
    )
    finishing_timeout_s: Annotated[float, Field(strict=True, gt=0)] = Field(
        1800.0, description="Longest tokenizing, scoring and reporting after the last request."
    )
    point_timeout_s: Annotated[float, Field(strict=True, gt=0)] | None = Field(
        None,
        description="Outer limit of one client run; default: three times its predicted length,"
        " or 24 h where the rate is unknown.",
    )
    when_orphaned: Literal["finish", "stop"] = Field(
        "finish", description="What a running measurement does when its orchestrator dies."
    )


class Seeds(Section):
    """The seed set that the curve is bound to (§4.6)."""

    set: StrictStr = Field("A", min_length=1, description="Id of the published seed set.")
    target_cohort: StrictStr = Field(description="Publication cohort, e.g. 2026-12-C0.")
    registry: Path | None = Field(
        None, description="A newer seed-set registry file than the official package's own."
    )


class Records(Section):
    """Where records and run folders lie."""

    folder: Path = Field(Path("pareto-data"), description="Data folder of the campaigns.")
    database: StrictStr | None = Field(
        None, description="SQLAlchemy URL; default: SQLite, pareto.db in the data folder."
    )
    runs: Path | None = Field(None, description="Run folders; default: runs in the data folder.")


class Notify(Section):
    """Who is told what happens."""

    addresses: tuple[StrictStr, ...] = Field(
        (),
        description="Apprise addresses, e.g. slack://${SLACK_PATH}; secrets as ${VAR}, filled in"
        " from the environment when a message is sent. `pareto notify-test FILE` tries them.",
    )
    when: tuple[Literal["failed", "drift", "finished", "stalled"], ...] = Field(
        ("failed", "drift", "finished", "stalled"),
        description="What is told: a point failed, the system changed, the campaign ended, a client"
        " made no progress.",
    )

    @field_validator("addresses")
    @classmethod
    def _addresses_are_without_secrets(cls, addresses: tuple[str, ...]) -> tuple[str, ...]:
        for number, address in enumerate(addresses, start=1):
            if looks_secret(_REFERENCE.sub("", address)):
                raise ValueError(
                    f"address {number} holds a secret (the value is not shown); put it into a"
                    " variable and write ${NAME} in its place"
                )
            if "://" not in address and not _REFERENCE.match(address):
                raise ValueError(
                    f"address {number} is no Apprise address; write scheme://…, or ${{NAME}}"
                )
        return addresses


class Rehearsal(Section):
    """Marks the campaign as a rehearsal: never a measurement."""

    time_scale: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        description="Factor on every minimum duration, e.g. 0.005."
    )


class Campaign(Section):
    """Everything needed for one curve."""

    campaign: Name = Field(description="Name: letters, digits, - and _.")
    # The names come from the official package, at run time only: a type checker can't know them.
    benchmark: Literal[(*BENCHMARKS, CUSTOM)] = Field(  # type: ignore[valid-type]  # as said
        description="Canonical model name of the benchmark, or custom."
    )
    model: Model = Field(description="The served model.")
    endpoint: Endpoint = Field(description="The endpoint under test.")
    instance: Instance = Field(description="The exclusive thing measured.")
    datasets: Datasets = Field(description="What is sent to the endpoint.")
    curve: Curve = Field(description="Which levels the curve has.")
    run: Run = Field(default_factory=Run, description="How points are run.")
    seeds: Seeds = Field(description="The seed set that the curve is bound to.")
    client: Client = Field(description="The official client.")
    records: Records = Field(
        default_factory=Records, description="Where records and run folders lie."
    )
    fingerprint: FingerprintSection = Field(
        default_factory=FingerprintSection,
        description="What must not change across the curve, beside what is always looked at.",
    )
    notify: Notify = Field(default_factory=Notify, description="Who is told what happens.")
    disclosure: Disclosure = Field(
        default_factory=Disclosure,
        description="What a submission tells beside its measurements (docs/package.md).",
    )
    rehearsal: Rehearsal | None = Field(
        None, description="Present only in a rehearsal: shortens the minimum durations."
    )

    @model_validator(mode="after")
    def _targets_are_the_users_only_for_custom(self) -> Campaign:
        problems = []
        for index, dataset in enumerate(self.datasets.accuracy):
            if self.benchmark == CUSTOM and not dataset.targets:
                problems.append(
                    f"datasets.accuracy[{index}]: a custom benchmark needs targets,"
                    " e.g. targets: {score: 0.9}"
                )
            if self.benchmark != CUSTOM and dataset.targets:
                problems.append(
                    f"datasets.accuracy[{index}].targets: {self.benchmark} takes its targets from"
                    " the official checker; remove targets"
                )
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def agentic(self) -> bool:
        """Whether the curve is of a multi-turn benchmark."""
        declared = self.curve.agentic
        return self.benchmark in AGENTIC_BENCHMARKS if declared is None else declared

    @property
    def offline(self) -> Literal["elected", "dedicated", "none"]:
        """How the Offline result is satisfied (§5.7)."""
        return self.curve.offline or ("none" if self.agentic else "elected")


def _split(url: str) -> SplitResult | None:
    """The parts of a URL; None if it can't be one, or if its port is no port."""
    try:
        parts = urlsplit(url)
        is_possible = parts.port != 0
    except ValueError:
        return None
    return parts if is_possible else None
