"""A trained PLATO policy in plain NumPy. This file and its weights are all it takes."""

import json

import numpy as np

FLAGS = "booleans (or 0 and 1)"
"""What masks hold: of a text or another number nobody knows what it means."""
NO_MEMORY = "memory must be left out: this policy does not remember."


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
        options = checked_options(options, (team, len(tasks), actions))
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
        query, memory = self._query(summary, memory, seen["present"])
        there = seen["present"][:, None] & seen["sees_tasks"]
        noop = np.ones((team, 1), bool)
        offered = np.concatenate([noop, _flat(options & there[:, :, None])], axis=1)
        return _softmax(self._scores(query, keys), offered), memory

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
            views = [seen["tasks"]] * len(seen["agents"])
            parts.append(
                _all_statistics(views, seen["sees_tasks"], self._task_features())
            )
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
            return _all_statistics(views, members, own.shape[1])
        own, public = self._mlp("team.encode", own), self._mlp("team.encode", public)
        query = self._linear("team.query_map", own)
        scores = self._mixed("team", query[:, None] + self._map("team", public)[None])
        mine = np.arange(len(own))
        # Of itself an agent knows everything, of the others what is public.
        scores[mine, mine] = self._mixed("team", query + self._map("team", own))
        weights = _softmax(np.moveaxis(scores, 2, 1), members[:, None])
        read = weights @ public
        read += weights[mine, :, mine][:, :, None] * (own - public)[:, None]
        return _flat(read)

    def _task_pointer(self, seen, keys):
        query = self._linear("context.query_map", seen["agents"])
        mixed = query[:, None] + self._map("context", keys)[None]
        scores = np.moveaxis(self._mixed("context", mixed), 2, 1)
        view = np.repeat(seen["sees_tasks"], int(self.weights["actions"]), axis=1)
        return _flat(_softmax(scores, view[:, None]) @ keys)

    def _query(self, summary, memory, present):
        if self.config["encoder"] == "lstm":
            return self._remember(summary, memory, present)
        if memory is not None:
            raise ValueError(NO_MEMORY)
        return self._mlp("encode_query", summary), None

    def _remember(self, summary, memory, present):
        hidden = np.zeros((len(summary), self._hidden()), np.float32)
        cell = np.zeros_like(hidden)
        if memory is not None:
            last_hidden, last_cell, was_present = checked_memory(memory, hidden.shape)
            # One who comes back begins anew.
            hidden = np.where(was_present[:, None], last_hidden, hidden)
            cell = np.where(was_present[:, None], last_cell, cell)
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
    found = _numbers(name, rows)
    if found.shape[:1] == (0,):  # nothing has no width
        found = found.reshape(0, features)
    if found.ndim != 2 or found.shape[1] != features:
        raise ValueError(
            f"{name} must hold {features} features for each {name.removesuffix('s')}; "
            f"what is given is {found.shape}."
        )
    return _finite(name, found)


def checked_options(options, shape):
    found = _flags("options", options)
    fitting = [shape] if shape[2] > 1 else [shape, shape[:2]]
    if not shape[0] or not shape[1]:  # nothing may be said in short
        fitting += [(0,), shape[:2]]
    if found.shape not in fitting:
        raise ValueError(
            f"options must be {shape} (agents, tasks, actions), not {found.shape}."
        )
    return found.reshape(shape)


def checked_mask(name, mask, shape, otherwise=True):
    if mask is None:
        return np.broadcast_to(np.asarray(otherwise, bool), shape)
    found = _flags(name, mask)
    if found.shape != shape and not (found.shape == (0,) and 0 in shape):
        raise ValueError(f"{name} must be {shape}, not {found.shape}.")
    return found.reshape(shape)


def checked_memory(memory, shape):
    """(hidden, cell, present) of the last decision; `shape` is that of the first."""
    if not isinstance(memory, (tuple, list)):
        raise ValueError("memory must be what the last decision gave, or None.")
    parts = [_array("memory", part, "numbers") for part in memory]
    expected, found = [shape, shape, shape[:1]], [part.shape for part in parts]
    if found != expected:
        raise ValueError(
            f"memory must hold a row for each of the {shape[0]} agents, "
            f"{expected} (hidden, cell, present), not {found}."
        )
    hidden, cell = (_finite("memory", _numbers("memory", part)) for part in parts[:2])
    return hidden, cell, _flags("memory (present)", parts[2])


def _array(name, given, kind):
    """What is given as an array, where NumPy makes one of numbers or booleans of it."""
    try:
        found = np.asarray(given)
    except ValueError:
        raise ValueError(f"{name} must have rows of equal length.") from None
    except TypeError as error:  # on another device, say
        raise ValueError(f"{name} cannot be made an array: {error}") from None
    # V: numbers that NumPy itself does not know, of 16 bits or fewer.
    if found.dtype.kind not in "biufV" or found.dtype.names:
        what = "text" if found.dtype.kind in "SU" else found.dtype.name
        raise ValueError(f"{name} must hold {kind}, not {what}.")
    return found


def _numbers(name, given):
    with np.errstate(over="ignore"):  # what 32 bits do not hold becomes infinite
        return _array(name, given, "numbers").astype(np.float32, copy=False)


def _flags(name, given):
    found = _array(name, given, FLAGS)
    if found.dtype.kind == "b":
        return found
    others = found[(found != 0) & (found != 1)]
    if len(others):
        raise ValueError(f"{name} must hold {FLAGS}, not {others[0]}.")
    return found.astype(bool)


def _finite(name, rows):
    if not np.isfinite(rows).all():
        row = np.flatnonzero(~np.isfinite(rows).all(axis=1))[0]
        raise ValueError(f"{name} must hold finite numbers; row {row} does not.")
    return rows


def _softmax(scores, mask):
    """Over what is marked; all 0 where nothing is."""
    mask = np.broadcast_to(mask, scores.shape)
    if not scores.shape[-1]:
        return np.zeros_like(scores)
    peak = np.max(np.where(mask, scores, -np.inf), axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0)
    weights = np.where(mask, np.exp(np.where(mask, scores - peak, 0)), 0)
    return weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)


def _flat(rows):
    """The numbers of each row in one line; also where there are no rows."""
    return rows.reshape(len(rows), int(np.prod(rows.shape[1:])))


def _all_statistics(views, masks, features):
    """A row for each agent; also where there are no agents."""
    found = [_statistics(*view) for view in zip(views, masks, strict=True)]
    return np.asarray(found, np.float32).reshape(len(views), 4 * features)


def _statistics(rows, mask):
    rows = rows[mask]
    if not len(rows):
        return np.zeros(4 * rows.shape[1], np.float32)
    return np.concatenate([rows.mean(0), rows.var(0), rows.min(0), rows.max(0)])


def _sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))
