"""The speed of the rehearsal endpoint as arithmetic: prefill, batched decode, saturation.

The model, in full. A request waits in a first-in-first-out queue until fewer than `max_batch`
others are admitted. Its prefill then lasts `prefill_ms + prefill_ms_per_token x prompt tokens`
and yields the first token; prefills run beside the decode and do not slow it down. From the
next step boundary on the sequence takes part in every decode step. A step with `n` sequences
lasts `decode_ms + decode_ms_per_sequence x n` and yields one token for each of them.

Hence, as concurrency rises, the time per output token rises along a straight line and the
throughput bends towards `1000 / decode_ms_per_sequence` tokens a second; above `max_batch` only
the queue, and with it the time to first token, grows. `tasks/rehearsal/batch.py` plays the model
through time.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Milliseconds in a second.
MS_PER_S = 1000.0


@dataclass(frozen=True)
class SpeedModel:
    """The stated speed of a rehearsal endpoint."""

    #: Length of every prefill, milliseconds.
    prefill_ms: float = 30.0
    #: Added to the prefill for each prompt token, milliseconds.
    prefill_ms_per_token: float = 0.2
    #: Length of a decode step before any sequence is counted, milliseconds.
    decode_ms: float = 16.0
    #: Added to a decode step for each sequence in it, milliseconds.
    decode_ms_per_sequence: float = 0.5
    #: Tokens (whitespace-separated words) of every answer.
    output_tokens: int = 16
    #: Requests admitted at a time; others wait.
    max_batch: int = 64

    def prefill_s(self, prompt_tokens: int) -> float:
        """Return the time from admission to the first token."""
        return (self.prefill_ms + self.prefill_ms_per_token * prompt_tokens) / MS_PER_S

    def step_s(self, sequences: int) -> float:
        """Return the length of a decode step with this many sequences: the time per token."""
        return (self.decode_ms + self.decode_ms_per_sequence * sequences) / MS_PER_S

    def request_s(self, prompt_tokens: int, sequences: int) -> float:
        """Return admission to last token if every step carries this many sequences."""
        return self.prefill_s(prompt_tokens) + (self.output_tokens - 1) * self.step_s(sequences)

    def requests_per_s(self, concurrency: int, prompt_tokens: int) -> float:
        """Return the request rate at a concurrency, a little low: as if all admitted decode."""
        batch = min(concurrency, self.max_batch)
        return batch / self.request_s(prompt_tokens, batch)
