// The names of Pi's terminal library. What is made with them is never drawn: there is no terminal interface here.
class Inert {
  constructor(...parts) {
    this.parts = parts;
    this.children = [];
  }
  addChild(child) {
    this.children.push(child);
  }
  removeChild(child) {
    this.children = this.children.filter((known) => known !== child);
  }
  clear() {
    this.children = [];
  }
  setText(text) {
    this.parts[0] = text;
  }
  invalidate() {}
  handleInput() {}
  render() {
    return [];
  }
}

export class Text extends Inert {}
export class TruncatedText extends Inert {}
export class Markdown extends Inert {}
export class Box extends Inert {}
export class Container extends Inert {}
export class Spacer extends Inert {}
export class Image extends Inert {}
export class Input extends Inert {}
export class Editor extends Inert {}
export class Loader extends Inert {}
export class CancellableLoader extends Inert {}
export class SelectList extends Inert {}
export class SettingsList extends Inert {}
export class TUI extends Inert {}
export class CombinedAutocompleteProvider extends Inert {}

const keys = (path) =>
  new Proxy(() => path, { get: (_, name) => (typeof name === "symbol" ? undefined : keys(name)), apply: (_, __, [key]) => `${path}+${key}` });
export const Key = keys("");
export const matchesKey = () => false;
export const isKeyRelease = () => false;
export const parseKey = () => undefined;

const ESCAPES = /\u001b(?:\[[0-9;?]*[A-Za-z]|\][^\u0007]*\u0007)/g;
export const visibleWidth = (text) => [...String(text).replace(ESCAPES, "")].length;
export const truncateToWidth = (text, width, mark = "…") => {
  const letters = [...String(text)];
  return letters.length <= width ? String(text) : letters.slice(0, Math.max(0, width - visibleWidth(mark))).join("") + mark;
};
export const wrapTextWithAnsi = (text, width) =>
  String(text).split("\n").flatMap((line) => line.match(new RegExp(`.{1,${Math.max(1, width)}}`, "gu")) ?? [""]);
export const fuzzyMatch = (query, text) => ({ matches: text.toLowerCase().includes(query.toLowerCase()), score: 0 });
export const fuzzyFilter = (items, query, text = String) =>
  items.filter((item) => text(item).toLowerCase().includes(query.toLowerCase()));
export const hyperlink = (text) => text;
export const getCapabilities = () => ({ images: null, trueColor: false, hyperlinks: false });
export const CURSOR_MARKER = "";
