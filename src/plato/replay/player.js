// Puts everything together: time, keys and pointers, and what is drawn when.

const SPEEDS = [1, 2, 4, 8, 15, 30, 60];

class Player {
  constructor(replay) {
    this.replay = replay;
    // A policy that has probabilities has more to show than one that has none.
    const focus = Math.max(replay.policies.findIndex((policy) => policy.choices), 0);
    this.view = { time: 0, focus, pinned: 0, hovered: -1, hoveredIn: -1 };
    this.playing = false;
    this.speed = replay.steps > 200 ? 15 : 4;
    const on = {
      focus: (i) => this.show({ focus: i }, true),
      hover: (i, agent) => this.show({ hovered: agent, hoveredIn: i }),
      pin: (i, agent) => this.show({ focus: i, ...(agent >= 0 && { pinned: agent }) }, true),
      seek: (time) => this.seek(time),
    };
    this.panels = replay.policies.map((_, i) => new Panel(replay, i, on));
    find("panels").append(...this.panels.map((panel) => panel.element));
    const across = replay.policies.length;
    find("panels").style.setProperty("--columns", across <= 3 ? across : across === 4 ? 2 : 3);
    this.timeline = new Timeline(replay, find("timeline"), on);
    this.inspector = new Inspector(replay);
    this.writeHead();
    this.makeTable();
    this.wireControls();
    this.layout();
  }

  writeHead() {
    const { setup, seed, noise, description, policies } = this.replay;
    find("title").textContent = setup;
    const kind = noise === "paper" ? "the paper's noise" : "independent noise";
    const same = policies.length > 1 ? ", the same for every policy" : "";
    find("lede").textContent = `${description ? `${description}. ` : ""}Seed ${seed}, ${kind}${same}.`;
  }

  makeTable() {
    const { metrics, policies } = this.replay;
    for (const { label } of metrics) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = label;
      find("metric-names").append(cell);
    }
    // Decimals where a metric ever has any, so that its numbers stand below each other.
    const whole = ({ name }) => policies.every((p) => p.metrics[name].every(Number.isInteger));
    this.digits = metrics.map((metric) => (whole(metric) ? 0 : 2));
    this.cells = policies.map(({ name }) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = name;
      row.append(head, ...metrics.map(() => document.createElement("td")));
      find("metric-rows").append(row);
      return [...row.children].slice(1);
    });
  }

  wireControls() {
    find("back").innerHTML = svgMark("back");
    find("forth").innerHTML = svgMark("forth");
    find("play").innerHTML = svgMark("play");
    find("back").addEventListener("click", () => this.seek(this.view.time - 1));
    find("forth").addEventListener("click", () => this.seek(this.view.time + 1));
    find("play").addEventListener("click", () => this.toggle());
    find("agent-before").addEventListener("click", () => this.turnTo(-1));
    find("agent-after").addEventListener("click", () => this.turnTo(1));
    find("scrub").max = this.replay.steps;
    find("scrub").addEventListener("input", () => this.seek(Number(find("scrub").value)));
    for (const speed of SPEEDS) find("speed").append(new Option(`${speed}/s`, speed));
    find("speed").value = this.speed;
    find("speed").addEventListener("change", () => (this.speed = Number(find("speed").value)));
    document.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.layout()).observe(find("panels"));
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.repaint());
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // A list of options keeps its own keys; a button keeps Space and Enter.
    if (event.target instanceof HTMLSelectElement) return;
    if (event.key === " " && event.target instanceof HTMLButtonElement) return;
    if (event.target.closest?.("summary") && [" ", "Enter"].includes(event.key)) return;
    const far = event.shiftKey ? 10 : 1;
    const { time } = this.view;
    const keys = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.seek(time - far),
      ArrowRight: () => this.seek(time + far),
      Home: () => this.seek(0),
      End: () => this.seek(this.replay.steps),
      ",": () => this.seekEvent(-1),
      ".": () => this.seekEvent(1),
      "-": () => this.changeSpeed(-1),
      "+": () => this.changeSpeed(1),
      "=": () => this.changeSpeed(1),
      j: () => this.turnTo(1),
      k: () => this.turnTo(-1),
      "?": () => {
        find("keys").open = !find("keys").open;
        if (find("keys").open) find("keys").scrollIntoView({ block: "center" });
      },
    };
    const digit = Number(event.key);
    const act = keys[event.key] ??
      (digit >= 1 && digit <= this.panels.length && (() => this.show({ focus: digit - 1 }, true)));
    if (!act) return;
    event.preventDefault();
    act();
  }

  get policy() {
    return this.replay.policies[this.view.focus];
  }

  seek(time) {
    this.show({ time: Math.min(Math.max(Math.round(time), 0), this.replay.steps) });
    if (!this.playing) this.speak();
  }

  seekEvent(direction) {
    let time = this.view.time + direction;
    while (time > 0 && time < this.replay.steps && !this.policy.events.any(time)) time += direction;
    this.seek(time);
  }

  turnTo(direction) {
    const team = this.replay.agents.length;
    this.show({ pinned: (this.view.pinned + direction + team) % team, hovered: -1 });
  }

  changeSpeed(direction) {
    const i = SPEEDS.indexOf(this.speed) + direction;
    this.speed = SPEEDS[Math.min(Math.max(i, 0), SPEEDS.length - 1)];
    find("speed").value = this.speed;
  }

  toggle() {
    this.playing = !this.playing;
    find("play").innerHTML = svgMark(this.playing ? "pause" : "play");
    find("play").setAttribute("aria-label", this.playing ? "Pause" : "Play");
    if (!this.playing) {
      this.draw();
      return this.speak();
    }
    if (this.view.time >= this.replay.steps) this.seek(0);
    let last = null;
    let owed = 0;
    const tick = (now) => {
      if (!this.playing) return;
      owed += last === null ? 0 : Math.min((now - last) / 1000, 0.25) * this.speed;
      last = now;
      const whole = Math.floor(owed + 0.02);
      if (whole > 0) {
        owed -= whole;
        this.seek(this.view.time + whole);
      }
      if (this.view.time >= this.replay.steps) return this.toggle();
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  show(change, relayout = false) {
    const before = this.view;
    this.view = { ...before, ...change };
    const same = Object.keys(change).every((name) => before[name] === this.view[name]);
    if (same) return;
    this.draw();
    // On a narrow screen only the panel in focus has room for its field.
    if (relayout && window.innerWidth <= 900) this.layout();
  }

  layout() {
    readPalette();
    this.panels.forEach((panel, i) => {
      panel.element.classList.toggle("in-focus", i === this.view.focus);
    });
    for (const panel of this.panels) panel.layout();
    this.timeline.layout();
    if (!find("legend").children.length) this.writeLegend();
    this.draw();
  }

  repaint() {
    readPalette();
    for (const panel of this.panels) panel.field.repaint();
    this.timeline.repaint();
    this.writeLegend();
    this.draw();
  }

  writeLegend() {
    const row = (sample, text) => {
      const item = document.createElement("li");
      if (typeof sample === "string") item.innerHTML = sample;
      else item.append(sample);
      item.append(text);
      return item;
    };
    const kinds = this.replay.policies[0].events.kinds;
    find("legend").replaceChildren(
      ...legendOf(this.replay.scene).map(([sample, text]) => row(sample, text)),
      ...kinds.map((kind) => row(svgMark(kind, 20), `${WORDS[kind][0]}: ${WORDS[kind][1]}`)),
    );
  }

  draw() {
    const { time, focus, pinned, hovered, hoveredIn } = this.view;
    const agent = hovered >= 0 ? hovered : pinned;
    const shownOf = hovered >= 0 ? hoveredIn : focus;
    this.panels.forEach((panel, i) => panel.draw(time, agent, i === focus));
    this.inspector.draw(this.replay.policies[shownOf], time, agent, this.playing);
    this.timeline.draw(time, focus);
    this.drawTable(time);
    this.drawWords(time);
    find("scrub").value = time;
    find("scrub").setAttribute("aria-valuetext", `step ${time} of ${this.replay.steps}`);
    const clock = `${time} <small>/ ${this.replay.steps}</small>`;
    if (this.clock !== clock) find("clock").innerHTML = this.clock = clock;
  }

  drawTable(time) {
    this.replay.policies.forEach((policy, i) => {
      const now = Math.min(time, policy.steps);
      this.replay.metrics.forEach(({ name }, j) => {
        setText(this.cells[i][j], number(policy.metrics[name][now], this.digits[j]));
      });
    });
  }

  drawWords(time) {
    const { policy } = this;
    const events = policy.events.at(time);
    const told = events.slice(0, 4).map((event) => eventInWords(this.replay.scene, event));
    if (events.length > told.length) told.push(`${events.length - told.length} more`);
    const quiet = time === 0 ? "the start" : time > policy.steps ? "over" : "nothing came or went";
    setText(find("happened"), `Step ${time}: ${told.join(", ") || quiet}.`);
    setText(find("story-of"), `events of ${policy.name}`);
    find("timeline").setAttribute("aria-label", `${policy.name}, ${find("happened").textContent}`);
  }

  // For those who listen: what is shown, whenever it stands still.
  speak() {
    const now = Math.min(this.view.time, this.policy.steps);
    setText(find("spoken"), `${find("happened").textContent} ${momentInWords(this.policy, now)}`);
  }
}

openReplay().then(
  (replay) => {
    readPalette();
    window.replay = new Player(replay);
    find("content").setAttribute("aria-busy", "false");
  },
  (error) => {
    find("lede").textContent = `This recording cannot be read here: ${error.message}`;
    throw error;
  },
);
