"""The page in a real browser: it loads, plays, scrubs, switches, tells the truth."""

import numpy as np
import pytest

DESKTOP, PHONE = (1280, 800), (390, 844)


@pytest.fixture
def opened(browser, page):
    """The page, freshly loaded, at desktop size."""
    browser.complaints.clear()
    browser.requests.clear()
    browser.resize(*DESKTOP)
    browser.prefer(prefers_color_scheme="light")
    browser.open(page)
    browser.until("window.replay")
    yield browser
    assert browser.complaints == []
    assert browser.requests == [page.resolve().as_uri()]


def text(browser, selector):
    return browser.run(f"document.querySelector({selector!r}).textContent")


def shown(browser, which):
    """The entries of one of the inspector's lists, by their index."""
    rows = browser.run(
        f"[...document.querySelectorAll('#{which} li')].map(row => "
        "[Number(row.dataset.index), Number(row.dataset.share), row.textContent])"
    )
    return {index: (share, words) for index, share, words in rows}


COPY = """
  const canvas = document.querySelector(%r);
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
"""


def painted(browser, selector):
    """How many different colours a canvas holds."""
    count = (
        "new Set(new Uint32Array(context.getImageData(0, 0, copy.width, copy.height)"
        ".data.buffer)).size"
    )
    return browser.run(f"(() => {{ {COPY % selector} return {count}; }})()")


def pixel(browser, selector, x, y):
    """The colour of a canvas at a point."""
    found = f"[...context.getImageData({x}, {y}, 1, 1).data]"
    return browser.run(f"(() => {{ {COPY % selector} return {found}; }})()")


def test_it_loads_and_draws_every_policy(opened):
    assert text(opened, "h1") == "wildfire-2x3-S3"
    assert "Seed 200, independent noise" in text(opened, "#lede")
    names = "[...document.querySelectorAll('.panel-name')].map(e => e.textContent)"
    assert opened.run(names) == ["<pointer>", "weakest", "optimal"]
    for i in range(3):
        assert painted(opened, f".panel:nth-child({i + 1}) canvas") > 10
    assert painted(opened, "#timeline") > 10
    assert opened.run("document.getElementById('content').ariaBusy") == "false"


def test_probabilities_are_those_of_the_policy_and_add_up_to_one(opened, replay):
    recording = replay.recordings[0]
    choices, attention = recording.decisions.choices, recording.decisions.attention
    looked = 0
    for time in range(0, recording.steps, 7):
        opened.run(f"window.replay.seek({time})")
        for agent in range(3):
            opened.run(f"window.replay.show({{ pinned: {agent} }})")
            for which, shares in (("choices", choices), ("attention", attention)):
                found = shown(opened, which)
                kept = int(shares.kept[time, agent])
                index = shares.index[time, agent, :kept].tolist()
                expected = shares.probability[time, agent, :kept]
                assert sorted(found) == sorted(index)
                values = [found[i][0] for i in index]
                np.testing.assert_allclose(values, expected, atol=1e-5)
                if kept:
                    assert sum(values) == pytest.approx(1, abs=1e-4)
                    looked += 1
                for i in index:
                    assert f"{100 * found[i][0]:.1f} %" in found[i][1]
    assert looked > 20


def test_a_policy_without_probabilities_shows_what_it_chose(opened, replay):
    opened.press("2")
    found = shown(opened, "choices")
    action = int(replay.recordings[1].decisions.actions[0, 0])
    assert list(found) == [action]
    assert "chosen" in found[action][1]
    assert "no probabilities" in text(opened, "#choices-note")
    assert opened.run("document.getElementById('attention-section').hidden")


def test_the_numbers_are_those_of_the_recording(opened, replay):
    for time in (0, 13, 100):
        opened.run(f"window.replay.seek({time})")
        for i, recording in enumerate(replay.recordings):
            now = min(time, recording.steps)
            gain = recording.metrics["return"][now]
            row = f"#metric-rows tr:nth-child({i + 1}) td:nth-child(2)"
            shown_gain = text(opened, row).replace("−", "-")
            assert float(shown_gain) == pytest.approx(gain, abs=0.005)
            figure = text(opened, f".panel:nth-child({i + 1}) .panel-return > span")
            assert float(figure.replace("−", "-")) == pytest.approx(gain, abs=0.05)


def test_it_plays_to_the_end_and_pauses(opened, replay):
    steps = max(recording.steps for recording in replay.recordings)
    opened.run("window.replay.speed = 60")
    opened.press(" ")
    assert opened.run("window.replay.playing")
    assert opened.run("document.getElementById('play').ariaLabel") == "Pause"
    opened.until("window.replay.view.time > 3")
    opened.press(" ")
    paused = opened.run("window.replay.view.time")
    assert not opened.run("window.replay.playing")
    opened.run("new Promise(done => setTimeout(done, 100))")
    assert opened.run("window.replay.view.time") == paused
    opened.press(" ")
    opened.until(f"window.replay.view.time === {steps} && !window.replay.playing")
    opened.press(" ")  # from the end, it begins again
    opened.until(f"window.replay.view.time < {steps}")


def test_it_scrubs_by_slider_timeline_and_keys(opened, replay):
    steps = max(recording.steps for recording in replay.recordings)
    opened.run(
        "const s = document.getElementById('scrub'); s.value = 20;"
        "s.dispatchEvent(new Event('input'))"
    )
    assert text(opened, "#clock").startswith("20")
    opened.press("ArrowRight")
    opened.press("ArrowRight", shift=True)
    assert opened.run("window.replay.view.time") == 31
    opened.press("ArrowLeft")
    assert opened.run("document.getElementById('scrub').ariaValueText").startswith(
        "step 30 of"
    )
    opened.press("End")
    assert opened.run("window.replay.view.time") == steps
    opened.press("Home")
    assert opened.run("window.replay.view.time") == 0
    opened.press(".")
    assert "nothing came" not in text(opened, "#happened")
    box = opened.run(
        "(() => { const c = document.getElementById('timeline');"
        "c.scrollIntoView({ block: 'start' });"
        "const { left, top, right } = c.getBoundingClientRect();"
        "return { left, top, right }; })()"
    )
    opened.point(box["right"] - 6, box["top"] + 40, click=True)
    assert opened.run("window.replay.view.time") == steps


def test_pointing_at_an_agent_shows_it(opened):
    middle = opened.run(
        "(() => { const field = window.replay.panels[1].field;"
        "const { left, top } = field.canvas.getBoundingClientRect();"
        "const { x, y } = field.places[2];"
        "return [left + 20 + x * field.side, top + 20 + y * field.side]; })()"
    )
    opened.point(*middle)
    assert text(opened, "#inspected-agent") == "Agent 3"
    assert text(opened, "#inspected-policy") == "weakest"
    opened.point(5, 5)
    assert text(opened, "#inspected-agent") == "Agent 1"
    assert text(opened, "#inspected-policy") == "<pointer>"
    opened.point(*middle, click=True)
    opened.point(5, 5)
    assert text(opened, "#inspected-agent") == "Agent 3"
    opened.press("j")
    assert text(opened, "#inspected-agent") == "Agent 1"


def test_policies_are_switched_by_click_and_key(opened):
    opened.run("document.querySelectorAll('.panel-head')[2].click()")
    assert text(opened, "#inspected-policy") == "optimal"
    assert text(opened, "#story-of") == "events of optimal"
    opened.press("1")
    assert text(opened, "#inspected-policy") == "<pointer>"
    pressed = "[...document.querySelectorAll('.panel-head')].map(b => b.ariaPressed)"
    assert opened.run(pressed) == ["true", "false", "false"]


def test_a_phone_shows_one_policy_at_a_time(opened):
    opened.resize(*PHONE)
    opened.until("document.querySelector('.layout').clientWidth < 390")
    seen = (
        "[...document.querySelectorAll('.panel canvas')].map(c => c.offsetParent !== "
        "null)"
    )
    opened.until(f"JSON.stringify({seen}) === '[true,false,false]'")
    # Canvases take their new size with the next frame.
    opened.until(f"document.documentElement.scrollWidth === {PHONE[0]}")
    opened.run("document.querySelectorAll('.panel-head')[1].click()")
    opened.until(f"JSON.stringify({seen}) === '[false,true,false]'")
    assert painted(opened, ".panel:nth-child(2) canvas") > 10


def test_it_follows_dark_mode_while_open(opened):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = opened.run(ground), pixel(opened, "canvas", 60, 60)
    opened.prefer(prefers_color_scheme="dark")
    opened.until(f"{ground} !== '{light[0]}'")
    opened.run("new Promise(requestAnimationFrame)")
    assert pixel(opened, "canvas", 60, 60) != light[1]


def test_every_control_has_a_name(opened):
    unnamed = """
      [...document.querySelectorAll("button, select, input, canvas[role=img]")].filter(
        e => !e.ariaLabel && !e.textContent.trim() && !e.labels?.[0]?.textContent.trim()
      ).map(e => e.outerHTML)"""
    assert opened.run(unnamed) == []
