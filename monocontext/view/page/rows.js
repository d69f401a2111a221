// The rows of the lists, and what is shown of a version.

const ROW = 46;

function rowOf(kind, what, line, sub) {
  return el('div', `row ${kind}`, el('div', '', el('span', 'line', line), el('span', 'what', what)), el('div', 'sub', sub));
}

const KINDS = {
  document: (row) => rowOf('', plural(row.characters, 'character'), row.name, [plural(row.lines, 'line'), row.metadata].filter(Boolean).join(', ')),
  whole: (row) => rowOf('', plural(row.characters, 'character'), 'The whole text', 'it is not divided into documents'),
  hit: (row) => rowOf('quote', row.score ? `score ${row.score}` : '', row.document === null ? `${count(row.line)}` : `${row.document}:${row.line}`, row.text.trim().replace(/\s+/g, ' ')),
  version: (row) => rowOf('', moment(row.created), `Version ${row.version}${row.isOpen ? ', open here' : ''}`, row.grown ? `${grown(row.grown)}; in all ${count(row.characters)}, ${count(row.documents)}` : `in all ${plural(row.characters, 'character')}, ${plural(row.documents, 'document')}`),
  more: (row) => rowOf('more', '', row.title, row.about),
};

const makeRow = (row) => KINDS[row.of](row);
const signed = (value) => `${value < 0 ? '\u2212' : '+'}${count(Math.abs(value))}`;
const grown = ([characters, documents]) => `${signed(characters)} characters, ${signed(documents)} documents`;
const moment = (text) => text.replace('T', ' ').replace(/:\d\d(\+00:00|Z)$/, ' UTC');

function button(title, act) {
  const node = el('button', '', title);
  node.type = 'button';
  node.addEventListener('click', act);
  return node;
}

function title(name, ...facts) { return el('div', 'title', el('h2', '', name), el('span', 'note', facts.filter(Boolean).join(', '))); }

// What a version changed: names that open, unless they are gone.
function changeOf(row, change, open) {
  const head = title(`Version ${row.version}`, moment(row.created), row.grown && grown(row.grown));
  if (!change) return [head, el('p', '', row.version === 1 ? 'The first version.' : 'No version before it is left to compare it with.')];
  if (change.too_many) return [head, el('p', 'notice', `Too many documents differ to list them: ${count(change.too_many)} pages of 4,096 were stored again.`)];
  const part = (name, { count: all, names }, opens) => all > 0 && [
    el('h3', '', `${plural(all, 'document')} ${name}`),
    el('div', 'links', ...names.map((each) => (opens ? button(each, () => open(each)) : el('span', '', each))),
      all > names.length ? el('span', 'note', `and ${count(all - names.length)} more`) : null),
  ];
  const parts = [part('added', change.added, true), part('replaced', change.replaced, true), part('removed', change.removed, false)].filter(Boolean);
  const unknown = change.unknown > 0 ? el('p', 'notice', `${plural(change.unknown, 'document')} of the same size stored again: too long to compare here.`) : null;
  return [head, ...(parts.length ? parts.flat() : [unknown || el('p', '', 'No document differs from the version before.')]), ...(parts.length && unknown ? [unknown] : [])];
}
