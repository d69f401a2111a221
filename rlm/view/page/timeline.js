// What happened when, in lanes over one axis of seconds.

const TIME_LANES = [['think', 'Root thinks'], ['run', 'Code runs'], ['calls', 'Sub-calls'], ['storage', 'Storage wait'], ['ahead', 'Read-ahead']];

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
    const place = (second, width) => (second - this.from) * width / (this.until - this.from);
    paint(this.canvas, [run.generation, run.turns.length, this.from, this.until],
      (pen, width, colour) => this.lanes(pen, width, colour, (second) => place(second, width)),
      (pen, width, colour) => {
        if (!selected || selected.live) return;
        const left = Math.round(place(selected.start, width)) + 0.5;
        const wide = Math.max(3, Math.round(place(selected.stop, width)) - left);
        pen.fillStyle = colour.accent;
        pen.globalAlpha = 0.14;
        pen.fillRect(left, 0.5, wide, LANE * 5 - 1);
        pen.globalAlpha = 1;
        pen.strokeStyle = colour.accent;
        pen.strokeRect(left, 0.5, wide, LANE * 5 - 1);
      });
    const { sums } = run;
    this.canvas.setAttribute('aria-label', `Timeline of ${seconds(run.end)}: the root thinks for ${seconds(sums.think)}, code runs for `
      + `${seconds(sums.run)}, of which it waits for storage for ${known(sums.storage) ? seconds(sums.storage) : 'an unknown time'}. The list below has every cell.`);
  }

  lanes(pen, width, colour, place) {
    const lanes = Object.fromEntries(TIME_LANES.map(([name], i) => [name, new Lane(i * LANE, width)]));
    let told = false, ahead = false;
    for (const turn of this.run.turns) {
      ahead = ahead || known(turn.ahead[0]);
      told = told || turn.cells.some((cell) => known(cell.wait_storage));
      if (turn.end < this.from || turn.start > this.until) continue;
      lanes.think.add(place(turn.start), place(turn.start + turn.think));
      if (turn.ahead[0]) lanes.ahead.add(place(turn.start), place(turn.start + turn.think));
      for (const cell of turn.cells) {
        lanes.run.add(place(cell.start), place(cell.start + cell.run));
        for (const [from, to] of cell.spans) lanes.calls.add(place(from), place(to));
        if (cell.wait_storage) lanes.storage.add(place(cell.start), place(cell.start + cell.wait_storage));
        if (cell.ahead[0]) lanes.ahead.add(place(cell.start), place(cell.start + cell.run));
      }
    }
    for (const [name] of TIME_LANES) lanes[name].draw(pen, colour[name], colour.track);
    if (lanes.calls.empty) lanes.calls.note(pen, this.to === null ? 'none' : 'none here', colour.muted);
    if (lanes.storage.empty) lanes.storage.note(pen, told ? 'none' : 'not recorded: this context does not count its waits', colour.muted);
    if (lanes.ahead.empty) lanes.ahead.note(pen, ahead ? 'none' : 'not recorded', colour.muted);
    axis(pen, width, LANE * 5, clockTicks(this.from, this.until, width, 110), place, clock, colour);
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
