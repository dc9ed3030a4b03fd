"""The campaign YAML as a frozen model: what a user states once for a whole curve.

Every field is described; the JSON schema in `campaigns/` is generated from this module. The
model holds statements only: what follows from them by the rules is `core/plan.py`'s.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from core.campaign_disclosure import Disclosure
from core.redact import is_secret_key, looks_secret
from core.section import Section

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

#: Datasets of the client's own, which it fetches by name (client at ea33275,
#: `dataset_manager/predefined`). It ignores the path of an entry that is named like one.
CLIENT_DATASETS = (
    "agentic_inference_conversations",
    "aime25",
    "bfcl_v4",
    "cnn_dailymail",
    "gpqa",
    "legacy_mlperf_deepseek_r1",
    "livecodebench",
    "open_orca",
    "random",
    "shopify_product_catalogue",
    "shopify_product_catalogue_8k",
    "swe_bench",
)
#: What the client calls the timed phase where it needs a dataset's name.
_TIMED_PHASE = "performance"

#: Keys of the client's YAML that follow from the plan; `client.overrides` may not set them.
PLANNED_KEYS = (
    "name",
    "type",
    "report_dir",
    "datasets",
    "timeout",
    "audit",
    "submission_ref",
    "benchmark_mode",
    "model_params.name",
    "model_params.tokenizer_name",
    "model_params.streaming",
    "endpoint_config.endpoints",
    "endpoint_config.api_key",
    "endpoint_config.api_type",
    "settings.load_pattern",
    "settings.runtime",
    "settings.client.stream_all_chunks",
    "settings.timeouts.run_timeout_s",
)

#: Sections of the client's YAML that the plan writes into.
_CLIENT_SECTIONS = ("model_params", "settings", "settings.client", "endpoint_config")

#: A variable in an address.
_REFERENCE = re.compile(r"\$\{[^}]*\}")
#: Name of an environment variable.
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: A name that is safe as a folder name and in a Prefect tag.
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"

#: A dataset's name, `::` and all: the client has presets such as cnn_dailymail::llama3_8b.
_DATASET_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$"

Name = Annotated[StrictStr, Field(pattern=_NAME)]
DatasetName = Annotated[StrictStr, Field(pattern=_DATASET_NAME)]
Number = Annotated[float, Field(strict=True)]
PositiveInt = Annotated[StrictInt, Field(ge=1)]
Level = Annotated[StrictInt, Field(ge=1, le=10_000_000)]


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


class Dataset(Section):
    """What both kinds of dataset have in common."""

    path: Path | None = Field(
        None,
        description="Dataset file (.jsonl, .json, .csv or .parquet); without one the client"
        " resolves the name itself (e.g. cnn_dailymail::llama3_8b) and rows is needed.",
    )
    name: DatasetName = Field("performance", description="Name in the client's configuration.")
    rows: PositiveInt | None = Field(
        None,
        description="Number of rows; checked against the file before any load. An official"
        " benchmark has its own.",
    )
    settings: dict[str, Any] = Field(
        default_factory=dict,
        description="Further keys of the client's dataset entry, e.g. format or parser.",
    )

    @model_validator(mode="after")
    def _path_counts(self) -> Self:
        if self.path is not None and self.name.partition("::")[0] in CLIENT_DATASETS:
            raise ValueError(
                "name: is a dataset of the client's own, for which it ignores the path; take"
                " another name, or remove path"
            )
        return self

    @model_validator(mode="after")
    def _size_is_known(self) -> Self:
        if self.path is None and self.rows is None:
            raise ValueError("needs a path, or rows if the client resolves the name itself")
        return self


class PerformanceDataset(Dataset):
    """The dataset of the timed phase."""


class Bound(Section):
    """The accepted range of an accuracy metric."""

    min: Number | None = Field(None, description="Lowest accepted value.")
    max: Number | None = Field(None, description="Highest accepted value.")

    @model_validator(mode="after")
    def _bounds_something(self) -> Bound:
        if self.min is None and self.max is None:
            raise ValueError("needs min, max or both; without them every score would pass")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"no score is at least {self.min:g} and at most {self.max:g}")
        return self


class AccuracyDataset(Dataset):
    """A dataset of the scored phase, with ground truths as text."""

    name: DatasetName = Field("accuracy", description="Name in the client's configuration.")
    scorer: dict[str, Any] = Field(
        default_factory=dict,
        description="The client's accuracy_config: eval_method, ground_truth, extractor,"
        " num_repeats, … Needed, but for the datasets of an official benchmark, whose preset has"
        " it (docs/presets.md).",
    )
    targets: dict[str, Bound | Number] = Field(
        default_factory=dict,
        description="Accepted metric values for a custom benchmark: a lower bound or min and max;"
        " official benchmarks take theirs from the official checker.",
    )

    @model_validator(mode="after")
    def _is_scored(self) -> Self:
        if "scorer" not in self.model_fields_set:
            raise ValueError(
                "needs a scorer, the client's accuracy_config; a dataset of an official benchmark"
                " has one if its name or file name says which it is (docs/presets.md)"
            )
        return self

    @field_validator("scorer")
    @classmethod
    def _repeats_are_a_count(cls, scorer: dict[str, Any]) -> dict[str, Any]:
        repeats = scorer.get("num_repeats", 1)
        if type(repeats) is not int or repeats < 1:
            raise ValueError("num_repeats: must be a whole number of 1 or more")
        return scorer

    @property
    def repeats(self) -> int:
        """How often each row is scored."""
        return int(self.scorer.get("num_repeats", 1))

    @property
    def bounds(self) -> dict[str, tuple[float | None, float | None]]:
        """Targets as (lowest, highest) accepted value by metric."""
        return {
            metric: (bound.min, bound.max) if isinstance(bound, Bound) else (bound, None)
            for metric, bound in self.targets.items()
        }


class Datasets(Section):
    """What is sent to the endpoint."""

    performance: PerformanceDataset = Field(description="Dataset of the timed phase.")
    accuracy: tuple[AccuracyDataset, ...] = Field(
        (),
        description="Datasets of the accuracy run, scored at the mandatory points. Default: those"
        " of an official benchmark; [] for none.",
    )

    @model_validator(mode="after")
    def _names_differ(self) -> Datasets:
        # The client's own dataset may serve both phases under its one name.
        timed = self.performance.name if self.performance.path is not None else _TIMED_PHASE
        names = [timed, *(d.name for d in self.accuracy)]
        if len(set(names)) != len(names):
            raise ValueError(f"the dataset names must differ, not {', '.join(names)}")
        return self


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


class Client(Section):
    """The official client."""

    command: tuple[StrictStr, ...] = Field(
        min_length=1,
        description="The client's command as a list, e.g. [uv, run, --project, ~/endpoints,"
        " inference-endpoint].",
    )
    overrides: dict[str, Any] = Field(
        default_factory=dict,
        description="Merged into the client's YAML at every point, e.g. model_params: {…}.",
    )
    steady_state_command: tuple[StrictStr, ...] | None = Field(
        None,
        min_length=1,
        description="The client's detector of steady state as a list, e.g. [uv, run, --project,"
        " ~/endpoints, python, -m, inference_endpoint.metrics.steady_state_diagnostics]. It is"
        " given a copy of the run folder, and prints JSON or writes steady_state.json into it.",
    )

    @field_validator("overrides")
    @classmethod
    def _overrides_are_free(cls, overrides: dict[str, Any]) -> dict[str, Any]:
        problems = []
        for path in _paths(overrides):
            if is_secret_key(path.rsplit(".", 1)[-1]) and "tokenizer" not in path:
                problems.append(
                    f"{path}: looks like a secret; name its variable in endpoint.api_key_env"
                )
            if path in PLANNED_KEYS:
                problems.append(f"{path}: follows from the plan and can't be overridden; remove it")
            if path in _CLIENT_SECTIONS and not isinstance(_at(overrides, path), dict):
                problems.append(f"{path}: is a section of the client's YAML; write {path}: {{…}}")
        if problems:
            raise ValueError("\n".join(problems))
        return overrides


class Probe(Section):
    """Something of the user's own that must not change across the curve."""

    name: Name = Field(description="Name of the probe, e.g. driver.")
    command: tuple[StrictStr, ...] | None = Field(
        None,
        min_length=1,
        description="A command as a list, never through a shell; what it prints is kept.",
    )
    http: StrictStr | None = Field(
        None, pattern=r"^/", description="A path that every URL of the endpoint is asked for."
    )
    file: Path | None = Field(None, description="A file; its digest is kept.")
    timeout_s: Annotated[float, Field(strict=True, gt=0, le=60)] = Field(
        10.0, description="Longest time that it may take, seconds."
    )
    max_bytes: Annotated[StrictInt, Field(ge=1, le=1 << 20)] = Field(
        65_536, description="Most that it may print or send."
    )
    volatile: tuple[StrictStr, ...] = Field(
        (), description="Patterns (Python's re) of what differs each time; cut out line by line."
    )
    identity: StrictBool = Field(
        False,
        description="Changes when the server restarts, e.g. a boot time: tells instances apart"
        " instead of systems.",
    )

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if [self.command, self.http, self.file].count(None) != 2:  # noqa: PLR2004 - of three
            raise ValueError("needs exactly one of command, http and file")
        return self

    @field_validator("volatile")
    @classmethod
    def _patterns_are_patterns(cls, volatile: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in volatile:
            try:
                re.compile(pattern)
            except re.error as problem:
                raise ValueError(f"{pattern!r} is no regular expression: {problem}") from None
        return volatile


class FingerprintSection(Section):
    """What the curve's fingerprint has beside what is always in it."""

    probes: tuple[Probe, ...] = Field(
        (), description="Further things that must not change: driver, container image, …"
    )

    @field_validator("probes")
    @classmethod
    def _names_differ(cls, probes: tuple[Probe, ...]) -> tuple[Probe, ...]:
        names = [probe.name for probe in probes]
        if len(set(names)) != len(names):
            raise ValueError(f"the probes' names must differ, not {', '.join(names)}")
        return probes


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


def _paths(tree: dict[str, Any], prefix: str = "") -> list[str]:
    """Dotted path of every key in a nested mapping."""
    found = []
    for key, value in tree.items():
        path = f"{prefix}{key}"
        found.append(path)
        if isinstance(value, dict):
            found += _paths(value, path + ".")
    return found


def _at(tree: dict[str, Any], path: str) -> Any:
    """The value at a dotted path that exists."""
    value: Any = tree
    for key in path.split("."):
        value = value[key]
    return value
