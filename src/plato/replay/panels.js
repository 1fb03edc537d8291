// One panel for each policy: its name, its return and its field.

class Panel {
  constructor(replay, i, on) {
    this.policy = replay.policies[i];
    this.element = document.createElement("article");
    this.element.className = "card panel";
    this.element.innerHTML = `
      <button type="button" class="panel-head">
        <svg width="26" height="10" aria-hidden="true"><line x1="1" x2="25" y1="5" y2="5"
          stroke="var(${seriesOf(i)})" stroke-width="3"
          stroke-dasharray="${dashOf(i).join(" ")}"/></svg>
        <span class="panel-name"></span>
        <span class="panel-return"><small>return</small> <span></span></span>
      </button>
      <div class="panel-field"><canvas tabindex="0" role="img"></canvas></div>
      <p class="panel-foot small soft"></p>`;
    this.head = this.element.querySelector("button");
    this.name = this.element.querySelector(".panel-name");
    this.name.textContent = this.policy.name;
    this.head.title = this.policy.name;
    this.figure = this.element.querySelector(".panel-return > span");
    this.foot = this.element.querySelector(".panel-foot");
    this.canvas = this.element.querySelector("canvas");
    this.field = new Field(replay.scene, this.canvas);
    this.head.addEventListener("click", () => on.focus(i));
    const agentUnder = (event) => this.field.agentAt(event.offsetX, event.offsetY);
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "touch") on.hover(i, agentUnder(event));
    });
    this.canvas.addEventListener("pointerleave", () => on.hover(i, -1));
    this.canvas.addEventListener("click", (event) => on.pin(i, agentUnder(event)));
  }

  layout() {
    const box = this.canvas.parentElement;
    const room = box.clientWidth - 24;
    if (room <= 0) return;
    const high = window.innerWidth <= 900 ? Infinity : Math.max(window.innerHeight * 0.52, 240);
    this.field.layout(room, high);
  }

  get visible() {
    return this.canvas.parentElement.clientWidth > 0;
  }

  draw(time, agent, focused) {
    const now = Math.min(time, this.policy.steps);
    this.element.classList.toggle("in-focus", focused);
    this.head.setAttribute("aria-pressed", focused);
    setText(this.figure, number(this.policy.metrics.return[now], 1));
    const over = time >= this.policy.steps ? ` · ended after ${plural(this.policy.steps, "step")}` : "";
    setText(this.foot, momentInWords(this.policy, now) + over);
    if (!this.visible || !this.field.context) return;
    this.field.draw(this.policy, now, agent);
    const label = `${this.policy.name}, step ${now}: ${this.foot.textContent}`;
    if (this.label !== label) this.canvas.setAttribute("aria-label", (this.label = label));
  }
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
