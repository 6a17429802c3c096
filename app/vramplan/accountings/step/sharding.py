"""How many bytes of something one GPU holds when several GPUs divide it, and what dividing needs on top.

Belongs here: formulas of plain numbers. Which of them a run uses: shares.py.
"""

PERSISTENT_ROWS = 10
"""Hidden sizes up to which a parameter is never divided under ZeRO-3. Source: transformers 5.24.0, integrations/deepspeed.py,
trainer_config_finalize: stage3_param_persistence_threshold on auto."""

LIVE_PARAMETERS = 1_000_000_000
"""Gathered parameters that ZeRO-3 holds at the most, which it fetches ahead. Source: DeepSpeed 0.19.8, runtime/zero/config.py,
stage3_max_live_parameters; partitioned_param_coordinator.py, _fetch_sub_module_impl: every module fetches further ahead."""

SUB_GROUP_PARAMETERS = 1_000_000_000
"""Parameters of a GPU's part that ZeRO-3 updates at once. Source: DeepSpeed 0.19.8, runtime/zero/config.py, sub_group_size."""


def part_bytes(*, values: int, size: int, ways: int) -> int:
    """Bytes of one GPU's part of a flat tensor, padded so that all parts are alike.

    Shape: (ceil(values / ways),), `size` bytes each.
    Source: torch 2.13.0, distributed/fsdp/_flat_param.py, _get_shard; DeepSpeed 0.19.8, runtime/zero/partition_parameters.py,
    partition_numel.
    """
    return -(-values // ways) * size


def rows_part_bytes(*, rows: int, columns: int, size: int, ways: int) -> int:
    """Bytes of the first GPU's part of a matrix that is divided by rows: whole rows only.

    Shape: (ceil(rows / ways), columns), `size` bytes each.
    Source: torch 2.13.0, distributed/fsdp/_fully_shard/_fsdp_param.py, _init_sharded_param: torch.chunk along dimension 0.
    """
    return -(-rows // ways) * columns * size


def reduce_bucket_bytes(*, hidden_size: int, size: int, buckets: int) -> int:
    """Bytes of the buckets in which ZeRO collects gradients before it reduces them.

    Shape: (hidden_size², ) each, `size` bytes per value. A gradient larger than a bucket passes it by.
    Source: transformers 5.24.0, integrations/deepspeed.py, trainer_config_finalize: reduce_bucket_size on auto; DeepSpeed 0.19.8,
    runtime/zero/stage_1_and_2.py, setup_buckets, stage3.py, __init__.
    """
    return buckets * size * hidden_size * hidden_size


def pending_gradient_bytes(*, largest: int, second: int, bucket: int) -> int:
    """Bytes of the gradients of single parameters that are alive at once where each is reduced as soon as it is made.

    One that is larger than the bucket waits until the next has been made; a smaller one is copied and freed.
    Source: DeepSpeed 0.19.8, runtime/zero/stage_1_and_2.py, reduce_independent_p_g_buckets_and_remove_grads; stage3.py,
    __add_grad_to_ipg_bucket.
    """
    return largest + second if largest > bucket else largest


def live_bytes(*, gathered: int, largest: int, size: int) -> int:
    """Bytes of gathered weights under ZeRO-3: all of them, or as many as it may hold.

    gathered: bytes of all weights it gathers. largest: bytes of the largest of them, which is needed whole.
    Source: DeepSpeed 0.19.8, runtime/zero/partitioned_param_coordinator.py, _fetch_sub_module_impl.
    """
    return min(gathered, max(largest, LIVE_PARAMETERS * size))


def persists(*, values: int, hidden_size: int) -> bool:
    """Whether a parameter is small enough that ZeRO-3 keeps it gathered.

    Source: DeepSpeed 0.19.8, runtime/zero/parameter_offload.py, mark_persistent_parameters.
    """
    return values <= PERSISTENT_ROWS * hidden_size


def sub_group(*, part: int) -> int:
    """Parameters of a GPU's part that one update takes under ZeRO-3.

    Source: DeepSpeed 0.19.8, runtime/zero/stage3.py, _create_fp16_sub_groups.
    """
    return min(part, SUB_GROUP_PARAMETERS)


def pinned_bytes(*, size: int) -> int:
    """Bytes of page-locked host memory that a block of `size` bytes takes: PyTorch's host allocator rounds up to a power of two.

    Source: torch 2.13.0, ATen/core/CachingHostAllocator.h, CachingHostAllocatorImpl::allocate.
    """
    return 1 << (size - 1).bit_length() if size else 0
