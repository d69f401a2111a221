// Where in the text the run has looked, and what the answer rests on, over one axis of characters.

const TEXT_LANES = [['read', 'Read'], ['rests', 'Answer rests on'], ['selected', 'This cell']];

class Coverage {
  constructor(canvas, choose) {
    this.canvas = canvas;
    canvas.addEventListener('click', (event) => {
      const found = this.readers(event);
      if (!found.length) return;
      choose(found[(found.indexOf(this.selected) + 1) % found.length]);
    });
    canvas.addEventListener('pointermove', (event) => this.hover(event));
    canvas.addEventListener('pointerleave', () => tip.hide());
  }

  // The first and last character of a column.
  characters(event) {
    const box = this.canvas.getBoundingClientRect();
    const one = this.chars / box.width, column = Math.floor(event.clientX - box.left);
    return [Math.floor(column * one), Math.max(Math.floor((column + 1) * one), Math.floor(column * one) + 1)];
  }

  readers(event) {
    if (!this.chars) return [];
    const [from, to] = this.characters(event);
    return this.told.filter((row) => row.cell.ranges.some(([start, stop]) => start < to && stop > from));
  }

  draw(run, selected) {
    this.selected = selected;
    this.told = run.rows.filter((row) => row.cell && row.cell.ranges);
    const ends = this.told.map((row) => (row.cell.ranges.length ? row.cell.ranges[row.cell.ranges.length - 1][1] : 0));
    this.chars = this.told.length ? run.metadata.context.chars || ends.reduce((a, b) => Math.max(a, b), 0) : 0;
    const colour = colours();
    const { pen, width } = surface(this.canvas);
    const columns = Math.ceil(width), scale = this.chars ? width / this.chars : 0;
    const lanes = TEXT_LANES.map((_, i) => new Lane(pen, i * LANE, '', width, colour.track));
    if (!this.chars) {
      lanes[0].note(run.rows.length ? 'not recorded: this context does not say which characters were read' : 'nothing yet', colour.muted);
      this.canvas.setAttribute('aria-label', 'No record of which characters were read.');
      return;
    }
    const paint = (lane, rows, tone) => {
      const steps = new Int32Array(columns + 1);
      for (const row of rows) {
        for (const [start, stop] of row.cell.ranges) {
          const left = Math.min(columns - 1, Math.floor(start * scale));
          steps[left] += 1;
          steps[Math.min(columns, Math.max(left + 2, Math.ceil(stop * scale)))] -= 1;
        }
      }
      pen.fillStyle = tone;
      for (let x = 0, times = 0; x < columns; x += 1) {
        times += steps[x];
        if (times <= 0) continue;
        pen.globalAlpha = lane.top ? 1 : Math.min(1, 0.75 + 0.1 * Math.log2(times));
        pen.fillRect(x, lane.top + 2, 1, LANE - 4);
      }
      pen.globalAlpha = 1;
    };
    paint(lanes[0], this.told, colour.think);
    const rests = this.told.filter((row) => row.rests);
    paint(lanes[1], rests, colour.storage);
    if (!rests.length) lanes[1].note('no answer yet', colour.muted);
    if (selected && selected.cell && selected.cell.ranges) paint(lanes[2], [selected], colour.run);
    axis(pen, width, LANE * 3, 0, this.chars, (at) => at * scale, (at) => short(at), colour);
    this.canvas.setAttribute('aria-label', `Of ${count(this.chars)} characters ${percent(run.read, this.chars)} were read; `
      + `the answer rests on ${percent(run.restsRead, this.chars)}.`);
  }

  hover(event) {
    if (!this.chars) return;
    const [from, to] = this.characters(event);
    const found = this.readers(event);
    const where = found.slice(0, 6).map((row) => row.label).join(', ') + (found.length > 6 ? ', ...' : '');
    tip.show(`Characters ${count(from)} to ${count(to)}\n${found.length ? `read by ${plural(found.length, 'cell')}: ${where}` : 'not read'}`, event.clientX, event.clientY);
  }
}
