// Puts it together: which list is shown, what is chosen and open, searches, and keys.

const LISTS = { documents: 'Documents', hits: 'Hits', versions: 'Versions' };
const state = { text: null, mode: 'documents', rows: {}, search: null, shown: null };
const list = new RowList($('list'), (row) => choose(row, true), makeRow, ROW);
const reader = new Reader($('detail'));
const timers = {};

function soon(name, act, wait) {
  clearTimeout(timers[name]);
  timers[name] = setTimeout(act, wait);
}

function say(kind, text) {
  $('status').className = `status ${kind}`;
  $('status').textContent = text;
}

// The status says what goes on, what came of it, and what went wrong. A small thing without a name leaves it as it is.
async function doing(what, act) {
  const isNamed = what || $('status').className === 'status failed';
  if (isNamed) say('running', what || 'reading');
  try {
    const value = await act();
    if (isNamed) say('ended', typeof value === 'string' ? value : 'ready');
  } catch (error) {
    say('failed', error instanceof TypeError ? 'the server has gone; is monocontext view still running?' : error.message);
  }
}

const query = (path, given) => `${path}?${new URLSearchParams(Object.entries(given).filter(([, value]) => value !== null && value !== ''))}`;

// --- lists: each has its rows, and a last one that goes on

function put(mode, rows, more) {
  state.rows[mode] = more ? [...rows, { of: 'more', ...more }] : rows;
  if (state.mode === mode) showList();
}

const held = (mode) => (state.rows[mode] || []).filter((row) => row.of !== 'more');

function showList() {
  const rows = state.rows[state.mode] || [], kept = rows.indexOf(list.selected);
  for (const mode of Object.keys(LISTS)) $(`tab-${mode}`).setAttribute('aria-pressed', String(mode === state.mode));
  $('list').setAttribute('aria-label', LISTS[state.mode]);
  $('names').hidden = state.mode !== 'documents' || !state.text || !state.text.documents;
  const last = rows[rows.length - 1];
  $('count').textContent = `${count(held(state.mode).length)}${last && last.of === 'more' ? ' so far' : ''}`;
  list.show(rows);
  if (kept < 0) list.select(rows[0] || null, true);
}

async function listDocuments(first = 0) {
  const answer = await ask(query('documents', { first, glob: $('names').value.trim() }));
  const rows = answer.rows.map((row) => ({ of: 'document', ...row }));
  const whole = answer.count ? [] : [{ of: 'whole', characters: state.text.characters }];
  put('documents', [...(first ? held('documents') : whole), ...rows],
    answer.next === null ? null : { title: 'More documents', about: `${count(answer.next)} of ${count(answer.count)} were looked at`, act: () => listDocuments(answer.next) });
}

async function listVersions() {
  const answer = await ask('history');
  put('versions', answer.rows.map((row) => ({ of: 'version', ...row, isOpen: row.version === answer.open })));
}

// The words of a search as the text has them; none of a regular expression, which only the server reads.
function wordsOf({ kind, given, anyCase }) {
  const plain = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const words = kind === 'search' ? given.split(/[^\p{L}\p{N}_]+/u).filter((word) => word.length > 1) : kind === 'fixed' || plain(given) === given ? [given] : [];
  return words.length ? new RegExp(`(${words.map(plain).join('|')})`, kind === 'search' || anyCase ? 'giu' : 'gu') : null;
}

async function find(on = null) {
  const search = on === null ? { given: $('search').value, kind: $('kind').value, anyCase: $('any-case').checked } : state.search;
  if (!search.given.trim()) return 'type what to look for';
  state.search = { ...search, words: wordsOf(search) };
  const ranked = search.kind === 'search';
  const answer = await ask(ranked ? query('search', { words: search.given, bytes: on })
    : query('grep', { pattern: search.given, fixed: search.kind === 'fixed' ? 1 : '', ignore_case: search.anyCase ? 1 : '', start: on }));
  const rows = [...(on !== null && !ranked ? held('hits') : []), ...answer.hits.map((row) => ({ of: 'hit', ...row }))];
  const about = ranked ? answer.note : `searched ${percent(answer.next, answer.characters)} of the text`;
  state.mode = 'hits';
  if (on === null) list.selected = null;
  put('hits', rows, answer.next === null ? null : { title: ranked ? 'Look further' : 'Search on', about, act: () => find(answer.next) });
  if (on === null && rows.length) choose(rows[0], false);
  $('list').focus();
  return `${plural(rows.length, ranked ? 'passage' : 'line')}${answer.next === null ? '' : ' so far'}`;
}

const FILL = { documents: listDocuments, hits: () => null, versions: listVersions };

function turnTo(mode) {
  state.mode = mode;
  list.selected = null;
  showList();
  $('list').focus();
  if (mode === 'documents' && state.rows.documents) return choose(list.selected, false);
  return doing(`listing ${LISTS[mode].toLowerCase()}`, async () => {
    await FILL[mode]();
    if (state.mode === mode) choose(list.selected, false);
  });
}

// --- what is chosen is shown soon; `o` reads it at once

function choose(row, byHand) {
  if (!row) return;
  list.select(row, true);
  if (row.of === 'more') { if (byHand) doing('going on', row.act); return; }
  soon('choose', () => show(row), byHand ? 0 : 120);
}

const open = (path, marks) => doing('', () => reader.open(path, marks));

// A place that no row stands for.
function openPlace(given) {
  clearTimeout(timers.choose);
  state.shown = null;
  return reader.open(query('text', given));
}

function show(row) {
  clearTimeout(timers.choose);
  state.shown = row;
  return {
    document: () => open(query('text', { number: row.number })),
    whole: () => open(query('text', { at: row.characters ? 0 : null })),
    hit: () => open(query('text', { at: row.at }), { stop: row.stop, words: state.search.words }),
    version: () => doing('', async () => {
      const change = row.before === null ? null : await ask(query('change', { before: row.before, version: row.version }));
      if (state.shown === row) reader.show(...changeOf(row, change, (document) => doing('', () => openPlace({ document }))));
    }),
  }[row.of]();
}

async function read() {
  const row = list.selected;
  if (!row) return;
  if (row.of === 'more') { await doing('going on', row.act); return; }
  if (state.shown !== row) await show(row);
  if (list.selected === row) $('detail').focus();
}

// --- go to

function goTo() {
  $('to').value = '';
  $('go-error').textContent = '';
  $('go').showModal();
}

$('go').querySelector('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const given = $('to').value.trim(), [, name, line] = given.match(/^(.*?):?(\d*)$/s);
  const here = reader.isOpen && reader.document;
  const asked = /^@\d+$/.test(given) ? { at: given.slice(1) } : name === '' && line ? { line, number: here ? here.number : null }
    : /:\d+$/.test(given) ? { document: name, line } : { document: given };
  try {
    await openPlace(asked);
    $('go').close();
    $('detail').focus();
  } catch (error) { $('go-error').textContent = error.message; }
});

// --- keys, buttons, begin

onKeys({
  j: () => choose(list.step(1), false), k: () => choose(list.step(-1), false),
  ArrowDown: () => choose(list.step(1), false), ArrowUp: () => choose(list.step(-1), false),
  PageDown: () => choose(list.step(list.page), false), PageUp: () => choose(list.step(-list.page), false),
  Home: () => choose(list.rows[0], false), End: () => choose(list.rows[list.rows.length - 1], false),
  o: read, Enter: read, n: () => reader.further(), p: () => reader.earlier(),
  '/': () => { $('search').focus(); $('search').select(); }, f: () => { if (!$('names').hidden) $('names').focus(); },
  g: goTo, d: () => turnTo('documents'), h: () => turnTo('versions'),
  '?': () => $('keys').showModal(), t: () => theme.turn(),
}, {
  escape: (target) => { if (target === $('list') || target === document.body) turnTo('documents'); else $('list').focus(); },
  entered: (target) => { if (target === $('names')) $('list').focus(); },
});
$('find').addEventListener('submit', (event) => { event.preventDefault(); doing('searching', () => find()); });
$('names').addEventListener('input', () => soon('names', () => doing('listing documents', () => listDocuments()), 200));
$('go-to').addEventListener('click', goTo);
for (const mode of Object.keys(LISTS)) $(`tab-${mode}`).addEventListener('click', () => turnTo(mode));
theme.begin(() => {});

doing('opening', async () => {
  const text = state.text = await ask('state');
  document.title = `${text.url} \u2013 monocontext view`;
  $('place').textContent = text.url;
  const filters = text.filter_bytes === null ? 'yes' : text.filter_bytes ? bytes(text.filter_bytes) : 'none: a search reads the text';
  $('figures').replaceChildren(...facts([
    ['Characters', count(text.characters)], ['Lines', count(text.lines)], ['Documents', count(text.documents)],
    ['Bytes of text', bytes(text.bytes)], ['Bytes stored', bytes(text.stored_bytes)],
    ['Stored in', `${plural(text.pieces, 'piece')} of at most ${bytes(text.piece_bytes)}`], ['Search filters', filters],
    ['Version', count(text.version)], ['Written', moment(text.created)], text.sources.length ? ['Lies in', text.sources.join(', ')] : null,
  ]));
  await listDocuments();
  choose(list.selected, false);
  $('list').focus();
});
