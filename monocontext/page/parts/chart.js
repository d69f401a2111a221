// Charts on canvases: bars in lanes over one axis.

// Colours for canvases, as the style sheet says now.
function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(['think', 'run', 'calls', 'storage', 'ahead', 'track', 'line', 'muted', 'ink', 'accent', 'bad', 'surface']
    .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// A canvas in the pixels of the screen, on two floors: `base` draws what costs much and is kept until `key` changes,
// `over` draws what follows the selection.
function paint(canvas, key, base, over) {
  const { width, height } = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  const pixels = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  const colour = colours();
  const whole = JSON.stringify([key, pixels, colour]);
  const begin = (target) => {
    [target.width, target.height] = pixels;
    const pen = target.getContext('2d');
    pen.font = `11px ${getComputedStyle(document.documentElement).getPropertyValue('--sans')}`;
    return pen;
  };
  if (canvas.kept !== whole) {
    canvas.kept = whole;
    canvas.floor = canvas.floor || document.createElement('canvas');
    const pen = begin(canvas.floor);
    pen.scale(scale, scale);
    base(pen, width, colour);
  }
  const pen = begin(canvas);
  pen.drawImage(canvas.floor, 0, 0);
  pen.scale(scale, scale);
  over(pen, width, colour);
}

// A lane of a chart: `add` says how much of a stretch of pixels is filled, `draw` paints each column as high as that.
const LANE = 16;

class Lane {
  constructor(top, width) { Object.assign(this, { top, width, filled: new Float32Array(Math.ceil(width)), empty: true }); }

  add(from, to, share = 1) {
    const left = Math.max(0, from), right = Math.min(this.width, Math.max(to, from + 0.01));
    if (right <= left) return;
    this.empty = false;
    for (let x = Math.floor(left); x < right; x += 1) this.filled[x] += share * (Math.min(x + 1, right) - Math.max(x, left));
  }

  draw(pen, tone, track) {
    const full = LANE - 4, bottom = this.top + LANE - 2;
    if (track) { pen.fillStyle = track; pen.fillRect(0, this.top + 2, this.width, full); }
    pen.fillStyle = tone;
    const heights = this.heights(full);
    for (let x = 0; x < heights.length;) {
      let end = x + 1;
      while (end < heights.length && heights[end] === heights[x]) end += 1;
      if (heights[x]) pen.fillRect(x, bottom - heights[x], end - x, heights[x]);
      x = end;
    }
  }

  // What is there at all is high enough to be seen; a thin bar that stands alone and the edges of a wide one are whole.
  heights(full) {
    const filled = (x) => this.filled[x] > 0;
    const heights = Array.from(this.filled, (part) => (part > 0 ? Math.max(3, Math.round(Math.min(1, part) * full)) : 0));
    for (let x = 0; x < heights.length; x += 1) {
      if (!filled(x)) continue;
      let end = x + 1;
      while (end < heights.length && filled(end)) end += 1;
      if (end - x <= 4) heights.fill(full, x, end);
      else { heights.fill(heights[x + 2], x, x + 2); heights.fill(heights[end - 3], end - 2, end); }
      x = end;
    }
    return heights;
  }

  note(pen, text, colour) {
    pen.fillStyle = colour;
    pen.textAlign = 'left';
    pen.textBaseline = 'middle';
    pen.fillText(text, 6, this.top + LANE / 2 + 0.5);
  }
}

const AXIS = 20;

function laneNames(box, lanes) {
  box.replaceChildren(...lanes.map(([name, title]) => el('span', `lane-${name}`, title)));
}

function axis(pen, width, top, { found, step }, place, label, colour) {
  pen.strokeStyle = colour.line;
  pen.fillStyle = colour.muted;
  pen.textBaseline = 'top';
  for (const at of found) {
    const x = Math.round(place(at)) + 0.5;
    const text = label(at, step);
    const half = pen.measureText(text).width / 2;
    pen.beginPath();
    pen.moveTo(x, top);
    pen.lineTo(x, top + 4);
    pen.stroke();
    pen.textAlign = x < half ? 'left' : x > width - half ? 'right' : 'center';
    pen.fillText(text, x < half ? 0 : x > width - half ? width : x, top + 6);
  }
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
