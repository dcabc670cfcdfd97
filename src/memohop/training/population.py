r"""Many networks trained as one: a single step for all members of a population.

The networks are plain modules. Their parameters are stacked along a first axis, and ``vmap`` maps
the loss of one member over it. Each property in which members differ (split, seed, rates, lambda)
is a tensor with one entry per member. The step reads nothing back from the device.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.utils._pytree import tree_map

from memohop.networks import NodeModel
from memohop.nn import Dropout, FeatureLinear, epoch_key, randomness
from memohop.training._rules import CrossFit, Optimiser, Schedule, Watch
from memohop.training.device import invariant_products, is_gpu
from memohop.training.job import Job
from memohop.training.member import RATES, Result
from memohop.training.task import Task, make_task

_TRAIN, _VAL, _TEST = range(3)
_PER_MEMBER = ("params", "buffers", "keys", "lam", "masks", "labelled", "curves", "kept")


class Population:
    """The state of some members, and the step that trains them.

    Args:
        task: the data.
        job: the members, and how they are trained; it is :meth:`~Job.sized`.
        vectorised: whether to use ``vmap``; modules that it cannot map need False. By default
            several members do, and one of our networks on a GPU, where products of ours round
            alike in any population; on a CPU it is up to twice as fast without. It never changes
            later, even if a single member is left.
    """

    def __init__(self, task: Task, job: Job, *, vectorised: bool | None = None) -> None:
        device = task.y.device
        members, rules = job.members, job.rules
        self.task, self.job, self.members = task, job, list(members)
        assert len(members) == 1 or not job.recompute, "members come one at a time"
        seeds = {member.seed for member in members}
        built = {seed: job.build(seed) for seed in seeds}
        networks = [built[member.seed] for member in members]
        self.model = networks[0].train()
        self.eval_model = copy.deepcopy(self.model).eval()
        self.is_ours = isinstance(self.model, NodeModel)
        params, self.buffers = tree_map(
            lambda value: value.detach().to(device), stack_module_state(networks)
        )
        self._saved = [name for name in self.buffers if name in self.model.state_dict()]
        self._shapes = {name: value.shape[1:] for name, value in params.items()}
        self.params = torch.cat([value.reshape(len(value), -1) for value in params.values()], dim=1)
        self._leaves = self._views(self.params)
        self._set_rates()

        def per_member(name: str, dtype: torch.dtype | None = None) -> Tensor:
            values = [getattr(member, name) for member in members]
            return torch.tensor(values, dtype=dtype, device=device)

        epochs = torch.arange(job.epochs, device=device)
        self.keys = epoch_key(per_member("seed", torch.int64)[:, None], epochs)
        rates = per_member("lr"), per_member("weight_decay")
        self.optimiser = Optimiser(rules.optimiser, self.params, *rates, self._decayed())
        self.schedule = Schedule(rules, self.optimiser.lr)
        self.lam = per_member("lam")
        if vectorised is None:
            vectorised = len(members) > 1 or (self.is_ours and is_gpu(device))
        self.vectorised = vectorised and not job.recompute
        if isinstance(self.model, NodeModel):
            self.model.recomputes = job.recompute
            self.model.penalised = any(member.lam > 0 for member in members)
        split = per_member("split", torch.int64)
        self.masks = task.masks[split]
        self.cross_fit = CrossFit(task, split) if job.cross_fit else None
        label_rate = self.model.label_rate if isinstance(self.model, NodeModel) else None
        self._withhold = None if label_rate is None else Dropout(1 - label_rate).to(device)
        if self._withhold is not None:
            known = task.objective.known(task.y, self.masks[:, _TRAIN])
            self.buffers["known"] = task.peers.spread(known)
        # On a GPU steps are captured, and cannot start from the tensors of the step before.
        self.looks_ahead = not is_gpu(device) and self._drops_nothing()
        self._ahead: tuple[Tensor, Tensor] | None = None  # losses and logits of the next step
        self.labelled = task.objective.weights(self.masks[:, _TRAIN], task.y, rules.class_weight)
        self.epoch = torch.zeros((), dtype=torch.int64, device=device)
        self.watch = Watch(rules, job.patience, len(members), job.epochs, device)
        self.curves = torch.full((len(members), 2, job.epochs), torch.nan, device=device)
        self.kept = tree_map(torch.clone, self._state()) if job.keep_models else {}

    @classmethod
    def of(cls, job: Job) -> Population:
        """The members of a job on a graph that has been checked."""
        job = job.sized()
        return cls(make_task(job, job.build()), job)

    def step(self) -> None:
        """One epoch of every member: gradient, update, evaluation, keeping the best."""
        key = self.keys.index_select(1, self.epoch[None])[:, 0]
        with invariant_products(self.params.device, alone=self.job.recompute):
            loss, _ = self._ahead or self._losses_and_logits(key)
            self.optimiser.step(self.params, self._gradient(loss), self.epoch)
            if self.looks_ahead:  # without dropout, the next step starts with this evaluation
                self._ahead = self._losses_and_logits(key)
                logits = self._ahead[1].detach()
            else:
                logits = self._logits()
        scores = self.task.objective.scores(logits, self.task.y, self.masks)
        val_loss = self._val_loss(logits) if self.job.rules.needs_loss else None
        sound = loss.detach().isfinite() & scores[:, _VAL].isfinite()
        self.watch.mark_diverged(sound if val_loss is None else sound & val_loss.isfinite())
        if self.cross_fit is not None:
            self.cross_fit.look(logits, self.watch.running)
        keep = self.watch.look(self.epoch, scores, val_loss)
        state = self._state()
        for name, kept in self.kept.items():
            chosen = keep.view(-1, *[1] * (kept.dim() - 1))
            kept.copy_(torch.where(chosen, state[name], kept))
        self.schedule.step(self.optimiser.lr, self.epoch, val_loss)
        point = torch.stack([loss.detach(), scores[:, _VAL]], dim=1)
        self.curves.index_copy_(2, self.epoch[None], point[:, :, None])
        self.epoch += 1

    def select(self, index: Tensor) -> None:
        """Continue with these members alone."""
        self._ahead = None
        self.members = [self.members[i] for i in index.tolist()]
        for name in _PER_MEMBER:
            setattr(self, name, tree_map(lambda value: value[index], getattr(self, name)))
        self._leaves = self._views(self.params)
        for state in (self.optimiser, self.schedule, self.watch, self.cross_fit):
            if state is not None:
                state.select(index)

    def results(self, indices: Sequence[int]) -> list[Result]:
        """The results of these members so far."""
        watch, curves = self.watch, self.curves.cpu().numpy()
        diverged, kept_epoch, ran = (
            values.tolist() for values in (watch.diverged, watch.kept_epoch, watch.ran)
        )
        scores = watch.kept_scores.masked_fill(watch.diverged[:, None], torch.nan).tolist()
        return [
            Result(
                self.members[i],
                best_epoch=kept_epoch[i],
                epochs=ran[i],
                train=scores[i][_TRAIN],
                val=scores[i][_VAL],
                test=scores[i][_TEST],
                loss_curve=curves[i, 0, : ran[i]].copy(),
                val_curve=curves[i, 1, : ran[i]].copy(),
                diverged=diverged[i],
                state=self._kept_state(i) if self.kept else None,
                val_outputs=None if self.cross_fit is None else self.cross_fit.of(i),
            )
            for i in indices
        ]

    def snapshot(self) -> dict[str, Tensor]:
        """A copy of all that steps change, by name; :meth:`restore` continues from there."""
        return {name: value.detach().cpu().clone() for name, value in self._changing().items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> None:
        """Continue from the snapshot of a population of the same members and data."""
        self._ahead = None
        with torch.no_grad():
            for name, value in self._changing().items():
                value.copy_(snapshot[name])

    def _changing(self) -> dict[str, Tensor]:
        owners = {"state": self._state(), "kept": self.kept}
        owners |= {name: vars(getattr(self, name)) for name in ("optimiser", "schedule", "watch")}
        if (crossed := self.cross_fit) is not None:
            owners["crossed"] = {"best": crossed.best, "outputs": crossed.outputs}
        return {"epoch": self.epoch, "curves": self.curves} | {
            f"{owner}/{name or 'params'}": value
            for owner, values in owners.items()
            for name, value in values.items()
            if isinstance(value, Tensor)
        }

    def _state(self) -> dict[str, Tensor]:
        """Everything that is kept of the best epoch; parameters have no name, as buffers do."""
        return {"": self.params} | {name: self.buffers[name] for name in self._saved}

    def _kept_state(self, index: int) -> dict[str, Tensor]:
        """The state dictionary of one member's best epoch."""
        best = {
            name: value[index].detach().cpu().clone()
            for name, value in (self._views(self.kept[""]) | self.kept).items()
        }
        first: dict[int, str] = {}  # the first name of each tensor: gates may be shared
        return {
            name: best[first.setdefault(id(value), name)]
            for name, value in self.model.state_dict(keep_vars=True).items()
        }

    def _decayed(self) -> Tensor | None:
        """Which parameters are decayed, ``[P]``; None for all."""
        spared = self.model.undecayed if isinstance(self.model, NodeModel) else ()
        if self.job.rules.decay == "all" and not spared:
            return None
        first = {
            f"{name}.{part}"
            for name, module in self.model.named_modules()
            if isinstance(module, FeatureLinear)
            for part, _ in module.named_parameters(recurse=False)
        }
        flags = []
        for name, shape in self._shapes.items():
            decayed = not name.startswith(spared) and (
                self.job.rules.decay == "all" or name in first
            )
            flags.append(torch.full((shape.numel(),), float(decayed)))
        return torch.cat(flags).to(self.params.device)

    def _set_rates(self) -> None:
        """Replace the network's dropout rates by those of each member."""
        number_of = {role: name for name, role in RATES.items()}
        for name, module in self.model.named_modules():
            if not isinstance(module, Dropout) or module.role not in number_of:
                continue
            rates = self.buffers[f"{name}.rate"]
            for index, member in enumerate(self.members):
                rate = getattr(member, number_of[module.role])
                if rate is not None:
                    rates[index] = rate
            module.set_rates(rates)

    def _drops_nothing(self) -> bool:
        """Whether a network is the same in training and in evaluation, but for the penalty."""
        dropouts = [module for module in self.model.modules() if isinstance(module, Dropout)]
        stateless = len(self.buffers) == len(dropouts)  # nor has it labels to be given in parts
        return self.is_ours and stateless and not any(module.active for module in dropouts)

    def _views(self, flat: Tensor) -> dict[str, Tensor]:
        """Parameters by name, as views of the rows ``[B, P]`` that hold all of them."""
        parts = flat.split([shape.numel() for shape in self._shapes.values()], dim=1)
        return {
            name: part.view(len(flat), *shape).detach().requires_grad_()
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }

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
            logits, penalty = self._call(self.model, params, buffers)
        logits = self.task.peers.collect(logits)
        loss = self.task.objective.loss(logits, self.task.y, labelled)
        if penalty is None:
            return loss, logits
        summed = getattr(self.model, "penalty_is_summed", False)
        return loss + lam * (penalty / labelled.sum() if summed else penalty), logits

    def _show_part(
        self, withhold: Dropout, buffers: dict[str, Tensor], labelled: Tensor
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Give a network a random part of its labels; weights of the loss for the rest.

        If the draw would leave none for the loss, no label is given.
        """
        mask = withhold.mask((len(buffers["known"]),), labelled)
        assert mask is not None
        left = labelled * (self.task.peers.collect(mask[:, None])[:, 0] == 0)
        enough = (left > 0).any()
        given = (mask > 0) & enough
        known = buffers["known"] * given[:, None]
        return buffers | {"known": known}, torch.where(enough, left, labelled)

    def _call(
        self, model: nn.Module, params: dict[str, Tensor], buffers: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor | None]:
        """Logits and penalty of one network."""
        # Our networks share modules, not tensors, and swapping a shared module twice would not
        # restore its own tensors.
        if self.job.states is not None:  # gradients go through to the parameters with more bits
            params = {name: value.to(torch.bfloat16) for name, value in params.items()}
        arguments = (params, buffers), self.task.inputs
        output = functional_call(model, *arguments, tie_weights=not self.is_ours)
        logits, penalty = output if isinstance(output, tuple) else (output, None)
        if self.job.states is None:
            return logits, penalty
        dtype = self.params.dtype
        return logits.to(dtype), None if penalty is None else penalty.to(dtype)

    def _losses_and_logits(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """Of every member, ``[B]`` and ``[B, N, C]``, ready for the gradient."""
        with nullcontext() if self.is_ours or self.vectorised else _torch_seed(key):
            return self._map(
                self._loss_and_logits, self._leaves, self.buffers, key, self.lam, self.labelled
            )

    @torch.no_grad()
    def _logits(self) -> Tensor:
        """The logits of every member in evaluation mode, ``[B, N, C]``."""
        logits = self._map(
            lambda *state: self._call(self.eval_model, *state)[0], self._leaves, self.buffers
        )
        return self.task.peers.collect(logits)

    def _map(self, function: Callable[..., Any], *stacked: Any) -> Any:
        """The function of every member, or of the only one, from stacks to stacks."""
        if self.vectorised:
            return vmap(function)(*stacked)
        only = tree_map(lambda value: value[0], stacked)
        return tree_map(lambda value: value[None], function(*only))

    def _gradient(self, loss: Tensor) -> Tensor:
        """Members share nothing, so the gradient of the sum is the gradient of each."""
        leaves = list(self._leaves.values())
        gradients = torch.autograd.grad(loss.sum(), leaves, materialize_grads=True)
        return self.task.peers.total(
            torch.cat([grad.reshape(len(grad), -1) for grad in gradients], dim=1)
        )

    def _val_loss(self, logits: Tensor) -> Tensor:
        """Mean loss over the validation nodes, ``[B]``."""
        loss = self.task.objective.loss(logits, self.task.y, self.masks[:, _VAL])
        return (
            loss + self.optimiser.penalty(self.params) if self.job.rules.loss_with_decay else loss
        )


@contextmanager
def _torch_seed(key: Tensor) -> Iterator[None]:
    """Make everything drawn from PyTorch's generators depend on the key alone."""
    with torch.random.fork_rng(devices=[key.device] if is_gpu(key.device) else []):
        torch.manual_seed(int(key.flatten()[0]))
        yield
