"""The modules of the model that the settings choose, and what their method trains of some modules."""

from vramplan.catalogue import presets
from vramplan.importing.expressions import Value, evaluate
from vramplan.importing.families import families
from vramplan.importing.inventory import Inventory, inventory
from vramplan.settings import Settings

CUSTOM_FAMILY = "llama"
"""The family whose names of modules a custom decoder gets."""

OURS = {"moe_intermediate_size": "expert_intermediate_size", "shared_intermediate_size": "shared_expert_intermediate_size", "first_sparse": "dense_layers"}
"""What the settings call a value of a family, where they have another name for it."""


def inventory_of(settings: Settings) -> Inventory:
    """The modules of a chosen model: a preset's under the names of its family, a custom decoder's under Llama's."""
    family = families()[presets()[settings.model].family if settings.model in presets() else CUSTOM_FAMILY]
    shape = settings.architecture
    values: dict[str, Value] = {}
    for source in family.values:
        ours = OURS.get(source.name, source.name)
        known = hasattr(shape, ours) and source.kind != "list"
        values[source.name] = getattr(shape, ours) if known else evaluate(source.default, values)
    return inventory(family, values)


def trainable(found: Inventory, settings: Settings) -> int:
    """Parameters that the chosen method trains in a model."""
    if settings.trains_base:
        return found.total
    wanted = set(settings.targets)
    everything = settings.adapter_targets == "all-linear"
    return sum(
        module.count * settings.rank * (module.inputs + module.outputs)
        for module in found.modules
        if not module.fused
        and (wanted & set(module.role.split()) or (everything and module.adaptable))
    )
