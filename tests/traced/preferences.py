"""Steps that train on pairs: DPO and reward models, as TRL's trainers run them.

A batch has the chosen rows first and the rejected rows after them: `micro_batch` counts pairs. All rows are of full length, so
the attention mask is all ones and transformers drops it; it is on the device, but not given to the model. Every position is a
completion's. Kernels are emulated: same allocations, no arithmetic.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import MethodType

import torch
from torch import nn
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.utils import ModelOutput

from .configurations import Configuration
from .moments import Moments
from .trl_losses import TiledLogProbabilities

IGNORED = -100
ENTROPY_ROWS = 128
"""trl 1.5.1, trainer/utils.py, entropy_from_logits: chunk_size."""
BETA = 0.1
PAIR = 2


@dataclass
class Scored(ModelOutput):
    """trl 1.16.0, trainer/utils.py, FusedCausalLMOutput: what a fused head gives in place of logits, (rows, S - 1) each."""

    loss: torch.Tensor | None = None
    log_probs: torch.Tensor | None = None
    entropy: torch.Tensor | None = None
    mean_logits: torch.Tensor | None = None
    is_top1: torch.Tensor | None = None
    label_mask: torch.Tensor | None = None


def add_fused_head(model: nn.Module) -> None:
    """trl 1.16.0, trainer/utils.py, add_fused_lm_head: log-probabilities of labelled positions, in tiles."""

    def forward(self, input_ids=None, labels=None, **kwargs):
        hidden = self.base_model(input_ids=input_ids, use_cache=False, **kwargs).last_hidden_state[:, :-1]
        labels = labels[:, 1:]
        mask = labels != IGNORED
        places = all_places(labels)
        head = self.get_output_embeddings()
        per_token = (*TiledLogProbabilities.apply(hidden[places], head.weight, labels[places]), *metrics(labels))
        per_token = [x.new_zeros(mask.shape).masked_scatter(mask, x) for x in per_token]
        return Scored(-per_token[0].sum() / mask.sum().clamp(min=1), *per_token, mask)

    model.forward = MethodType(forward, model)


def metrics(labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean of a position's logits, and whether its label has the largest: what the kernel finds besides."""
    count = (labels.numel(),)
    return torch.empty(count, device="cuda"), torch.empty(count, dtype=torch.bool, device="cuda")


def all_places(labels: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What indexing with a mask that is true everywhere turns into: a row and a column number for every position."""
    return torch.empty((labels.numel(), labels.dim()), dtype=torch.int64, device="cuda").unbind(-1)


def add_plain_head(model: nn.Module) -> None:
    """transformers 5.24.0, models/llama/modeling_llama.py, LlamaForCausalLM.forward without labels."""

    def forward(self, input_ids=None, **kwargs):
        outputs = self.base_model(input_ids=input_ids, use_cache=False, **kwargs)
        return CausalLMOutputWithPast(logits=self.get_output_embeddings()(outputs.last_hidden_state))

    model.forward = MethodType(forward, model)


def install_head(model: nn.Module, loss: str) -> None:
    """Make the causal language model give what this release's DPO trainer asks it for."""
    (add_fused_head if loss == "tiled" else add_plain_head)(model)


class SelectedLogProbabilities(torch.autograd.Function):
    """trl 1.14.2, kernels/logprob_entropy.py, _LogProbEntropyFunction with its Triton kernels."""

    @staticmethod
    def forward(context, logits, index):
        rows = [torch.empty(logits.shape[:-1], dtype=torch.float32, device="cuda") for _ in range(4)]
        context.set_materialize_grads(False)
        context.save_for_backward(logits, index, *rows[2:])
        return rows[0], rows[1]

    @staticmethod
    def backward(context, gradient, entropy_gradient):
        logits, *_ = context.saved_tensors
        if gradient is not None:
            gradient = gradient.contiguous()
        return torch.empty_like(logits, memory_format=torch.contiguous_format), None


def in_one_kernel(logits, labels):
    """trl 1.14.2, trainer/utils.py, selective_log_softmax_and_entropy on a GPU: log-probabilities and entropy."""
    values, entropy = SelectedLogProbabilities.apply(logits, labels)
    return values, entropy.detach()


def row_by_row(logits, labels):
    """trl 1.6.0, trainer/utils.py, selective_log_softmax for float32 or 16-bit logits; the entropy comes later."""
    labels = labels.unsqueeze(-1)
    if logits.dtype == torch.float32:
        selected = torch.gather(logits, dim=-1, index=labels)
        sums = torch.stack([torch.logsumexp(row, dim=-1) for row in logits])
        return (selected - sums.unsqueeze(-1)).squeeze(-1), None
    found = [
        nn.functional.log_softmax(row, dim=-1).gather(dim=-1, index=label)
        for row, label in zip(logits, labels, strict=True)
    ]
    return torch.stack(found).squeeze(-1), None


def entropy_of(logits) -> torch.Tensor:
    """trl 1.5.1, trainer/utils.py, entropy_from_logits."""
    found = []
    for rows in logits.reshape(-1, logits.shape[-1]).split(ENTROPY_ROWS, dim=0):
        values = nn.functional.log_softmax(rows, dim=-1)
        found.append(-(torch.exp(values) * values).sum(-1))
    return torch.cat(found, dim=0).reshape(logits.shape[:-1])


def shifted_copy(tensor):
    return tensor.contiguous()


def shifted_view(tensor):
    return tensor


SELECTIONS = {
    "logits-dpo-1.0": (shifted_copy, row_by_row),
    "logits-dpo-1.6": (shifted_view, row_by_row),
    "logits-dpo-1.14": (shifted_view, in_one_kernel),
}
"""Whether a release copies the shifted logits, and how it picks log-probabilities; trl 1.0.0 to 1.5.1, 1.6.0 to 1.13.0, 1.14.2."""


def log_ratio_loss(sums: torch.Tensor, reference_sums: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """trl 1.16.0, trainer/dpo_trainer.py, _compute_loss: loss type `sigmoid`, reverse KL."""
    chosen, rejected = sums.chunk(2, dim=0)
    scores = (chosen - reference_sums[0]) - (rejected - reference_sums[1])
    return -nn.functional.logsigmoid(BETA * scores).mean()


def fused_step_loss(model, inputs, reference: Callable) -> torch.Tensor:
    """trl 1.16.0, trainer/dpo_trainer.py, _compute_loss: the policy, then the reference while the policy's graph is alive."""
    completion = inputs["completion_mask"]
    labels = inputs["input_ids"].masked_fill(completion == 0, IGNORED)
    outputs = model(input_ids=inputs["input_ids"], labels=labels)
    sums = outputs.log_probs.sum(dim=1)
    with reference(inputs) as run:
        found = inputs["reference"] if run is None else run(input_ids=inputs["input_ids"], labels=labels).log_probs.sum(dim=1).chunk(2, dim=0)
    loss = log_ratio_loss(sums, found)
    for name in ("entropy", "mean_logits", "is_top1"):
        (outputs[name].detach() * completion[:, 1:]).sum()
    return loss


def logits_step_loss(loss_name: str) -> Callable:
    """trl 1.0.0 to 1.14.2, trainer/dpo_trainer.py, _compute_loss. Both models' logits are local variables to its end."""
    shift, pick = SELECTIONS[loss_name]

    def loss_of(model, inputs, reference: Callable) -> torch.Tensor:
        outputs = model(input_ids=inputs["input_ids"])
        labels, completion = inputs["input_ids"][..., 1:], inputs["completion_mask"][..., 1:]
        logits = shift(outputs.logits[..., :-1, :])
        values, entropy = pick(logits, labels)
        sums = values.masked_fill(completion == 0, 0.0).sum(dim=1)
        with reference(inputs) as run:
            if run is None:
                found = inputs["reference"]
            else:
                reference_outputs = run(input_ids=inputs["input_ids"])
        if run is not None:
            reference_logits = shift(reference_outputs.logits[..., :-1, :])
            reference_values, _ = pick(reference_logits, labels)
            found = reference_values.masked_fill(completion == 0, 0.0).sum(dim=1).chunk(2, dim=0)
        loss = log_ratio_loss(sums, found)
        entropy = entropy_of(logits.detach()) if entropy is None else entropy
        (entropy * completion).sum()
        for half in logits.detach().chunk(2, dim=0):
            half[all_places(half[..., 0])].mean(-1).sum()
        logits.detach().chunk(2, dim=0)[0].argmax(dim=-1)
        return loss

    return loss_of


def reference_runs(configuration: Configuration, model, reference_model, moments: Moments) -> Callable:
    """How the reference's log-probabilities are found: a context that gives the model to call, or None if they are given."""

    @contextmanager
    def running(inputs) -> Iterator[nn.Module | None]:
        if configuration.reference == "precomputed":
            yield None
            return
        disabled = model.disable_adapter() if configuration.reference == "shared" else nullcontext()
        with moments.reference(), torch.no_grad(), disabled:
            yield model if reference_model is None else reference_model

    return running


def pair_batches(configuration: Configuration) -> list[dict[str, torch.Tensor]]:
    """The step's micro-batches: ids, attention mask and completion mask (trl 1.16.0, DataCollatorForPreference)."""
    rows, length = PAIR * configuration.micro_batch, configuration.sequence_length
    names = ["input_ids", "attention_mask", *(["completion_mask"] if configuration.objective == "dpo" else [])]
    batches = []
    for _ in range(configuration.gradient_accumulation_steps):
        batch = {name: torch.empty((rows, length), dtype=torch.int64, device="cuda") for name in names}
        if configuration.reference == "precomputed":
            batch["reference"] = tuple(torch.empty(configuration.micro_batch, device="cuda") for _ in range(PAIR))
        batches.append(batch)
    return batches


def preference_loss(configuration: Configuration, model, reference_model, moments: Moments) -> Callable:
    """The function of a batch that returns the loss of a step on pairs."""
    if configuration.objective == "reward":
        return lambda inputs: reward_loss(model, inputs)
    reference = reference_runs(configuration, model, reference_model, moments)
    of_release = fused_step_loss if configuration.loss == "tiled" else logits_step_loss(configuration.loss)
    return lambda inputs: of_release(model, inputs, reference)


def reward_loss(model, inputs) -> torch.Tensor:
    """trl 1.16.0, trainer/reward_trainer.py, compute_loss: one forward of both halves, one score a row."""
    outputs = model(input_ids=inputs["input_ids"], use_cache=False)
    chosen, rejected = torch.chunk(outputs.logits.squeeze(-1), chunks=2)
    return -nn.functional.logsigmoid(chosen - rejected).mean()
