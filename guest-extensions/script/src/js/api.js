// The object that a script's default export is called with, and what the host puts to the script.
import { call, denial_of, now, not_here, serve, without_effect } from "atoll:native";
import "atoll:globals";
import { Handlers } from "atoll:events";
import { context, model_name, ui } from "atoll:context";

const handlers = new Handlers();
const tools = new Map();
const commands = new Map();
const shortcuts = new Map();
const flags = new Map();
const topics = new Map();
let running = false;
let plugin = "";

const wanted = () => ({
  events: handlers.names().filter((name) => name !== "bus"),
  topics: [...topics.keys()],
  commands: [
    ...[...commands].map(([name, { description = "", getArgumentCompletions }]) => (
      { name, description, hidden: false, completes: typeof getArgumentCompletions === "function" })),
    ...[...shortcuts].map(([key, { description }]) => (
      { name: command_of(key), description, hidden: true, completes: false })),
  ],
  flags: [...flags].map(([name, { type, description = "", default: value }]) => (
    { name, description, boolean: type !== "string", default: value === undefined ? null : String(value) })),
  shortcuts: [...shortcuts].map(([key, { description }]) => ({ key, description, command: command_of(key) })),
});

// A key's command is called after it. Different keys may be alike in the letters that a command's name can have.
const key_commands = new Map();
const command_of = (key) => {
  const known = key_commands.get(key);
  if (known !== undefined) return known;
  const plain = `${plugin}-key-${key.replace(/[^A-Za-z0-9]+/g, "-")}`.slice(0, 60);
  const taken = new Set(key_commands.values());
  let name = plain;
  for (let n = 2; taken.has(name); n++) name = `${plain}-${n}`;
  key_commands.set(key, name);
  return name;
};

let due = false;

/** Tells the host what the script wants now, once for all that changes at once. */
const changed = () => {
  if (!running || due) return;
  due = true;
  queueMicrotask(() => {
    due = false;
    call("host.subscribe", { ...wanted(), flags: [] }).catch((error) => console.error(error));
  });
};

// The script's own promise of something that is waited for here, too: its failure is the script's, and in the log if the
// script does not look.
const own = (done) => done.then((value) => value);

// Changes of the table happen in the order in which the script asked for them.
let table = Promise.resolve();
const on_table = (name, value) => {
  const done = table.then(() => call(name, value));
  table = done.catch(() => {});
  return own(done);
};

// What is added for others is there when the script has started, whether the script waits for it or not.
const additions = [];
const added = (name, value) => {
  const done = call(name, value);
  if (!running) additions.push(done.catch(() => {}));
  return own(done);
};

const MODES = { parallel: "parallel", sequential: "sequential" };

/** A tool as the table takes it. */
const declared = (tool) => {
  if (typeof tool?.name !== "string") throw new TypeError("a tool needs a name");
  if (typeof tool.execute !== "function") throw new TypeError(`the tool ${tool.name} has no function \`execute\``);
  return {
    name: tool.name,
    label: tool.label,
    description: tool.description ?? "",
    parameters: tool.parameters ?? { type: "object", properties: {} },
    outputSchema: tool.outputSchema,
    promptSnippet: tool.promptSnippet,
    promptGuidelines: tool.promptGuidelines ?? [],
    exposure: tool.exposure ?? "direct",
    defaultActive: tool.defaultActive,
    executionMode: MODES[tool.executionMode] ?? "parallel",
    namespace: typeof tool.namespace === "string" ? { name: tool.namespace } : tool.namespace,
    annotations: tool.annotations ?? {},
    prepares: typeof tool.prepareArguments === "function",
  };
};

const listed = () => now("table.list");

const store = {
  async get(key) {
    const found = await call("store.get", { key });
    return found === null ? undefined : JSON.parse(new TextDecoder().decode(found.bytes));
  },
  async set(key, value) {
    await call("store.set", { key }, { bytes: new TextEncoder().encode(JSON.stringify(value)) });
  },
  async delete(key) {
    await call("store.remove", { key });
  },
  keys: (prefix = "") => call("store.keys", { key: prefix }),
  /** Waits for the lock of a key; gives what gives it back. */
  async lock(key, { signal } = {}) {
    const number = await call("store.lock", { key }, { signal });
    return () => void now("store.unlock", { number });
  },
};

const config = {
  read: (file) => call("config.read", { file }),
  write: (file, text, { place = "user", expected = null } = {}) => call("config.write", { file, place, text, expected }),
  resolve: (file, value) => call("config.resolve", { file, value }),
};

const EFFECTLESS = [
  "registerMessageRenderer", "registerEntryRenderer", "registerMarkdownTransformer", "registerToolRenderer",
];
const ELSEWHERE = ["registerVirtualModel", "unregisterVirtualModel"];

const atoll = {
  get name() {
    return plugin;
  },
  on(name, handler) {
    const off = handlers.add(name, handler);
    changed();
    return () => {
      off();
      changed();
    };
  },
  registerTool(tool) {
    const one = declared(tool);
    tools.set(tool.name, tool);
    if (running) return on_table("table.register", [one]);
    return undefined;
  },
  unregisterTool(name) {
    tools.delete(name);
    return running ? on_table("table.unregister", { names: [name] }) : undefined;
  },
  registerCommand(name, command) {
    if (typeof command?.handler !== "function") throw new TypeError(`the command ${name} has no function \`handler\``);
    commands.set(name, command);
    changed();
  },
  registerShortcut(key, shortcut) {
    if (typeof shortcut?.handler !== "function") throw new TypeError(`the shortcut ${key} has no function \`handler\``);
    shortcuts.set(String(key), { description: "", ...shortcut });
    changed();
  },
  registerFlag(name, flag = {}) {
    if (running) throw new Error("flags are read from the command line before the script runs; register them at once");
    flags.set(name, flag);
  },
  getFlag(name) {
    const flag = flags.get(name);
    if (!flag) return undefined;
    const value = running ? now("host.flag", { name }) : null;
    if (value === null) return flag.default;
    return flag.type === "string" ? value : value === "true";
  },
  sendMessage: ({ customType, content = "", display = false, details = null }, options = {}) =>
    call("session.send-custom", {
      customType, content, display, details, deliverAs: options.deliverAs ?? null, trigger: options.triggerTurn === true,
    }),
  sendUserMessage: (content, options = {}) => call("session.send", { content, deliverAs: options.deliverAs ?? null }),
  appendEntry: (customType, data = null) => call("session.append", { customType, data }),
  setSessionName: (name) => call("session.set-name", { name }),
  getSessionName: () => now("session.describe").name ?? undefined,
  setLabel: (entryId, label = null) => call("session.set-label", { entryId, label }),
  setPromptSection: (name, text = null) => call("session.set-prompt-section", { name, text }),
  async exec(program, args = [], { signal, timeout, cwd, maxBuffer, env } = {}) {
    const { stdout, stderr, code, killed, truncated } = await call("process.run", {
      program, arguments: args, cwd: cwd ?? null, timeoutMs: timeout ?? null, maxBuffer: maxBuffer ?? null,
      env: Object.entries(env ?? {}),
    }, { signal });
    return { stdout, stderr, code, killed, truncated };
  },
  getActiveTools: () => listed().filter((tool) => tool.active).map((tool) => tool.name),
  getAllTools: listed,
  async setActiveTools(names) {
    const entries = listed();
    const on = entries.filter((tool) => !tool.active && names.includes(tool.name)).map((tool) => tool.name);
    const off = entries.filter((tool) => tool.active && !names.includes(tool.name)).map((tool) => tool.name);
    if (on.length > 0) await on_table("table.activate", { names: on, active: true });
    if (off.length > 0) await on_table("table.activate", { names: off, active: false });
  },
  executeTool: (name, input = {}, { signal } = {}) => call("table.call", { parentId: null, name, arguments: input }, { signal }),
  searchTools: (query, max = 10) => call("table.search", { query, max }),
  describeTool: (name) => call("table.describe", { name }),
  getSettings: () => now("host.settings"),
  print: (text = "") => void now("host.print", { text: String(text) }),
  getCommands: () => [...commands].map(([name, { description }]) => ({ name, description, source: "extension" })),
  async setModel(model) {
    try {
      await call("session.set-model", { name: model_name(model) });
      return true;
    } catch (error) {
      if (error.code !== "not-found") throw error;
      return false;
    }
  },
  getThinkingLevel: () => now("session.describe").thinking,
  setThinkingLevel: (level) => call("session.set-thinking", { name: level }),
  complete: ({ model = null, system = "", prompt, maxTokens = null }) =>
    call("models.complete", { model, system, prompt, maxTokens }),
  getModels: () => now("models.available"),
  waitForIdle: () => call("session.wait-idle"),
  abort: () => void now("session.abort"),
  shutdown: () => void now("session.shutdown"),
  registerProvider: (name, config) => added("providers.register", { name: name?.name ?? name, config: config ?? name }),
  unregisterProvider: (name) => call("providers.unregister", { name }),
  registerMcpServer: (name, config) => added("servers.register", { name, config }),
  unregisterMcpServer: (name) => call("servers.unregister", { name }),
  getMcpServers: () => now("servers.list"),
  permitMcpServer: (name, { program = null, args = [], env = [], method = "GET", url = "" }) =>
    call("servers.permit", { name, program, arguments: args, variables: env, method, url }),
  /** Listens for one request on the loopback address, as a sign-in needs it. */
  async listen({ port = 0, path = "/", page = "" } = {}) {
    const own = await call("listener.open", { port, path, page });
    return {
      port: own,
      wait: (ms, { signal } = {}) => call("listener.wait", { port: own, ms }, { signal }),
      close: () => void now("listener.close", { port: own }),
    };
  },
  secrets: {
    available: () => now("secrets.available"),
    reveal: (name) => call("secrets.reveal", { name }),
    save: (name, value) => call("secrets.save", { name, value }),
  },
  events: {
    on(topic, handler) {
      if (typeof handler !== "function") throw new TypeError(`events.on("${topic}") needs a function`);
      topics.set(topic, [...(topics.get(topic) ?? []), handler]);
      changed();
      return () => {
        const left = (topics.get(topic) ?? []).filter((known) => known !== handler);
        if (left.length > 0) topics.set(topic, left);
        else topics.delete(topic);
        changed();
      };
    },
    emit(topic, data = null) {
      now("bus.emit", { topic, data });
      // The host tells everybody else.
      for (const handler of topics.get(topic) ?? []) handler(data);
    },
  },
  store,
  config,
  ui,
};
for (const name of EFFECTLESS) atoll[name] = () => without_effect(`atoll.${name}`);
for (const name of ELSEWHERE) atoll[name] = not_here(`atoll.${name}`);

/** Anything else that is called says that it is not there. */
const complete = new Proxy(atoll, {
  get: (target, key) => (key in target || typeof key === "symbol" || key === "then" ? target[key] : not_here(`atoll.${key}`)),
});

const asked = {
  async start({ entry, plugin: name }) {
    plugin = name;
    const { default: begin } = await import(entry);
    if (typeof begin !== "function") {
      throw new Error(`${entry} has no default export to call: write \`export default function (atoll) { … }\``);
    }
    await begin(complete);
    await Promise.all(additions);
    if (tools.size > 0) await call("table.register", [...tools.values()].map(declared));
    running = true;
    return wanted();
  },
  async event({ id, name, fields }) {
    if (name !== "bus") return handlers.deliver(name, fields, context(id));
    for (const handler of topics.get(fields.topic) ?? []) await handler(fields.data, fields.sender);
    return {};
  },
  async command({ id, name, arguments: text }) {
    const shortcut = [...shortcuts].find(([key]) => command_of(key) === name)?.[1];
    if (shortcut) await shortcut.handler(context(id));
    else if (commands.has(name)) await commands.get(name).handler(text, context(id));
    else throw new Error(`there is no command ${name}`);
    return null;
  },
  async complete({ name, arguments: text }) {
    const found = await commands.get(name)?.getArgumentCompletions?.(text);
    return (found ?? []).map((one) => (typeof one === "string" ? { value: one } : one));
  },
  async tool({ id, tool: name, arguments: input, cwd }) {
    const tool = tools.get(name);
    if (!tool) throw new Error(`there is no tool ${name}`);
    const own = context(id);
    Object.defineProperty(own, "cwd", { value: cwd });
    const update = (partial) =>
      void now("progress.update", { id, content: partial?.content ?? [], details: partial?.details ?? null });
    const given = await tool.execute(id, input, own.signal, update, own);
    if (given === undefined || given === null) return { content: [] };
    if (typeof given === "string") return { content: given };
    return given;
  },
  async stop() {
    return null;
  },
};

/** What was not granted is told as that, so that the way out is shown to people and not to the model. */
const told = async (kind, text) => {
  try {
    return { done: (await asked[kind](JSON.parse(text))) ?? null };
  } catch (error) {
    const denied = denial_of(error);
    if (denied === undefined) throw error;
    console.warn(error);
    return { denied };
  }
};

serve(
  async (kind, text) => JSON.stringify(await told(kind, text)),
  (name, text) => {
    const prepare = tools.get(name)?.prepareArguments;
    return prepare ? JSON.stringify(prepare(JSON.parse(text))) : text;
  },
);
