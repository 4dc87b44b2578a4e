//! The two ends of `bench/serve-chat/run`: the model server that everybody stands before, and the load.
//!
//! ```text
//! bench-serve-chat upstream [DELAY_MS]                        prints its port, serves until stdin ends
//! bench-serve-chat proxy PORT UPSTREAM                       passes on to the model server, and does nothing else
//! bench-serve-chat rate URL MODEL KEY PER_SECOND SECONDS      requests at a fixed rate
//! bench-serve-chat flood URL MODEL KEY CONNECTIONS SECONDS    as many as go through
//! bench-serve-chat hold URL MODEL KEY REQUESTS                all at once; says "held", then what came of them
//! bench-serve-chat port                                       prints a free port
//! bench-serve-chat ready URL PID                              ends when the address answers 200
//! ```
//!
//! At a fixed rate a request's time counts from when it was due, not from when there was a connection
//! for it: a server that stalls is charged for everybody whom it kept waiting.

mod load;
mod proxy;
mod upstream;

use std::error::Error;

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["upstream"] => upstream::serve(0).await,
        ["upstream", delay_ms] => upstream::serve(delay_ms.parse()?).await,
        ["proxy", port, upstream] => proxy::serve(port, upstream).await,
        ["rate", url, model, key, rate, seconds] => {
            let target = load::Target::new(url, model, key)?;
            load::rate(&target, rate.parse()?, seconds.parse()?).await
        }
        ["flood", url, model, key, connections, seconds] => {
            let target = load::Target::new(url, model, key)?;
            load::flood(&target, connections.parse()?, seconds.parse()?).await
        }
        ["hold", url, model, key, requests] => {
            let target = load::Target::new(url, model, key)?;
            load::hold(&target, requests.parse()?).await
        }
        ["port"] => {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            println!("{}", listener.local_addr()?.port());
            Ok(())
        }
        ["ready", url, pid] => load::ready(url, pid).await,
        _ => Err("see the top of bench/serve-chat/src/main.rs".into()),
    }
}
