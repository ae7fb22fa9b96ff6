// `tools`, and looking for what there is.
(native, shared) => {
  const { stringify, parse } = JSON;
  const { here, from, kind, culprit, NotFoundError } = shared;
  const { ToolError } = globalThis;
  const { captureStackTrace } = Error;

  const serialised = (name, args) => {
    if (args === undefined) return "{}";
    if (typeof args !== "object" || args === null || Array.isArray(args)) {
      throw new TypeError(`the tool ${name} takes one object, not ${kind(args)}`);
    }
    const found = culprit(args, "arguments");
    if (found) throw new TypeError(`the arguments of ${name} can not be written as JSON: ${found}`);
    const json = stringify(args);
    if (typeof json !== "string" || json[0] !== "{") {
      throw new TypeError(`the arguments of ${name} are no object as JSON`);
    }
    return json;
  };

  const settled = (answer, name, stack) => {
    if (answer[0]) return answer[1];
    const Kind = answer[1] === "not-found" ? NotFoundError : ToolError;
    throw from(stack, new Kind(answer[2], name, answer[1], answer[3]));
  };
  // The function that a tool is to a script. It is one function and no more, and writes down the stack above itself alone: each
  // frame costs as much as the rest of it.
  const callable = (name, id) => {
    const made = {
      async [id](args) {
        const at = {};
        captureStackTrace(at, made);
        const json = serialised(name, args);
        let answer;
        try {
          answer = await native.call(name, json);
        } catch (error) {
          const message = `the result of ${name} can not be read: ${error?.message}`;
          throw from(at.stack, new ToolError(message, name, "failed"));
        }
        return settled(answer, name, at.stack);
      },
    }[id];
    return Object.freeze(made);
  };

  const functions = new Map();
  const find = (key) => {
    const known = functions.get(key);
    if (known) return known;
    const found = native.find(key.toWellFormed());
    if (!found) return undefined;
    const [name, id] = found;
    const made = callable(name, id);
    functions.set(key, made);
    return made;
  };

  const ABSENT = ["then", "toJSON", "constructor", "valueOf", "inspect", "nodeType", "$$typeof", "asymmetricMatch"];
  const refuse = () => {
    throw new TypeError("`tools` can not be changed");
  };
  const isCalled = "[object tools]";
  const tools = new Proxy(Object.create(null), {
    get(_, key) {
      if (key === Symbol.toStringTag) return "tools";
      if (typeof key === "symbol") return undefined;
      const found = find(key);
      if (found) return found;
      if (key === "toString" || key === "toLocaleString") return () => isCalled;
      if (ABSENT.includes(key)) return undefined;
      throw new NotFoundError(native.missing(key.toWellFormed()), key, "not-found");
    },
    has: (_, key) => typeof key === "string" && find(key) !== undefined,
    ownKeys: () => native.identifiers(),
    getOwnPropertyDescriptor(_, key) {
      const value = typeof key === "string" ? find(key) : undefined;
      return value && { value, enumerable: true, configurable: true, writable: false };
    },
    set: refuse,
    defineProperty: refuse,
    deleteProperty: refuse,
    setPrototypeOf: refuse,
    preventExtensions: refuse,
  });
  // Not values, which would be looked at, and so asked for, when everything is frozen.
  const lazy = (name, get) => Object.defineProperty(globalThis, name, { get, enumerable: true, configurable: false });
  lazy("tools", () => tools);
  let all;
  lazy("ALL_TOOLS", () => (all ??= Object.freeze(parse(native.all()).map(Object.freeze))));

  // What `import()` of a script calls.
  const __import = async (specifier) => {
    const stack = here();
    throw from(stack, new TypeError(native.noModule(`${specifier}`.toWellFormed())));
  };
  Object.defineProperty(globalThis, "__import", { value: __import, enumerable: false, configurable: true });

  const MOST = 100;
  const name = (value, what) => {
    if (typeof value !== "string" || value === "") throw new TypeError(`${what} takes a name, not ${kind(value)}`);
    return value.toWellFormed();
  };
  globalThis.searchTools = async (query, options = {}) => {
    const stack = here();
    if (typeof query !== "string") throw new TypeError(`searchTools takes words, not ${kind(query)}`);
    if (typeof options !== "object" || options === null) throw new TypeError("searchTools takes {limit, namespace} behind the words");
    const { limit = 8, namespace = null } = options;
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST) throw new TypeError(`limit is a whole number from 1 to ${MOST}`);
    const group = namespace === null ? null : name(namespace, "namespace");
    const found = settled(await native.search(query.toWellFormed(), limit, group), "searchTools", stack);
    if (found.tools.length === 0 && found.waiting.length > 0) {
      console.warn(`searchTools found nothing; these groups are still to come: ${found.waiting.join(", ")}`);
    }
    return found.tools;
  };
  globalThis.describeTool = async (wanted) => {
    const stack = here();
    const given = name(typeof wanted === "function" ? wanted.name : wanted, "describeTool");
    const found = native.find(given);
    if (!found) throw from(stack, new NotFoundError(native.missing(given), given, "not-found"));
    return settled(await native.describe(found[0]), found[0], stack);
  };
  globalThis.describeNamespace = async (wanted) => {
    const stack = here();
    return settled(await native.group(name(wanted, "describeNamespace")), wanted, stack);
  };
}
