"""The stand-in client's configuration: the reference client's YAML keys, in both dialects.

The dialect is that of August 2026; with the environment variable `PARETO_REHEARSAL_DIALECT` set
to `2026-09` it is the later one, in which `settings.timeouts` takes the place of `settings.drain`,
of the top-level `timeout` and of `service_ready_timeout_s`, and the issue durations that of the
durations. Field order is the order of the keys in a saved config. Unknown keys are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

#: The environment variable that selects the dialect.
DIALECT_VARIABLE = "PARETO_REHEARSAL_DIALECT"
#: Worker processes that the reference client resolves `-1` to on a small machine.
AUTO_WORKERS = 10
#: Milliseconds in each duration suffix that the reference client accepts.
_SUFFIX_MS = {"ms": 1, "s": 1_000, "m": 60_000}


def _milliseconds(value: Any) -> Any:
    """Accept `600s`, `10m` and `500ms` beside plain milliseconds."""
    if isinstance(value, str):
        for suffix, factor in _SUFFIX_MS.items():
            if value.endswith(suffix):
                return int(float(value.removesuffix(suffix)) * factor)
    return value


Milliseconds = Annotated[int, BeforeValidator(_milliseconds)]
OptionalSeconds = Annotated[float | None, Field(ge=0)]


class Strict(BaseModel):
    """A part of the configuration: frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class OslDistribution(Strict):
    """Output lengths; accepted, without effect here."""

    type: Literal["original", "fixed", "uniform", "normal"] = "original"
    mean: int | None = None
    std: int | None = None
    min: int = 1
    max: int = 2048


class ModelParams(Strict):
    """The model asked and its generation parameters."""

    name: str = Field(min_length=1)
    temperature: float | None = None
    seed: int | None = None
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    max_new_tokens: int = 1024
    min_new_tokens: int = Field(1, ge=0)
    skip_special_tokens: bool = True
    osl_distribution: OslDistribution | None = None
    streaming: Literal["auto", "on", "off"] = "auto"
    tokenizer_name: str | None = None


class AccuracyConfig(Strict):
    """How a dataset's answers are scored."""

    eval_method: (
        Literal[
            "pass_at_1",
            "string_match",
            "rouge",
            "code_bench_scorer",
            "shopify_category_f1",
            "agentic_inference_inline",
            "vbench",
            "bfcl_v4",
            "legacy_mlperf_deepseek_r1",
            "swe_bench_scorer",
        ]
        | None
    ) = None
    ground_truth: str | None = None
    extractor: str | None = None
    num_repeats: int = Field(1, ge=1)
    extras: dict[str, Any] | None = None


class Dataset(Strict):
    """One dataset and its purpose."""

    name: str = ""
    type: Literal["performance", "accuracy"] = "performance"
    path: str | None = None
    format: str | None = None
    samples: int | None = Field(None, gt=0)
    eval_method: Literal["exact_match", "contains", "judge"] | None = None
    parser: dict[str, str] | None = None
    generate_params: dict[str, Any] | None = None
    accuracy_config: AccuracyConfig | None = None
    agentic_inference: dict[str, Any] | None = None
    generation_config_override: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_from_path(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("name") and isinstance(data.get("path"), str):
            return {**data, "name": Path(data["path"]).stem}
        return data


class LoadPattern(Strict):
    """When requests are issued."""

    type: Literal[
        "max_throughput", "poisson", "concurrency", "agentic_inference", "burst", "step"
    ] = "max_throughput"
    target_qps: float | None = Field(None, gt=0)
    target_concurrency: int | None = Field(None, gt=0)
    use_legacy_loadgen_qps_metrics: bool = Field(True, exclude=True)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type == "poisson" and self.target_qps is None:
            raise ValueError("Poisson requires target_qps")
        if self.type in ("concurrency", "agentic_inference") and self.target_concurrency is None:
            raise ValueError(f"{self.type} requires target_concurrency")
        return self

    def __str__(self) -> str:
        if self.type == "concurrency":
            return f"concurrency (target_concurrency={self.target_concurrency})"
        return self.type


class Transport(Strict):
    """The reference client's inter-process transport; accepted, without effect here."""

    type: Literal["zmq"] = "zmq"
    recv_buffer_size: int = 16_777_216
    send_buffer_size: int = 16_777_216
    io_threads: int = 4
    worker_io_threads: int = 1
    high_water_mark: int = 0
    linger: int = -1
    immediate: int = 1


class Client(Strict):
    """The reference client's HTTP client; the stand-in heeds the fields it has a use for."""

    num_workers: int = Field(AUTO_WORKERS, ge=1)
    log_level: str = "INFO"
    warmup_connections: int = Field(-1, ge=-1)
    auto_warmup_budget_fraction: float = Field(0.25, gt=0, le=1)
    max_concurrent_warmup_connects: int = Field(128, ge=1)
    max_connections: int = Field(-1, ge=-1)
    transport: Transport = Field(default_factory=Transport)
    stream_all_chunks: bool = False
    worker_initialization_timeout: float = 60.0
    worker_graceful_shutdown_wait: float = 0.5
    worker_force_kill_timeout: float = 0.5
    insecure: bool = False
    max_idle_time: float = 4.0
    min_required_connections: int = -1
    worker_gc_mode: Literal["disabled", "relaxed", "system"] = "relaxed"

    @model_validator(mode="before")
    @classmethod
    def _automatic_workers(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("num_workers") == -1:
            return {**data, "num_workers": AUTO_WORKERS}
        return data


class Warmup(Strict):
    """Requests before the performance phase."""

    enabled: bool = False
    n_requests: int | None = Field(None, gt=0)
    salt: bool = False
    drain: bool = False
    warmup_random_seed: int = 42


class Profiling(Strict):
    """Server profiling; accepted, without effect here."""

    engine: Literal["vllm"] | None = None
    urls: list[str] | None = None


class EarlyStopping(Strict):
    """Whether percentile estimates with a confidence are reported."""

    enabled: bool = True


@dataclass(frozen=True)
class Limits:
    """What bounds a run, in one form for both dialects; None is no bound."""

    min_duration_ms: int | None
    max_duration_ms: int | None
    warmup_drain_s: float | None
    performance_drain_s: float | None
    accuracy_drain_s: float | None
    run_timeout_s: float | None = None
    response_idle_timeout_s: float | None = None
    #: Whether the later rules hold: a run that was stopped says so in its report and its exit
    #: code, and a performance phase that reached its maximum waits for its last answers.
    later: bool = False


class Runtime(Strict):
    """How many samples, for how long, from which seeds (August 2026)."""

    min_duration_ms: Milliseconds = Field(600_000, ge=0)
    max_duration_ms: Milliseconds = Field(0, ge=0)
    n_samples_to_issue: int | None = Field(None, gt=0)
    scheduler_random_seed: int = 42
    dataloader_random_seed: int = 42

    @model_validator(mode="after")
    def _durations(self) -> Self:
        if 0 < self.max_duration_ms < self.min_duration_ms:
            raise ValueError(
                f"max_duration_ms ({self.max_duration_ms}) must be >= "
                f"min_duration_ms ({self.min_duration_ms})"
            )
        return self


class Drain(Strict):
    """How long each phase waits for its last answers (August 2026)."""

    warmup_timeout_s: float | None = Field(240.0, gt=0)
    performance_timeout_s: float | None = Field(240.0, gt=0)
    accuracy_timeout_s: float | None = Field(None, gt=0)
    metrics_drain_timeout_s: float = Field(0.0, ge=0)
    metrics_tokenizer_workers: int = Field(4, ge=0)


class Settings(Strict):
    """The test settings (August 2026)."""

    runtime: Runtime = Field(default_factory=Runtime)
    load_pattern: LoadPattern = Field(default_factory=LoadPattern)
    client: Client = Field(default_factory=Client)
    drain: Drain = Field(default_factory=Drain)
    warmup: Warmup = Field(default_factory=Warmup)
    profiling: Profiling = Field(default_factory=Profiling)
    early_stopping: EarlyStopping = Field(default_factory=EarlyStopping)
    service_ready_timeout_s: float = Field(30.0, ge=0)

    def limits(self) -> Limits:
        """Return what bounds the run."""
        return Limits(
            min_duration_ms=self.runtime.min_duration_ms,
            max_duration_ms=self.runtime.max_duration_ms or None,
            warmup_drain_s=self.drain.warmup_timeout_s,
            performance_drain_s=self.drain.performance_timeout_s,
            accuracy_drain_s=self.drain.accuracy_timeout_s,
        )


class LaterRuntime(Strict):
    """How many samples, for how long, from which seeds (September 2026)."""

    min_issue_duration_ms: Milliseconds | None = Field(None, gt=0)
    max_issue_duration_ms: Milliseconds | None = Field(None, gt=0)
    n_samples_to_issue: int | None = Field(None, gt=0)
    scheduler_random_seed: int = 42
    dataloader_random_seed: int = 42


class Timeouts(Strict):
    """All deadlines (September 2026); None is off."""

    run_timeout_s: float | None = Field(None, gt=0)
    endpoint_response_idle_timeout_s: float | None = Field(None, gt=0)
    interrupted_teardown_grace_s: OptionalSeconds = 30.0
    service_ready_timeout_s: float = Field(30.0, ge=0)
    warmup_drain_timeout_s: OptionalSeconds = 240.0
    performance_drain_timeout_s: OptionalSeconds = None
    accuracy_drain_timeout_s: OptionalSeconds = None
    metrics_drain_timeout_s: OptionalSeconds = None
    steady_state_timeout_s: OptionalSeconds = None


class SteadyState(Strict):
    """The steady-state window; accepted, not computed here (September 2026)."""

    enabled: bool = False


class LaterSettings(Strict):
    """The test settings (September 2026)."""

    runtime: LaterRuntime = Field(default_factory=LaterRuntime)
    load_pattern: LoadPattern = Field(default_factory=LoadPattern)
    client: Client = Field(default_factory=Client)
    timeouts: Timeouts = Field(default_factory=Timeouts)
    warmup: Warmup = Field(default_factory=Warmup)
    profiling: Profiling = Field(default_factory=Profiling)
    early_stopping: EarlyStopping = Field(default_factory=EarlyStopping)
    steady_state: SteadyState = Field(default_factory=SteadyState)
    metrics_tokenizer_workers: int = Field(4, ge=0)

    @model_validator(mode="after")
    def _minimum_needs_a_rate(self) -> Self:
        if self.runtime.min_issue_duration_ms is not None and self.load_pattern.type != "poisson":
            raise ValueError(
                f"runtime.min_issue_duration_ms is for poisson with a target_qps, not for "
                f"{self.load_pattern.type}; set n_samples_to_issue"
            )
        return self

    def limits(self) -> Limits:
        """Return what bounds the run."""
        return Limits(
            min_duration_ms=None,
            max_duration_ms=self.runtime.max_issue_duration_ms,
            warmup_drain_s=self.timeouts.warmup_drain_timeout_s,
            performance_drain_s=self.timeouts.performance_drain_timeout_s,
            accuracy_drain_s=self.timeouts.accuracy_drain_timeout_s,
            run_timeout_s=self.timeouts.run_timeout_s,
            response_idle_timeout_s=self.timeouts.endpoint_response_idle_timeout_s,
            later=True,
        )


class EndpointConfig(Strict):
    """Where requests go."""

    endpoints: list[Annotated[str, Field(pattern=r"^https?://")]] = Field(min_length=1)
    api_key: str | None = None
    api_type: Literal["openai", "openai_completions", "sglang", "videogen"] = "openai"


class Config(Strict):
    """A whole run: what both dialects share; use `AugustConfig` or `SeptemberConfig`."""

    name: str = ""
    version: str = "1.0"
    type: Literal["offline", "online"]
    submission_ref: dict[str, Any] | None = None
    model_params: ModelParams
    datasets: list[Dataset] = Field(default_factory=list)
    settings: Settings | LaterSettings
    endpoint_config: EndpointConfig
    report_dir: Path | None = None
    timeout: float | None = None
    verbose: bool = False
    enable_cpu_affinity: bool = True

    @model_validator(mode="before")
    @classmethod
    def _resolve(cls, data: Any) -> Any:
        """Fill in what follows from the type: the name, and whether answers are streamed."""
        if not isinstance(data, dict):
            return data
        kind = data.get("type")
        resolved = {**data, "name": data.get("name") or f"{kind}_benchmark"}
        params = data.get("model_params")
        if isinstance(params, dict) and params.get("streaming", "auto") == "auto":
            streaming = "off" if kind == "offline" else "on"
            resolved["model_params"] = {**params, "streaming": streaming}
        return resolved

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        pattern = self.settings.load_pattern.type
        if self.type == "offline" and pattern != "max_throughput":
            raise ValueError(f"Offline benchmarks must use 'max_throughput', got '{pattern}'")
        if self.type == "online" and pattern in ("max_throughput", "burst", "step"):
            raise ValueError("Online mode requires poisson, concurrency, or agentic_inference")
        pairs = [(dataset.name, dataset.type) for dataset in self.datasets]
        if len(set(pairs)) < len(pairs):
            raise ValueError(f"Duplicate dataset names: {pairs}")
        return self


class AugustConfig(Config):
    """A run in the dialect of August 2026."""

    settings: Settings = Field(default_factory=Settings)


class SeptemberConfig(Config):
    """A run in the dialect of September 2026."""

    settings: LaterSettings = Field(default_factory=LaterSettings)
    timeout: Literal[None] = Field(None, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _no_top_level_timeout(cls, data: Any) -> Any:
        if isinstance(data, dict) and "timeout" in data:
            raise ValueError("timeout: Extra inputs are not permitted")
        return data
