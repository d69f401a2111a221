// Elements. Text always goes in as text: nothing that comes from outside is ever parsed as markup.

const $ = (id) => document.getElementById(id);

function el(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
  return node;
}

function facts(pairs) {
  return pairs.filter((pair) => pair && pair[1] !== null && pair[1] !== undefined)
    .map(([name, value]) => el('div', '', el('dt', '', name), el('dd', '', value)));
}

// A long text shows its beginning; the rest when asked for.
const SHOWN = 60000;

function block(text, className, render) {
  const pre = el('pre', className);
  const fill = (part) => pre.replaceChildren(render ? render(part) : part);
  fill(text.slice(0, SHOWN));
  if (text.length <= SHOWN) return pre;
  const more = el('button', '', `Show all ${count(text.length)} characters`);
  more.type = 'button';
  more.addEventListener('click', () => { fill(text); more.remove(); });
  return el('div', '', pre, more);
}

// Filled when it is opened for the first time.
function folded(summary, fill) {
  const body = el('div');
  const node = el('details', '', summary, body);
  node.addEventListener('toggle', () => { if (node.open && !body.childNodes.length) fill(body); });
  return node;
}

// An answer of the server that this page came from.
async function ask(path) {
  const response = await fetch(path, { headers: { accept: 'application/json' } });
  const value = await response.json();
  if (!response.ok) throw new Error(value.error);
  return value;
}
