// A row of the list of cells.

const ROW = 30;

function cellRow(row) {
  const { cell } = row;
  const marks = el('span', 'marks');
  if (cell && cell.calls) marks.append(el('span', '', plural(cell.calls, 'call')));
  if (cell && (cell.error || cell.failed)) marks.append(el('b', '', cell.error ? 'error' : `${cell.failed} failed`));
  if (row.answers) marks.append(el('i', '', 'answer'));
  const took = row.live ? '' : seconds(cell ? cell.run : row.turn.think);
  return el('div', `row${cell ? '' : ' said'}${row.live ? ' live' : ''}`,
    el('span', 'no', row.label), el('span', 'line', row.line), marks, el('span', 'took', took));
}
