"""scaled_dot_product_attention with the kernel a GPU would take, named instead of chosen by hardware.

Source: torch 2.13.0, aten/src/ATen/native/transformers/attention.cpp, scaled_dot_product_attention: `flash` and
`expanded` (memory-efficient) call one operation each. aten/src/ATen/native/transformers/cuda/sdp_utils.cpp: a mask or
fp32 inputs rule flash out, as do value heads of another width than query heads (check_head_dim_size_flash), grouped heads (enable_gqa) rule memory-efficient out, heads that are broadcast without being
called grouped (Falcon's one key head) rule both out, and the math kernel with all its S x S tensors is left. Under autocast the inputs are cast to bf16 (aten/src/ATen/autocast_mode.h,
AT_FORALL_LOWER_PRECISION_FP).
"""

import torch
from transformers import masking_utils
from transformers.integrations import sdpa_attention as sdpa_integration

aten = torch.ops.aten

CHOOSES_GROUPED_HEADS = sdpa_integration.use_gqa_in_sdpa
"""transformers' own choice, put back for every configuration that is not `expanded`."""


def install(attention: str) -> None:
    """Make F.scaled_dot_product_attention use one kernel; `expanded` also repeats keys and values to all heads.

    The positions are one plain range per row, for which find_packed_sequence_indices returns None; on fake tensors it
    cannot read them (transformers 5.24.0, masking_utils.py).
    """
    torch.nn.functional.scaled_dot_product_attention = scaled_dot_product_attention
    masking_utils.find_packed_sequence_indices = lambda position_ids: None
    repeats = attention == "expanded"
    sdpa_integration.use_gqa_in_sdpa = (lambda mask, key, value: False) if repeats else CHOOSES_GROUPED_HEADS
    scaled_dot_product_attention.kernel = attention


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
) -> torch.Tensor:
    if torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        query, key, value = (tensor.to(dtype) for tensor in (query, key, value))
    half = query.dtype in (torch.bfloat16, torch.float16)
    broadcast = key.shape[1] != query.shape[1] and not enable_gqa
    if broadcast:
        return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)[0]
    one_width = query.shape[-1] == value.shape[-1]
    if scaled_dot_product_attention.kernel == "flash" and half and one_width and attn_mask is None:
        return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    if enable_gqa:
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=True
        )[0]
    bias = None if attn_mask is None else additive_mask(attn_mask, query)
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, bias, torch.is_grad_enabled(), dropout_p, is_causal, scale=scale
    )[0]


def additive_mask(mask: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """A boolean mask becomes a float one of the query's dtype (attention.cpp, convert_boolean_attn_mask), per call."""
    if mask.dtype == torch.bool:
        zeros = torch.zeros_like(mask, dtype=query.dtype)
        mask = zeros.masked_fill_(mask.logical_not(), float("-inf"))
    return mask.expand(query.shape[0], query.shape[1], -1, -1)
