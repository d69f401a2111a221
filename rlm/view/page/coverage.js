// Where in the text the run has looked, over one axis of characters.

const TEXT_LANES = [['read', 'Read'], ['selected', 'This cell']];

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
    this.run = run;
    const key = `${run.generation} ${run.turns.length}`;
    if (key !== this.key) {
      this.key = key;
      this.told = run.rows.filter((row) => row.cell && row.cell.ranges);
      const ends = this.told.map((row) => (row.cell.ranges.length ? row.cell.ranges[row.cell.ranges.length - 1][1] : 0));
      this.chars = this.told.length ? run.metadata.context.chars || ends.reduce((a, b) => Math.max(a, b), 0) : 0;
    }
    paint(this.canvas, key, (pen, width, colour) => this.lanes(pen, width, colour), (pen, width, colour) => {
      if (!this.chars || !selected || !selected.cell || !selected.cell.ranges) return;
      const lane = new Lane(LANE, width), scale = width / this.chars;
      for (const [start, stop] of selected.cell.ranges) lane.add(start * scale, Math.max(stop * scale, start * scale + 2));
      lane.draw(pen, colour.run);
    });
    this.canvas.setAttribute('aria-label', this.chars ? `Of ${count(this.chars)} characters ${percent(run.read, this.chars)} were read.` : 'No record of which characters were read.');
  }

  lanes(pen, width, colour) {
    const lanes = Object.fromEntries(TEXT_LANES.map(([name], i) => [name, new Lane(i * LANE, width)]));
    const shares = this.chars ? this.run.map : [], one = width / shares.length;
    shares.forEach((share, i) => { if (share) lanes.read.add(i * one, Math.max((i + 1) * one, i * one + 2), share / 1000); });
    lanes.read.draw(pen, colour.think, colour.track);
    lanes.selected.draw(pen, colour.run, colour.track);
    if (!this.chars) {
      lanes.read.note(pen, this.run.rows.length ? 'not recorded: this context does not say which characters were read' : 'nothing yet', colour.muted);
      return;
    }
    axis(pen, width, LANE * 2, ticks(0, this.chars, width, 110), (at) => at * width / this.chars, (at) => short(at), colour);
  }

  hover(event) {
    if (!this.chars) return;
    const [from, to] = this.characters(event);
    const found = this.readers(event);
    const where = found.slice(0, 6).map((row) => row.label).join(', ') + (found.length > 6 ? ', ...' : '');
    tip.show(`Characters ${count(from)} to ${count(to)}\n${found.length ? `read by ${plural(found.length, 'cell')}: ${where}` : 'not read'}`, event.clientX, event.clientY);
  }
}
