// Reads a recording back: its description, and the arrays that packing.py packed.

const KINDS_OF_ARRAY = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array };
const WHOLE = 65535;

async function openReplay() {
  const about = JSON.parse(document.getElementById("about").textContent);
  const bytes = await inflate(document.getElementById("arrays").textContent);
  const read = (place) => readArray(bytes, place);
  const policies = about.policies.map((policy) => openPolicy(policy, about, read));
  return { ...about, policies, steps: Math.max(...policies.map((p) => p.steps)) };
}

async function inflate(text) {
  const characters = atob(text);
  const packed = new Uint8Array(characters.length);
  for (let i = 0; i < packed.length; i++) packed[i] = characters.charCodeAt(i);
  const stream = new Blob([packed]).stream();
  const whole = stream.pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(whole).arrayBuffer());
}

function readArray(bytes, { at, length, type }) {
  const Kind = KINDS_OF_ARRAY[type];
  const size = Kind.BYTES_PER_ELEMENT;
  const woven = new Uint8Array(length * size);
  for (let plane = 0; plane < size; plane++) {
    const from = at + plane * length;
    for (let i = 0; i < length; i++) woven[i * size + plane] = bytes[from + i];
  }
  return new Kind(woven.buffer);
}

function openPolicy(policy, about, read) {
  const each = (places) =>
    Object.fromEntries(Object.entries(places).map(([name, place]) => [name, read(place)]));
  const team = about.agents.length;
  return {
    name: policy.name,
    steps: policy.steps,
    tasks: about.scene.cells.length,
    team,
    ...each(policy.arrays),
    metrics: each(policy.metrics),
    choices: openShares(policy.choices, team, read),
    attention: openShares(policy.attention, team, read),
    events: openEvents(policy, read),
  };
}

// Rows of different lengths, one for each step and agent.
function openShares(shares, team, read) {
  if (!shares) return null;
  const kept = read(shares.kept);
  const counted = read(shares.counted);
  const index = read(shares.index);
  const probability = read(shares.probability);
  const starts = new Uint32Array(kept.length + 1);
  for (let i = 0; i < kept.length; i++) starts[i + 1] = starts[i] + kept[i];
  return (step, agent) => {
    const row = step * team + agent;
    const entries = [];
    let total = 0;
    for (let i = starts[row]; i < starts[row + 1]; i++) {
      const share = probability[i] / WHOLE;
      total += share;
      entries.push({ index: index[i], share });
    }
    entries.sort((one, other) => other.share - one.share || one.index - other.index);
    const others = counted[row] - kept[row];
    return { entries, others, rest: others ? Math.max(0, 1 - total) : 0 };
  };
}

function openEvents({ events, steps }, read) {
  const time = read(events.time);
  const kind = read(events.kind);
  const row = read(events.row);
  const counts = events.kinds.map(() => new Uint32Array(steps + 1));
  for (let i = 0; i < time.length; i++) counts[kind[i]][time[i]]++;
  const totals = counts.map((perStep) => {
    let sum = 0;
    return perStep.map((count) => (sum += count));
  });
  const starts = new Uint32Array(steps + 2);
  for (let i = 0; i < time.length; i++) starts[time[i] + 1]++;
  for (let t = 0; t <= steps; t++) starts[t + 1] += starts[t];
  return {
    kinds: events.kinds,
    counts, // [kind][step]: how many happened in the step that led there
    totals, // [kind][step]: how many up to there
    at(step) {
      const found = [];
      if (step > steps) return found;
      for (let i = starts[step]; i < starts[step + 1]; i++) {
        found.push({ kind: events.kinds[kind[i]], row: row[i] });
      }
      return found;
    },
    any: (step) => step <= steps && starts[step + 1] > starts[step],
  };
}
