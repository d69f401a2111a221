// Run a worker's Python in a WebAssembly module: `node ... --eval THIS FOLDER_OF_PYODIDE DISK_BYTES`.
//
// The standard streams are the channel to the host. The first message has the Python files of the worker, as a zip
// archive. Python sees the channel as the file /dev/channel, and gets no object of JavaScript.

import fs from "node:fs";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const node = process;
const [folder, diskBytes] = node.argv.slice(-2);
const host = node.ppid;
const POLL_MS = 20;
const SIGALRM = 14;
const [EIO, EPERM, ENOSPC, EPIPE] = [29, 63, 51, 64]; // as Emscripten numbers them

const end = (error) => {
  fs.writeSync(2, `${error}`.slice(0, 300)); // without the source line, which may have a megabyte
  return node.reallyExit(1);
};
node.on("uncaughtException", end);

// -- calls from the module to JavaScript -------------------------------------------------------------------------------

// Calls that Python's C code may make once the worker has opened the channel: files (in memory), clocks, memory, exit.
const ALLOWED = new RegExp(
  "^(invoke_|__syscall_|fd_|clock_|environ_|random_get$|proc_exit$|exit$|_abort_js$|__assert_fail$|fail_test$" +
    "|_m(map|unmap|sync)_js$|_(tzset|timegm|mktime|localtime|gmtime)_js$|emscripten_(date_now|get_now)$" +
    "|emscripten_(get_heap_max|resize_heap)$|_?emscripten_runtime_keepalive|_emscripten_get_progname$" +
    "|_PyEM_TrampolineCall_JS$|_Py_CheckEmscriptenSignals_Helper$|_try_fcntl64$|_maybe_poll_async$)",
);
// Calls that honest programs try too: they get an error.
const REFUSED = new RegExp(
  "^(_emscripten_system|_emscripten_lookup_name|get(addr|name)info|getprotobyname|_setitimer_js|_try_shutdown" +
    "|__syscall_(pipe|socket|connect|bind|listen|accept4|(get|set)sock.*|getpeername|send.*|recv.*|shutdown))$",
);

// Calls about the host's process: the answer says nothing of it. `time.sleep` asks whether it can await a promise.
const ANSWERS = { __syscall_getuid32_js: 65534, __syscall_umask_js: 0o22, can_run_sync_js: 0 };

let closed = false;
const guard = (name, call) => {
  const answer = REFUSED.test(name) ? -EPERM : ANSWERS[name];
  const ask = (...words) => (closed ? end(`Error: the module asked JavaScript for ${name}`) : call(...words));
  const guarded = answer === undefined ? ask : () => answer;
  return Object.assign(guarded, { sig: call.sig });
};

const { instantiate } = WebAssembly;
WebAssembly.instantiate = (binary, imports) => {
  const { env } = imports; // `dlsym` also searches it
  for (const [name, call] of Object.entries(env)) {
    const isFree = ALLOWED.test(name) && !REFUSED.test(name) && !(name in ANSWERS);
    if (typeof call === "function" && !isFree) env[name] = guard(name, call);
  }
  return instantiate(binary, imports);
};

// Emscripten reads constants by a call that Node's permission model refuses as a whole.
node.binding = () => ({ fs: fs.constants });

// -- the channel -------------------------------------------------------------------------------------------------------

const receive = (size) => {
  const whole = new Uint8Array(size);
  for (let filled = 0, got; filled < size; filled += got) {
    got = fs.readSync(0, whole, filled, size - filled, null);
    if (!got) node.exit(0);
  }
  return whole;
};

const lengths = new DataView(receive(8).buffer);
receive(lengths.getUint32(4)); // an empty object
const archive = receive(lengths.getUint32(0) - lengths.getUint32(4));

const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const pyodide = await loadPyodide({
  env: { HOME: "/tmp" },
  stdin: () => null,
  stdout: () => {},
  stderr: () => {},
});
const { FS, _module: module } = pyodide;
const { HEAPU8: bytes, HEAPU32: words, MEMFS } = module;
FS.writeFile("/worker.zip", archive);

// C modules that reach memory or JavaScript. Python can import no name that begins with the byte 0xff.
const UNWANTED = /^_ctypes|^_pyodide_core$|^_test|^_xxtest|^xx|^_remote_debugging$/;
for (let at = words[module._PyImport_Inittab >> 2] >> 2; words[at]; at += 2) {
  const start = words[at];
  const name = Buffer.from(bytes.subarray(start, bytes.indexOf(0, start))).toString("latin1");
  if (UNWANTED.test(name)) bytes[start] = 0xff;
}

const device = FS.makedev(200, 0);
FS.registerDevice(device, {
  open() {
    closed = true;
  },
  close() {},
  read(stream, buffer, offset, length) {
    try {
      return fs.readSync(0, buffer, offset, length, null);
    } catch (error) {
      if (error.code === "EOF") return 0; // as Windows says it
      throw new FS.ErrnoError(EIO);
    }
  },
  write(stream, buffer, offset, length) {
    try {
      return fs.writeSync(1, buffer, offset, length);
    } catch {
      throw new FS.ErrnoError(EPIPE);
    }
  },
});
FS.mkdev("/dev/channel", 0o666, device);

// Between its steps, Python reads a signal from this "buffer". At SIGALRM the worker checks its time.
let next = 0;
pyodide.setInterruptBuffer({
  get 0() {
    const now = performance.now();
    if (now < next) return 0;
    next = now + POLL_MS;
    if (node.ppid !== host) node.exit(0); // the host is gone
    return SIGALRM;
  },
  set 0(value) {},
});

// -- limits and removals -----------------------------------------------------------------------------------------------

// Files are in memory that no limit of the module counts.
let room = Number(diskBytes);
const bounded = (change) => (target, ...rest) => {
  const file = target.node ?? target;
  const size = rest[0]?.size ?? (rest[3] ?? 0) + (rest[2] ?? 0); // from `setattr`, or from `write` with its position
  const more = FS.isFile(file.mode) ? size - file.contents.length : 0;
  if (more > room) throw new FS.ErrnoError(ENOSPC);
  const before = file.contents?.length ?? 0;
  const result = change(target, ...rest);
  room -= Math.max(0, (file.contents?.length ?? 0) - before);
  return result;
};
MEMFS.stream_ops.write = bounded(MEMFS.stream_ops.write);
MEMFS.node_ops.setattr = bounded(MEMFS.node_ops.setattr);
MEMFS.ops_table.file.stream.write = MEMFS.stream_ops.write;
MEMFS.ops_table.file.node.setattr = MEMFS.node_ops.setattr;

for (const name of Object.keys(FS.filesystems)) if (name !== "MEMFS") delete FS.filesystems[name];

const kept = new Set(vm.runInNewContext("Object.getOwnPropertyNames(globalThis)"));
for (const name of ["performance", "crypto", "TextDecoder", "TextEncoder", "setTimeout", "clearTimeout"]) kept.add(name);
for (const name of Object.getOwnPropertyNames(globalThis)) if (!kept.has(name)) delete globalThis[name];
globalThis.console = { error() {}, log() {}, warn() {} }; // the console of Node can reach the standard streams

pyodide.runPython(`
import sys
sys.path.insert(0, "/worker.zip")
from rlm.runners.wasm.inside import main
main()
`);
node.exit(0);
