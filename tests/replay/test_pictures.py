"""Pictures of a replay: their frames, their files, and what is said without Pillow."""

import sys

import pytest
from PIL import Image

from plato.errors import PlatoError
from plato.replay import pictures


def test_a_strip_has_a_row_for_each_policy(replay):
    strip = pictures.strip(replay)
    one = pictures.panel(replay.recordings[0], replay.setup.config, 0)
    assert strip.size == (pictures.STRIP * one.width, 3 * one.height)


def test_an_animation_shows_every_step_or_leaves_some_out(replay, monkeypatch):
    steps = max(recording.steps for recording in replay.recordings)
    monkeypatch.setattr(pictures, "MOST_FRAMES", 10)
    frames = pictures.animation(replay)
    assert 9 <= len(frames) <= 11
    assert steps == 100
    one = pictures.panel(replay.recordings[0], replay.setup.config, 0)
    assert frames[0].size == (3 * one.width, one.height)


def test_files_can_be_opened(replay, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "MOST_FRAMES", 5)
    pictures.write_animation(tmp_path / "a.gif", replay)
    pictures.write_strip(tmp_path / "a.png", replay)
    with Image.open(tmp_path / "a.gif") as moving:
        assert moving.format == "GIF"
        assert getattr(moving, "n_frames", 1) > 2
    with Image.open(tmp_path / "a.png") as still:
        assert still.format == "PNG"


def test_without_pillow_the_extra_is_named(replay, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(PlatoError, match=r"plato-marl\[plots\]"):
        pictures.write_strip(tmp_path / "a.png", replay)
    assert not list(tmp_path.iterdir())
