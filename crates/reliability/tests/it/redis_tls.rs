//! Redis behind TLS: `rediss://`, an authority of our own, and a certificate of the client.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::SystemClock;
use holdfast_reliability::store::redis::options::TlsFiles;
use holdfast_reliability::store::redis::{RedisOptions, RedisState, Topology};
use holdfast_reliability::store::{DedupeStore, StoreError, StoreSize};
use holdfast_testkit::redis::{Persistence, RedisSentinel, RedisServer};
use tempfile::TempDir;

/// An authority, and a certificate of it for this machine.
struct Certificates(TempDir);

impl Certificates {
    fn make() -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        let (ca, ca_key) = (made.path("ca.pem"), made.path("ca.key"));
        let (cert, key) = (made.path("own.pem"), made.path("own.key"));
        let (request, names) = (made.path("own.csr"), made.path("names"));
        std::fs::write(&names, "subjectAltName=DNS:localhost,IP:127.0.0.1\n").unwrap();
        let fresh = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
        openssl(
            &format!("req -x509 {fresh} -subj /CN=authority"),
            &[("-keyout", &ca_key), ("-out", &ca)],
        );
        openssl(
            &format!("req {fresh} -subj /CN=localhost"),
            &[("-keyout", &key), ("-out", &request)],
        );
        openssl(
            "x509 -req -days 2 -CAcreateserial",
            &[
                ("-in", &request),
                ("-CA", &ca),
                ("-CAkey", &ca_key),
                ("-extfile", &names),
                ("-out", &cert),
            ],
        );
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The settings of something that takes TLS on a second port, and which.
    fn settings(&self, clients: &str) -> (Vec<String>, u16) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let path = |name| self.path(name).display().to_string();
        let settings = [
            ("--tls-port", port.to_string()),
            ("--tls-cert-file", path("own.pem")),
            ("--tls-key-file", path("own.key")),
            ("--tls-ca-cert-file", path("ca.pem")),
            ("--tls-auth-clients", clients.to_owned()),
        ];
        let words = settings.map(|(name, value)| [name.to_owned(), value]);
        (words.concat(), port)
    }

    /// A server that takes TLS on a second port, and says which.
    fn serve(&self, clients: &str) -> (RedisServer, u16) {
        let (args, port) = self.settings(clients);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        (RedisServer::start(Persistence::None, &args).unwrap(), port)
    }

    /// A sentinel that takes TLS, and asks the server for it too.
    fn watch(&self, name: &str, server: u16) -> (RedisSentinel, u16) {
        let (args, port) = self.settings("no");
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.extend(["--tls-replication", "yes"]);
        let sentinel = RedisSentinel::start_with(name, server, &args).unwrap();
        (sentinel, port)
    }
}

fn openssl(words: &str, files: &[(&str, &Path)]) {
    let mut command = Command::new("openssl");
    command.args(words.split(' '));
    for (option, file) in files {
        command.arg(option).arg(file);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

async fn size(port: u16, tls: TlsFiles) -> Result<StoreSize, StoreError> {
    size_by(port, tls, Topology::Single).await
}

async fn size_by(port: u16, tls: TlsFiles, topology: Topology) -> Result<StoreSize, StoreError> {
    let options = RedisOptions {
        tls,
        topology,
        ..RedisOptions::single(format!("rediss://localhost:{port}/"))
    };
    let store = RedisState::open(&options, Arc::new(SystemClock))?;
    // Until it is connected, or knows why not.
    for _ in 0..200 {
        if store.connected(Duration::from_millis(100)).await || store.health().degraded.is_some() {
            break;
        }
    }
    store.size().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_believed_whose_authority_is_known() {
    let made = Certificates::make();
    let (_server, port) = made.serve("no");
    let known = TlsFiles {
        authorities: Some(made.path("ca.pem")),
        own: None,
    };
    assert_eq!(size(port, known).await, Ok(StoreSize::default()));
    // The system's authorities do not know ours, and another one did not sign it.
    for unknown in [
        TlsFiles::default(),
        TlsFiles {
            authorities: Some(Certificates::make().path("ca.pem")),
            own: None,
        },
    ] {
        let refused = size(port, unknown).await;
        assert!(
            matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("certificate")),
            "{refused:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_asks_for_a_certificate_gets_ours() {
    let made = Certificates::make();
    let (_server, port) = made.serve("yes");
    let authorities = Some(made.path("ca.pem"));
    let own = Some((made.path("own.pem"), made.path("own.key")));
    let with = TlsFiles {
        authorities: authorities.clone(),
        own,
    };
    assert_eq!(size(port, with).await, Ok(StoreSize::default()));
    let without = TlsFiles {
        authorities,
        own: None,
    };
    assert!(size(port, without).await.is_err());
}

#[tokio::test]
async fn what_can_never_work_is_said_at_once() {
    let nowhere = TlsFiles {
        authorities: Some("/nowhere/ca.pem".into()),
        own: None,
    };
    let missing = RedisOptions {
        tls: nowhere,
        ..RedisOptions::single("rediss://localhost:1/")
    };
    let blind = RedisOptions::single("rediss://localhost:1/#insecure");
    for (options, says) in [(missing, "/nowhere/ca.pem"), (blind, "protects nothing")] {
        let opened = RedisState::open(&options, Arc::new(SystemClock)).err();
        assert!(
            matches!(&opened, Some(StoreError::Unavailable(why)) if why.contains(says)),
            "{opened:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_and_the_server_they_name_are_both_spoken_to_in_private() {
    let made = Certificates::make();
    let (server, port) = made.serve("no");
    let (_sentinel, sentinel_port) = made.watch("records", port);
    let topology = || Topology::Sentinel {
        master: "records".to_owned(),
    };
    let known = TlsFiles {
        authorities: Some(made.path("ca.pem")),
        own: None,
    };
    let found = size_by(sentinel_port, known, topology()).await;
    assert_eq!(found, Ok(StoreSize::default()));
    // It was the TLS port that took them, and this server that keeps them.
    let keys = server.command(&["KEYS", "*"]).unwrap();
    assert!(keys.contains("meta"), "{keys}");
    let stranger = TlsFiles {
        authorities: Some(Certificates::make().path("ca.pem")),
        own: None,
    };
    let refused = size_by(sentinel_port, stranger, topology()).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
}
