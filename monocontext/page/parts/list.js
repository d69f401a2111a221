// A list of rows of one height. Only those within sight exist in the document, so its length costs nothing.

const BEYOND = 8;

class RowList {
  // `make` makes the element of a row; `height` is that of the style sheet, in pixels.
  constructor(box, choose, make, height) {
    Object.assign(this, { make, height });
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
    this.space.style.height = `${rows.length * this.height}px`;
    for (const node of this.pool.values()) node.remove();
    this.pool.clear();
    this.draw();
  }

  select(row, scroll) {
    this.selected = row;
    const i = this.position();
    if (scroll && i >= 0) {
      const top = i * this.height, height = this.box.clientHeight;
      if (top < this.box.scrollTop) this.box.scrollTop = top;
      else if (top + this.height > this.box.scrollTop + height) this.box.scrollTop = top + this.height - height;
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

  get page() { return Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1); }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - BEYOND);
    const last = Math.min(this.rows.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.height) + BEYOND);
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
    row.shownAt = i;
    const node = this.make(row);
    node.id = `row-${i}`;
    node.dataset.i = i;
    node.setAttribute('role', 'option');
    node.setAttribute('aria-posinset', i + 1);
    node.setAttribute('aria-setsize', this.rows.length);
    node.style.top = `${i * this.height}px`;
    return node;
  }
}
