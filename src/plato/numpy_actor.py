"""A trained PLATO policy in plain NumPy. This file and its weights are all it takes."""

import json

import numpy as np


def load(path):
    """The policy of an exported .npz file."""
    with np.load(path) as weights:
        return NumpyActor({name: weights[name] for name in weights.files})


class NumpyActor:
    """Points at one of the task-actions an agent is offered, or at NOOP (0)."""

    def __init__(self, weights, seed=0):
        self.weights = weights
        self.config = json.loads(str(weights["config"]))
        self.random = np.random.default_rng(seed)

    def decide(self, agents, tasks, options, *, greedy=False, **view):
        """(actions, probabilities, memory); see `policy` for what can be given."""
        probabilities, memory = self.policy(agents, tasks, options, **view)
        if greedy:
            return probabilities.argmax(axis=1), probabilities, memory
        totals = np.cumsum(probabilities, axis=1)
        numbers = self.random.random(len(totals))[:, None] * totals[:, -1:]
        return (totals <= numbers).sum(axis=1), probabilities, memory

    def policy(
        self,
        agents,
        tasks,
        options,
        *,
        present=None,
        sees_agents=None,
        sees_tasks=None,
        public=None,
        memory=None,
    ):
        """Probabilities of NOOP and of every task-action for each agent, and memory.

        Everyone is present and sees everyone and all tasks unless it is said otherwise.
        `public` marks the features of an agent that others see: those they saw in
        training, unless given. A policy that remembers (encoder lstm) wants the memory
        of the last decision, a row of (hidden, cell, present) for each agent; None
        begins anew.
        """
        trained = self.weights["public"]
        agents = checked_rows("agents", agents, len(trained))
        tasks = checked_rows("tasks", tasks, self._task_features())
        team, actions = len(agents), int(self.weights["actions"])
        if not team:
            raise ValueError("agents must hold the features of at least one agent.")
        seen = {
            "agents": agents,
            "tasks": tasks,
            "present": checked_mask("present", present, (team,)),
            "sees_agents": checked_mask("sees_agents", sees_agents, (team, team)),
            "sees_tasks": checked_mask("sees_tasks", sees_tasks, (team, len(tasks))),
            "public": checked_mask("public", public, trained.shape, trained),
        }
        keys = self._keys(tasks)
        summary = self._summary(seen, keys)
        if self.config["encoder"] == "lstm":
            query, memory = self._remember(summary, memory, seen["present"])
        else:
            query, memory = self._mlp("encode_query", summary), None
        scores = self._scores(query, keys)
        there = seen["present"][:, None] & seen["sees_tasks"]
        options = (
            checked_options(options, (team, len(tasks), actions)) & there[:, :, None]
        )
        noop = np.ones((team, 1), bool)
        offered = np.concatenate([noop, options.reshape(team, -1)], axis=1)
        return _softmax(scores, offered), memory

    def _task_features(self):
        actions = int(self.weights["actions"])
        return len(self.weights["noop"]) - (actions if actions > 1 else 0)

    def _keys(self, tasks):
        noop, actions = self.weights["noop"], int(self.weights["actions"])
        if actions > 1:
            which = np.tile(np.eye(actions, dtype=np.float32), (len(tasks), 1))
            tasks = np.concatenate([np.repeat(tasks, actions, axis=0), which], axis=1)
        return self._mlp("encode_task", np.concatenate([noop[None], tasks]))

    def _summary(self, seen, keys):
        parts = [self._team(seen)]
        if self.config["ego"]:
            parts.append(seen["agents"])
        if self.config["context"] == "pointer":
            parts.append(self._task_pointer(seen, keys[1:]))
        elif self.config["context"] == "statistics":
            views = [_statistics(seen["tasks"], mask) for mask in seen["sees_tasks"]]
            parts.append(np.stack(views))
        return np.concatenate(parts, axis=1)

    def _team(self, seen):
        own, public = seen["agents"], seen["agents"] * seen["public"]
        members = seen["sees_agents"]
        if self.config["away"] == "flagged":
            flag = seen["present"][:, None].astype(np.float32)
            own = np.concatenate([own, flag], axis=1)
            public = np.concatenate([public, flag], axis=1)
        else:
            members = members & seen["present"]
        if self.config["query"] == "statistics":
            views = [public.copy() for _ in own]
            for i, view in enumerate(views):
                view[i] = own[i]
            return np.stack([_statistics(*v) for v in zip(views, members, strict=True)])
        own, public = self._mlp("team.encode", own), self._mlp("team.encode", public)
        query = self._linear("team.query_map", own)
        scores = self._mixed("team", query[:, None] + self._map("team", public)[None])
        mine = np.arange(len(own))
        # Of itself an agent knows everything, of the others what is public.
        scores[mine, mine] = self._mixed("team", query + self._map("team", own))
        weights = _softmax(np.moveaxis(scores, 2, 1), members[:, None])
        read = weights @ public
        read += weights[mine, :, mine][:, :, None] * (own - public)[:, None]
        return read.reshape(len(own), -1)

    def _task_pointer(self, seen, keys):
        query = self._linear("context.query_map", seen["agents"])
        mixed = query[:, None] + self._map("context", keys)[None]
        scores = np.moveaxis(self._mixed("context", mixed), 2, 1)
        view = np.repeat(seen["sees_tasks"], int(self.weights["actions"]), axis=1)
        return (_softmax(scores, view[:, None]) @ keys).reshape(len(query), -1)

    def _remember(self, summary, memory, present):
        hidden = np.zeros((len(summary), self._hidden()), np.float32)
        cell = np.zeros_like(hidden)
        if memory is not None:
            expected = [hidden.shape, cell.shape, present.shape]
            found = [np.shape(part) for part in memory]
            if found != expected:
                raise ValueError(
                    f"memory must hold a row for each of the {len(present)} agents, "
                    f"{expected} (hidden, cell, present), not {found}."
                )
            last_hidden, last_cell, was_present = memory
            # One who comes back begins anew.
            kept = np.asarray(was_present, bool)[:, None]
            hidden = np.where(kept, last_hidden, hidden)
            cell = np.where(kept, last_cell, cell)
        inputs = np.concatenate([summary, hidden], axis=1)
        gates = self._linear("encode_query.gates", inputs)
        enter, forget, new, leave = np.split(gates, 4, axis=1)
        cell = _sigmoid(forget + 1) * cell + _sigmoid(enter) * np.tanh(new)
        hidden = _sigmoid(leave) * np.tanh(cell)
        return hidden, (hidden, cell, present)

    def _hidden(self):
        return self.weights["encode_query.gates.weight"].shape[1] // 4

    def _scores(self, query, keys):
        if self.config["scorer"] == "dot":
            return query @ keys.T / np.sqrt(query.shape[1])
        mixed = self._linear("score.query_map", query)[:, None]
        return self._mixed("score", mixed + self._map("score", keys)[None])

    def _map(self, name, keys):
        return self._linear(f"{name}.key_map", keys)

    def _mixed(self, name, mixed):
        return np.tanh(mixed) @ self.weights[f"{name}.value"]

    def _mlp(self, name, x):
        layer = 0
        while f"{name}.layers.{layer}.weight" in self.weights:
            x = np.maximum(self._linear(f"{name}.layers.{layer}", x), 0)
            layer += 1
        return x

    def _linear(self, name, x):
        return x @ self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def checked_rows(name, rows, features):
    found = np.asarray(rows, np.float32)
    if found.shape[:1] == (0,):  # nothing has no width
        found = found.reshape(0, features)
    if found.ndim != 2 or found.shape[1] != features:
        raise ValueError(
            f"{name} must hold {features} features for each {name.removesuffix('s')}; "
            f"what is given is {found.shape}."
        )
    if not np.isfinite(found).all():
        row = np.flatnonzero(~np.isfinite(found).all(axis=1))[0]
        raise ValueError(f"{name} must hold finite numbers; row {row} does not.")
    return found


def checked_options(options, shape):
    found = np.asarray(options, bool)
    fitting = [shape] if shape[2] > 1 else [shape, shape[:2]]
    fitting += [] if shape[1] else [(0,), shape[:2]]
    if found.shape not in fitting:
        raise ValueError(
            f"options must be {shape} (agents, tasks, actions), not {found.shape}."
        )
    return found.reshape(shape)


def checked_mask(name, mask, shape, otherwise=True):
    found = np.asarray(
        np.broadcast_to(otherwise, shape) if mask is None else mask, bool
    )
    if found.shape != shape:
        raise ValueError(f"{name} must be {shape}, not {found.shape}.")
    return found


def _softmax(scores, mask):
    """Over what is marked; all 0 where nothing is."""
    mask = np.broadcast_to(mask, scores.shape)
    if not scores.shape[-1]:
        return np.zeros_like(scores)
    peak = np.max(np.where(mask, scores, -np.inf), axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0)
    weights = np.where(mask, np.exp(np.where(mask, scores - peak, 0)), 0)
    return weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)


def _statistics(rows, mask):
    rows = rows[mask]
    if not len(rows):
        return np.zeros(4 * rows.shape[1], np.float32)
    return np.concatenate([rows.mean(0), rows.var(0), rows.min(0), rows.max(0)])


def _sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))
