"""Layers that act on rows of any number: linear maps, MLPs, and an LSTM cell."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

RELU_GAIN = 2**0.5


class Linear(eqx.Module):
    """x W + b for every row of x, in the precision of W."""

    weight: Float[Array, "in out"]
    bias: Float[Array, " out"]

    @classmethod
    def create(
        cls, size: int, out: int, *, key: PRNGKeyArray, gain: float = RELU_GAIN
    ) -> "Linear":
        """Orthogonal weights, as is usual for PPO, and no bias to begin with."""
        weight = jax.nn.initializers.orthogonal(gain)(key, (size, out), jnp.float32)
        return cls(weight, jnp.zeros(out))

    def __call__(self, x: Float[Array, "*row in"]) -> Float[Array, "*row out"]:
        y = x.astype(self.weight.dtype) @ self.weight
        return y + jnp.broadcast_to(self.bias, y.shape)


class MLP(eqx.Module):
    """Linear layers, each followed by a ReLU."""

    layers: list[Linear]

    @classmethod
    def create(cls, size: int, hidden: int, depth: int, *, key: PRNGKeyArray) -> "MLP":
        sizes = [size, *[hidden] * depth]
        keys = jax.random.split(key, depth)
        return cls(
            [
                Linear.create(a, b, key=k)
                for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
            ]
        )

    def __call__(self, x: Float[Array, "*row in"]) -> Float[Array, "*row hidden"]:
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return x


class LSTMCell(eqx.Module):
    """One step of a long short-term memory, for every row."""

    gates: Linear

    @classmethod
    def create(cls, size: int, hidden: int, *, key: PRNGKeyArray) -> "LSTMCell":
        return cls(Linear.create(size + hidden, 4 * hidden, key=key, gain=1.0))

    @property
    def hidden(self) -> int:
        """How much is remembered."""
        return self.gates.weight.shape[1] // 4

    def entering(self, x: Float[Array, "*row in"]) -> Float[Array, "*row gate"]:
        """What comes to the gates from outside: all that does not wait for the past."""
        size = self.gates.weight.shape[0] - self.hidden
        return Linear(self.gates.weight[:size], self.gates.bias)(x)

    def step(
        self,
        entering: Float[Array, "row gate"],
        remembered: tuple[Float[Array, "row hidden"], Float[Array, "row hidden"]],
        kept: Bool[Array, " row"],
    ) -> tuple[Float[Array, "row hidden"], Float[Array, "row hidden"]]:
        """What is remembered next, of what was by those rows that keep it."""
        hidden, cell = (jnp.where(kept[:, None], x, 0.0) for x in remembered)
        recurrent = self.gates.weight[-self.hidden :]
        gates = entering + hidden.astype(recurrent.dtype) @ recurrent
        enter, forget, new, leave = jnp.split(gates, 4, axis=1)
        # A forget gate that starts open lets gradients reach back from the first day.
        kept = jax.nn.sigmoid(forget + 1.0) * cell
        cell = kept + jax.nn.sigmoid(enter) * jnp.tanh(new)
        return jax.nn.sigmoid(leave) * jnp.tanh(cell), cell
