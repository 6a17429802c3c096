"""How a run is spread over GPUs, as the tools that hand it to DeepSpeed and accelerate take it. The other way round: training_files/parallel.py."""

from vramplan.exporting.draft import Draft
from vramplan.training_files.parallel import COPIES, STAGES

AUTO = "auto"
"""A value that transformers fills in. Source: transformers 5.24.0, integrations/deepspeed.py, trainer_config_process, trainer_config_finalize."""


def processes(draft: Draft) -> int:
    """GPUs that the command starts; sets the settings that follow."""
    run = draft.settings
    divides = run.sharding not in COPIES
    gpus = run.sharded_over if divides else run.replicas
    if divides and run.replicas > 1:
        draft.lose("replicas", "the file divides one copy over all GPUs; further copies beside it are no key")
    kind = run.sharding if divides else "ddp" if gpus > 1 else "none"
    if kind != run.sharding:
        draft.lose("sharding", "several GPUs without sharding are DDP" if gpus > 1 else "one GPU has nothing to average")
    draft.say("sharded_over" if divides else "replicas", str(gpus))
    draft.say("sharding", kind)
    draft.say("offload", run.offload if divides else "none")
    return gpus


def zero(draft: Draft) -> dict[str, object] | None:
    """A configuration of DeepSpeed; None where the run is not divided by it."""
    run = draft.settings
    stage = next((number for number, name in STAGES.items() if number and name == run.sharding), 0)
    if not stage:
        return None
    inner: dict[str, object] = {"stage": stage}
    if run.offload != "none":
        inner["offload_optimizer"] = {"device": "cpu"}
    if run.offload == "optimizer-and-parameters":
        inner["offload_param"] = {"device": "cpu"}
    inner["reduce_bucket_size"] = AUTO
    if run.sharding == "zero3":
        inner |= {"stage3_prefetch_bucket_size": AUTO, "stage3_param_persistence_threshold": AUTO, "stage3_gather_16bit_weights_on_model_save": True}
    return {
        "zero_optimization": inner,
        "bf16": {"enabled": AUTO},
        "fp16": {"enabled": AUTO},
        "gradient_clipping": AUTO,
        "gradient_accumulation_steps": AUTO,
        "train_batch_size": AUTO,
        "train_micro_batch_size_per_gpu": AUTO,
    }


def fsdp_version(draft: Draft) -> int:
    """The version of FSDP; 0 where the run is not divided by it."""
    return {"fsdp1": 1, "fsdp2": 2}.get(draft.settings.sharding, 0)


def launched(gpus: int, program: str) -> str:
    """The command that starts the run. Source: accelerate 1.15.0, commands/launch.py: --num_processes."""
    return f"accelerate launch --num_processes {gpus} {program}"
