// Colours for Python: enough of its grammar to tell words, texts, numbers and comments apart.

const PYTHON = new RegExp([
  '(?<c>#[^\\n]*)',
  '(?<s>\\b(?:[rRbBfFuU]{1,2})?(?:"""[\\s\\S]*?(?:"""|$)|\'\'\'[\\s\\S]*?(?:\'\'\'|$)|"(?:\\\\[\\s\\S]|[^"\\\\\\n])*"?|\'(?:\\\\[\\s\\S]|[^\'\\\\\\n])*\'?)' +
    '|(?:"""[\\s\\S]*?(?:"""|$)|\'\'\'[\\s\\S]*?(?:\'\'\'|$)|"(?:\\\\[\\s\\S]|[^"\\\\\\n])*"?|\'(?:\\\\[\\s\\S]|[^\'\\\\\\n])*\'?))',
  '(?<n>\\b(?:0[xXoObB][\\da-fA-F_]+|\\d[\\d_]*(?:\\.[\\d_]*)?(?:[eE][+-]?\\d+)?j?)\\b)',
  '(?<k>\\b(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|None|True|False)\\b)',
  '(?<r>\\b(?:context|answer|llm_query|llm_query_batched|rlm_query|rlm_query_batched|FINAL|FINAL_VAR|SUBMIT|SHOW_VARS)\\b)',
  '(?<f>\\b[A-Za-z_]\\w*(?=\\())',
].join('|'), 'g');

function python(code) {
  const found = document.createDocumentFragment();
  let end = 0;
  for (const match of code.matchAll(PYTHON)) {
    if (!match[0]) continue;
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    if (match.index > end) found.append(code.slice(end, match.index));
    found.append(el('span', kind, match[0]));
    end = match.index + match[0].length;
  }
  found.append(code.slice(end));
  return found;
}
