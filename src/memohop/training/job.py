"""What is trained: a graph, a model, members, and how long and by which rules.

Does not import PyTorch: commands are parsed without it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

from memohop.errors import UsageError, check_choice, whole_number
from memohop.training.member import RATES, Member

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from torch import nn


@dataclass(frozen=True)
class Rules:
    """Which optimiser, when to stop, and which epoch counts.

    The defaults are those of this library. Published tables were made with the others: a row is
    reproduced only under its own rules.

    Attributes:
        optimiser: ``"adam"``, ``"adamw"`` (decay apart from the gradient) or ``"sgd"``
            (without momentum).
        schedule: the learning rate stays ``"constant"``; falls by ``schedule_amount`` every
            ``schedule_epochs`` (``"steps"``, MixHop); or is multiplied by ``schedule_amount``
            whenever the validation loss has not fallen for more than ``schedule_epochs``
            (``"plateau"``, Geom-GCN).
        schedule_epochs: see ``schedule``.
        schedule_amount: see ``schedule``.
        decay: weight decay touches ``"all"`` parameters, or those of the ``"first"`` layer,
            the one on the features (H2GCN's runs of GCN).
        stop: a member continues while this improves: the validation ``"score"``; the
            validation ``"loss"``; ``"either"`` of them, ties included (GAT); or ``"window"``:
            stop when the validation loss is above its mean over the last ``patience`` epochs
            (GCN, GPRGNN).
        keep: the epoch that gives weights and scores. The ``"first"`` or the ``"latest"`` of
            the best validation score (MMP; H2GCN); that of the lowest validation ``"loss"``
            (GPRGNN); the latest at which score and loss are ``"both"`` at their best (GAT);
            the ``"last"`` epoch before the stop (GCN). ``"leak-test"`` is MixHop's rule: of
            equal validation scores, the one with the better *test* score. It is here to
            measure its effect; figures made with it are not honest.
        loss_with_decay: whether the validation loss includes the L2 penalty (GCN).
        class_weight: every labelled node counts alike (``"none"``), or every class
            (``"balanced"``).

    Example:
        >>> import memohop
        >>> memohop.Rules(optimiser="adamw", keep="loss").needs_loss
        True
    """

    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    schedule: Literal["constant", "steps", "plateau"] = "constant"
    schedule_epochs: int = 50
    schedule_amount: float = 0.8
    decay: Literal["all", "first"] = "all"
    stop: Literal["score", "loss", "either", "window"] = "score"
    keep: Literal["first", "latest", "loss", "both", "last", "leak-test"] = "first"
    loss_with_decay: bool = False
    class_weight: Literal["none", "balanced"] = "none"

    def __post_init__(self) -> None:
        for name, choices in _choices().items():
            check_choice(name, getattr(self, name), choices)
        if self.schedule_epochs < 1:
            raise UsageError(f"schedule_epochs must be at least 1, not {self.schedule_epochs}")

    @property
    def leaks(self) -> bool:
        """Whether the test score influences a choice."""
        return self.keep == "leak-test"

    @property
    def needs_loss(self) -> bool:
        """Whether a rule uses the validation loss."""
        return self.stop != "score" or self.keep in ("loss", "both") or self.schedule == "plateau"


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """The values of each rule that is a choice."""
    values = {name: get_args(kind) for name, kind in get_type_hints(Rules).items()}
    return {name: choices for name, choices in values.items() if choices}


DEFAULT_RULES = Rules()


class Enough(Exception):  # noqa: N818
    """Raised by ``progress`` to end the training: members count with what they have reached.

    Example:
        >>> import memohop
        >>> from memohop.training import Enough
        >>> def stop_early(done, total):
        ...     if done >= total / 2:
        ...         raise Enough
        >>> data = memohop.load("csbm", nodes=60)
        >>> members = memohop.grid(seed=range(2))
        >>> results = memohop.train(data, "mlp", members, epochs=100, progress=stop_early)
        >>> results[0].epochs < 100
        True
    """


@dataclass(frozen=True, kw_only=True)
class Job:
    """Members of one model to be trained on one graph, whoever asks, and wherever it is done.

    Attributes:
        data: the graph, or what it is called: see :class:`~memohop.jobs.named.NamedGraph`.
        setting: what a search has set, which is part of the others.
        others: see :func:`memohop.train`.

    Example:
        >>> import memohop
        >>> from memohop.training import Job
        >>> job = Job(data=memohop.load("csbm", nodes=60), model="mlp", members=memohop.grid())
        >>> job.epochs, len(job.members)
        (500, 1)
    """

    data: Any  # Data, or a NamedGraph
    model: str | Callable[[], nn.Module]
    members: Sequence[Member] = (Member(),)
    options: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = 500
    patience: int | None = None
    rules: Rules = DEFAULT_RULES
    device: torch.device | str = "cpu"
    memory: int | None = None
    at_once: int | None = None
    features: Literal["auto", "sparse", "dense"] = "auto"
    keep_models: bool = False
    cross_fit: bool = False
    capture: bool = True
    states: Literal["bfloat16"] | None = None
    recompute: bool = False
    setting: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "memory", "at_once"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, whole_number(name, value, least=1))
        check_choice("features", self.features, ("auto", "sparse", "dense"))
        if self.states is not None:
            check_choice("states", self.states, ("bfloat16",))
        object.__setattr__(self, "options", self.options or {})  # None for none
        if not self.members:
            raise UsageError("members is empty: pass at least one Member()")

    @property
    def name(self) -> str:
        """The model, in messages."""
        return self.model if isinstance(self.model, str) else "the module"

    @property
    def member(self) -> Member:
        """The only member of a job that has one."""
        (member,) = self.members
        return member

    def at(self, split: int, seed: int) -> Job:
        """The job of the only member on another split, with another seed."""
        other = replace(self, members=(replace(self.member, split=split, seed=seed),))
        vars(other).update(recipe=self.recipe, recipe_id=self.recipe_id)  # worked out once
        return other

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of the only member, with the model's own dropout rates by default."""
        from memohop.networks.registry import entry

        own = {**entry(str(self.model)).options(), **self.options}
        numbers = self.member.numbers
        return numbers | {name: own.get(name) for name in RATES if numbers[name] is None}

    def sized(self) -> Job:
        """The job with the widths that the graph asks for among the options of its model."""
        from torch import nn

        from memohop.networks.base import attributes_of
        from memohop.training.objective import objective_of

        if isinstance(self.model, nn.Module):
            raise UsageError(
                "model is a module that is built already, but each member starts from its own "
                "seed: pass a function that builds it, for example `lambda: Net(...)`"
            )
        if not isinstance(self.model, str):
            if self.options:
                raise UsageError("options are for model ids; let the function set its own")
            return self
        nodes, channels = self.data.x.shape
        outputs = objective_of(self.data).outputs(self.data.y)
        widths = {"in_channels": channels, "out_channels": outputs, "num_nodes": nodes}
        if self.options.get("edges", "none") != "none":
            attributes, relations = attributes_of(self.data)
            widths |= {"arc_attributes": attributes.shape[1], "relations": len(relations)}
        return replace(self, options={**self.options, **widths})

    def build(self, seed: int = 0) -> nn.Module:
        """A network of a job that is :meth:`sized`; its weights depend on the seed alone."""
        import torch

        from memohop.networks import build

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if isinstance(self.model, str):
                return build(self.model, **self.options)
            return self.model()

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """Everything that results depend on, apart from split, seed and rounding by machines.

        Defaults are spelled out, so that the content stays the same when a default changes. An
        option that came later is part of it only where it makes a difference.
        """
        from memohop.networks.registry import entry

        assert isinstance(self.model, str)
        assert not hasattr(self.data, "edge_index"), "a graph without a name has no digest"
        network = entry(self.model).network
        options = {**entry(self.model).options(), **self.options}
        for name, as_before in network.added_options.items():
            if options.get(name) == as_before:
                del options[name]
        latent = options.get("embedding") == "auto"
        for name in RATES:
            options.pop(name, None)
        return {
            "data": self.data.content(noise=network.looks_at_graph, latent=latent),
            "model": self.model,
            "options": options,
            "rules": asdict(self.rules),
            "epochs": self.epochs,
            "patience": self.patience,
            **self.numbers,
        }

    @cached_property
    def recipe_id(self) -> str:
        """The digest of the recipe."""
        return digest(self.recipe)

    @property
    def content(self) -> dict[str, Any]:
        """All that one needs to repeat the training of the only member."""
        return self.recipe | {"split": self.member.split, "seed": self.member.seed}

    @cached_property
    def id(self) -> str:
        """The digest of the content: equal jobs of two experiments are done once."""
        return digest([self.recipe_id, self.member.split, self.member.seed])


def digest(content: Any) -> str:
    """A short name for some content that JSON can hold; equal content has equal names."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
