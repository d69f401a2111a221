// Where the data comes from: the server that this page came from, or the file that it is.

class Served {
  async state(first, generation) {
    const known = generation === null ? '' : `&generation=${generation}`;
    const state = await ask(`state?first=${first}${known}`);
    this.run = `generation=${state.generation}`; // turns of another run in the same file are refused
    return state;
  }

  turn(number) { return ask(`turn?number=${number}&${this.run}`); }

  prompt(number) { return ask(`prompt?number=${number}&${this.run}`); }
}

class Written {
  async state() { return this.read('state'); }

  async turn(number) { return this.read(`turn-${number}`); }

  async prompt(number) {
    if (number === 0) return this.read('prompt-0');
    throw new Error('Only the first prompt is in this file: each later one repeats the turns before it.');
  }

  read(name) { return JSON.parse($(name).textContent); }
}

const written = $('state') !== null;
const source = written ? new Written() : new Served();
