//! What a server that is a program inherits of the environment: what says where and as whom somebody works, and by which ways
//! programs are found and the network is reached. Keys are not among it: a server has those that its entry gives it.

/// The variables that are passed on.
const PASSED: [&str; 70] = [
    // As the protocol's own libraries have it.
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    // In which language and at which time somebody lives, and where temporary files are.
    "LANG",
    "LANGUAGE",
    "TEMP",
    "TMP",
    "TMPDIR",
    "TZ",
    // How the network is reached, and whose certificates count.
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "CURL_CA_BUNDLE",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // The screen, and what runs beside it.
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "SSH_AUTH_SOCK",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    // Where languages and their packages are.
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "COREPACK_HOME",
    "DENO_DIR",
    "DENO_INSTALL",
    "FNM_DIR",
    "FNM_MULTISHELL_PATH",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "MISE_CONFIG_DIR",
    "MISE_DATA_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "npm_config_cache",
    "npm_config_prefix",
    "npm_config_registry",
    "npm_config_userconfig",
    "NVM_BIN",
    "NVM_DIR",
    "N_PREFIX",
    "PIPX_HOME",
    "PNPM_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "UV_CACHE_DIR",
    "UV_TOOL_DIR",
    "VOLTA_HOME",
    // Where containers are run.
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
];
/// Beginnings of such variables.
const PASSED_STARTS: [&str; 2] = ["LC_", "XDG_"];

/// Whether a variable is passed on.
pub fn is_passed(name: &str) -> bool {
    PASSED.contains(&name) || PASSED_STARTS.iter().any(|start| name.starts_with(start))
}

/// What is passed on of an environment as `env -0` prints it. What is no UTF-8 is left out.
pub fn passed(printed: &[u8]) -> Vec<(String, String)> {
    let lines = printed.split(|byte| *byte == 0).filter_map(|line| std::str::from_utf8(line).ok());
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.filter(|(name, _)| is_passed(name)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_passed_on_and_what_finds_programs_is() {
        let printed = b"PATH=/bin:/usr/bin\0LC_ALL=C\0ANTHROPIC_API_KEY=k\0AWS_SECRET_ACCESS_KEY=s\0XDG_RUNTIME_DIR=/run/user/1\0\
                        GH_TOKEN=t\0LD_PRELOAD=x.so\0TERM=a=b\nc\0LANG=\xff\0nothing\0";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            passed(printed),
            [
                pair("PATH", "/bin:/usr/bin"),
                pair("LC_ALL", "C"),
                pair("XDG_RUNTIME_DIR", "/run/user/1"),
                pair("TERM", "a=b\nc"),
            ]
        );
        let all = PASSED.iter().chain(&PASSED_STARTS);
        for name in all {
            let is_secret = ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|word| name.contains(word));
            assert!(!is_secret && is_passed(name), "{name}");
        }
    }
}
