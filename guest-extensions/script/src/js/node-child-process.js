// Programs, through the capability `process`.
import { call, now } from "atoll:native";
import EventEmitter from "atoll:node-events";
import { promisify } from "atoll:util";

const request = (program, args, options, shell) => ({
  program, shell, arguments: args, cwd: options.cwd === undefined ? null : String(options.cwd),
  // What it inherits is the host's to say; only what the script sets itself is passed on.
  env: Object.entries(options.env ?? {}).filter(([name, value]) => value !== undefined && process.env[name] !== value),
  timeoutMs: options.timeout ?? null, maxBuffer: options.maxBuffer ?? null,
});

const encoded = (text, options, otherwise) => {
  const encoding = options.encoding === undefined ? otherwise : options.encoding;
  return encoding === null || encoding === "buffer" ? Buffer.from(text) : text;
};

const failure = (line, done) => {
  const error = new Error(`Command failed: ${line}\n${done.stderr}`);
  return Object.assign(error, {
    code: done.code, status: done.code, signal: done.killed ? "SIGTERM" : null, killed: done.killed, cmd: line,
    stdout: done.stdout, stderr: done.stderr,
  });
};

const input_of = (options) => (options.input === undefined ? undefined : Buffer.from(options.input));

const waited = (program, args, options, shell, done) => {
  const child = new ChildProcess();
  const line = [program, ...args].join(" ");
  call("process.run", request(program, args, options, shell), { bytes: input_of(options), signal: child.signal_of(options) }).then(
    (ended) => {
      child.end(ended);
      const [out, err] = [ended.stdout, ended.stderr].map((text) => encoded(text, options, "utf8"));
      done?.(ended.code === 0 ? null : failure(line, ended), out, err);
    },
    (error) => {
      const known = error.code === "not-found" ? Object.assign(error, { code: "ENOENT" }) : error;
      if (done) done(known, "", "");
      else child.fail(known);
    },
  );
  return child;
};

class ChildProcess extends EventEmitter {
  #controller = new AbortController();
  constructor() {
    super();
    this.stdout = new EventEmitter();
    this.stderr = new EventEmitter();
    for (const stream of [this.stdout, this.stderr]) stream.setEncoding = () => stream;
    this.stdin = { write: () => false, end: () => {}, on: () => {} };
    this.exitCode = null;
    this.killed = false;
  }
  signal_of(options) {
    options.signal?.addEventListener("abort", () => this.kill(), { once: true });
    if (options.signal?.aborted) this.kill();
    return this.#controller.signal;
  }
  kill() {
    this.killed = true;
    this.#controller.abort();
    return true;
  }
  end({ stdout, stderr, code, signal }) {
    this.exitCode = code;
    if (stdout !== "") this.stdout.emit("data", Buffer.from(stdout));
    if (stderr !== "") this.stderr.emit("data", Buffer.from(stderr));
    for (const stream of [this.stdout, this.stderr]) {
      stream.emit("end");
      stream.emit("close");
    }
    this.emit("exit", code, signal);
    this.emit("close", code, signal);
  }
  fail(error) {
    if (this.killed) {
      this.emit("exit", null, "SIGTERM");
      this.emit("close", null, "SIGTERM");
    } else {
      this.emit("error", error);
    }
  }
}

const split = (values) => {
  const done = typeof values.at(-1) === "function" ? values.pop() : undefined;
  return [values.filter((value) => value !== undefined && value !== null), done];
};

export const exec = (line, ...values) => {
  const [[options = {}], done] = split(values);
  return waited(line, [], options, true, done);
};
export const execFile = (program, ...values) => {
  const [rest, done] = split(values);
  const args = Array.isArray(rest[0]) ? rest.shift() : [];
  return waited(program, args, rest[0] ?? {}, false, done);
};
const both = (run) => (...values) =>
  new Promise((resolve, reject) => {
    run(...values, (error, stdout, stderr) => (error ? reject(Object.assign(error, { stdout, stderr })) : resolve({ stdout, stderr })));
  });
Object.defineProperty(exec, promisify.custom, { value: both(exec) });
Object.defineProperty(execFile, promisify.custom, { value: both(execFile) });

/** Runs a program. What it prints arrives when it has ended. */
export const spawn = (program, ...values) => {
  const args = Array.isArray(values[0]) ? values.shift() : [];
  const options = values[0] ?? {};
  return waited(program, options.shell ? [] : args, options, options.shell === true, undefined);
};

const at_once = (program, args, options, shell) => now("process.run", request(program, args, options, shell), input_of(options));

export const spawnSync = (program, ...values) => {
  const args = Array.isArray(values[0]) ? values.shift() : [];
  const options = values[0] ?? {};
  try {
    const done = at_once(program, args, options, options.shell === true);
    const [stdout, stderr] = [done.stdout, done.stderr].map((text) => encoded(text, options, "buffer"));
    return { pid: 0, status: done.code, signal: done.killed ? "SIGTERM" : null, stdout, stderr, output: [null, stdout, stderr] };
  } catch (error) {
    return { pid: 0, status: null, signal: null, stdout: "", stderr: "", output: null, error };
  }
};
const or_throw = (done, line, options) => {
  if (done.code !== 0) throw failure(line, done);
  return encoded(done.stdout, options, "buffer");
};
export const execSync = (line, options = {}) => or_throw(at_once(line, [], options, true), line, options);
export const execFileSync = (program, ...values) => {
  const args = Array.isArray(values[0]) ? values.shift() : [];
  const options = values[0] ?? {};
  return or_throw(at_once(program, args, options, false), [program, ...args].join(" "), options);
};

export { ChildProcess };
export default { exec, execFile, execSync, execFileSync, spawn, spawnSync, ChildProcess };
