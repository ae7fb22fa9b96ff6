/* atoll
description = "Takes what looks like a key out of the results of tools, before the model reads them."
*/

// It asks for nothing: an extension that only looks at events and answers them needs no capability.

interface Piece {
  type: string;
  text?: string;
}

const KEYS = [
  /\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}/g,
  /\bgh[pousr]_[A-Za-z0-9]{20,}/g,
  /\bAKIA[0-9A-Z]{16}\b/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g,
];

export default function (atoll: any) {
  atoll.on("tool_result", (event: { content: Piece[] }) => {
    let found = false;
    const content = event.content.map((piece) => {
      if (piece.type !== "text" || piece.text === undefined) return piece;
      const text = KEYS.reduce((text, key) => text.replace(key, "[redacted]"), piece.text);
      found ||= text !== piece.text;
      return { ...piece, text };
    });
    // Answering nothing leaves the result as it is.
    return found ? { content } : undefined;
  });
}
