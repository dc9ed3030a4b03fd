"""What the benchmarks with public data need, so that a campaign states only what is its own (§3.2).

A preset is plain data: sizes, scorers, columns, parameters; `core/preset_fill.py` fills campaigns
from it. Sizes that the official package has are read from it: this is the only importer of its
query counts. The rest is as the reference client has it (mlcommons/endpoints at ea33275, August
2026, where no other source is named; paths are in its `examples/`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from submission_checker.agentic_targets import SWEBENCH_DATASET
from submission_checker.models import MIN_QUERY_COUNT

from core.accuracy import official_bounds

#: Whatever goes into the client's configuration as it is.
Keys = Mapping[str, Any]


@dataclass(frozen=True)
class PresetDataset:
    """One dataset of a benchmark."""

    word: str  # names it in an entry's name or in its file's name
    rows: int
    file: str | None = None  # its file as the client's examples call it; None: there is none
    file_name: str = ""  # its name in the client's configuration where a path is given
    client_name: str | None = None  # the client's own dataset, which stands in for a path
    scorer: Keys = field(default_factory=dict)
    settings: Keys = field(default_factory=dict)
    columns: Keys = field(default_factory=dict)  # the parser of its file
    shares_file: bool = False  # its file is that of the performance dataset


@dataclass(frozen=True)
class Preset:
    """A benchmark."""

    model: str  # on the hub
    performance: PresetDataset
    accuracy: tuple[PresetDataset, ...]
    model_params: Keys
    params_confirmed: bool = True  # else the campaign file must state the parameters itself
    endpoint: Keys = field(default_factory=dict)
    client_settings: Keys = field(default_factory=dict)
    run: Keys = field(default_factory=dict)

    @property
    def counts_repeats(self) -> bool:
        """Whether the official sample count includes repeats: where its scorers repeat at all."""
        return any(dataset.scorer.get("num_repeats", 1) > 1 for dataset in self.accuracy)


def _accuracy_samples(benchmark: str) -> int:
    """Samples that the official checker asks for in an accuracy run."""
    bounds = official_bounds(benchmark)
    assert bounds is not None, f"the official package has no thresholds for {benchmark}"
    return bounds[1]


# Names of files (`file_name`) stay clear of the client's own datasets, e.g. `cnn_dailymail`: for
# those it ignores the path and fetches its own copy. The checker's key of a dataset
# (`MIN_QUERY_COUNT`) is the name where the client has none of it: gpt-oss's performance set.

#: CNN/DailyMail 3.0.0, validation split; prompts in `input`, as `download_cnndm.py` writes them
#: (05_Llama_Examples). The client's own copy sends the reference's chat template too.
_CNN = PresetDataset(
    word="cnn",
    rows=MIN_QUERY_COUNT["cnn_dailymail"],
    file="cnn_dailymail_validation.jsonl",
    file_name="cnn_dailymail_performance",
    client_name="cnn_dailymail::llama3_8b",
    columns={"prompt": "input"},
)

_LLAMA = Preset(
    model="meta-llama/Llama-3.1-8B-Instruct",
    performance=_CNN,
    accuracy=(
        replace(
            _CNN,
            file_name="cnn_dailymail_accuracy",
            shares_file=True,
            #: 05_Llama_Examples/online_llama3_8b_cnn.yaml
            scorer={
                "eval_method": "rouge",
                "ground_truth": "highlights",
                "extractor": "identity_extractor",
                "num_repeats": 1,
            },
        ),
    ),
    #: 05_Llama_Examples/online_llama3_8b_cnn.yaml
    model_params={"temperature": 0.0, "top_p": 1.0, "max_new_tokens": 128},
)

#: Output limit of gpt-oss's accuracy sets, tokens; its performance set has the shorter one below
#: (04_GPTOSS120B_Example/vllm_gptoss_120b_per_dataset_osl_example.yaml).
_LONG_ANSWERS = {"generation_config_override": {"max_new_tokens": 32768}}

_GPT_OSS = Preset(
    model="openai/gpt-oss-120b",
    performance=PresetDataset(
        word="perf",
        rows=MIN_QUERY_COUNT["mlperf_gpt_oss_performance"],
        file="perf_eval_ref.parquet",
        file_name="mlperf_gpt_oss_performance",
        columns={"input_tokens": "input_tokens"},
        settings={"generation_config_override": {"max_new_tokens": 10240}},
    ),
    #: The same example; 30 × 8 + 198 × 5 + 1,055 × 3 are the 4,395 samples of the checker.
    accuracy=(
        PresetDataset(
            word="aime25",
            rows=MIN_QUERY_COUNT["aime25"],
            file="aime25.parquet",
            file_name="aime25_accuracy",
            client_name="aime25::gptoss",
            settings=_LONG_ANSWERS,
            scorer={
                "eval_method": "pass_at_1",
                "ground_truth": "answer",
                "extractor": "boxed_math_extractor",
                "num_repeats": 8,
            },
        ),
        PresetDataset(
            word="gpqa",
            rows=MIN_QUERY_COUNT["gpqa"],
            file="gpqa.parquet",
            file_name="gpqa_accuracy",
            client_name="gpqa::gptoss",
            settings=_LONG_ANSWERS,
            scorer={
                "eval_method": "pass_at_1",
                "ground_truth": "ground_truth",
                "extractor": "abcd_extractor",
                "num_repeats": 5,
            },
        ),
        PresetDataset(
            word="livecodebench",
            #: Problems of release_v6, the client's default and the one that makes up the 4,395;
            #: the checker's query count for the dataset, 880, is that of release_v5.
            rows=1055,
            file="livecodebench.parquet",
            file_name="livecodebench_accuracy",
            client_name="livecodebench::gptoss",
            settings=_LONG_ANSWERS,
            scorer={
                "eval_method": "code_bench_scorer",
                "extractor": "python_code_extractor",
                "num_repeats": 3,
            },
        ),
    ),
    model_params={
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "skip_special_tokens": False,
        "max_new_tokens": 10240,
    },
    #: Prompts are token ids: /v1/completions, past the server's chat template.
    endpoint={"api_type": "openai_completions"},
    #: Seconds; LiveCodeBench's service runs every program (its README: up to 2 h a connection).
    run={"finishing_timeout_s": 14400.0},
)

#: The prepared file of 07_DeepSeekR1_Example: input_tokens, ground_truth, dataset,
#: question. One file for both phases.
_R1 = PresetDataset(
    word="r1",
    rows=_accuracy_samples("deepseek-r1"),
    file="deepseek_r1_eval.parquet",
    file_name="deepseek_r1_performance",
    client_name="legacy_mlperf_deepseek_r1",
    columns={"input_tokens": "input_tokens"},
)

_DEEPSEEK_R1 = Preset(
    model="deepseek-ai/DeepSeek-R1",
    performance=_R1,
    accuracy=(
        replace(
            _R1,
            file_name="deepseek_r1_accuracy",
            shares_file=True,
            #: exact_match over five subsets, from 0 to 100 (`LegacyMLPerfDeepSeekR1Scorer`).
            scorer={
                "eval_method": "legacy_mlperf_deepseek_r1",
                "ground_truth": "ground_truth",
                "num_repeats": 1,
                "extras": {"subset_column": "dataset", "question_column": "question"},
            },
        ),
    ),
    #: 10_DeepSeekR1_Example/offline_deepseek_r1_accuracy.yaml at cd8c210.
    model_params={"temperature": 0.0, "top_p": 1.0, "max_new_tokens": 20480},
    endpoint={"api_type": "openai_completions"},
    #: Seconds; the client gives the evaluator 4 h and LiveCodeBench's service 2 h.
    run={"finishing_timeout_s": 21600.0},
)


def _trajectories(turn_timeout_s: float) -> PresetDataset:
    """The conversations of the agentic benchmarks, scored inline at every point."""
    return PresetDataset(
        word="agentic",
        #: Trajectories, not rows of the file, which has one a message
        #: (10_Agentic_Inference/README.md, Dataset Size).
        rows=613,
        file="agentic_combined.jsonl",
        file_name="agentic_combined",
        settings={
            "accuracy_config": {"eval_method": "agentic_inference_inline"},
            #: Official Submission Rules of that README; the plan counts the trajectories to issue.
            "agentic_inference": {
                "turn_timeout_s": turn_timeout_s,
                "enable_salt": True,
                "inject_tool_delay": True,
                "stop_issuing_on_first_user_complete": False,
            },
        },
    )


#: SWE-bench instances that the rules ask for (that README, Accuracy).
_SWE_INSTANCES = 200


def _swe_bench(**extras: Any) -> PresetDataset:
    """SWE-bench, which its own service runs and scores."""
    return PresetDataset(
        word="swe",
        rows=_SWE_INSTANCES,
        client_name=SWEBENCH_DATASET,
        scorer={
            "eval_method": "swe_bench_scorer",
            "num_repeats": 1,
            "extras": {
                "swebench_service_url": "http://localhost:18080",
                "swebench_service_auth_token": "${SWEBENCH_SERVICE_AUTH_TOKEN}",
                "num_instances": _SWE_INSTANCES,
                **extras,
            },
        },
    )


#: What the agentic benchmarks have in common (the client's 10_Agentic_Inference).
_AGENTIC: dict[str, Any] = {
    "client_settings": {"warmup_connections": 0, "max_idle_time": 0.5},
    "run": {
        #: Seconds; a conversation may be silent for long between two turns.
        "stall_timeout_s": 14400.0,
        #: Seconds; the client gives SWE-bench's service 24 h (`SWEBenchScorer`).
        "finishing_timeout_s": 86400.0,
        #: Seconds; as long for the timed phase, and for SWE-bench after it.
        "point_timeout_s": 172800.0,
    },
}

_KIMI = Preset(
    model="moonshotai/Kimi-K3",
    performance=_trajectories(turn_timeout_s=86400.0),
    accuracy=(_swe_bench(workers=100),),
    #: kimi_agentic_benchmark.yaml; the rules fix these and allow no others.
    model_params={"temperature": 1.0, "top_p": 1.0, "max_new_tokens": 8192},
    **_AGENTIC,
)

_QWEN = Preset(
    model="Qwen/Qwen3.6-35B-A3B",
    performance=_trajectories(turn_timeout_s=14400.0),
    accuracy=(_swe_bench(workers=10, max_eval_workers=10, swebench_template="qwen_tools"),),
    #: qwen_agentic_benchmark.yaml; the rules fix these and allow no others.
    model_params={
        "temperature": 1.0,
        "top_k": 20,
        "top_p": 0.95,
        "repetition_penalty": 1.0,
        "presence_penalty": 1.5,
        "max_new_tokens": 8192,
        "chat_template_kwargs": {"preserve_thinking": True},
    },
    **_AGENTIC,
)

_DEEPSEEK_V4_1 = Preset(
    model="deepseek-ai/DeepSeek-V4.1-Flash",
    performance=_trajectories(turn_timeout_s=86400.0),
    accuracy=(_swe_bench(workers=100),),
    #: Those of DeepSeek-V4-Pro, which this model replaced in the client's examples
    #: (dsv4_agentic_benchmark.yaml at 3fa7e48). Its own are in later clients than those known here.
    model_params={
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 0.95,
        "max_new_tokens": 8192,
        "chat_template_kwargs": {
            "thinking": True,
            "reasoning_effort": "max",
            "preserve_thinking": True,
        },
    },
    params_confirmed=False,
    **_AGENTIC,
)

#: Preset of each official benchmark.
PRESETS: Mapping[str, Preset] = {
    "llama3_1-8b": _LLAMA,
    "gpt-oss-120b": _GPT_OSS,
    "deepseek-r1": _DEEPSEEK_R1,
    "kimi-k3": _KIMI,
    "qwen3_6-35b-a3b": _QWEN,
    "deepseek-v4_1-flash": _DEEPSEEK_V4_1,
}


def preset_of(benchmark: object) -> Preset | None:
    """The preset of a benchmark; None: it has none, or is no benchmark at all."""
    return PRESETS.get(benchmark) if isinstance(benchmark, str) else None


def official_dataset(benchmark: str) -> str | None:
    """The performance dataset's key in the official query counts; None: there is none for it.

    `point.yaml` must name exactly it: for any other name the checker counts nothing.
    """
    preset = preset_of(benchmark)
    if preset is None:
        return None
    named = (str(preset.performance.client_name).partition("::")[0], preset.performance.file_name)
    return next((name for name in named if name in MIN_QUERY_COUNT), None)


def fewest_queries(benchmark: str) -> int | None:
    """Queries that each point must complete (§6.4); None: the official package counts none."""
    dataset = official_dataset(benchmark)
    return None if dataset is None else int(MIN_QUERY_COUNT[dataset])
