"""Files are written whole or not at all."""

import errno
import os

import jax
import numpy as np
import pytest

from plato.errors import PlatoError
from plato.files import write_json, write_text
from plato.tensors import read_tree, write_tree


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "deep" / "file.json"
    write_json(path, {"a": 1})
    write_json(path, {"a": 2})
    assert path.read_text() == '{\n "a": 2\n}\n'
    assert os.listdir(path.parent) == ["file.json"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text(tmp_path / "link", "through")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "through"


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "file.txt", "new")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        PlatoError, match=r"file\.txt: cannot be written \(No space.*make room"
    ):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_trees_keep_their_shapes(tmp_path):
    tree = {"number": np.float32(3), "row": np.arange(3.0), "turned": np.eye(3, 2).T}
    write_tree(tmp_path / "tree.safetensors", tree, {"kind": "test"})
    back = read_tree(tmp_path / "tree.safetensors", tree)
    for name, array in tree.items():
        assert np.shape(back[name]) == np.shape(array)
        np.testing.assert_array_equal(back[name], array)


def test_random_keys_are_kept_with_their_kind(tmp_path):
    tree = {"own": jax.random.split(jax.random.key(7, impl="rbg"), 3)}
    write_tree(tmp_path / "tree.safetensors", tree, {"kind": "test"})
    back = read_tree(tmp_path / "tree.safetensors", jax.eval_shape(lambda: tree))
    assert back["own"].dtype == tree["own"].dtype
    np.testing.assert_array_equal(
        jax.random.key_data(back["own"]), jax.random.key_data(tree["own"])
    )
    fewer = {"own": tree["own"][:2]}
    with pytest.raises(PlatoError, match=r"own should be uint32\[2, 4\], the file has"):
        read_tree(tmp_path / "tree.safetensors", fewer)
