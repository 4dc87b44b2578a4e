//! How connections are made: to one server, to the server that sentinels name, or to a cluster.

use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, IntoConnectionInfo, RedisError,
    RedisResult, Value,
};

use super::options::{RedisOptions, Topology};
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
    topology: Topology,
    response: Duration,
    connect: Duration,
}

/// What the client needs of an address; the error does not repeat it.
pub(super) fn info(url: &RedisUrl) -> Result<ConnectionInfo, String> {
    url.reveal()
        .into_connection_info()
        .map_err(|error| format!("{url} is no Redis address: {error}"))
}

fn wrong(message: &'static str) -> RedisError {
    RedisError::from((redis::ErrorKind::InvalidClientConfig, message))
}

impl Plan {
    pub(super) fn new(options: &RedisOptions) -> Result<Self, String> {
        if options.addresses.is_empty() {
            return Err("no Redis address is given".to_owned());
        }
        Ok(Self {
            infos: options
                .addresses
                .iter()
                .map(info)
                .collect::<Result<_, _>>()?,
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
            let client = ClusterClient::builder(self.infos.clone())
                .retries(CLUSTER_RETRIES)
                .connection_timeout(self.connect)
                .response_timeout(self.response)
                .build()?;
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
        let mut node = SentinelNodeConnectionInfo::default();
        if let Some(info) = self.infos.first() {
            node = node.set_redis_connection_info(info.redis_settings().clone());
        }
        // Sentinels have no databases; what is written behind their address is for the server.
        let sentinels = self
            .infos
            .iter()
            .map(|info| {
                info.clone()
                    .set_redis_settings(info.redis_settings().clone().set_db(0))
            })
            .collect();
        let mut client = SentinelClient::build(
            sentinels,
            master.clone(),
            Some(node),
            SentinelServerType::Master,
        )?;
        tokio::time::timeout(self.connect, client.async_get_client())
            .await
            .map_err(|_| wrong("no sentinel answers"))?
    }
}
