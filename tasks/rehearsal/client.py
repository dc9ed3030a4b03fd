"""The stand-in client as a program: the reference client's commands, exit codes and log lines.

`python -m tasks.rehearsal.client` honours the contract in which an orchestrator uses
`inference-endpoint` (mlcommons/endpoints, August 2026; a later dialect on request, see
`schema.py`). It measures in one process, counts words instead of tokens and calls itself
`0.1.0+rehearsal`, so that its folders can never pass as measurements.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import NoReturn

from tasks.rehearsal.failures import EXIT_INTERRUPTED, ClientError, ClientInputError
from tasks.rehearsal.progress import set_up_logging
from tasks.rehearsal.summary import VERSION

_LOG = logging.getLogger("inference_endpoint.main")
_VALIDATE_LOG = logging.getLogger("inference_endpoint.commands.validate")


class _Parser(argparse.ArgumentParser):
    """A parser that ends with the reference client's code for a wrong command line."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(ClientError.exit_code, f"Error: {message}\n")


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    root = _Parser(prog="inference-endpoint", description="Stand-in client for rehearsals.")
    root.add_argument("--version", action="version", version=VERSION)
    root.add_argument("-v", "--verbose", action="count", default=0)
    commands = root.add_subparsers(dest="command")
    probe = commands.add_parser("probe", help="Test endpoint connectivity.")
    probe.add_argument("--endpoints", required=True)
    probe.add_argument("--model", required=True)
    probe.add_argument("--requests", type=int)
    probe.add_argument("--prompt")
    init = commands.add_parser("init", help="Generate config template.")
    init.add_argument("template")
    validate = commands.add_parser("validate-yaml", help="Validate YAML configuration file.")
    validate.add_argument("-c", "--config", type=Path, required=True)
    kinds = commands.add_parser("benchmark", help="Run benchmarks.").add_subparsers(
        dest="kind", required=True
    )
    run = kinds.add_parser("from-config", help="Run benchmark from YAML config file.")
    run.add_argument("-c", "--config", type=Path, required=True)
    run.add_argument("--mode", choices=("perf", "acc", "both"), default="perf")
    run.add_argument("--timeout", type=float)
    return root


def dispatch(arguments: argparse.Namespace) -> None:
    """Run the command that was given; its modules are loaded only now."""
    match arguments.command:
        case "probe":
            from tasks.rehearsal.probe import PROMPT, REQUESTS, probe

            count, prompt = arguments.requests or REQUESTS, arguments.prompt or PROMPT
            probe(arguments.endpoints, arguments.model, count, prompt)
        case "init":
            from tasks.rehearsal.template import write_template

            write_template(arguments.template)
        case "validate-yaml":
            _validate(arguments.config)
        case "benchmark":
            _benchmark(arguments)
        case _:
            parser().print_help()


def _validate(path: Path) -> None:
    from tasks.rehearsal.config import load

    _VALIDATE_LOG.info("Validating: %s", path)
    try:
        config = load(path)
    except ClientInputError as error:
        _VALIDATE_LOG.error("Validation failed")
        raise ClientInputError(f"Config validation failed: {error}") from error
    _VALIDATE_LOG.info("Config valid: %s", config.name)
    _VALIDATE_LOG.info("  Type: %s", config.type)
    _VALIDATE_LOG.info("  Datasets: %d", len(config.datasets))


def _benchmark(arguments: argparse.Namespace) -> None:
    from tasks.rehearsal.config import load, with_timeout
    from tasks.rehearsal.run import benchmark

    try:
        config = load(arguments.config)
        if arguments.timeout is not None:
            config = with_timeout(config, arguments.timeout)
    except ClientInputError as error:
        raise ClientInputError(f"Config error: {error}") from error
    benchmark(config, arguments.mode)


def main(argv: list[str] | None = None) -> int:
    """Run the client; return its exit code."""
    arguments = parser().parse_args(argv)
    set_up_logging(verbose=arguments.verbose > 1)
    try:
        dispatch(arguments)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except ClientError as error:
        _LOG.error("%s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
