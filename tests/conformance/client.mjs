// The client of one scenario of MCP's conformance suite: the built program, driven as a person would, and the browser that this
// person would use. The suite gives the server's address as the last argument, and the scenario in the environment. Ends with 0 if
// what the scenario is about came to a good end.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const url = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || '{}');

const home = mkdtempSync(join(tmpdir(), 'atoll-conformance-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
mkdirSync(join(home, '.atoll'));
mkdirSync(join(home, 'work'));

/** What an entry of the configuration says of signing in. */
function oauth() {
    if (scenario === 'auth/basic-cimd') return { clientId: 'https://conformance-test.local/client-metadata.json' };
    if (context.client_id === undefined) return undefined;
    return { clientId: context.client_id, clientSecret: context.client_secret };
}

const server = { url, timeout: 20, oauth: oauth() };
// Its very first request is looked at.
if (scenario === 'request-metadata') server.protocolVersion = '2026-07-28';
writeFileSync(join(home, '.atoll/mcp.json'), JSON.stringify({ mcpServers: { server } }));

/** Starts the program; `watch` sees what it has printed so far, and the process. */
function atoll(words, { terminal = false, watch } = {}) {
    const program = process.env.ATOLL_BIN;
    const quoted = [program, ...words].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
    const [command, args] = terminal ? ['script', ['-qec', quoted, '/dev/null']] : [program, words];
    const env = { PATH: process.env.PATH, HOME: home, XDG_CACHE_HOME: process.env.XDG_CACHE_HOME, ATOLL_LOG: 'warn', TERM: 'dumb' };
    for (const name of Object.keys(env)) if (env[name] === undefined) delete env[name];
    const child = spawn(command, args, { cwd: join(home, 'work'), env, stdio: [terminal ? 'pipe' : 'ignore', 'pipe', 'pipe'] });
    let said = '';
    const hear = (bytes) => {
        said += bytes;
        process.stderr.write(bytes);
        watch?.(said, child);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    return new Promise((resolve) => child.on('close', (code) => resolve({ code, said })));
}

const call = (tool, args, options) => atoll(['tool', 'call', `mcp__server__${tool}`, JSON.stringify(args)], options);

/** What a person sees in the end who opens a page: in the browser that is named, else in one that only follows redirects. */
function open(page) {
    const browser = process.env.ATOLL_BROWSER;
    if (!browser) return fetch(page).then((answer) => answer.text());
    const args = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${join(home, 'browser')}`, '--dump-dom', page];
    const child = spawn(browser, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    let shown = '';
    child.stdout.on('data', (bytes) => (shown += bytes));
    return new Promise((resolve) => child.on('close', () => resolve(shown)));
}

/** Signs in: opens the page that is shown. */
async function login() {
    let opened;
    const watch = (said) => {
        const page = said.match(/^https?:\/\/\S+\?\S*response_type=code\S*$/m)?.[0];
        if (page !== undefined && opened === undefined) opened = open(page);
    };
    const ended = await atoll(['mcp', 'login', 'server', '--timeout', process.env.ATOLL_BROWSER ? '60' : '25'], { watch });
    const shown = await opened?.catch((error) => console.error(`browser: ${error}`));
    if (ended.code === 0 && !shown?.includes('You are signed in')) {
        console.error(`the page shows: ${shown}`);
        return { ...ended, code: 1 };
    }
    return ended;
}

/** Calls a tool, and signs in whenever that is what is asked for. */
async function signedIn(tool) {
    for (let attempt = 0; attempt < 6; attempt++) {
        const called = await call(tool, {});
        if (called.code === 0) return 0;
        if (!called.said.includes('mcp login server')) return 1;
        const signed = await login();
        if (signed.code !== 0) return 1;
    }
    return 1;
}

/** A person who takes what is suggested. */
function agreeable() {
    let seen = 0;
    return (said, child) => {
        const fresh = said.slice(seen);
        if (!/:\s*$/.test(fresh)) return;
        seen = said.length;
        const choice = fresh.match(/(\d+)\. Answer as suggested/)?.[1] ?? (/\b1\. /.test(fresh) ? '1' : '');
        child.stdin.write(`${choice}\n`);
    };
}

async function run() {
    if (scenario.startsWith('auth/')) return signedIn('test_tool');
    switch (scenario) {
        case 'tools_call':
            return (await call('add_numbers', { a: 5, b: 3 })).code;
        case 'sse-retry':
            return (await call('test_reconnection', {})).code;
        case 'http-custom-headers':
            for (const { name, arguments: args } of context.toolCalls) await call(name, args);
            return 0;
        case 'http-invalid-tool-headers':
            return (await call('valid_tool', { region: 'us' })).code;
        case 'http-standard-headers':
            return (await call('test_headers', {})).code;
        case 'elicitation-sep1034-client-defaults':
            return (await call('test_client_elicitation_defaults', {}, { terminal: true, watch: agreeable() })).code;
        case 'sep-2322-client-request-state':
            for (const tool of ['test_mrtr_echo_state', 'test_mrtr_no_state', 'test_mrtr_unrelated', 'test_mrtr_no_result_type']) {
                const { code } = await call(tool, {}, { terminal: true, watch: agreeable() });
                if (code !== 0) return code;
            }
            return 0;
        default:
            return (await atoll(['mcp', 'test', 'server'])).code;
    }
}

process.exitCode = await run();
