// What handlers, commands and tools get beside their event: the session, the person, the signal.
import { call, now, not_here, without_effect } from "atoll:native";

const facts = () => now("host.describe");
const session = () => now("session.describe");

const splice = (model) => {
  if (!model) return undefined;
  const [provider, ...rest] = model.split("/");
  return { provider, id: rest.join("/"), name: rest.join("/") };
};

/** The models that can be asked, as objects with a provider and an id. */
export const models = () =>
  now("models.available").map(({ name, images, contextWindow }) => ({
    ...splice(name),
    input: images ? ["text", "image"] : ["text"],
    contextWindow,
  }));

/** `provider/id`, of a name or a model. */
export const model_name = (model) =>
  typeof model === "string" ? model : `${model.provider?.id ?? model.provider}/${model.id}`;

const entries = () => now("session.entries");

/** The session, to be read. */
const sessionManager = {
  getEntries: entries,
  getBranch: entries,
  getEntry: (id) => entries().find((entry) => entry.id === id),
  getLeafId: () => entries().at(-1)?.id ?? null,
  getLeafEntry: () => entries().at(-1),
  getSessionId: () => session().id,
  getSessionFile: () => session().file ?? undefined,
  getSessionName: () => session().name ?? undefined,
  getCwd: () => session().cwd,
  getLabel: (id) => entries().findLast((entry) => entry.type === "label" && entry.targetId === id)?.label,
  getHeader: () => ({ type: "session", id: session().id, cwd: session().cwd }),
};

const modelRegistry = {
  getAll: models,
  getAvailable: models,
  find: (provider, id) => models().find((model) => model.provider === provider && model.id === id),
  getApiKey: async () => undefined,
  getApiKeyAndHeaders: async () => ({ ok: false, error: "keys stay with the host; name a secret in a header instead" }),
};

const plain = (_, text) => String(text);
const own = (text) => String(text);
const theme = {
  fg: plain, bg: plain, bold: own, italic: own, underline: own, dim: own, inverse: own, strikethrough: own,
  getFgAnsi: () => "", getBgAnsi: () => "",
};

const statuses = new Map();
let editor = "";

const timed = (options) => (Number.isFinite(options?.timeout) ? { timeout: Math.max(0, Math.round(options.timeout)) } : {});

const COSMETIC = [
  "setWidget", "setTitle", "setFooter", "setHeader", "setWorkingMessage", "setWorkingVisible", "setWorkingIndicator",
  "setHiddenThinkingLabel", "addAutocompleteProvider", "setEditorComponent", "setToolsExpanded", "pasteToEditor",
];

/** Talking to the person. */
export const ui = {
  /** Whether there is a person to ask. */
  available: () => now("ui.available"),
  async select(title, options, dialog) {
    const texts = options.map((option) => (typeof option === "string" ? option : (option.label ?? String(option.value))));
    const index = await call("ui.select", { title, options: texts, ...timed(dialog) }, { signal: dialog?.signal });
    return index === null ? undefined : options[index];
  },
  async confirm(title, message = "", dialog = undefined) {
    return (await call("ui.confirm", { title, text: message, ...timed(dialog) }, { signal: dialog?.signal })) === true;
  },
  async input(title, placeholder = "", dialog = undefined) {
    return (await call("ui.input", { title, text: placeholder, ...timed(dialog) }, { signal: dialog?.signal })) ?? undefined;
  },
  async editor(title, prefill = "") {
    return (await call("ui.editor", { title, text: prefill })) ?? undefined;
  },
  notify(message, tone = "info") {
    now("ui.notify", { message: String(message), tone });
  },
  setStatus(key, text) {
    if (text === undefined || text === null) statuses.delete(key);
    else statuses.set(key, String(text));
    now("ui.status", { text: statuses.size === 0 ? null : [...statuses.values()].join(" · ") });
  },
  async custom() {
    without_effect("ctx.ui.custom");
    return undefined;
  },
  setEditorText(text) {
    editor = String(text);
    without_effect("ctx.ui.setEditorText");
  },
  getEditorText: () => editor,
  onTerminalInput: () => {
    without_effect("ctx.ui.onTerminalInput");
    return () => {};
  },
  getToolsExpanded: () => false,
  theme,
  getAllThemes: () => [],
  getTheme: () => undefined,
  setTheme: () => ({ success: false, error: "this host has no themes" }),
};
for (const name of COSMETIC) ui[name] = () => without_effect(`ctx.ui.${name}`);

/** A context. `id` is that of the event, the command or the call that it belongs to. */
export const context = (id) => {
  let signal;
  return {
    ui,
    get mode() {
      const { mode } = facts();
      return mode === "command" ? "print" : mode;
    },
    get hasUI() {
      return facts().hasPerson;
    },
    get cwd() {
      return facts().cwd;
    },
    get model() {
      return splice(session().model);
    },
    get thinkingLevel() {
      return session().thinking;
    },
    scopedModels: [],
    get signal() {
      if (id === undefined) return undefined;
      if (signal === undefined) {
        const controller = new AbortController();
        signal = controller.signal;
        call("progress.cancelled", { id }).then(() => controller.abort(), () => {});
      }
      return signal;
    },
    sessionManager,
    modelRegistry,
    isProjectTrusted: () => facts().trusted,
    isIdle: () => session().idle,
    hasPendingMessages: () => session().pending,
    abort: () => void now("session.abort"),
    shutdown: () => void now("session.shutdown"),
    getSystemPrompt: () => now("session.system-prompt"),
    getSystemPromptOptions: () => ({ cwd: facts().cwd }),
    getContextUsage: () => {
      const usage = now("session.context-usage");
      if (!usage) return undefined;
      const { tokens, contextWindow } = usage;
      return { tokens, contextWindow, percent: tokens === null ? null : (100 * tokens) / contextWindow };
    },
    compact: (options = {}) => {
      const done = call("session.compact", { text: options.customInstructions ?? null });
      done.then((result) => options.onComplete?.(result), (error) => options.onError?.(error));
      return done.catch((error) => {
        if (!options.onError) throw error;
      });
    },
    waitForIdle: () => call("session.wait-idle"),
    reload: () => call("session.reload"),
    newSession: not_here("ctx.newSession"),
    fork: not_here("ctx.fork"),
    navigateTree: not_here("ctx.navigateTree"),
    switchSession: not_here("ctx.switchSession"),
    executeTool: (name, input = {}, { signal: ended } = {}) =>
      call("table.call", { parentId: id ?? null, name, arguments: input }, { signal: ended }),
  };
};
