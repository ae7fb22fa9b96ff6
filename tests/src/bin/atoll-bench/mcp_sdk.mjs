// Calls `echo` of a server, one call after the other, and prints what each took in milliseconds.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, count] = process.argv.slice(2);
const client = new Client({ name: "bench", version: "1" });
await client.connect(new StdioClientTransport({ command }));
const call = () => client.callTool({ name: "echo", arguments: { value: "x" } });
await call();
const began = performance.now();
for (let at = 0; at < Number(count); at++) await call();
console.log((performance.now() - began) / Number(count));
await client.close();
