// Where the data comes from: the server that this page came from, or the file that it is.

class Served {
  async state(first, generation) {
    const known = generation === null ? '' : `&generation=${generation}`;
    return this.get(`state?first=${first}${known}`);
  }

  turn(number) { return this.get(`turn?number=${number}`); }

  prompt(number) { return this.get(`prompt?number=${number}`); }

  async get(path) {
    const response = await fetch(path, { headers: { accept: 'application/json' } });
    const value = await response.json();
    if (!response.ok) throw new Error(value.error);
    return value;
  }
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
