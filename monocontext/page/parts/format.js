// Numbers as people read them. What is not known is a dash, never 0.

const DASH = '\u2013';
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

const known = (value) => value !== null && value !== undefined;

function count(value) {
  return known(value) ? whole.format(value) : DASH;
}

function seconds(value) {
  if (!known(value)) return DASH;
  if (value < 0.0005) return '0 s';
  if (value < 1) return `${value < 0.01 ? (1000 * value).toFixed(1) : (1000 * value).toFixed(0)} ms`;
  if (value < 60) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(value % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function bytes(value) {
  if (!known(value)) return DASH;
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${value.toFixed(unit && value < 100 ? 1 : 0)} ${units[unit]}`;
}

function dollars(value) {
  if (!known(value)) return 'not known';
  if (value === 0) return '$0';
  return `$${value.toFixed(value < 0.01 ? 5 : value < 1 ? 4 : 2)}`;
}

function percent(part, all) {
  if (!known(part) || !all) return DASH;
  const share = 100 * part / all;
  return `${share > 0 && share < 0.1 ? '< 0.1' : share.toFixed(share < 10 ? 1 : 0)} %`;
}

function plural(n, one, many) {
  return `${count(n)} ${n === 1 ? one : many || one + 's'}`;
}

// Steps of an axis: 1, 2 or 5 times a power of ten, about `room` pixels apart.
function ticks(from, to, width, room) {
  const raw = (to - from) / Math.max(1, width / room);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) || power * 10;
  const found = [];
  for (let at = Math.ceil(from / step); at * step <= to; at += 1) found.push(at * step);
  return { found, step };
}

// Steps of a clock: as above below a minute, then what people count minutes and hours in.
function clockTicks(from, to, width, room) {
  const raw = (to - from) / Math.max(1, width / room);
  const step = raw <= 20 ? null : [30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].find((n) => n >= raw);
  if (!step) return ticks(from, to, width, room);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return { found, step };
}

// A point on an axis whose steps are `step` seconds.
function clock(at, step) {
  if (at === 0) return '0 s';
  if (step < 1) return at < 1 ? `${+(1000 * at).toFixed(3)} ms` : `${at.toFixed(Math.min(6, Math.ceil(-Math.log10(step))))} s`;
  if (at < 60) return `${at} s`;
  const rest = Math.round(at % 60);
  if (at < 3600) return `${Math.floor(at / 60)} min${rest ? ` ${rest} s` : ''}`;
  const minutes = Math.floor(at / 60) % 60;
  return `${Math.floor(at / 3600)} h${minutes ? ` ${minutes} min` : ''}`;
}
