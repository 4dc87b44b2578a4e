//! How connections are made: to one server, to the server that sentinels name, or to a cluster.

use std::path::PathBuf;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo,
    IntoConnectionInfo, Pipeline, RedisError, RedisResult, TlsCertificates, TlsMode, Value,
};

use super::options::{RedisOptions, TlsFiles, Topology};
use crate::config::redis::RedisUrl;

/// Redirections and lost nodes that a command of a cluster survives.
const CLUSTER_RETRIES: u32 = 3;

/// A connection that any number of tasks share.
#[derive(Clone)]
pub(super) enum Conn {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Conn {
    pub(super) async fn send(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        // An answer may be an error as well.
        match self {
            Self::One(conn) => conn.req_packed_command(cmd).await?,
            Self::Cluster(conn) => conn.req_packed_command(cmd).await?,
        }
        .extract_error()
    }

    /// Several commands in one message, each with its answer. Not for a cluster, which would have to
    /// send each to its node.
    pub(super) async fn send_all(
        &mut self,
        pipe: &Pipeline,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        let answers = match self {
            Self::One(conn) => conn.req_packed_commands(pipe, 0, count).await?,
            Self::Cluster(_) => return Err(wrong("a cluster takes one command at a time")),
        };
        answers.into_iter().map(Value::extract_error).collect()
    }

    /// Says so if the server may forget records when its memory is full. One that does not tell,
    /// as many that are rented, is believed.
    pub(super) async fn check_evictions(&mut self) -> Result<(), String> {
        let mut cmd = redis::cmd("CONFIG");
        cmd.arg("GET").arg("maxmemory*");
        let Ok(answer) = self.send(&cmd).await else {
            return Ok(());
        };
        let mut words = Vec::new();
        flatten(answer, &mut words);
        let values = |name: &'static str| {
            let pairs = words.windows(2).filter(move |pair| pair[0] == name);
            pairs.map(|pair| pair[1].as_str())
        };
        let bounded = values("maxmemory").any(|bytes| bytes != "0");
        match values("maxmemory-policy").find(|policy| *policy != "noeviction") {
            Some(policy) if bounded => Err(format!(
                "the server's maxmemory-policy is {policy}, so it may forget records that protect \
                 effects: set it to noeviction"
            )),
            _ => Ok(()),
        }
    }
}

/// The words of an answer in their order: a list or a map, of one server or of each node.
fn flatten(answer: Value, words: &mut Vec<String>) {
    match answer {
        Value::Array(parts) => parts.into_iter().for_each(|part| flatten(part, words)),
        Value::Map(pairs) => {
            for (name, value) in pairs {
                flatten(name, words);
                flatten(value, words);
            }
        }
        Value::BulkString(text) => words.push(String::from_utf8_lossy(&text).into_owned()),
        Value::SimpleString(text) => words.push(text),
        _ => {}
    }
}

/// Everything needed to connect, checked.
pub(super) struct Plan {
    infos: Vec<ConnectionInfo>,
    /// Set when the addresses ask for TLS.
    certs: Option<TlsCertificates>,
    topology: Topology,
    response: Duration,
    connect: Duration,
}

/// What the client needs of an address; the error does not repeat it.
pub(super) fn info(url: &RedisUrl) -> Result<ConnectionInfo, String> {
    let info = url
        .reveal()
        .into_connection_info()
        .map_err(|error| format!("{url} is no Redis address: {error}"))?;
    match info.addr() {
        ConnectionAddr::TcpTls { insecure: true, .. } => Err(format!(
            "{url} asks for TLS without a look at the certificate, which protects nothing; \
             name the authority in caFile"
        )),
        _ => Ok(info),
    }
}

/// The certificates of these files.
fn certificates(files: &TlsFiles) -> Result<TlsCertificates, String> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|error| format!("{} can not be read: {error}", path.display()))
    };
    let client_tls = match &files.own {
        None => None,
        Some((cert, key)) => Some(ClientTlsConfig {
            client_cert: read(cert)?,
            client_key: read(key)?,
        }),
    };
    Ok(TlsCertificates {
        client_tls,
        root_cert: files.authorities.as_ref().map(read).transpose()?,
    })
}

fn wrong(message: &'static str) -> RedisError {
    RedisError::from((redis::ErrorKind::InvalidClientConfig, message))
}

impl Plan {
    pub(super) fn new(options: &RedisOptions) -> Result<Self, String> {
        if options.addresses.is_empty() {
            return Err("no Redis address is given".to_owned());
        }
        let mut infos = Vec::with_capacity(options.addresses.len());
        for url in &options.addresses {
            infos.push(info(url)?);
        }
        let is_tls =
            |info: &&mut ConnectionInfo| matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        let mut certs = None;
        for secured in infos.iter_mut().filter(is_tls) {
            holdfast_client::install_cryptography();
            let found = certificates(&options.tls)?;
            let client = Client::build_with_tls(secured.clone(), found.clone())
                .map_err(|error| format!("the certificates can not be used: {error}"))?;
            *secured = client.get_connection_info().clone();
            certs = Some(found);
        }
        Ok(Self {
            infos,
            certs,
            topology: options.topology.clone(),
            response: Duration::from_millis(options.response_ms),
            connect: Duration::from_millis(options.connect_ms),
        })
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.topology == Topology::Cluster
    }

    pub(super) async fn connect(&self) -> RedisResult<Conn> {
        if self.is_cluster() {
            let mut client = ClusterClient::builder(self.infos.clone())
                .retries(CLUSTER_RETRIES)
                .connection_timeout(self.connect)
                .response_timeout(self.response);
            if let Some(certs) = &self.certs {
                client = client.certs(certs.clone());
            }
            let client = client.build()?;
            let connecting = client.get_async_connection();
            let conn = tokio::time::timeout(self.connect * 2, connecting)
                .await
                .map_err(|_| wrong("the cluster does not answer"))??;
            return Ok(Conn::Cluster(conn));
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect))
            .set_response_timeout(Some(self.response));
        let client = self.client(0).await?;
        let conn = client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        Ok(Conn::One(conn))
    }

    /// A connection that listens. In a cluster any node hears everything; `turn` picks one.
    pub(super) async fn listen(&self, turn: usize) -> RedisResult<PubSub> {
        let client = self.client(turn).await?;
        tokio::time::timeout(self.connect, client.get_async_pubsub())
            .await
            .map_err(|_| wrong("the server does not answer"))?
    }

    async fn client(&self, turn: usize) -> RedisResult<Client> {
        let Topology::Sentinel { master } = &self.topology else {
            let info = self.infos.get(turn % self.infos.len());
            return Client::open(info.ok_or_else(|| wrong("no address"))?.clone());
        };
        let mut client = self.sentinels(master)?;
        tokio::time::timeout(self.connect, client.async_get_client())
            .await
            .map_err(|_| wrong("no sentinel answers"))?
    }

    /// Who knows the server in charge. A user, a password and a database behind the addresses are
    /// the server's; sentinels have no databases, and get the same user and password.
    fn sentinels(&self, master: &str) -> RedisResult<SentinelClient> {
        let addresses = self.infos.iter().map(|info| info.addr().clone());
        let kind = SentinelServerType::Master;
        let mut builder = SentinelClientBuilder::new(addresses, master, kind)?;
        if let Some(settings) = self.infos.first().map(ConnectionInfo::redis_settings) {
            builder = builder.set_client_to_redis_db(settings.db());
            if let Some(user) = settings.username() {
                builder = builder
                    .set_client_to_redis_username(user)
                    .set_client_to_sentinel_username(user);
            }
            if let Some(password) = settings.password() {
                builder = builder
                    .set_client_to_redis_password(password)
                    .set_client_to_sentinel_password(password);
            }
        }
        if let Some(certs) = &self.certs {
            // The sentinels' own addresses have theirs already.
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_redis_certificates(certs.clone());
        }
        builder.build()
    }
}
