// One cell: what the model said, its code, what that gave, and what it cost.

// A remark that a long list was cut; none for a whole one.
const leftOutNote = (number, name) => (number ? [el('p', 'notice', `${plural(number, `more ${name} is`, `more ${name}s are`)} in the file, but left out here.`)] : []);

class Detail {
  // goTo chooses the cell that read a character of the context; canGo tells whether there is one.
  constructor(box, goTo, canGo) { Object.assign(this, { box, goTo, canGo, asked: 0 }); }

  // Details come from the source; an answer that comes after another cell was chosen is dropped.
  async show(row) {
    const mine = ++this.asked;
    let told;
    try {
      told = await source.turn(row.at);
    } catch (error) {
      if (mine === this.asked) this.box.replaceChildren(el('p', 'notice', `This turn could not be read: ${error.message}`));
      return;
    }
    if (mine !== this.asked) return;
    const top = this.row === row || (row.live && this.row && this.row.live) ? this.box.scrollTop : 0;
    this.row = row;
    this.box.replaceChildren(...(row.live ? this.underWay(told) : this.cell(row, told)));
    this.box.scrollTop = top;
  }

  cell(row, told) {
    const { turn, cell } = row;
    const held = cell ? told.cells[row.number] : null;
    const many = turn.cells.length > 1;
    const parts = [el('div', 'title', el('h2', '', `Turn ${turn.turn}${many ? `, cell ${row.number + 1} of ${turn.cells.length}` : ''}`),
      el('span', 'note', turn.model))];
    parts.push(el('dl', 'facts', ...facts([
      ['from', seconds(row.start)],
      row.number === 0 && ['thinking', seconds(turn.think)],
      cell && ['running', seconds(cell.run)],
      cell && cell.calls > 0 && ['waiting for calls', seconds(cell.wait_calls)],
      cell && known(cell.wait_storage) && ['waiting for storage', seconds(cell.wait_storage)],
      cell && cell.io && ['GETs', count(cell.io[0])],
      cell && cell.io && ['read', bytes(cell.io[1])],
      cell && cell.io && known(cell.io[2]) && ['hits', count(cell.io[2])],
      turn.ahead[0] && row.number === 0 && ['read ahead', `${plural(turn.ahead[0], 'GET')}, ${bytes(turn.ahead[1])}`],
      row.number === 0 && known(turn.tokens[0]) && ['tokens', `${count(turn.tokens[0])} in, ${count(turn.tokens[1])} out`],
      row.number === 0 && known(turn.dollars) && ['root', dollars(turn.dollars)],
      cell && cell.calls > 0 && ['sub-calls', dollars(cell.dollars)],
    ])));
    if (row.number === 0) {
      if (told.compacted) parts.push(el('p', 'notice', `The history was long: ${plural(told.compacted, 'message was', 'messages were')} shortened before this turn.`));
      parts.push(...thinking(told));
      const said = prose(told.response, told.cells);
      if (said) parts.push(el('div', 'prose', said));
    }
    if (held) parts.push(...this.ran(held));
    if (row.answers) parts.push(el('h3', '', turn.reason && turn.reason !== 'answer' ? `Answer (${turn.reason} was reached)` : 'Answer'), el('div', 'prose final', turn.answer), ...this.sources(told.sources, told.sources_left_out));
    if (told.notice) parts.push(el('p', 'notice', told.notice));
    if (row.number === 0) parts.push(el('h3', '', 'Prompt'), this.prompt(row.at, told));
    return parts;
  }

  // What the model named for its answer; each leads to the cell that read it.
  sources(found, leftOut) {
    if (!found.length) return [];
    const item = (each) => {
      const place = el('button', '', each.place);
      place.type = 'button';
      place.disabled = !this.canGo(each.start);
      place.addEventListener('click', () => this.goTo(each.start));
      return el('div', 'source', el('p', '', place, ` characters ${count(each.start)} to ${count(each.stop)}`), block(each.text, 'out'));
    };
    return [el('h3', '', 'Sources'), ...found.map(item), ...leftOutNote(leftOut, 'source')];
  }

  // Code and what it gave; of a child run too.
  ran(held) {
    const parts = [el('h3', '', 'Code'), block(held.code, '', python)];
    if (held.stdout) parts.push(el('h3', '', 'Output'), block(held.stdout, 'out'));
    if (held.stderr) parts.push(el('h3', '', 'Error'), block(held.stderr, 'bad'));
    if (held.calls.length) {
      parts.push(el('h3', '', plural(held.calls.length, 'sub-call')));
      parts.push(el('div', '', ...held.calls.slice(0, 200).map((call) => this.call(call))));
      if (held.calls.length > 200) parts.push(this.more(held.calls));
    }
    const names = Object.entries(held.locals);
    if (names.length) {
      parts.push(el('h3', '', 'Afterwards'), folded(el('summary', '', plural(names.length, 'variable')), (body) => body.append(
        el('table', '', el('tbody', '', ...names.map(([name, value]) => el('tr', '', el('th', '', name), el('td', '', value))))))));
    }
    if (held.ranges.length) {
      parts.push(folded(el('summary', '', `${plural(held.ranges.length + held.ranges_left_out, 'range')} of characters read`), (body) => body.append(
        block(held.ranges.map(([start, stop]) => `${count(start)} to ${count(stop)}`).join('\n'), 'out'), ...leftOutNote(held.ranges_left_out, 'range'))));
    }
    return parts;
  }

  more(calls) {
    const button = el('button', '', `Show the other ${count(calls.length - 200)}`);
    button.type = 'button';
    button.addEventListener('click', () => button.replaceWith(el('div', '', ...calls.slice(200).map((call) => this.call(call)))));
    return button;
  }

  call(call) {
    const marks = [call.cached ? 'cached' : '', call.turns.length ? plural(call.turns.length, 'turn') : ''].filter(Boolean).join(', ');
    const line = el('span', 'line', (call.error || call.response || call.prompt).slice(0, 300));
    const summary = el('summary', '', line, el('span', 'num', marks || call.model),
      el('span', 'num', known(call.tokens[0]) ? `${count(call.tokens[0])} / ${count(call.tokens[1])} tok` : DASH),
      el('span', 'num', known(call.dollars) ? dollars(call.dollars) : DASH), el('span', 'num', seconds(call.seconds)));
    return folded(summary, (body) => {
      body.append(el('h3', '', `Prompt to ${call.model}`), block(call.prompt, 'out'));
      if (call.error) body.append(el('h3', '', 'Error'), block(call.error, 'bad'));
      else body.append(...thinking(call), el('h3', '', 'Response'), block(call.response, 'out'));
      for (const turn of call.turns) {
        const said = prose(turn.response, turn.cells);
        body.append(folded(el('summary', '', el('span', 'line', `Turn ${turn.turn} of the child run`)), (inner) => {
          inner.append(...thinking(turn));
          if (said) inner.append(el('div', 'prose', said));
          for (const held of turn.cells) inner.append(...this.ran(held));
          if (turn.answer !== null) inner.append(el('h3', '', 'Answer'), el('div', 'prose final', turn.answer));
        }));
      }
    });
  }

  prompt(at, told) {
    return folded(el('summary', '', plural(told.messages, 'message')), async (body) => {
      body.append(el('p', 'note', 'Loading'));
      try {
        const messages = await source.prompt(at);
        body.replaceChildren(...messages.flatMap(({ role, content }) => [el('h3', '', role), block(content, 'out')]));
      } catch (error) {
        body.replaceChildren(el('p', 'note', error.message));
      }
    });
  }

  underWay(told) {
    const parts = [el('div', 'title', el('h2', '', 'Under way'))];
    const calls = told.calls || [];
    if (!told.response && !calls.length) parts.push(el('p', 'note', 'The root model has been asked and has not replied yet.'));
    parts.push(...thinking(told));
    if (told.response) parts.push(el('h3', '', 'Reply'), block(told.response, 'out'));
    if (calls.length) parts.push(el('h3', '', `${plural(calls.length, 'sub-call')} so far`), el('div', '', ...calls.slice(-200).map((call) => this.call(call))));
    return parts;
  }
}

// What a model thought before it wrote, folded: it is neither code nor answer.
function thinking(said) {
  if (!said.thinking) return [];
  return [folded(el('summary', '', `Thinking: ${plural(said.thinking.length, 'character')}`), (body) => body.append(block(said.thinking, 'out')))];
}

// What a reply says apart from the blocks that are shown as cells.
function prose(response, cells) {
  const bare = (code) => code.replace(/\s+/g, '');
  const shown = new Set(cells.map((held) => bare(held.code)));
  const text = response.replace(/^[ \t]*(```+|~~~+)[^\n]*\n([\s\S]*?)(?:^[ \t]*\1[ \t]*$|$(?![\s\S]))/gm,
    (fence, marks, code) => (shown.has(bare(code)) ? '' : fence));
  return text.replace(/\n{3,}/g, '\n\n').trim();
}
