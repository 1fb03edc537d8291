// Shapes that tell things apart without colour, on canvases and in text alike.

const MARKS = {
  flame:
    "M8 .8C9 4 13 6 13 10.2a5 5 0 0 1-10 0C3 8 4 6.6 5 5.6c.2 1.4 1 2 1.6 2C6 5 6.6 2.4 8 .8Z",
  ignition: "M8 .5 9.8 6.2 15.5 8 9.8 9.8 8 15.5 6.2 9.8.5 8 6.2 6.2Z",
  spread: "M1 5.8h6.5V1.8L15 8l-7.5 6.2v-4H1Z",
  putout: "M8 1S3 7 3 10.4a5 5 0 0 0 10 0C13 7 8 1 8 1Z",
  burnout: "M3.2 1 8 5.8 12.8 1 15 3.2 10.2 8l4.8 4.8-2.2 2.2L8 10.2 3.2 15 1 12.8 5.8 8 1 3.2Z",
  departure: "M1 3.2h14L8 14Z",
  return: "M1 12.8h14L8 2Z",
  play: "M4 2v12l10-6Z",
  pause: "M3.5 2h3.2v12H3.5Zm5.8 0h3.2v12H9.3Z",
  back: "M12.5 2v12L5 8Zm-9 0h2v12h-2Z",
  forth: "M3.5 2v12L11 8Zm7 0h2v12h-2Z",
};

const PATHS = Object.fromEntries(
  Object.entries(MARKS).map(([name, d]) => [name, new Path2D(d)]),
);

const WORDS = {
  ignition: ["ignition", "a cell catches fire with no fire beside it"],
  spread: ["spread", "a cell catches fire beside one that burns"],
  putout: ["put out", "a fire is put out"],
  burnout: ["burnt out", "a fire burns out, for good"],
  departure: ["departure", "an agent runs dry and leaves"],
  return: ["return", "an agent is back with a full tank"],
};

function svgMark(name, size = 16) {
  return `<svg width="${size}" height="${size}" viewBox="0 0 16 16" aria-hidden="true">` +
    `<path d="${MARKS[name]}" fill="currentColor"/></svg>`;
}

function drawMark(context, name, x, y, size, colour, halo) {
  context.save();
  context.translate(x - size / 2, y - size / 2);
  context.scale(size / 16, size / 16);
  if (halo) {
    context.strokeStyle = halo;
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.stroke(PATHS[name]);
  }
  context.fillStyle = colour;
  context.fill(PATHS[name]);
  context.restore();
}

const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [4, 2], [12, 4]];
const dashOf = (i) => DASHES[i % DASHES.length];
const seriesOf = (i) => `--series-${(i % 6) + 1}`;

let palette = {};

// Colours come from the style sheet, so that canvases follow light and dark too.
function readPalette() {
  const style = getComputedStyle(document.documentElement);
  palette = new Proxy({}, {
    get(seen, name) {
      return (seen[name] ??= style.getPropertyValue(`--${name}`).trim());
    },
  });
}

function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

function mixed(low, high, part) {
  const [from, to] = [rgb(low), rgb(high)];
  return from.map((c, i) => Math.round(c + (to[i] - c) * part));
}

// Black or white, whichever reads better on a colour.
function inkOn([r, g, b]) {
  const light = [r, g, b].map((c) => {
    const part = c / 255;
    return part <= 0.04 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
  return luminance > 0.18 ? "#1f1408" : "#ffffff";
}

const number = (value, digits = 2) =>
  (Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value).toFixed(digits).replace("-", "−");
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

function fit(canvas, width, height) {
  const scale = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}
