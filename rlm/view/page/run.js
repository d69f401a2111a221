// The run as the page knows it: turns as they came, and the flat list of rows that everything else shows.

class Run {
  constructor() { this.generation = null; this.clear(); }

  clear() {
    this.turns = [];
    this.rows = [];
    this.live = { status: 'ended' };
    this.sums = { think: 0, run: 0, storage: null, calls: 0, into: 0, out: 0, dollars: 0, gets: null, bytes: null, hits: null, ahead: null, errors: 0 };
  }

  // Takes in what the source says; true when more changed than the clock.
  take(state) {
    if (state.generation !== this.generation) this.clear();
    const mark = () => [this.generation, this.turns.length, this.live.status, this.live.replied, this.live.calls].join();
    const before = mark();
    Object.assign(this, { generation: state.generation, metadata: state.metadata, path: state.path, live: state.live, read: state.read });
    state.rows.forEach((turn, i) => { if (state.first + i === this.turns.length) this.add(turn); });
    return before !== mark();
  }

  add(turn) {
    const at = this.turns.length;
    this.turns.push(turn);
    const cells = turn.cells.length ? turn.cells : [null];
    cells.forEach((cell, number) => this.rows.push({
      at, number, turn, cell,
      label: cells.length > 1 ? `${turn.turn}.${number + 1}` : `${turn.turn}`,
      line: cell ? cell.line : turn.said || 'no code',
      answers: turn.answer !== null && number === cells.length - 1,
      start: number === 0 ? turn.start : cell.start,
      stop: cell ? cell.start + cell.run : turn.end,
    }));
    this.sum(turn);
  }

  sum(turn) {
    const sums = this.sums;
    const plus = (name, value) => { if (known(value)) sums[name] = (sums[name] || 0) + value; };
    plus('think', turn.think);
    plus('into', turn.tokens[0]);
    plus('out', turn.tokens[1]);
    plus('ahead', turn.ahead[1]);
    const asked = turn.model || turn.said;
    sums.calls += asked ? 1 : 0;
    const cost = (value) => { sums.dollars = sums.dollars === null || !known(value) ? null : sums.dollars + value; };
    if (asked) cost(turn.dollars);
    for (const cell of turn.cells) {
      plus('run', cell.run);
      plus('storage', cell.wait_storage);
      plus('into', cell.tokens[0]);
      plus('out', cell.tokens[1]);
      sums.calls += cell.calls;
      sums.errors += cell.error ? 1 : 0;
      cost(cell.dollars);
      plus('ahead', cell.ahead[1]);
      if (cell.io) ['gets', 'bytes', 'hits'].forEach((name, i) => plus(name, cell.io[i]));
    }
  }

  get end() { return this.turns.length ? this.turns[this.turns.length - 1].end : 0; }

  get question() {
    const asked = [...this.turns].reverse().find((turn) => turn.question);
    return asked ? asked.question : this.metadata.query;
  }

  get last() { return this.turns[this.turns.length - 1]; }

  // Number of the row in which this second lies, or the one before it.
  rowAt(second) {
    let low = 0, high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.rows[middle].start <= second) low = middle; else high = middle - 1;
    }
    return low;
  }
}
