// What several handlers of one script make of an event: each sees what the ones before it changed.

const kebab = (name) => String(name).replaceAll("_", "-");
const snake = (name) => name.replaceAll("-", "_");

const reply = (fields) => (Object.keys(fields).length === 0 ? {} : { kind: "reply", fields });

const RESULT = ["content", "details", "structuredContent", "isError", "usage"];

const kinds = {
  async "tool-call"(event, each) {
    const before = JSON.stringify(event.input);
    let stopped;
    await each((answer) => {
      if (answer?.block) stopped = { kind: "block", reason: answer.reason, terminate: answer.terminate === true };
      else if (answer?.input !== undefined) event.input = answer.input;
      return stopped !== undefined;
    });
    if (stopped) return stopped;
    return JSON.stringify(event.input) === before ? {} : { kind: "rewrite", input: event.input };
  },
  async "tool-result"(event, each) {
    const patch = {};
    await each((answer) => {
      for (const field of RESULT) {
        if (answer?.[field] === undefined) continue;
        patch[field] = event[field] = answer[field];
        if (field === "content" && answer.structuredContent === undefined) {
          delete patch.structuredContent;
          delete event.structuredContent;
        }
      }
    });
    return Object.keys(patch).length === 0 ? {} : { kind: "patch", ...patch };
  },
  async input(event, each) {
    let outcome = {};
    await each((answer) => {
      if (answer?.action === "handled") outcome = { kind: "handled" };
      if (answer?.action === "transform") {
        event.text = answer.text;
        if (answer.images) event.images = answer.images;
        outcome = { kind: "transform", text: event.text, images: event.images };
      }
      return answer?.action === "handled";
    });
    return outcome;
  },
  async "before-agent-start"(event, each) {
    const { systemPrompt, systemPromptOptions } = event;
    const sections = JSON.stringify(systemPromptOptions?.sections);
    const messages = [];
    await each((answer) => {
      if (answer?.message) messages.push(answer.message);
      if (typeof answer?.systemPrompt === "string") event.systemPrompt = answer.systemPrompt;
      if (answer?.systemPromptOptions) event.systemPromptOptions = answer.systemPromptOptions;
    });
    const fields = {};
    // One event takes one message of an extension; several of one script are told apart by what they say.
    if (messages.length > 0) {
      const [first] = messages;
      const text = (message) => (typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content);
      fields.message = {
        customType: first.customType,
        content: messages.length === 1 ? first.content : messages.flatMap(text),
        display: first.display === true,
        ...(first.details === undefined ? {} : { details: first.details }),
      };
    }
    if (event.systemPrompt !== systemPrompt) fields.systemPrompt = event.systemPrompt;
    const now = event.systemPromptOptions?.sections;
    if (now !== undefined && JSON.stringify(now) !== sections) fields.systemPromptOptions = { sections: now };
    return reply(fields);
  },
  async "before-provider-headers"(event, each) {
    const before = JSON.stringify(event.headers);
    await each((answer) => {
      if (answer?.headers) event.headers = answer.headers;
    });
    return JSON.stringify(event.headers) === before ? {} : reply({ headers: event.headers });
  },
  async "before-provider-request"(event, each) {
    let changed = false;
    await each((answer) => {
      if (answer === undefined) return;
      changed = true;
      event.payload = answer;
    });
    return changed ? reply({ payload: event.payload }) : {};
  },
  async "user-bash"(event, each) {
    let outcome = {};
    await each((answer) => {
      if (answer?.block) outcome = { kind: "block", reason: answer.reason };
      else if (answer?.result) outcome = reply({ result: answer.result });
      return outcome.kind !== undefined;
    });
    return outcome;
  },
};

const turn = async (_, each) => {
  const fields = {};
  await each((answer) => {
    if (answer?.entries) fields.entries = [...(fields.entries ?? []), ...answer.entries];
    if (answer?.continue) fields.continue = true;
  });
  return reply(fields);
};
kinds["turn-end"] = turn;
kinds["agent-before-settle"] = turn;

// The last answer counts, and the next handler sees it.
const last = (...names) => async (event, each) => {
  const fields = {};
  await each((answer) => {
    for (const name of names) {
      if (answer?.[name] === undefined) continue;
      fields[name] = answer[name];
      if (name in event) event[name] = answer[name];
    }
    return fields.cancel === true;
  });
  return reply(fields);
};
for (const name of ["context", "context-with-system"]) kinds[name] = last("messages");
kinds["message-end"] = last("message");
kinds["project-trust"] = last("trusted", "remember");
kinds["cache-warming-decision"] = last("action");
kinds["session-before-switch"] = last("cancel");
kinds["session-before-fork"] = last("cancel");
kinds["session-before-compact"] = last("cancel", "compaction");
kinds["session-before-tree"] = last("cancel", "summary", "customInstructions", "replaceInstructions", "label");
kinds["resources-discover"] = async (_, each) => {
  const fields = {};
  await each((answer) => {
    for (const name of ["skillPaths", "promptPaths", "themePaths"]) {
      if (answer?.[name]) fields[name] = [...(fields[name] ?? []), ...answer[name]];
    }
  });
  return reply(fields);
};

const none = async (_, each) => {
  await each(() => {});
  return {};
};

/** `tool_call:my_tool` as the host calls it: what is behind the colon is the name of a tool. */
const nameOf = (name) => {
  const [event, ...tool] = String(name).split(":");
  return [kebab(event), ...tool].join(":");
};

/** Handlers with the names of their events, in the order in which they were added. */
export class Handlers {
  #all = [];

  add(name, handler) {
    if (typeof handler !== "function") throw new TypeError(`on("${name}") needs a function`);
    const one = { name: nameOf(name), handler };
    this.#all = [...this.#all, one];
    return () => {
      this.#all = this.#all.filter((known) => known !== one);
    };
  }

  names() {
    return [...new Set(this.#all.map(({ name }) => name))];
  }

  async deliver(name, fields, context) {
    const ofTool = `${name}:${fields.toolName}`;
    const isOfTool = name === "tool-call" || name === "tool-result";
    const handlers = this.#all.filter((one) => one.name === name || (isOfTool && one.name === ofTool));
    const event = { type: snake(name), ...fields };
    const each = async (take) => {
      for (const { handler } of handlers) {
        if (take(await handler(event, context)) === true) return;
      }
    };
    return (kinds[name] ?? none)(event, each);
  }
}


