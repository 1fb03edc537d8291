// Wildfire alone: how a moment of it is drawn, and how its fires are called.

const MARGIN = 20; // room for the numbers of rows and columns
const LARGEST_CELL = 128;

class Field {
  constructor(scene, canvas) {
    this.scene = scene;
    this.canvas = canvas;
    this.sprites = new Map();
    this.burnable = new Map(scene.cells.map(([y, x], row) => [`${y},${x}`, row]));
    this.places = this.agentPlaces();
  }

  // Where agents stand within their cell: in a row below the fire if there can be one.
  agentPlaces() {
    const { positions } = this.scene;
    const crowds = new Map();
    positions.forEach(([y, x], agent) => {
      const at = `${y},${x}`;
      crowds.set(at, [...(crowds.get(at) ?? []), agent]);
    });
    const places = [];
    for (const [at, crowd] of crowds) {
      const [y, x] = at.split(",").map(Number);
      const many = crowd.length;
      const part = Math.min(0.27, 0.9 / many);
      const side = Math.ceil(Math.sqrt(many));
      crowd.forEach((agent, i) => {
        places[agent] = this.burnable.has(at)
          ? { x: x + 0.5 + (i - (many - 1) / 2) * part, y: y + 0.84, radius: part * 0.42 }
          : {
            x: x + ((i % side) + 0.5) / side,
            y: y + (Math.floor(i / side) + 0.5) / side,
            radius: 0.27 / side,
          };
      });
    }
    return places;
  }

  layout(width, height) {
    const [rows, columns] = this.scene.grid;
    const side = Math.min((width - MARGIN) / columns, (height - MARGIN) / rows, LARGEST_CELL);
    this.side = side > 12 ? Math.floor(side) : Math.floor(side * 4) / 4;
    this.context = fit(this.canvas, this.side * columns + MARGIN, this.side * rows + MARGIN);
    this.repaint();
  }

  repaint() {
    this.sprites.clear();
    this.ground = null;
  }

  // The agent under a point of the canvas, or the nearest in its cell.
  agentAt(px, py) {
    const [x, y] = [(px - MARGIN) / this.side, (py - MARGIN) / this.side];
    let best = -1;
    let least = Infinity;
    this.places.forEach((place, agent) => {
      const [row, column] = this.scene.positions[agent];
      const [dx, dy] = [place.x - x, place.y - y];
      const within = Math.floor(y) === row && Math.floor(x) === column;
      const distance = Math.hypot(dx, dy);
      if ((within || distance * this.side < 14) && distance < least) {
        best = agent;
        least = distance;
      }
    });
    return best;
  }

  draw(policy, time, agent) {
    const { context } = this;
    this.paintChanges(policy, time);
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.ground, 0, 0);
    context.restore();
    context.save();
    context.translate(MARGIN, MARGIN);
    if (agent >= 0) this.drawPointing(policy, time, agent);
    this.drawFights(policy, time);
    this.drawAgents(policy, time, agent);
    this.drawEvents(policy, time);
    context.restore();
  }

  // Cells are painted once and then again only where they changed: most do not.
  paintChanges(policy, time) {
    const { side, scene } = this;
    const scale = this.context.getTransform().a;
    if (!this.ground) {
      this.ground = this.paintGround(scale);
      this.painted = new Int32Array(policy.tasks).fill(-1);
    }
    const context = this.ground.getContext("2d");
    const from = time * policy.tasks;
    for (let task = 0; task < policy.tasks; task++) {
      const condition = policy.intensity[from + task] * 2 + policy.exists[from + task];
      if (condition === this.painted[task]) continue;
      this.painted[task] = condition;
      const [y, x, size] = scene.cells[task];
      const at = [MARGIN + x * side, MARGIN + y * side, side, side];
      context.fillStyle = palette.card;
      context.fillRect(...at);
      context.drawImage(this.sprite(size, condition, scale), ...at);
    }
  }

  paintGround(scale) {
    const [rows, columns] = this.scene.grid;
    const { side } = this;
    const ground = document.createElement("canvas");
    ground.width = this.canvas.width;
    ground.height = this.canvas.height;
    const context = ground.getContext("2d");
    context.scale(scale, scale);
    context.fillStyle = palette.soft;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const every = side >= 16 ? 1 : side >= 7 ? 5 : 10;
    for (let x = 0; x < columns; x += every) {
      context.fillText(x, MARGIN + (x + 0.5) * side, MARGIN / 2);
    }
    for (let y = 0; y < rows; y += every) {
      context.fillText(y, MARGIN / 2, MARGIN + (y + 0.5) * side);
    }
    for (let y = 0; y < rows; y++) {
      for (let x = 0; x < columns; x++) {
        context.save();
        context.translate(MARGIN + x * side, MARGIN + y * side);
        paintEarth(context, side);
        context.restore();
      }
    }
    return ground;
  }

  // Cells in the same condition look the same: each is painted once.
  sprite(size, condition, scale) {
    return this.once(`${size} ${condition}`, this.side, scale, (context) => {
      const [intensity, burns] = [condition >> 1, condition & 1];
      paintEarth(context, this.side);
      paintCell(context, this.side, size, intensity, burns, this.scene.burntOut);
    });
  }

  once(key, side, scale, paint) {
    let sprite = this.sprites.get(key);
    if (!sprite) {
      sprite = document.createElement("canvas");
      sprite.width = sprite.height = Math.ceil(side * scale);
      const context = sprite.getContext("2d");
      context.scale(sprite.width / side, sprite.width / side);
      paint(context);
      this.sprites.set(key, sprite);
    }
    return sprite;
  }

  middle(task) {
    const [y, x] = this.scene.cells[task];
    return [(x + 0.5) * this.side, (y + 0.46) * this.side];
  }

  radius(agent) {
    return Math.max(this.places[agent].radius * this.side, 2.8);
  }

  drawAgents(policy, time, marked) {
    const { context, side } = this;
    const scale = context.getTransform().a;
    this.places.forEach((place, agent) => {
      const at = time * policy.team + agent;
      const r = this.radius(agent);
      const [x, y] = [place.x * side, place.y * side];
      const look = {
        here: policy.present[at],
        // Small ones have room neither for a number nor for a tank.
        label: r > 6.5 ? agent + 1 : "",
        has: r > 9 ? policy.suppressant[at] : 0,
        holds: r > 9 ? fullTank(this.scene, policy, at) : 0,
      };
      const room = 2 * Math.ceil(r + (r > 9 ? 7 : 2));
      const key = `agent ${r} ${Object.values(look).join(" ")}`;
      const sprite = this.once(key, room, scale, (sheet) => {
        sheet.translate(room / 2, room / 2);
        paintAgent(sheet, r, look);
      });
      // On whole pixels, where it stays sharp.
      const [left, top] = [x - room / 2, y - room / 2].map(Math.round);
      context.drawImage(sprite, left, top, room, room);
    });
    if (marked < 0) return;
    const { x, y } = this.places[marked];
    const r = this.radius(marked);
    context.strokeStyle = palette.ink;
    context.lineWidth = 2.5;
    context.beginPath();
    context.arc(x * side, y * side, r + (r > 9 ? 9 : 4), 0, 2 * Math.PI);
    context.stroke();
  }

  drawFights(policy, time) {
    if (time >= policy.steps) return;
    const { context, side } = this;
    const thick = side >= 44 ? 3 : side >= 16 ? 2 : 1;
    const arrows = new Path2D();
    this.places.forEach((place, agent) => {
      const task = policy.actions[time * policy.team + agent] - 1;
      if (task < 0) return;
      const [tx, ty] = this.middle(task);
      const [x, y] = [place.x * side, place.y * side];
      const away = Math.hypot(tx - x, ty - y);
      // Up to the edge of the fire; a fire in one's own cell is close by.
      const short = away < side / 2 ? 0.7 : 1 - (side * 0.36) / away;
      const [ex, ey] = [x + (tx - x) * short, y + (ty - y) * short];
      arrows.moveTo(x, y);
      arrows.lineTo(ex, ey);
      if (thick > 1) arrowHead(arrows, x, y, ex, ey, thick * 3);
    });
    context.lineCap = "round";
    if (thick > 1) {
      context.lineWidth = thick + 3;
      context.strokeStyle = palette.card;
      context.stroke(arrows);
    }
    context.lineWidth = thick;
    context.strokeStyle = palette.ink;
    context.stroke(arrows);
  }

  // Where the marked agent may point, how far it reaches, and how likely each is.
  drawPointing(policy, time, agent) {
    const { context, side, scene } = this;
    const [y, x] = scene.positions[agent];
    const bonus = scene.equipment[policy.equipment[time * policy.team + agent]][2];
    const reach = scene.reach[agent] + bonus;
    const [rows, columns] = scene.grid;
    const [left, top] = [Math.max(x - reach, 0), Math.max(y - reach, 0)];
    const right = Math.min(x + reach + 1, columns);
    const bottom = Math.min(y + reach + 1, rows);
    context.strokeStyle = palette.soft;
    context.lineWidth = 1.5;
    context.setLineDash([4, 4]);
    context.strokeRect(left * side, top * side, (right - left) * side, (bottom - top) * side);
    context.setLineDash([]);
    if (!policy.choices || time >= policy.steps) return;
    for (const { index, share } of policy.choices(time, agent).entries) {
      if (index === 0) continue;
      const [cy, cx] = scene.cells[index - 1];
      const width = Math.max(side * 0.07 * share, share > 0.01 ? 1 : 0.4);
      context.strokeStyle = palette.accent;
      context.lineWidth = width;
      const inset = width / 2 + (side >= 20 ? 1.5 : 0);
      context.strokeRect(
        ...[cx * side + inset, cy * side + inset, side - 2 * inset, side - 2 * inset],
      );
      if (side >= 44 && share >= 0.005) this.drawShare(cx, cy, share);
    }
  }

  drawShare(cx, cy, share) {
    const { context, side } = this;
    // The size of the fire stands on the left; small cells leave less room beside it.
    const small = side < 84;
    const text = `${Math.round(100 * share)}${small ? "" : " "}%`;
    context.font = `600 ${small ? 11 : 12}px system-ui, sans-serif`;
    const width = context.measureText(text).width + (small ? 6 : 10);
    const [x, y] = [(cx + 1) * side - width - 4, cy * side + 4];
    context.fillStyle = palette.accent;
    context.beginPath();
    context.roundRect(x, y, width, 18, 9);
    context.fill();
    context.fillStyle = palette["on-accent"];
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, x + width / 2, y + 9.5);
  }

  // What happened in the step that led here, where it happened.
  drawEvents(policy, time) {
    const { side, context } = this;
    if (side < 12) return;
    const size = Math.min(side * (side < 44 ? 0.5 : 0.22), 22);
    const [ink, halo] = [palette.ink, palette.card];
    const marked = new Set();
    for (const { kind, row } of policy.events.at(time)) {
      if (kind === "departure" || kind === "return") {
        // Aslant, where arrows are rare.
        const aside = 0.75 * (this.radius(row) + (side >= 44 ? 12 : 2));
        const { x, y } = this.places[row];
        drawMark(context, kind, x * side - aside, y * side - aside, size * 0.8, ink, halo);
      } else {
        // A fire that is put out can light up again at once: a mark in each corner.
        const inset = marked.has(row) ? side - size * 0.8 : size * 0.8;
        marked.add(row);
        const [cy, cx] = this.scene.cells[row];
        const y = (cy + 1) * side - size * 0.8;
        drawMark(context, kind, cx * side + inset, y, size, ink, halo);
      }
    }
  }
}

function paintAgent(context, r, { here, label, has, holds }) {
  context.lineWidth = r > 6 ? 2 : 1;
  context.beginPath();
  context.arc(0, 0, r, 0, 2 * Math.PI);
  context.fillStyle = here ? palette.water : palette.card;
  context.fill();
  if (!here) context.setLineDash(r > 6 ? [3, 3] : [1.5, 1.5]);
  context.strokeStyle = here ? palette.card : palette.soft;
  context.stroke();
  context.setLineDash([]);
  if (holds || has) paintTank(context, r, has, Math.max(has, holds));
  context.fillStyle = here ? palette["on-water"] : palette.soft;
  context.font = `650 ${Math.min(r * 1.05, 20)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(label, 0, 0.5);
}

// Around an agent, a piece of a ring for each unit its tank holds: full or empty.
function paintTank(context, r, has, holds) {
  const pieces = Math.min(Math.max(Math.ceil(holds), 1), 12);
  const arc = (2 * Math.PI) / pieces;
  const gap = pieces > 1 ? 0.12 : 0;
  for (let piece = 0; piece < pieces; piece++) {
    const full = ((piece + 1) * holds) / pieces <= has + 1e-6;
    context.strokeStyle = full ? palette.water : palette.brush;
    context.lineWidth = full ? 4 : 1.5;
    context.beginPath();
    const start = piece * arc - Math.PI / 2;
    context.arc(0, 0, r + 4, start + gap, start + arc - gap);
    context.stroke();
  }
}

// The place of a cell, whatever is on it.
function paintEarth(context, side) {
  const gap = side >= 20 ? 1.5 : side >= 8 ? 0.5 : 0;
  context.fillStyle = palette.ground;
  context.beginPath();
  const inner = side - 2 * gap;
  context.roundRect(gap, gap, inner, inner, side >= 20 ? side * 0.08 : 0);
  context.fill();
}

function arrowHead(context, x, y, ex, ey, size) {
  const angle = Math.atan2(ey - y, ex - x);
  for (const turn of [-0.5, 0.5]) {
    context.moveTo(ex, ey);
    context.lineTo(ex - size * Math.cos(angle + turn), ey - size * Math.sin(angle + turn));
  }
}

function paintCell(context, side, size, intensity, burns, burntOut) {
  const gap = side >= 20 ? 1.5 : side >= 8 ? 0.5 : 0;
  const inner = side - 2 * gap;
  const round = side >= 20 ? side * 0.08 : 0;
  const box = () => {
    context.beginPath();
    context.roundRect(gap, gap, inner, inner, round);
  };
  if (burns) {
    const heat = burntOut > 2 ? (intensity - 1) / (burntOut - 2) : 1;
    const fill = mixed(palette["heat-low"], palette["heat-high"], heat);
    const ink = inkOn(fill);
    context.fillStyle = `rgb(${fill})`;
    if (side >= 16) {
      box();
      context.fill();
      paintFire(context, side, size, intensity, burntOut, ink);
    } else {
      // The area tells the intensity where there is no room for a number.
      const part = side * (0.45 + 0.55 * heat);
      context.fillRect((side - part) / 2, (side - part) / 2, part, part);
    }
  } else if (intensity >= burntOut) {
    context.fillStyle = palette.burnt;
    box();
    context.fill();
    context.strokeStyle = palette["burnt-mark"];
    context.lineWidth = Math.max(side * 0.03, 0.75);
    context.beginPath();
    const [low, high] = [side * 0.3, side * 0.7];
    context.moveTo(low, low);
    context.lineTo(high, high);
    context.moveTo(high, low);
    context.lineTo(low, high);
    context.stroke();
  } else if (side >= 16) {
    context.strokeStyle = palette.brush;
    context.setLineDash([side * 0.04, side * 0.05]);
    context.lineWidth = Math.max(1, side * 0.015);
    context.beginPath();
    const inset = gap + side * 0.06;
    context.roundRect(inset, inset, side - 2 * inset, side - 2 * inset, round);
    context.stroke();
    context.setLineDash([]);
    if (side >= 28) paintSize(context, side, size, palette.soft);
  } else {
    context.fillStyle = palette.brush;
    const part = Math.max(side * 0.2, 1);
    context.fillRect((side - part) / 2, (side - part) / 2, part, part);
  }
}

function paintFire(context, side, size, intensity, burntOut, ink) {
  if (side < 44) {
    context.fillStyle = ink;
    context.font = `650 ${side * 0.5}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(intensity, side / 2, side / 2 + 1);
    if (side >= 28) paintSize(context, side, size, ink);
    return;
  }
  const flame = side * (0.22 + 0.2 * (intensity / Math.max(burntOut - 1, 1)));
  drawMark(context, "flame", side / 2, side * 0.4, flame, ink);
  paintSize(context, side, size, ink);
  const pips = burntOut - 1;
  const room = Math.min(side * 0.5, pips * side * 0.12);
  for (let i = 0; i < pips; i++) {
    const x = side / 2 - room / 2 + (room * (i + 0.5)) / pips;
    context.beginPath();
    context.arc(x, side * 0.68, Math.min(side * 0.035, (room / pips) * 0.38), 0, 2 * Math.PI);
    context.lineWidth = 1;
    context.strokeStyle = context.fillStyle = ink;
    context.stroke();
    if (i < intensity) context.fill();
  }
}

// The size of a fire is the power it takes: a number in the corner.
function paintSize(context, side, size, ink) {
  context.fillStyle = ink;
  context.font = `600 ${Math.max(10, Math.min(side * 0.15, 17))}px system-ui, sans-serif`;
  context.textAlign = "left";
  context.textBaseline = "top";
  context.fillText(`×${size}`, side * 0.1, side * 0.1);
}

const cellName = ([y, x]) => `(${y}, ${x})`;

function taskName(scene, policy, time, task) {
  const intensity = policy.intensity[time * policy.tasks + task];
  const size = scene.cells[task][2];
  return `fire ${cellName(scene.cells[task])} · size ${size} · intensity ${intensity}`;
}

// What a refill would give now: the tank, and what the equipment adds to it.
function fullTank(scene, policy, at) {
  return policy.capacity[at] + scene.equipment[policy.equipment[at]][0];
}

function agentStatus(scene, policy, time, agent) {
  const at = time * policy.team + agent;
  const [has, holds] = [policy.suppressant[at], fullTank(scene, policy, at)];
  const tank = `${+has.toFixed(2)} of ${+holds.toFixed(2)}`;
  const parts = [["tank", tank], ["power", scene.power[agent]], ["reach", scene.reach[agent]]];
  parts.push(["at", cellName(scene.positions[agent])]);
  if (scene.equipment.some((bonus) => bonus.some((b) => b !== 0))) {
    parts.push(["equipment", `${policy.equipment[at] + 1} of ${scene.equipment.length}`]);
  }
  return parts;
}

function momentInWords(policy, time) {
  let fires = 0;
  for (let i = 0; i < policy.tasks; i++) fires += policy.exists[time * policy.tasks + i];
  let here = 0;
  for (let i = 0; i < policy.team; i++) here += policy.present[time * policy.team + i];
  return `${plural(fires, "fire")} · ${here} of ${plural(policy.team, "agent")} here`;
}

function eventInWords(scene, { kind, row }) {
  if (kind === "departure") return `agent ${row + 1} runs dry and leaves`;
  if (kind === "return") return `agent ${row + 1} is back`;
  const cell = cellName(scene.cells[row]);
  return {
    ignition: `${cell} ignites`,
    spread: `fire spreads to ${cell}`,
    putout: `${cell} is put out`,
    burnout: `${cell} burns out`,
  }[kind];
}

// A row of the legend: a sample as it is drawn, and what it means.
function legendOf(scene) {
  const hot = scene.burntOut - 1;
  const sample = (paint) => {
    const canvas = document.createElement("canvas");
    paint(fit(canvas, 44, 44));
    return canvas;
  };
  const cell = (...condition) =>
    sample((context) => paintCell(context, 44, ...condition, scene.burntOut));
  const dot = (here, fights) =>
    sample((context) => {
      context.translate(22, 22);
      paintAgent(context, 11, { here, label: "", has: here ? 1 : 0, holds: 2 });
      if (!fights) return;
      context.strokeStyle = palette.ink;
      context.lineWidth = 3;
      context.lineCap = "round";
      context.beginPath();
      context.moveTo(0, 0);
      context.lineTo(20, 0);
      arrowHead(context, 0, 0, 20, 0, 8);
      context.stroke();
    });
  return [
    [cell(2, 1, 1), `a fire of size 2 (the power it takes), intensity 1 of ${hot}`],
    [cell(2, hot, 1), `as hot as it gets: intensity ${hot}, filled dots`],
    [cell(2, 0, 0), "can burn, does not"],
    [cell(2, scene.burntOut, 0), "burnt out"],
    [dot(1, false), "an agent; the ring is its tank, thick where full"],
    [dot(1, true), "it fights the fire it points at; without an arrow it waits"],
    [dot(0, false), "away: its tank is empty, it waits for a refill"],
  ];
}
