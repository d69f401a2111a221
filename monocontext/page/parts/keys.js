// Keys, and light or dark.

const SCROLLS = ['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End', 'Enter', ' '];

// A key acts where no one types; within a text, keys that scroll or open do that, as everywhere.
function onKeys(keys, { escape, entered }) {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    const { target } = event;
    if (event.key === 'Escape') { escape(target); return; }
    if (target.matches('input, select, textarea')) {
      if (event.key === 'Enter') entered(target);
      return;
    }
    if (SCROLLS.includes(event.key) && target.closest('.detail, button, summary, a')) return;
    const act = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (!act) return;
    event.preventDefault();
    act();
  });
  $('help').addEventListener('click', () => $('keys').showModal());
}

// As the system has it, until somebody turns it; `draw` paints again what style sheets do not reach.
const theme = {
  begin(draw) {
    const system = window.matchMedia('(prefers-color-scheme: dark)');
    this.draw = draw;
    system.addEventListener('change', () => this.set(system.matches));
    $('theme').addEventListener('click', () => this.turn());
    this.set(system.matches);
  },
  turn() { this.set(!document.documentElement.classList.contains('dark')); },
  set(dark) {
    document.documentElement.classList.toggle('dark', dark);
    this.draw();
  },
};
