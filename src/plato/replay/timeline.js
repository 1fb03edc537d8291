// Returns as they grow, and below them a lane for each kind of event.

const CHART = 104;
const LANE = 20;
const FOOT = 18;

class Timeline {
  constructor(replay, canvas, on) {
    this.replay = replay;
    this.canvas = canvas;
    let dragging = false;
    const seek = (event) => on.seek(this.stepAt(event.offsetX));
    canvas.addEventListener("pointerdown", (event) => {
      dragging = true;
      canvas.setPointerCapture(event.pointerId);
      seek(event);
    });
    canvas.addEventListener("pointermove", (event) => dragging && seek(event));
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, () => (dragging = false));
    }
  }

  layout() {
    const width = this.canvas.parentElement.clientWidth - 2 *
      parseFloat(getComputedStyle(this.canvas.parentElement).paddingLeft);
    const kinds = this.replay.policies[0].events.kinds.length;
    this.width = width;
    this.left = width < 520 ? 118 : 132;
    this.right = width - 6;
    this.height = CHART + kinds * LANE + FOOT;
    this.context = fit(this.canvas, width, this.height);
    this.base = null;
  }

  x(step) {
    return this.left + ((this.right - this.left) * step) / Math.max(this.replay.steps, 1);
  }

  stepAt(px) {
    const part = (px - this.left) / (this.right - this.left);
    return Math.round(Math.min(Math.max(part, 0), 1) * this.replay.steps);
  }

  repaint() {
    this.base = null;
  }

  draw(time, focus) {
    if (this.base === null || this.painted !== focus) this.paint(focus);
    const { context } = this;
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.base, 0, 0);
    context.restore();
    const x = this.x(time);
    context.strokeStyle = palette.ink;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, 4);
    context.lineTo(x, this.height - FOOT);
    context.stroke();
    context.fillStyle = palette.ink;
    context.beginPath();
    context.arc(x, 5, 4, 0, 2 * Math.PI);
    context.fill();
    const { totals } = this.replay.policies[focus].events;
    const now = Math.min(time, this.replay.policies[focus].steps);
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    totals.forEach((upTo, kind) => {
      context.fillText(upTo[now], this.left - 10, CHART + (kind + 0.5) * LANE);
    });
  }

  paint(focus) {
    this.base = document.createElement("canvas");
    const context = fit(this.base, this.width, this.height);
    this.painted = focus;
    this.paintReturns(context, focus);
    this.paintLanes(context, this.replay.policies[focus].events);
    this.paintSteps(context);
  }

  paintReturns(context, focus) {
    const { policies } = this.replay;
    let [low, high] = [0, 0];
    for (const { metrics } of policies) {
      for (const value of metrics.return) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    const y = (value) => 12 + ((CHART - 28) * (high - value)) / Math.max(high - low, 1e-9);
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.lineWidth = 1;
    const marks = new Set([0]);
    if (high > (high - low) * 0.2) marks.add(high);
    if (-low > (high - low) * 0.2) marks.add(low);
    for (const value of marks) {
      context.fillStyle = palette.soft;
      context.fillText(number(value, value % 1 ? 1 : 0), this.left - 10, y(value));
      context.strokeStyle = palette.line;
      context.beginPath();
      context.moveTo(this.left, y(value));
      context.lineTo(this.right, y(value));
      context.stroke();
    }
    context.textAlign = "left";
    context.fillText("return", 0, 12);
    const order = policies.map((_, i) => i).sort((a, b) => (a === focus) - (b === focus));
    for (const i of order) {
      const values = policies[i].metrics.return;
      context.strokeStyle = palette[seriesOf(i).slice(2)];
      context.lineWidth = i === focus ? 2.75 : 1.75;
      context.setLineDash(dashOf(i));
      context.beginPath();
      values.forEach((value, t) => {
        if (t === 0) context.moveTo(this.x(0), y(value));
        else {
          context.lineTo(this.x(t), y(values[t - 1]));
          context.lineTo(this.x(t), y(value));
        }
      });
      context.stroke();
    }
    context.setLineDash([]);
  }

  paintLanes(context, { kinds, counts }) {
    context.textAlign = "left";
    context.textBaseline = "middle";
    const wide = Math.min(Math.max((this.right - this.left) / this.replay.steps - 1, 1), 6);
    kinds.forEach((kind, lane) => {
      const top = CHART + lane * LANE;
      context.fillStyle = palette.ink;
      drawMark(context, kind, 7, top + LANE / 2, 12, palette.ink);
      context.font = "12.5px system-ui, sans-serif";
      context.fillText(WORDS[kind][0], 20, top + LANE / 2);
      context.strokeStyle = palette.line;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(this.left, top + LANE - 1.5);
      context.lineTo(this.right, top + LANE - 1.5);
      context.stroke();
      const most = counts[lane].reduce((one, other) => Math.max(one, other), 1);
      context.fillStyle = palette.soft;
      counts[lane].forEach((count, step) => {
        if (!count) return;
        const height = 5 + (LANE - 9) * (most > 1 ? (count - 1) / (most - 1) : 0.5);
        context.fillRect(this.x(step) - wide / 2, top + LANE - 2 - height, wide, height);
      });
    });
  }

  paintSteps(context) {
    context.fillStyle = palette.soft;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "bottom";
    const { steps } = this.replay;
    const raw = Math.max(steps / Math.max((this.right - this.left) / 90, 1), 1);
    const unit = 10 ** Math.floor(Math.log10(raw));
    const every = [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= raw);
    for (let step = 0; step <= steps; step += every) {
      context.textAlign = step === 0 ? "left" : this.x(step) > this.right - 16 ? "right" : "center";
      context.fillText(step === 0 ? "step 0" : step, this.x(step), this.height);
    }
  }
}
