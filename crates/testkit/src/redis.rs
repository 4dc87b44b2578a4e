//! Real Redis servers for tests: on free loopback ports, with their data in a directory of their
//! own, and gone when the test is.

use std::io::{BufRead, BufReader, Error, ErrorKind, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long a server may take to answer before the test is given up.
const START_WAIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);

/// What a server does with what it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Forgets everything when it ends.
    None,
    /// Every write is on disk before it is answered.
    Always,
}

/// A running server. Dropped, it is killed and its data are removed.
#[derive(Debug)]
pub struct RedisServer {
    child: Option<Child>,
    port: u16,
    args: Vec<String>,
    dir: TempDir,
}

impl RedisServer {
    /// Starts a server. Fails with how to install one if there is none.
    pub fn start(persistence: Persistence, args: &[&str]) -> Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("holdfast-redis-")
            .tempdir()?;
        let mut server = Self {
            child: None,
            port: free_port()?,
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            dir,
        };
        if persistence == Persistence::Always {
            server
                .args
                .extend(["--appendonly", "yes", "--appendfsync", "always"].map(str::to_owned));
        }
        server.run()?;
        Ok(server)
    }

    /// A sentinel is a server with a file of its own.
    fn start_sentinel(monitor: &str, name: &str, args: &[&str]) -> Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("holdfast-sentinel-")
            .tempdir()?;
        let file = dir.path().join("sentinel.conf");
        let text = format!(
            "sentinel monitor {monitor}\nsentinel down-after-milliseconds {name} 1000\n\
             sentinel failover-timeout {name} 3000\n"
        );
        std::fs::write(&file, text)?;
        let mut server = Self {
            child: None,
            port: free_port()?,
            args: std::iter::once(&"--sentinel")
                .chain(args)
                .map(|arg| (*arg).to_owned())
                .collect(),
            dir,
        };
        server.run()?;
        Ok(server)
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub fn process_id(&self) -> Result<u32> {
        let child = self.child.as_ref();
        child
            .map(Child::id)
            .ok_or_else(|| Error::other("the server does not run"))
    }

    /// Starts it (again), on the same port and with the data of before.
    pub fn run(&mut self) -> Result<()> {
        let mut command = Command::new("redis-server");
        let sentinel = self.dir.path().join("sentinel.conf");
        if sentinel.exists() {
            command.arg(sentinel);
        } else {
            command.args(["--save", ""]);
        }
        let child = command
            .args(["--port", &self.port.to_string()])
            .args(["--bind", "127.0.0.1", "--dir"])
            .arg(self.dir.path())
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                Error::new(
                    error.kind(),
                    format!(
                        "redis-server can not be started ({error}); these tests need one: \
                         apt-get install redis-server"
                    ),
                )
            })?;
        self.child = Some(child);
        let begun = Instant::now();
        while !self.answers() {
            if begun.elapsed() > START_WAIT {
                return Err(Error::new(
                    ErrorKind::TimedOut,
                    "redis-server does not answer",
                ));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Whether it is there and ready; one that asks for a password is.
    fn answers(&self) -> bool {
        match self.command(&["PING"]) {
            Ok(answer) => answer == "PONG",
            Err(error) => error.to_string().starts_with("NOAUTH"),
        }
    }

    /// Stops its time: it answers nobody, and its connections stay open.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Kills it without a warning.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.process_id()?)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| Error::other("no process id"))?;
        Ok(kill_process(pid, signal)?)
    }

    /// Sends one command and gives its answer as text, lists line by line.
    pub fn command(&self, parts: &[&str]) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(START_WAIT))?;
        let mut request = format!("*{}\r\n", parts.len()).into_bytes();
        for part in parts {
            write!(request, "${}\r\n{part}\r\n", part.len())?;
        }
        stream.write_all(&request)?;
        answer(&mut BufReader::new(stream))
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // A stopped process can be killed as well; there is nobody left to tell if not.
        let _ = self.kill();
    }
}

fn answer(reader: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let line = line.trim_end();
    let (kind, rest) = line
        .split_at_checked(1)
        .ok_or_else(|| Error::other("an empty answer"))?;
    let length = || rest.parse::<i64>().map_err(Error::other);
    match kind {
        "+" | ":" => Ok(rest.to_owned()),
        "-" => Err(Error::other(rest.to_owned())),
        "$" => {
            let Ok(length) = usize::try_from(length()?) else {
                return Ok(String::new());
            };
            let mut text = vec![0; length + 2];
            reader.read_exact(&mut text)?;
            text.truncate(length);
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        "*" => {
            let parts: Result<Vec<String>> =
                (0..length()?.max(0)).map(|_| answer(reader)).collect();
            Ok(parts?.join("\n"))
        }
        _ => Err(Error::other(format!("an answer of no known kind: {line}"))),
    }
}

/// A port that was free a moment ago, with room for a cluster's second port.
fn free_port() -> Result<u16> {
    loop {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        if port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
            return Ok(port);
        }
    }
}

/// A cluster of servers, each with its share of the slots and no replicas.
#[derive(Debug)]
pub struct RedisCluster {
    /// Its nodes.
    pub nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts this many nodes and waits until they are one cluster.
    pub fn start(nodes: u16) -> Result<Self> {
        let args = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
        let nodes = (0..nodes)
            .map(|_| RedisServer::start(Persistence::None, &args))
            .collect::<Result<Vec<_>>>()?;
        let cluster = Self { nodes };
        cluster.join()?;
        Ok(cluster)
    }

    /// The addresses of all nodes.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    fn join(&self) -> Result<()> {
        let share = 16_384 / self.nodes.len() + 1;
        for (index, node) in self.nodes.iter().enumerate() {
            let first = (index * share).to_string();
            let last = ((index + 1) * share - 1).min(16_383).to_string();
            node.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
            let port = node.port().to_string();
            self.nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port])?;
        }
        let begun = Instant::now();
        let is_one = |node: &RedisServer| {
            node.command(&["CLUSTER", "INFO"]).is_ok_and(|info| {
                info.contains("cluster_state:ok")
                    && info.contains(&format!("cluster_known_nodes:{}", self.nodes.len()))
            })
        };
        while !self.nodes.iter().all(is_one) {
            if begun.elapsed() > START_WAIT {
                return Err(Error::new(ErrorKind::TimedOut, "the cluster does not form"));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

/// One sentinel that watches over one server.
#[derive(Debug)]
pub struct RedisSentinel {
    server: RedisServer,
}

impl RedisSentinel {
    /// Starts a sentinel that knows the server at this port by this name.
    pub fn start(name: &str, port: u16) -> Result<Self> {
        Self::start_with(name, port, &[])
    }

    /// The same with further settings.
    pub fn start_with(name: &str, port: u16, args: &[&str]) -> Result<Self> {
        let monitor = format!("{name} 127.0.0.1 {port} 1");
        let server = RedisServer::start_sentinel(&monitor, name, args)?;
        Ok(Self { server })
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Puts another server in charge.
    pub fn failover(&self, name: &str) -> Result<String> {
        self.server.command(&["SENTINEL", "FAILOVER", name])
    }

    /// Waits until there is a server that could take over.
    pub fn until_it_knows_a_replica(&self, name: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            let known = self.server.command(&["SENTINEL", "REPLICAS", name])?;
            if known.contains("master-link-status\nok") {
                return Ok(());
            }
            if begun.elapsed() > START_WAIT {
                return Err(Error::new(ErrorKind::TimedOut, "no replica comes"));
            }
            std::thread::sleep(POLL);
        }
    }
}
