// Elements. Text always goes in as text: nothing from a trajectory is ever parsed as markup.

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

// Colours for canvases, as the style sheet says now.
function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(['think', 'run', 'calls', 'storage', 'ahead', 'track', 'line', 'muted', 'ink', 'accent', 'bad', 'surface']
    .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// A canvas in the pixels of the screen.
function surface(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const pen = canvas.getContext('2d');
  pen.scale(scale, scale);
  pen.clearRect(0, 0, width, height);
  pen.font = `11px ${getComputedStyle(document.documentElement).getPropertyValue('--sans')}`;
  return { pen, width, height };
}

const tip = {
  show(text, x, y) {
    const node = $('tip');
    node.textContent = text;
    node.hidden = false;
    const box = node.getBoundingClientRect();
    node.style.left = `${Math.max(4, Math.min(x + 12, window.innerWidth - box.width - 8))}px`;
    node.style.top = `${y + 16 + box.height > window.innerHeight ? y - box.height - 8 : y + 16}px`;
  },
  hide() { $('tip').hidden = true; },
};
