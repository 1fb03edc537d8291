"""How large a replay is, and how fast its page draws, in headless Chromium.

    python benchmarks/replay_page.py [--side 50] [--agents 200] [--steps 500]

A freshly made pointer actor (with --policies, rules beside it) on a grid where every
cell can burn and fires keep coming, so that hundreds burn at every step; the agent that
is looked at is the one with the most choices. Two times are measured: that of drawing
a step (all of it: fields, pointer, timeline, numbers), and that from one frame to the
next while the page plays 60 steps a second, which holds what the browser itself does.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from browser import Browser
from environment import machine
from large_grid import large_config
from plato.domains.setups import Setup
from plato.evaluation.named import named_policy
from plato.game import Features
from plato.policies.config import ActorConfig
from plato.policies.pointer import PointerActor
from plato.replay.page import Replay, write_page
from plato.replay.recording import Recording, record

DRAW = """
(async () => {
  const { replay } = window, times = [];
  for (let step = 0; step <= replay.replay.steps; step++) {
    const begin = performance.now();
    replay.seek(step);
    times.push(performance.now() - begin);
    await new Promise(requestAnimationFrame);
  }
  replay.seek(0);
  return times;
})()
"""
PLAY = """
(async () => {
  const { replay } = window, times = [];
  replay.speed = 60;
  replay.toggle();
  let last = await new Promise(requestAnimationFrame);
  while (replay.playing) {
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last);
    last = now;
  }
  return times;
})()
"""


def crowded(side: int, agents: int, steps: int) -> Setup:
    """A large setup whose fires neither die out nor burn out soon."""
    config = large_config(side, agents, seed=0)
    fire = replace(
        config.fire,
        intensity_increase_probability=0.01,
        burnout_probability=0.01,
        random_ignition_probability=0.03,
        base_spread_rate=0.05,
    )
    return Setup(f"{side}x{side}", replace(config, fire=fire, max_steps=steps))


def recordings(setup: Setup, policies: int) -> tuple[Recording, ...]:
    actor = PointerActor.create(
        ActorConfig(hidden=16), Features(4, 4, 1), key=jax.random.key(0)
    )
    rules = {name: named_policy(name, setup) for name in ("weakest", "random")}
    chosen = list(({"pointer": actor} | rules).items())[:policies]
    return tuple(record(player, setup, name=name) for name, player in chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=50)
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--policies", type=int, default=1, choices=(1, 2, 3))
    asked = parser.parse_args()
    setup = crowded(asked.side, asked.agents, asked.steps)
    begin = time.perf_counter()
    recorded = recordings(setup, asked.policies)
    seconds = time.perf_counter() - begin
    choices = recorded[0].decisions.choices
    assert choices is not None
    fires = recorded[0].sights.exists.sum(axis=1).mean()
    print(
        f"{asked.side}×{asked.side}, {asked.agents} agents, {recorded[0].steps} steps, "
        f"{asked.policies} policies; {machine()}\n"
        f"on average {fires:.0f} fires, {choices.counted.mean():.1f} choices an agent; "
        f"recorded in {seconds:.1f} s, with compiling"
    )
    with tempfile.TemporaryDirectory() as folder, Browser(seconds=120) as browser:
        path = Path(folder) / "replay.html"
        write_page(path, Replay(setup, 200, "independent", recorded))
        print(f"file: {path.stat().st_size / 1e6:.2f} MB")
        measure(browser, path, busiest=int(choices.counted.mean(axis=0).argmax()))


def measure(browser: Browser, path: Path, busiest: int) -> None:
    print("\n| window | loads | draws a step: median, 95 %, most | frame to frame |")
    print("|---|---:|---:|---:|")
    for width, height, scale in ((1280, 800, 1.0), (390, 844, 2.0)):
        browser.resize(width, height, scale=scale)
        begin = time.perf_counter()
        browser.open(path)
        browser.until("window.replay")
        loading = time.perf_counter() - begin
        browser.run(f"window.replay.show({{ pinned: {busiest} }})")
        drawn, played = browser.run(DRAW), browser.run(PLAY)
        print(
            f"| {width}×{height} | {loading:.2f} s | {_summary(drawn)} "
            f"| {_summary(played)} |",
            flush=True,
        )
    assert not browser.complaints, browser.complaints


def _summary(times: list[float]) -> str:
    middle, high = np.percentile(times, [50, 95])
    return f"{middle:.1f}, {high:.1f}, {max(times):.1f} ms"


if __name__ == "__main__":
    main()
