"""A trained PLATO policy in plain NumPy. This file and its weights are all it takes."""

import numpy as np


def load(path):
    """The policy of an exported .npz file."""
    with np.load(path) as weights:
        return NumpyActor({name: weights[name] for name in weights.files})


class NumpyActor:
    """Points at one of the task-actions an agent is offered, or at NOOP (0)."""

    def __init__(self, weights, seed=0):
        self.weights = weights
        self.random = np.random.default_rng(seed)

    def decide(self, agents, tasks, options, greedy=False):
        """(actions, probabilities) for present agents and existing tasks."""
        probabilities = self.policy(agents, tasks, options)
        if greedy:
            return probabilities.argmax(axis=1), probabilities
        totals = np.cumsum(probabilities, axis=1)
        numbers = self.random.random(len(totals))[:, None] * totals[:, -1:]
        return (totals <= numbers).sum(axis=1), probabilities

    def policy(self, agents, tasks, options):
        """Probabilities of NOOP and of every task-action, for each agent."""
        agents = np.asarray(agents, np.float32)
        options = np.asarray(options, bool).reshape(len(agents), -1)
        noop, actions = self.weights["noop"], int(self.weights["actions"])
        features = len(noop) - (actions if actions > 1 else 0)
        tasks = np.asarray(tasks, np.float32).reshape(-1, features)
        rows = tasks
        if actions > 1:
            which = np.tile(np.eye(actions, dtype=np.float32), (len(tasks), 1))
            rows = np.concatenate([np.repeat(tasks, actions, axis=0), which], axis=1)
        rows = rows.reshape(-1, len(noop))
        keys = self._mlp("encode_task", np.concatenate([noop[None], rows]))
        query = self._mlp("encode_query", self._summary(agents, tasks))
        scores = self._scores(query, keys)
        offered = np.concatenate([np.ones((len(agents), 1), bool), options], axis=1)
        return _softmax(np.where(offered, scores, -np.inf))

    def _summary(self, agents, tasks):
        parts = [self._team(agents)]
        if self.weights["ego"]:
            parts.append(agents)
        if "context.value" in self.weights:
            parts.append(self._task_pointer(agents, tasks))
        elif self._width() - sum(part.shape[1] for part in parts):
            parts.append(np.tile(_statistics(tasks), (len(agents), 1)))
        return np.concatenate(parts, axis=1)

    def _width(self):
        return self.weights["encode_query.layers.0.weight"].shape[0]

    def _team(self, agents):
        if "team.value" not in self.weights:
            return np.tile(_statistics(agents), (len(agents), 1))
        keys = self._mlp("team.encode", agents)
        return self._point("team", keys, keys)

    def _task_pointer(self, agents, tasks):
        heads = self.weights["context.value"].shape[1]
        if not len(tasks):
            hidden = self.weights["context.value"].shape[0]
            return np.zeros((len(agents), hidden * heads), np.float32)
        own = self._mlp("context.encode_agent", agents)
        return self._point("context", own, self._mlp("context.encode_task", tasks))

    def _point(self, name, own, keys):
        query = self._linear(f"{name}.query_map", own)
        mixed = query[:, None] + self._linear(f"{name}.key_map", keys)[None]
        scores = np.tanh(mixed) @ self.weights[f"{name}.value"]
        weights = _softmax(np.moveaxis(scores, 2, 1))
        return (weights @ keys).reshape(len(own), -1)

    def _scores(self, query, keys):
        if "score.value" not in self.weights:
            return query @ keys.T / np.sqrt(query.shape[1])
        mixed = self._linear("score.query_map", query)[:, None]
        mixed = mixed + self._linear("score.key_map", keys)[None]
        return np.tanh(mixed) @ self.weights["score.value"]

    def _mlp(self, name, x):
        layer = 0
        while f"{name}.layers.{layer}.weight" in self.weights:
            x = np.maximum(self._linear(f"{name}.layers.{layer}", x), 0)
            layer += 1
        return x

    def _linear(self, name, x):
        return x @ self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def _softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _statistics(rows):
    if not len(rows):
        return np.zeros(4 * rows.shape[1], np.float32)
    return np.concatenate([rows.mean(0), rows.var(0), rows.min(0), rows.max(0)])
