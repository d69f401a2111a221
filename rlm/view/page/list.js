// The list of cells. Only rows within sight exist in the document, so its length costs nothing.

const ROW = 30;
const BEYOND = 8;

class CellList {
  constructor(box, choose) {
    this.box = box;
    this.space = box.firstElementChild;
    this.choose = choose;
    this.rows = [];
    this.pool = new Map();
    this.selected = null;
    box.addEventListener('scroll', () => this.draw(), { passive: true });
    box.addEventListener('click', (event) => {
      const node = event.target.closest('.row');
      if (node) choose(this.rows[Number(node.dataset.i)]);
    });
    new ResizeObserver(() => this.draw()).observe(box);
  }

  show(rows) {
    this.rows = rows;
    this.box.style.setProperty('--no', `${Math.max(3, ...rows.slice(-1).map((row) => row.label.length + 1))}ch`);
    this.space.style.height = `${rows.length * ROW}px`;
    for (const node of this.pool.values()) node.remove();
    this.pool.clear();
    this.draw();
  }

  select(row, scroll) {
    this.selected = row;
    const i = this.position();
    if (scroll && i >= 0) {
      const top = i * ROW, height = this.box.clientHeight;
      if (top < this.box.scrollTop) this.box.scrollTop = top;
      else if (top + ROW > this.box.scrollTop + height) this.box.scrollTop = top + ROW - height;
    }
    this.draw();
  }

  // Of the selected row among those shown; -1 when the filter hides it.
  position() {
    const row = this.selected;
    if (!row) return -1;
    if (this.rows[row.shownAt] === row) return row.shownAt;
    return this.rows.indexOf(row);
  }

  // The row so many places on.
  step(by) {
    if (!this.rows.length) return null;
    const at = this.position();
    return this.rows[Math.max(0, Math.min(this.rows.length - 1, at < 0 ? 0 : at + by))];
  }

  get page() { return Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1); }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - BEYOND);
    const last = Math.min(this.rows.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + BEYOND);
    for (const [i, node] of this.pool) {
      if (i < first || i >= last) { node.remove(); this.pool.delete(i); }
    }
    const fresh = [];
    for (let i = first; i < last; i += 1) {
      let node = this.pool.get(i);
      if (!node) {
        node = this.node(this.rows[i], i);
        this.pool.set(i, node);
        fresh.push(node);
      }
      node.setAttribute('aria-selected', String(this.rows[i] === this.selected));
    }
    this.space.append(...fresh);
    const at = this.position();
    if (this.pool.has(at)) this.box.setAttribute('aria-activedescendant', `row-${at}`);
    else this.box.removeAttribute('aria-activedescendant');
  }

  node(row, i) {
    const { cell } = row;
    row.shownAt = i;
    const marks = el('span', 'marks');
    if (cell && cell.calls) marks.append(el('span', '', plural(cell.calls, 'call')));
    if (cell && (cell.error || cell.failed)) marks.append(el('b', '', cell.error ? 'error' : `${cell.failed} failed`));
    if (row.answers) marks.append(el('i', '', 'answer'));
    const took = row.live ? '' : seconds(cell ? cell.run : row.turn.think);
    const node = el('div', `row${cell ? '' : ' said'}${row.rests ? ' rests' : ''}${row.live ? ' live' : ''}`,
      el('span', 'no', row.label), el('span', 'line', row.line), marks, el('span', 'took', took));
    node.id = `row-${i}`;
    node.dataset.i = i;
    node.setAttribute('role', 'option');
    node.setAttribute('aria-posinset', i + 1);
    node.setAttribute('aria-setsize', this.rows.length);
    node.style.top = `${i * ROW}px`;
    return node;
  }
}
