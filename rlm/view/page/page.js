// Puts it together: what is chosen, what is filtered, keys, theme, and following a run in progress.

const run = new Run();
const reader = (place) => run.rows.find((row) => row.cell && (row.cell.ranges || []).some(([start, stop]) => start <= place && place < stop));
const detail = new Detail($('detail'), (place) => choose(reader(place), true), (place) => Boolean(reader(place)));
let chosen = null;
let following = false;
let settled = false;

const list = new RowList($('cells'), (row) => choose(row, true), cellRow, ROW);
const timeline = new Timeline($('timeline'), (row) => choose(row, true));
laneNames($('timeline-lanes'), TIME_LANES);

function choose(row, byHand) {
  if (!row) return;
  if (byHand && !row.live) follow(false);
  chosen = row;
  list.select(row, true);
  timeline.draw(run, row);
  detail.show(row);
}

function follow(on) {
  following = on;
  $('follow').setAttribute('aria-pressed', String(on));
}

// --- what is shown above the charts

const SAYS = {
  ended: ['ended', 'ended'], running: ['running', 'in progress'], quiet: ['quiet', 'no news'],
};

function header() {
  const { metadata, sums, live, last } = run, { chars } = metadata.context;
  document.title = `${run.question || 'run'} \u2013 rlm view`;
  $('place').textContent = run.path;
  $('place').title = run.path;
  const [name, said] = SAYS[live.status];
  const early = name === 'ended' && last && last.reason && last.reason !== 'answer';
  const state = written && name !== 'ended' ? 'a snapshot of a run in progress' : name === 'quiet'
    ? `no news for ${seconds(live.silent_seconds)}; if it was broken off: rlm run --resume` : early ? `ended early: ${last.reason}` : said;
  $('status').className = `status ${early ? 'partial' : name}`;
  if ($('status').textContent !== state) $('status').textContent = state;
  $('follow').hidden = written || name === 'ended';
  $('question').textContent = run.question || 'A run without a recorded question';
  const answer = last && last.answer !== null ? [el('b', '', 'Answer'), el('div', '', last.answer)] : [];
  $('answer').replaceChildren(...answer);
  $('answer').hidden = !answer.length;
  const models = [metadata.root_model, metadata.sub_model].filter(Boolean);
  const looked = known(sums.hits) && known(sums.gets) ? sums.hits : null;
  $('figures').replaceChildren(...facts([
    ['Models', [...new Set(models)].join(', ') || DASH],
    ['Turns', count(run.turns.length)],
    ['Calls of models', count(sums.calls)],
    ['Tokens in / out', `${count(sums.into)} / ${count(sums.out)}`],
    ['Cost', dollars(sums.dollars)],
    ['Time', seconds(run.end)],
    ['GETs', count(sums.gets)],
    ['Bytes read', bytes(sums.bytes)],
    ['Cache hits', count(looked)],
    ['Text', chars ? `${count(chars)} characters` : DASH],
    ['Read', known(run.read) ? `${percent(run.read, chars)} (${count(run.read)} characters)` : DASH],
    ['Runner', metadata.runner || null],
    sums.errors > 0 && ['Errors', count(sums.errors)],
  ]));
  const share = (value) => (run.end ? percent(value, run.end) : DASH);
  $('timeline-note').textContent = `root thinks ${seconds(sums.think)} (${share(sums.think)}), code runs ${seconds(sums.run)} (${share(sums.run)}), of that waiting for storage `
    + `${known(sums.storage) ? seconds(sums.storage) : 'not recorded'}${sums.ahead ? `; ${bytes(sums.ahead)} read ahead` : ''}`;
}

// --- the list and its filter

function filtered() {
  const wanted = $('search').value.trim().toLowerCase(), kind = $('kind').value;
  const fits = {
    all: () => true, calls: (row) => row.cell && row.cell.calls > 0,
    errors: (row) => row.cell && (row.cell.error || row.cell.failed),
  }[kind];
  const rows = run.rows.filter((row) => fits(row) && (!wanted || row.line.toLowerCase().includes(wanted) || row.label === wanted));
  const whole = kind === 'all' && !wanted;
  if (whole && run.live.status !== 'ended') rows.push(liveRow());
  $('count').textContent = whole ? count(run.rows.length) : `${count(rows.length)} of ${count(run.rows.length)}`;
  return rows;
}

function liveRow() {
  const { live } = run;
  const line = live.replied ? (live.calls ? `code runs, ${plural(live.calls, 'sub-call')} answered` : 'code runs') : 'the root model is thinking';
  return { live: true, at: run.turns.length, number: 0, label: `${run.turns.length + 1}`, line, cell: null, turn: null, start: run.end, stop: run.end };
}

function show() {
  header();
  const rows = filtered();
  list.box.style.setProperty('--no', `${Math.max(3, ...rows.slice(-1).map((row) => row.label.length + 1))}ch`);
  list.show(rows);
  const newest = rows[rows.length - 1];
  if (following || !chosen) choose(following || run.live.status !== 'ended' ? newest : answered() || rows[0], false);
  else if (chosen.live) choose(newest && newest.live ? newest : run.rows[run.rows.length - 1], false);
  else { list.select(chosen, false); timeline.draw(run, chosen); }
}

const answered = () => run.rows.findLast((row) => row.answers);

function error(by) {
  const at = chosen && !chosen.live ? run.rows.indexOf(chosen) : -1;
  const wrong = (row) => row.cell && (row.cell.error || row.cell.failed);
  return by > 0 ? run.rows.find((row, i) => i > at && wrong(row)) : run.rows.findLast((row, i) => i < at && wrong(row));
}

// --- keys, buttons, theme

const KEYS = {
  j: () => choose(list.step(1), true), k: () => choose(list.step(-1), true),
  ArrowDown: () => choose(list.step(1), true), ArrowUp: () => choose(list.step(-1), true),
  PageDown: () => choose(list.step(list.page), true), PageUp: () => choose(list.step(-list.page), true),
  Home: () => choose(list.rows[0], true), End: () => choose(list.rows[list.rows.length - 1], true),
  n: () => choose(error(1), true), p: () => choose(error(-1), true), a: () => choose(answered(), true),
  Enter: () => $('detail').focus(), '/': () => $('search').focus(), '?': () => $('keys').showModal(),
  '+': () => timeline.zoom(0.5), '=': () => timeline.zoom(0.5), '-': () => timeline.zoom(2), 0: () => timeline.zoom(Infinity),
  f: () => { if (!$('follow').hidden) toggleFollow(); }, t: () => theme.turn(),
};
onKeys(KEYS, { escape: (target) => { target.blur(); $('cells').focus(); }, entered: () => $('cells').focus() });

function toggleFollow() {
  follow(!following);
  if (following) choose(list.rows[list.rows.length - 1], false);
}

$('follow').addEventListener('click', toggleFollow);
$('zoom-in').addEventListener('click', () => timeline.zoom(0.5));
$('zoom-out').addEventListener('click', () => timeline.zoom(2));
$('zoom-all').addEventListener('click', () => timeline.zoom(Infinity));
for (const [id, kind] of [['search', 'input'], ['kind', 'change']]) {
  $(id).addEventListener(kind, () => { list.box.scrollTop = 0; list.show(filtered()); });
}
window.addEventListener('resize', () => { if (settled) { timeline.draw(run, chosen); } });

// --- following: ask again soon while it goes on, seldom when it has ended, since a session may ask on

async function refresh() {
  const changed = run.take(await source.state(run.turns.length, run.generation));
  if (!settled && run.live.status !== 'ended' && !written) follow(true);
  if (changed || !settled) {
    if (chosen && !chosen.live && run.rows[0] && !run.rows.includes(chosen)) chosen = null;
    show();
  } else header();
  settled = true;
}

async function keepUp() {
  let wait = 1000;
  try {
    if (!document.hidden || !settled) await refresh();
    if (run.live.status === 'ended') wait = 4000;
  } catch (error) {
    $('status').className = 'status failed';
    $('status').textContent = error instanceof TypeError ? 'the server has gone; is rlm view still running?' : error.message;
    wait = 3000;
  }
  if (!written) setTimeout(keepUp, wait);
}

theme.begin(() => { if (settled) { timeline.draw(run, chosen); } });
keepUp();
