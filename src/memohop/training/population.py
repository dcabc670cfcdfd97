r"""Many networks trained as one: a single step for all members of a population.

The networks are plain modules. Their parameters are stacked along a first axis and the loss of
one member goes through ``vmap``; what differs between members (split, seed, rates, lambda) is a
tensor with one entry each. The step reads nothing back from the device.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from memohop.networks import NodeModel
from memohop.nn import Dropout, FeatureLinear, epoch_key, randomness
from memohop.training.invariant import invariant_products
from memohop.training.member import Member, MemberResult
from memohop.training.numbers import RATES
from memohop.training.objective import Classification, finite_members
from memohop.training.optimiser import OPTIMISERS
from memohop.training.rules import DEFAULT_RULES, Rules
from memohop.training.schedule import Schedule
from memohop.training.watch import Watch

_TRAIN, _VAL, _TEST = range(3)
_PER_MEMBER = ("keys", "lam", "masks", "labelled", "curves")


@dataclass(frozen=True)
class Task:
    """What a population is trained on, on its device.

    Attributes:
        inputs: what the module is called with: features and graph.
        y: labels ``[N]``.
        masks: ``[splits, 3, N]``, 1 for the nodes of train, validation and test.
        objective: what the networks are for.
    """

    inputs: tuple[Any, Any]
    y: Tensor
    masks: Tensor
    objective: Classification


class Population:
    """The state of some members, and the step that trains them.

    Args:
        task: what to train on.
        build: makes one network; it is called once per member, under the member's seed.
        members: the runs.
        epochs: how many steps will be taken, for the curves.
        patience: epochs without progress after which a member stops; None for never.
        rules: optimiser, stop and so on.
        keep_models: whether to keep the parameters of the best epoch.
        vectorised: whether to go through ``vmap``. By default several members do, and on a GPU
            also one of our networks: libraries round differently for one matrix and for a batch
            of them. A single member on a CPU is up to twice as fast without, and modules that
            ``vmap`` does not take can only go without. Once begun, the way stays the same
            whoever is left.
    """

    def __init__(
        self,
        task: Task,
        build: Callable[[], nn.Module],
        members: Sequence[Member],
        *,
        epochs: int,
        patience: int | None = None,
        rules: Rules = DEFAULT_RULES,
        keep_models: bool = False,
        vectorised: bool | None = None,
    ) -> None:
        device = task.y.device
        self.task, self.members, self.rules = task, list(members), rules
        networks = [build_seeded(build, member.seed) for member in members]
        self.model = networks[0].train()
        self.eval_model = copy.deepcopy(self.model).eval()
        params, self.buffers = _stack(networks, device)
        saved = self.model.state_dict().keys()
        self._shapes = {name: value.shape[1:] for name, value in params.items()}
        self.params = torch.cat([value.reshape(len(value), -1) for value in params.values()], dim=1)
        self._leaves = self._views(self.params)
        self._set_rates()

        def per_member(values: Sequence[float], dtype: torch.dtype | None = None) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        seeds = per_member([member.seed for member in members], torch.int64)
        self.keys = epoch_key(seeds[:, None], torch.arange(epochs, device=device))
        self.optimiser = OPTIMISERS[rules.optimiser](
            self.params,
            per_member([member.lr for member in members]),
            per_member([member.weight_decay for member in members]),
            self._decayed(),
        )
        self.schedule = Schedule(rules, self.optimiser.lr)
        self.lam = per_member([member.lam for member in members])
        self.is_ours = isinstance(self.model, NodeModel)
        if vectorised is None:
            vectorised = len(members) > 1 or (self.is_ours and device.type == "cuda")
        self.vectorised = vectorised
        if isinstance(self.model, NodeModel):
            self.model.penalised = any(member.lam > 0 for member in members)
        self.masks = task.masks[per_member([m.split for m in members], torch.int64)]
        label_rate = self.model.label_rate if isinstance(self.model, NodeModel) else None
        self._withhold = None if label_rate is None else Dropout(1 - label_rate).to(device)
        if self._withhold is not None:
            self.buffers["known"] = task.objective.known(task.y, self.masks[:, _TRAIN])
        self.looks_ahead = device.type == "cpu" and self._drops_nothing()
        self._ahead: tuple[Tensor, Tensor] | None = None  # losses and logits of the next step
        self.labelled = task.objective.weights(self.masks[:, _TRAIN], task.y, rules.class_weight)
        self.epoch = torch.zeros((), dtype=torch.int64, device=device)
        self.watch = Watch(rules, patience, len(members), epochs, device)
        self.curves = torch.full((len(members), 2, epochs), torch.nan, device=device)
        self.kept_params = self.params.clone() if keep_models else None
        self.kept_buffers = {
            name: value.clone()
            for name, value in self.buffers.items()
            if keep_models and name in saved
        }

    def step(self) -> None:
        """One epoch of every member: gradient, update, evaluation, keeping the best."""
        key = self.keys.index_select(1, self.epoch[None])[:, 0]
        with invariant_products(self.params.device):
            loss, _ = self._ahead or self._losses_and_logits(key)
            self.optimiser.step(self._gradient(loss), self.epoch)
            if self.looks_ahead:  # without dropout, evaluation is what the next step starts with
                self._ahead = self._losses_and_logits(key)
                logits = self._ahead[1].detach()
            else:
                logits = self._logits()
        scores = self.task.objective.scores(logits, self.task.y, self.masks)
        val_loss = self._val_loss(logits) if self.rules.needs_loss else None
        sound = loss.detach().isfinite() & finite_members(logits)
        self.watch.mark_diverged(sound if val_loss is None else sound & val_loss.isfinite())
        keep = self.watch.look(self.epoch, scores, val_loss)
        if self.kept_params is not None:
            self._keep(keep)
        self.schedule.step(self.epoch, val_loss)
        point = torch.stack([loss.detach(), scores[:, _VAL]], dim=1)
        self.curves.index_copy_(2, self.epoch[None], point[:, :, None])
        self.epoch += 1

    def running(self) -> Tensor:
        """Which members have not stopped, ``[B]``."""
        return self.watch.running

    def select(self, index: Tensor) -> None:
        """Go on with these members alone."""
        self._ahead = None
        self.members = [self.members[i] for i in index.tolist()]
        self.params = self.params[index]
        self._leaves = self._views(self.params)
        self.buffers = {name: value[index] for name, value in self.buffers.items()}
        self.optimiser.select(self.params, index)
        self.schedule.select(self.optimiser.lr, index)
        self.watch.select(index)
        if self.kept_params is not None:
            self.kept_params = self.kept_params[index]
            self.kept_buffers = {name: value[index] for name, value in self.kept_buffers.items()}
        for name in _PER_MEMBER:
            setattr(self, name, getattr(self, name)[index])

    def results(self, places: Sequence[int]) -> list[MemberResult]:
        """What the members at these places have reached."""
        diverged, curves = self.watch.diverged.tolist(), self.curves.cpu().numpy()
        scores = self.watch.kept_scores.masked_fill(
            self.watch.diverged[:, None], torch.nan
        ).tolist()
        kept_epoch, ran = self.watch.kept_epoch.tolist(), self.watch.ran.tolist()
        return [
            MemberResult(
                self.members[i],
                best_epoch=kept_epoch[i],
                epochs=ran[i],
                train=scores[i][_TRAIN],
                val=scores[i][_VAL],
                test=scores[i][_TEST],
                loss_curve=curves[i, 0, : ran[i]].copy(),
                val_curve=curves[i, 1, : ran[i]].copy(),
                diverged=diverged[i],
                state=self._state(i),
            )
            for i in places
        ]

    def _keep(self, keep: Tensor) -> None:
        """Remember the parameters and buffers of those for whom this is the best epoch."""
        assert self.kept_params is not None
        self.kept_params.copy_(torch.where(keep[:, None], self.params, self.kept_params))
        for name, kept in self.kept_buffers.items():
            chosen = keep.view(-1, *[1] * (kept.dim() - 1))
            kept.copy_(torch.where(chosen, self.buffers[name], kept))

    def _state(self, place: int) -> dict[str, Tensor] | None:
        if self.kept_params is None:
            return None
        both = self._views(self.kept_params) | self.kept_buffers
        state = {name: value[place].detach().cpu().clone() for name, value in both.items()}
        return {name: state[first] for name, first in _first_names(self.model).items()}

    def _decayed(self) -> Tensor | None:
        """Which parameters are decayed, ``[P]``; None for all."""
        spared = self.model.undecayed if isinstance(self.model, NodeModel) else ()
        if self.rules.decay == "all" and not spared:
            return None
        first = {
            f"{name}.{part}"
            for name, module in self.model.named_modules()
            if isinstance(module, FeatureLinear)
            for part, _ in module.named_parameters(recurse=False)
        }
        decayed = [
            not name.startswith(spared) and (self.rules.decay == "all" or name in first)
            for name in self._shapes
        ]
        flags = [
            torch.full((shape.numel(),), float(flag))
            for shape, flag in zip(self._shapes.values(), decayed, strict=True)
        ]
        return torch.cat(flags).to(self.params.device)

    def _set_rates(self) -> None:
        """Put each member's dropout rates where the network's own stand."""
        number_of = {role: name for name, role in RATES.items()}
        for name, module in self.model.named_modules():
            if not isinstance(module, Dropout) or module.role not in number_of:
                continue
            rates = self.buffers[f"{name}.rate"]
            for place, member in enumerate(self.members):
                rate = getattr(member, number_of[module.role])
                if rate is not None:
                    rates[place] = rate
            module.set_rates(rates)

    def _drops_nothing(self) -> bool:
        """Whether a network is the same in training and in evaluation, but for the penalty."""
        dropouts = [module for module in self.model.modules() if isinstance(module, Dropout)]
        stateless = len(self.buffers) == len(dropouts)  # nor has it labels to be given in parts
        return self.is_ours and stateless and not any(module.active for module in dropouts)

    def _loss_and_logits(
        self,
        params: dict[str, Tensor],
        buffers: dict[str, Tensor],
        key: Tensor,
        lam: Tensor,
        labelled: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Mean loss over the labelled nodes and the weighted penalty, Eq. (12)."""
        with randomness(key):
            if self._withhold is not None:
                buffers, labelled = self._show_part(self._withhold, buffers, labelled)
            output = self._call(self.model, params, buffers)
        logits, penalty = output if isinstance(output, tuple) else (output, None)
        loss = self.task.objective.loss(logits, self.task.y, labelled)
        if penalty is None:
            return loss, logits
        summed = getattr(self.model, "penalty_is_summed", False)
        return loss + lam * (penalty / labelled.sum() if summed else penalty), logits

    def _show_part(
        self, withhold: Dropout, buffers: dict[str, Tensor], labelled: Tensor
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Give a network a random part of its labels; weights of the loss for the rest.

        Where the draw would leave none for the loss, no label is given.
        """
        mask = withhold.mask(tuple(labelled.shape), labelled)
        assert mask is not None
        left = labelled * (mask == 0)
        enough = (left > 0).any()
        given = (mask > 0) & enough
        known = buffers["known"] * given[:, None]
        return buffers | {"known": known}, torch.where(enough, left, labelled)

    def _call(self, model: nn.Module, params: dict[str, Tensor], buffers: dict[str, Tensor]) -> Any:
        # Our networks share modules, not tensors, and swapping a shared module twice would not
        # put its own tensors back.
        return functional_call(
            model, (params, buffers), self.task.inputs, tie_weights=not self.is_ours
        )

    def _views(self, flat: Tensor) -> dict[str, Tensor]:
        """Parameters by name, as parts of rows that hold all of them: ``[B, P]``."""
        sizes = [shape.numel() for shape in self._shapes.values()]
        parts = flat.split(sizes, dim=1)
        return {
            name: part.view(len(flat), *shape).detach().requires_grad_()
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }

    def _losses_and_logits(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """Of every member, ``[B]`` and ``[B, N, C]``, ready for the gradient."""
        arguments = (self._leaves, self.buffers, key, self.lam, self.labelled)
        if self.vectorised:
            return vmap(self._loss_and_logits)(*arguments)
        with nullcontext() if self.is_ours else _torch_seed(key):
            loss, logits = self._loss_and_logits(*(_only(argument) for argument in arguments))
        return loss[None], logits[None]

    def _gradient(self, loss: Tensor) -> Tensor:
        """Members share nothing, so the gradient of the sum is the gradient of each."""
        leaves = list(self._leaves.values())
        found = torch.autograd.grad(loss.sum(), leaves, materialize_grads=True)
        return torch.cat([grad.reshape(len(grad), -1) for grad in found], dim=1)

    def _val_loss(self, logits: Tensor) -> Tensor:
        """Mean loss over the validation nodes, ``[B]``."""
        loss = self.task.objective.loss(logits, self.task.y, self.masks[:, _VAL])
        return loss + self.optimiser.penalty() if self.rules.loss_with_decay else loss

    @torch.no_grad()
    def _logits(self) -> Tensor:
        def one(params: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            output = self._call(self.eval_model, params, buffers)
            return output[0] if isinstance(output, tuple) else output

        if self.vectorised:
            return vmap(one)(self._leaves, self.buffers)
        return one(_only(self._leaves), _only(self.buffers))[None]


def build_seeded(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A network whose initial weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def _stack(
    networks: list[nn.Module], device: torch.device
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    params, buffers = stack_module_state(networks)
    return (
        {name: value.detach().to(device) for name, value in params.items()},
        {name: value.detach().to(device) for name, value in buffers.items()},
    )


def _first_names(model: nn.Module) -> dict[str, str]:
    """For each name of the state, the first name of the same tensor: gates may be shared."""
    first: dict[int, str] = {}
    return {
        name: first.setdefault(id(value), name)
        for name, value in model.state_dict(keep_vars=True).items()
    }


@contextmanager
def _torch_seed(key: Tensor) -> Iterator[None]:
    """Let what draws from PyTorch's generators depend on the key alone."""
    with torch.random.fork_rng(devices=[key.device] if key.is_cuda else []):
        torch.manual_seed(int(key.flatten()[0]))
        yield


def _only(stacked: Any) -> Any:
    """The single member of a stack."""
    if isinstance(stacked, dict):
        return {name: value[0] for name, value in stacked.items()}
    return stacked[0]
