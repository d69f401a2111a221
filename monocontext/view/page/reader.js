// The text, piece by piece. At most so many pieces are in the document; the one at the far end goes as others come.

const PIECES = 8;
const NEAR = 300;

class Reader {
  constructor(box) {
    Object.assign(this, { box, pieces: [], turn: 0, words: null, document: null });
    box.addEventListener('scroll', () => {
      const by = box.scrollTop - this.top;
      this.top = box.scrollTop;
      if (by > 0 && box.scrollTop + box.clientHeight > box.scrollHeight - NEAR) this.further();
      else if (by < 0 && box.scrollTop < NEAR) this.earlier();
    }, { passive: true });
  }

  get isOpen() { return this.pieces.length > 0; }

  // Shows the place that `path` asks the server for; `stop` ends what is marked, `words` are underlined.
  async open(path, { stop = null, words = null } = {}) {
    const turn = ++this.turn;
    const piece = await ask(path);
    if (turn !== this.turn) return;
    Object.assign(this, { words, from: piece.mark, to: stop === null ? piece.mark + 1 : stop, pieces: [], document: null });
    this.head = title('');
    this.before = button('Earlier  (p)', () => this.earlier());
    this.after = button('Further  (n)', () => this.further());
    this.box.replaceChildren(this.head, this.before, this.after);
    this.add(piece, false);
    const hit = this.box.querySelector('.hit');
    this.box.scrollTop = 0;
    if (hit && piece.rows[0].at !== this.from) hit.scrollIntoView({ block: 'center' });
    this.top = this.box.scrollTop;
  }

  // Shows something else than text.
  show(...nodes) {
    this.turn += 1;
    this.pieces = [];
    this.box.replaceChildren(...nodes);
    this.box.scrollTop = 0;
  }

  add(piece, atStart) {
    const node = el('div', 'text', ...piece.rows.flatMap((row, i) => this.row(row, piece, i)));
    const kept = { ...piece, node };
    const height = this.box.scrollHeight;
    if (atStart) { this.before.after(node); this.pieces.unshift(kept); } else { this.after.before(node); this.pieces.push(kept); }
    if (atStart) this.box.scrollTop += this.box.scrollHeight - height;
    if (this.pieces.length > PIECES) {
      const gone = atStart ? this.pieces.pop() : this.pieces.shift();
      if (!atStart) this.box.scrollTop -= gone.node.offsetHeight;
      gone.node.remove();
    }
    this.top = this.box.scrollTop;
    this.before.hidden = this.start === 0;
    this.after.hidden = this.stop === piece.characters;
    const told = this.pieces.flatMap(({ rows }) => rows).find((row) => row.document);
    const known = this.document || (told && told.document);
    this.head.replaceWith(this.head = known ? title(known.name, plural(known.characters, 'character'), known.metadata)
      : title('The text', `characters ${count(this.start)} to ${count(this.stop)} of ${count(piece.characters)}`));
  }

  get start() { return this.pieces[0].start; }

  get stop() { return this.pieces[this.pieces.length - 1].stop; }

  row(row, piece, i) {
    const end = i + 1 < piece.rows.length ? piece.rows[i + 1].at : Math.max(piece.stop, row.at + 1);
    const isHit = this.from !== null && row.at < this.to && end > this.from;
    if (row.document) this.last = row.document;
    if (isHit && !this.document && row.line !== null && this.last) this.document = this.last;
    const node = el('div', `l${isHit ? ' hit' : ''}${row.line === null ? ' between' : ''}`,
      el('span', 'no', row.line === null ? '' : String(row.line)), el('span', 'code', ...this.marked(row.text)));
    return row.document ? [el('h3', '', row.document.name), node] : [node];
  }

  marked(text) {
    if (!this.words) return [text];
    return text.split(this.words).map((part, i) => (i % 2 ? el('mark', '', part) : part));
  }

  further() { return this.load(() => (this.stop < this.pieces[0].characters ? `text?after=${this.stop}` : null), false); }

  earlier() { return this.load(() => (this.start > 0 ? `text?before=${this.start}` : null), true); }

  async load(path, atStart) {
    if (this.loading || !this.isOpen || !path()) return;
    const { turn } = this;
    this.loading = true;
    try {
      const piece = await ask(path());
      if (turn === this.turn) this.add(piece, atStart);
      } finally { this.loading = false; }
  }
}
