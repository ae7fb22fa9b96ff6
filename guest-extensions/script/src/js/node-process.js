// The process that there is not: a script has a working directory, and no variables of the user's.
import { now } from "atoll:native";

const lines = (write) => ({
  write: (text) => {
    write(String(text).replace(/\n$/, ""));
    return true;
  },
  isTTY: false, columns: 80, rows: 24,
  on: () => {},
});

const process = {
  env: {},
  argv: ["atoll"],
  execPath: "atoll",
  pid: 1,
  platform: "linux",
  arch: "wasm32",
  version: "v22.0.0",
  versions: { node: "22.0.0" },
  exitCode: undefined,
  cwd: () => now("host.describe").cwd,
  exit: () => {
    throw new Error("a script can not end the host; call atoll.shutdown()");
  },
  nextTick: (run, ...values) => queueMicrotask(() => run(...values)),
  uptime: () => performance.now() / 1000,
  memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }),
  hrtime: Object.assign(
    (before = [0, 0]) => {
      const at = performance.now();
      return [Math.floor(at / 1000) - before[0], Math.floor((at % 1000) * 1e6) - before[1]];
    },
    { bigint: () => BigInt(Math.floor(performance.now() * 1e6)) },
  ),
  stdout: lines((text) => console.log(text)),
  stderr: lines((text) => console.error(text)),
  stdin: { isTTY: false, on: () => {} },
  on: () => process,
  once: () => process,
  off: () => process,
  removeListener: () => process,
  emitWarning: (text) => console.warn(text),
};

export const { env, argv, cwd, exit, nextTick, platform, stdout, stderr, hrtime } = process;
export default process;
