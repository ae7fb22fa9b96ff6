//! Whole processes: start, first request, memory. The peer is measured in the same way where it is installed:
//! `ATOLL_BENCH_PI` names its program (several words are program and first arguments), or `pi` is on the PATH.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::Context as _;
use atoll_caps::Digest;

use crate::{Figure, median, model_server::ModelServer};

/// How many plugins of the user's one of the homes has.
const PLUGINS: usize = 20;

/// What one run of a program took.
struct Run {
    wall_ms: f64,
    first_request_ms: Option<f64>,
    peak_mb: f64,
}

/// Measures `atoll`, and the peer beside it.
pub(crate) fn measure(atoll: &Path, quick: bool) -> anyhow::Result<Vec<Figure>> {
    let runs = if quick { 5 } else { 21 };
    let server = ModelServer::start()?;
    let ours = vec![atoll.to_string_lossy().into_owned()];
    let version = wall(&ours, &["--version"], runs)?;
    let first: Vec<Run> =
        (0..runs).map(|_| print_run(&ours, &server, &Home::new(&server)?)).collect::<Result<_, _>>()?;
    let home = Home::new(&server)?;
    let later: Vec<Run> = (0..runs).map(|_| print_run(&ours, &server, &home)).collect::<Result<_, _>>()?;
    let extended = Home::new(&server)?;
    extended.install(PLUGINS)?;
    // The first run compiles them.
    print_run(&ours, &server, &extended)?;
    // In turns, so that what else the machine does falls on both.
    let mut growth = Vec::new();
    for _ in 0..runs {
        let without = print_run(&ours, &server, &home)?;
        let with = print_run(&ours, &server, &extended)?;
        growth.push(requests(&[with])? - requests(&[without])?);
    }
    let peer = peer().map(|peer| measure_peer(&peer, &server, if quick { 2 } else { 7 })).transpose()?;
    let figure = |name: &str, value: f64, unit, ceiling: f64, peer: Option<f64>| {
        let mut figure = Figure::new(name, value, unit, runs).below(ceiling);
        figure.peer = peer;
        figure
    };
    Ok(vec![
        figure("atoll --version", version, "ms", 10.0, peer.as_ref().map(|peer| peer.version)),
        figure(
            "print mode: start to first request, fresh home",
            requests(&first)?,
            "ms",
            60.0,
            peer.as_ref().map(|peer| peer.request),
        ),
        figure(
            "print mode: start to first request, later starts",
            requests(&later)?,
            "ms",
            60.0,
            peer.as_ref().map(|peer| peer.request),
        ),
        figure(
            &format!("print mode: start to first request, more with {PLUGINS} plugins"),
            median(&mut growth),
            "ms",
            10.0,
            None,
        ),
        figure(
            "print mode: whole run",
            median(&mut later.iter().map(|run| run.wall_ms).collect::<Vec<_>>()),
            "ms",
            f64::INFINITY,
            peer.as_ref().map(|peer| peer.wall),
        ),
        figure(
            "print mode: peak memory",
            median(&mut later.iter().map(|run| run.peak_mb).collect::<Vec<_>>()),
            "MB",
            80.0,
            peer.as_ref().map(|peer| peer.memory),
        ),
    ])
}

struct Peer {
    version: f64,
    request: f64,
    wall: f64,
    memory: f64,
}

fn peer() -> Option<Vec<String>> {
    if let Ok(words) = std::env::var("ATOLL_BENCH_PI") {
        return Some(words.split_whitespace().map(str::to_owned).collect());
    }
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|folder| folder.join("pi")).find(|file| file.is_file())?;
    Some(vec![found.to_string_lossy().into_owned()])
}

fn measure_peer(peer: &[String], server: &ModelServer, runs: usize) -> anyhow::Result<Peer> {
    let home = Home::new(server)?;
    // Once for the page cache, as for ours, which was just built.
    print_run(peer, server, &home)?;
    let all: Vec<Run> = (0..runs).map(|_| print_run(peer, server, &home)).collect::<Result<_, _>>()?;
    Ok(Peer {
        version: wall(peer, &["--version"], runs)?,
        request: requests(&all)?,
        wall: median(&mut all.iter().map(|run| run.wall_ms).collect::<Vec<_>>()),
        memory: median(&mut all.iter().map(|run| run.peak_mb).collect::<Vec<_>>()),
    })
}

fn requests(runs: &[Run]) -> anyhow::Result<f64> {
    let mut times: Vec<f64> = runs.iter().filter_map(|run| run.first_request_ms).collect();
    anyhow::ensure!(times.len() == runs.len(), "a run ended without asking the server");
    Ok(median(&mut times))
}

/// A home directory that knows the server, for both programs.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    /// One that knows nothing.
    pub(crate) fn empty() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir_all(folder.path().join(".atoll"))?;
        Ok(Self { folder })
    }

    /// Makes it a program's.
    pub(crate) fn apply(&self, command: &mut Command) {
        command
            .env("HOME", self.folder.path())
            .env("XDG_CACHE_HOME", self.folder.path().join(".cache"))
            .env_remove("ATOLL_HOME");
    }

    /// Where the program keeps what is the user's.
    pub(crate) fn atoll(&self) -> PathBuf {
        self.folder.path().join(".atoll")
    }

    /// A folder to work in, of one that knows a server.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn new(server: &ModelServer) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let models = format!(
            "{{\"providers\":{{\"mock\":{{\"baseUrl\":\"http://127.0.0.1:{}/v1\",\"api\":\"openai-completions\",\"apiKey\":\"x\",\"models\":[{{\"id\":\"m\"}}]}}}}}}",
            server.port
        );
        for directory in [".atoll", ".pi/agent", "work"] {
            std::fs::create_dir_all(folder.path().join(directory))?;
        }
        std::fs::write(folder.path().join(".atoll/models.json"), &models)?;
        std::fs::write(folder.path().join(".pi/agent/models.json"), &models)?;
        Ok(Self { folder })
    }

    /// Installs plugins as a user has them: granted, each a file of its own, all with tools.
    fn install(&self, count: usize) -> anyhow::Result<()> {
        use std::fmt::Write as _;
        let guest =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/guests/wasm32-wasip2/guest/atoll_test_nest.wasm");
        let component = std::fs::read(&guest).context("no test plugins; run `cargo xtask bench`")?;
        let manifest = include_str!("../../../plugins/nest/plugin.toml");
        let atoll = self.folder.path().join(".atoll");
        let mut grants = String::new();
        for number in 0..count {
            let name = format!("nest{number:02}");
            let folder = atoll.join("plugins").join(&name);
            std::fs::create_dir_all(&folder)?;
            let mut bytes = component.clone();
            // A custom section of no meaning makes it a file that no other plugin has.
            bytes.extend([0, 3, 1, b'n', u8::try_from(number)?]);
            std::fs::write(folder.join("plugin.wasm"), &bytes)?;
            let manifest = manifest.replacen("name = \"nest\"", &format!("name = \"{name}\""), 1);
            std::fs::write(folder.join("plugin.toml"), manifest)?;
            writeln!(grants, "[plugin.{name}]\nsha256 = \"{}\"\nall = true", Digest::of(&bytes))?;
        }
        std::fs::write(atoll.join("grants.toml"), grants)?;
        Ok(())
    }
}

fn print_run(program: &[String], server: &ModelServer, home: &Home) -> anyhow::Result<Run> {
    let mut command = command(program, &["-p", "--model", "mock/m", "hi"])?;
    home.apply(&mut command);
    command
        .current_dir(home.folder.path().join("work"))
        .env("PI_OFFLINE", "1")
        .env("PI_SKIP_VERSION_CHECK", "1")
        .env("PI_TELEMETRY", "0");
    server.first_request();
    let (wall_ms, peak_mb, began) = timed(&mut command)?;
    let first_request_ms = server.first_request().map(|at| at.duration_since(began).as_secs_f64() * 1e3);
    Ok(Run { wall_ms, first_request_ms, peak_mb })
}

fn wall(program: &[String], arguments: &[&str], runs: usize) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..=runs {
        times.push(timed(&mut command(program, arguments)?)?.0);
    }
    // The first only fills the page cache.
    times.remove(0);
    Ok(median(&mut times))
}

pub(crate) fn command(program: &[String], arguments: &[&str]) -> anyhow::Result<Command> {
    let (first, rest) = program.split_first().context("no program to measure")?;
    let mut command = Command::new(first);
    command.args(rest).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// Runs a program to its end: how long it took, the most memory it had, and when it was started.
pub(crate) fn timed(command: &mut Command) -> anyhow::Result<(f64, f64, Instant)> {
    let began = Instant::now();
    let child = command.spawn().with_context(|| format!("{:?} can not be started", command.get_program()))?;
    let pid = i32::try_from(child.id()).context("a process id out of range")?;
    let mut status = 0;
    // SAFETY: all zeroes is a valid rusage, and wait4 writes to the two places it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        anyhow::ensure!(libc::wait4(pid, &raw mut status, 0, &raw mut usage) == pid, "a process was lost");
        usage
    };
    let wall = began.elapsed().as_secs_f64() * 1e3;
    anyhow::ensure!(status == 0, "{command:?} failed (wait status {status})");
    #[expect(clippy::cast_precision_loss, reason = "kibibytes of memory are far below 2^52")]
    let peak = usage.ru_maxrss as f64 / 1024.0;
    Ok((wall, peak, began))
}
