// What a script may know of its machine: that it has lines and temporary files.
export const EOL = "\n";
export const platform = () => "linux";
export const type = () => "Linux";
export const arch = () => "wasm32";
export const release = () => "";
export const hostname = () => "localhost";
export const tmpdir = () => "/tmp";
// The home directory is the user's to tell. What begins with this is found nowhere.
export const homedir = () => "~";
export const cpus = () => [];
export const totalmem = () => 0;
export const freemem = () => 0;
export const uptime = () => 0;
export const userInfo = () => ({ username: "user", homedir: homedir(), shell: null });
export default { EOL, platform, type, arch, release, hostname, tmpdir, homedir, cpus, totalmem, freemem, uptime, userInfo };
