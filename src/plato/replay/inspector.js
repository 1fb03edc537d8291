// One agent of one policy: its tank, what it does, and where it points.

const SHOWN_WHILE_PLAYING = 12; // more cannot be read while they change

const find = (id) => document.getElementById(id);

class Inspector {
  constructor(replay) {
    this.replay = replay;
    this.lists = { choices: find("choices"), attention: find("attention") };
  }

  draw(policy, time, agent, playing) {
    this.most = playing ? SHOWN_WHILE_PLAYING : Infinity;
    const { scene } = this.replay;
    const now = Math.min(time, policy.steps);
    const at = now * policy.team + agent;
    setText(find("inspected-policy"), policy.name);
    setText(find("inspected-agent"), `Agent ${agent + 1}`);
    find("inspected-agent").title = this.replay.agents[agent];
    const here = policy.present[at];
    const status = [["", here ? "● here" : "○ away"], ...agentStatus(scene, policy, now, agent)];
    const html = status.map(([word, value]) => `<span>${word} <b>${value}</b></span>`).join("");
    const place = find("inspected-status");
    if (this.status !== html) place.innerHTML = this.status = html;
    setText(find("inspected-decision"), this.decision(policy, now, agent, here));
    this.drawChoices(policy, now, agent, here);
    this.drawAttention(policy, now, agent, here);
  }

  decision(policy, now, agent, here) {
    if (now >= policy.steps) return "The episode is over.";
    const action = policy.actions[now * policy.team + agent];
    if (!here) return "It waits for a refill; there is nothing to choose.";
    if (action === 0) return "It waits (NOOP).";
    const task = taskName(this.replay.scene, policy, now, action - 1).split(" · ")[0];
    return `It fights the ${task}.`;
  }

  drawChoices(policy, now, agent, here) {
    const decides = now < policy.steps && here;
    const shown = policy.choices && decides ? policy.choices(now, agent) : null;
    const action = decides ? policy.actions[now * policy.team + agent] : -1;
    const nameOf = (choice) =>
      choice === 0 ? "NOOP · wait" : taskName(this.replay.scene, policy, now, choice - 1);
    const entries = shown ? shown.entries : action >= 0 ? [{ index: action, share: null }] : [];
    this.fill("choices", entries, shown, nameOf, action, "further choices");
    let note = "";
    if (decides && !policy.choices) note = "This policy has no probabilities: only what it chose.";
    else if (shown) note = "Probabilities of the policy; they add up to 100 %.";
    setText(find("choices-note"), note);
  }

  drawAttention(policy, now, agent, here) {
    find("attention-section").hidden = !policy.attention;
    if (!policy.attention) return;
    const shown = now < policy.steps && here ? policy.attention(now, agent) : null;
    const nameOf = (other) => {
      const away = policy.present[now * policy.team + other] ? "" : " · away";
      return `agent ${other + 1}${other === agent ? " · itself" : ""}${away}`;
    };
    this.fill("attention", shown ? shown.entries : [], shown, nameOf, -1, "further teammates");
    const note = "How much of each enters its query.";
    setText(find("attention-note"), shown ? note : "");
  }

  fill(which, entries, shown, nameOf, taken, further) {
    const list = this.lists[which];
    const listed = entries.slice(0, this.most);
    const rows = listed.map(({ index, share }) => ({
      index,
      share,
      name: (index === taken ? "▸ " : "") + nameOf(index),
      taken: index === taken,
    }));
    const left = entries.slice(listed.length);
    const others = (shown ? shown.others : 0) + left.length;
    if (others) {
      const share = left.reduce((sum, entry) => sum + entry.share, shown.rest);
      rows.push({ index: -1, share, name: `${others} ${further}` });
    }
    while (list.children.length > rows.length) list.lastChild.remove();
    while (list.children.length < rows.length) {
      const row = document.createElement("li");
      row.append(document.createElement("span"), document.createElement("span"));
      list.append(row);
    }
    rows.forEach((row, i) => {
      const element = list.children[i];
      element.classList.toggle("taken", Boolean(row.taken));
      element.dataset.index = row.index;
      element.dataset.share = row.share ?? "";
      element.classList.toggle("rest", row.index < 0);
      element.style.setProperty("--share", row.share ?? 0);
      setText(element.children[0], row.name);
      setText(element.children[1], row.share === null ? "chosen" : percent(row.share));
    });
  }
}
