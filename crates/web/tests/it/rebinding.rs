//! Names that lead where nobody may go, by whoever answers for them.
//!
//! The names are this test's own. 127.0.0.2 plays the public address, so that nothing leaves the
//! machine; every other address is judged as ever. On the same port of 127.0.0.1 is what must not be
//! reached.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use crate::common::{Double, answer, clock, context};
use async_trait::async_trait;
use holdfast_contract::{SessionKind, Tool, ToolError, ToolResult};
use holdfast_web::address::forbidden;
use holdfast_web::names::{Checked, Names};
use holdfast_web::{WebConfig, WebFetchTool};
use serde_json::json;

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const PRIVATE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn out_of_bounds(address: IpAddr) -> Option<&'static str> {
    if address == PUBLIC {
        return None;
    }
    forbidden(address)
}

/// Names with their answers, one after the other; the last one stays.
#[derive(Default)]
struct Book {
    answers: Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Book {
    fn with(self, name: &str, answers: &[&[IpAddr]]) -> Self {
        let answers = answers.iter().map(|answer| answer.to_vec()).collect();
        let mut all = self.answers.lock().expect("no panic");
        all.insert(name.to_owned(), answers);
        drop(all);
        self
    }

    fn asked(&self, name: &str) -> usize {
        let asked = self.asked.lock().expect("no panic");
        asked.iter().filter(|it| *it == name).count()
    }
}

#[async_trait]
impl Names for Book {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().expect("no panic").push(host.to_owned());
        let mut all = self.answers.lock().expect("no panic");
        let Some(answers) = all.get_mut(host) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let next = answers.front().cloned().unwrap_or_default();
        if answers.len() > 1 {
            answers.pop_front();
        }
        Ok(next)
    }
}

/// What is public, and what is on the same port of the machine itself.
struct Scene {
    book: Arc<Book>,
    tool: WebFetchTool,
    public: Double,
    private: Double,
}

impl Scene {
    async fn new(book: Book, redirects: &[(&'static str, &str)]) -> Self {
        let mut answers = vec![("/page", text("PUBLIC"))];
        for (path, to) in redirects {
            let moved = answer("302 Found", &format!("location: {to}\r\n"), "");
            answers.push((path, moved));
        }
        let public = Double::start_at(PUBLIC, 0, answers).await;
        let port = public.address.port();
        let secrets = vec![("/page", text("SECRET")), ("/secret", text("SECRET"))];
        let private = Double::start_at(PRIVATE, port, secrets).await;
        let book = Arc::new(book);
        let checked = Checked::new(book.clone(), out_of_bounds);
        let config = WebConfig::default();
        let tool = WebFetchTool::with_names(&config, clock(), checked).expect("is made");
        Self {
            book,
            tool,
            public,
            private,
        }
    }

    async fn fetch(&self, host: &str, path: &str) -> Result<ToolResult, ToolError> {
        let url = format!("http://{host}:{}{path}", self.public.address.port());
        let ctx = context(SessionKind::Worker, None);
        self.tool.execute(&json!({ "url": url }), &ctx).await
    }

    /// Refused by a rule that names the host and where it leads, and nothing was reached.
    async fn refuses(&self, host: &str, path: &str, named: &[&str]) {
        match self.fetch(host, path).await {
            Err(ToolError::PermissionDenied { reason, .. }) => {
                for word in named {
                    assert!(reason.contains(word), "{host}: {reason}");
                }
            }
            other => panic!("{host}: {other:?}"),
        }
        assert!(self.private.asked().is_empty(), "{host}");
    }
}

fn text(body: &str) -> String {
    answer("200 OK", "content-type: text/plain\r\n", body)
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused() {
    let table = [
        ("loopback.example", "127.0.0.1"),
        ("six.example", "::1"),
        ("mapped.example", "::ffff:127.0.0.1"),
        ("home.example", "192.168.1.1"),
        ("cloud.example", "169.254.169.254"),
        ("here.example", "0.0.0.0"),
    ];
    let mut book = Book::default();
    for (name, address) in table {
        book = book.with(name, &[&[address.parse().expect("an address")]]);
    }
    let scene = Scene::new(book, &[]).await;
    for (name, address) in table {
        scene.refuses(name, "/secret", &[name, address]).await;
        assert_eq!(scene.book.asked(name), 1, "{name}");
    }
}

#[tokio::test]
async fn a_name_with_both_kinds_of_addresses_is_refused() {
    let book = Book::default()
        .with("first.example", &[&[PUBLIC, PRIVATE]])
        .with("last.example", &[&[PRIVATE, PUBLIC]]);
    let scene = Scene::new(book, &[]).await;
    for name in ["first.example", "last.example"] {
        scene.refuses(name, "/page", &[name, "127.0.0.1"]).await;
    }
    assert!(scene.public.asked().is_empty());
}

/// What was checked is what is connected to, and the next connection is checked again.
#[tokio::test]
async fn a_name_that_changes_its_answer_gains_nothing() {
    let book = Book::default().with("changing.example", &[&[PUBLIC], &[PRIVATE]]);
    let scene = Scene::new(book, &[]).await;
    let got = scene.fetch("changing.example", "/page").await;
    assert_eq!(got.expect("fetched").output["content"], "PUBLIC");
    assert_eq!(scene.book.asked("changing.example"), 1);
    scene
        .refuses("changing.example", "/page", &["changing.example"])
        .await;
    assert_eq!(scene.book.asked("changing.example"), 2);
    assert_eq!(scene.public.asked().len(), 1);
}

#[tokio::test]
async fn a_redirect_to_such_a_name_is_refused() {
    let book = Book::default()
        .with("good.example", &[&[PUBLIC]])
        .with("bad.example", &[&[PRIVATE]])
        .with("both.example", &[&[PUBLIC, PRIVATE]])
        .with("turning.example", &[&[PUBLIC], &[PRIVATE]]);
    let redirects = [
        ("/bad", "http://bad.example:{port}/secret"),
        ("/both", "http://both.example:{port}/secret"),
        ("/turning", "http://turning.example:{port}/secret"),
        ("/number", "http://127.0.0.1:{port}/secret"),
        ("/good", "/page"),
    ];
    let scene = Scene::new(book, &redirects).await;
    for (host, path, named) in [
        ("good.example", "/bad", "bad.example"),
        ("good.example", "/both", "both.example"),
        // The second answer of the very name that was asked.
        ("turning.example", "/turning", "turning.example"),
        ("good.example", "/number", "127.0.0.1"),
    ] {
        scene.refuses(host, path, &[named]).await;
    }
    let got = scene.fetch("good.example", "/good").await;
    assert_eq!(got.expect("fetched").output["content"], "PUBLIC");
}
