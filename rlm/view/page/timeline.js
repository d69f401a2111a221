// What happened when, in lanes over one axis of seconds.

const LANE = 16;
const AXIS = 20;
const TIME_LANES = [['think', 'Root thinks'], ['run', 'Code runs'], ['calls', 'Sub-calls'], ['storage', 'Storage wait'], ['ahead', 'Read-ahead']];

function laneNames(box, lanes) {
  box.replaceChildren(...lanes.map(([name, title]) => el('span', `lane-${name}`, title)));
}

// A lane of a canvas; bars that fall into pixels already painted are left out, so many cost no more than few.
class Lane {
  constructor(pen, top, colour, width, track) {
    Object.assign(this, { pen, top, width, drawn: 0, right: -1 });
    pen.fillStyle = track;
    pen.fillRect(0, top + 2, width, LANE - 4);
    this.colour = colour;
  }

  bar(from, to, least = 1) {
    const left = Math.max(0, from), right = Math.min(this.width, Math.max(to, from + least));
    if (right <= left) return;
    this.drawn += 1;
    if (right <= this.right) return;
    this.pen.fillStyle = this.colour;
    this.pen.fillRect(left, this.top + 2, right - left, LANE - 4);
    this.right = Math.max(this.right, right);
  }

  note(text, colour) {
    this.pen.fillStyle = colour;
    this.pen.textAlign = 'left';
    this.pen.textBaseline = 'middle';
    this.pen.fillText(text, 6, this.top + LANE / 2 + 0.5);
  }
}

function axis(pen, width, top, from, to, place, label, colour) {
  pen.strokeStyle = colour.line;
  pen.fillStyle = colour.muted;
  pen.textBaseline = 'top';
  const { found, step } = ticks(from, to, width, 110);
  for (const at of found) {
    const x = Math.round(place(at)) + 0.5;
    const text = label(at, step);
    const half = pen.measureText(text).width / 2;
    pen.beginPath();
    pen.moveTo(x, top);
    pen.lineTo(x, top + 4);
    pen.stroke();
    pen.textAlign = x < half ? 'left' : x > width - half ? 'right' : 'center';
    pen.fillText(text, x < half ? 0 : x > width - half ? width : x, top + 6);
  }
}

class Timeline {
  constructor(canvas, choose) {
    this.canvas = canvas;
    this.from = 0;
    this.to = null;
    canvas.addEventListener('click', (event) => {
      if (this.run && this.run.rows.length) choose(this.run.rows[this.run.rowAt(this.second(event))]);
    });
    canvas.addEventListener('pointermove', (event) => this.hover(event));
    canvas.addEventListener('pointerleave', () => tip.hide());
  }

  get until() { return this.to === null ? Math.max(this.run.end, 0.001) : this.to; }

  second(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.from + (event.clientX - box.left) / box.width * (this.until - this.from);
  }

  zoom(factor) {
    if (!this.run) return;
    const all = Math.max(this.run.end, 0.001), width = Math.min(all, (this.until - this.from) * factor);
    if (width >= all) { this.from = 0; this.to = null; } else {
      const middle = this.selected && this.selected.start >= this.from && this.selected.start <= this.until
        ? (this.selected.start + this.selected.stop) / 2 : (this.from + this.until) / 2;
      this.from = Math.max(0, Math.min(all - width, middle - width / 2));
      this.to = this.from + width;
    }
    this.draw(this.run, this.selected);
  }

  draw(run, selected) {
    this.run = run;
    this.selected = selected;
    if (this.to !== null && selected && !selected.live && (selected.start > this.to || selected.stop < this.from)) {
      const width = this.to - this.from;
      this.from = Math.max(0, selected.start - width / 3);
      this.to = this.from + width;
    }
    const colour = colours();
    const { pen, width } = surface(this.canvas);
    const scale = width / (this.until - this.from);
    const place = (second) => (second - this.from) * scale;
    if (selected && !selected.live) {
      pen.fillStyle = colour.accent;
      pen.globalAlpha = 0.16;
      pen.fillRect(place(selected.start), 0, Math.max(3, place(selected.stop) - place(selected.start)), LANE * 5);
      pen.globalAlpha = 1;
    }
    const lanes = Object.fromEntries(TIME_LANES.map(([name], i) => [name, new Lane(pen, i * LANE, colour[name], width, colour.track)]));
    let told = false, ahead = false;
    for (const turn of run.turns) {
      if (turn.end < this.from || turn.start > this.until) { told = told || turn.cells.some((cell) => known(cell.wait_storage)); continue; }
      lanes.think.bar(place(turn.start), place(turn.start + turn.think), 0.5);
      ahead = ahead || known(turn.ahead[0]);
      if (turn.ahead[0]) lanes.ahead.bar(place(turn.start), place(turn.start + turn.think), 2);
      for (const cell of turn.cells) {
        lanes.run.bar(place(cell.start), place(cell.start + cell.run));
        for (const [from, to] of cell.spans) lanes.calls.bar(place(from), place(to));
        if (known(cell.wait_storage)) told = true;
        if (cell.wait_storage) lanes.storage.bar(place(cell.start), place(cell.start + cell.wait_storage));
        if (cell.io && cell.io[3]) lanes.ahead.bar(place(cell.start), place(cell.start + cell.run), 2);
      }
    }
    if (!lanes.calls.drawn) lanes.calls.note(this.to === null ? 'none' : 'none here', colour.muted);
    if (!lanes.storage.drawn) lanes.storage.note(told ? 'none' : 'not recorded: this context does not count its waits', colour.muted);
    if (!lanes.ahead.drawn) lanes.ahead.note(ahead ? 'none' : 'not recorded', colour.muted);
    if (selected && !selected.live) {
      pen.strokeStyle = colour.accent;
      const left = Math.round(place(selected.start)) + 0.5;
      pen.strokeRect(left, 0.5, Math.max(3, Math.round(place(selected.stop)) - left), LANE * 5 - 1);
    }
    axis(pen, width, LANE * 5, this.from, this.until, place, clock, colour);
    const { sums } = run;
    this.canvas.setAttribute('aria-label', `Timeline of ${seconds(run.end)}: the root thinks for ${seconds(sums.think)}, code runs for `
      + `${seconds(sums.run)}, of which it waits for storage for ${known(sums.storage) ? seconds(sums.storage) : 'an unknown time'}. The list below has every cell.`);
  }

  hover(event) {
    if (!this.run || !this.run.rows.length) return;
    const row = this.run.rows[this.run.rowAt(this.second(event))];
    const { turn, cell } = row;
    const lines = [`Turn ${row.label}, from ${seconds(row.start)}`];
    if (row.number === 0) lines.push(`root thinks ${seconds(turn.think)}`);
    if (row.number === 0 && turn.ahead[0]) lines.push(`read ahead meanwhile: ${plural(turn.ahead[0], 'GET')}, ${bytes(turn.ahead[1])}`);
    if (cell) lines.push(`code runs ${seconds(cell.run)}`);
    if (cell && cell.calls) lines.push(`${plural(cell.calls, 'sub-call')}, waited ${seconds(cell.wait_calls)}`);
    if (cell && known(cell.wait_storage)) lines.push(`storage wait ${seconds(cell.wait_storage)} in all, drawn from the start of the cell`);
    tip.show(lines.join('\n'), event.clientX, event.clientY);
  }
}
