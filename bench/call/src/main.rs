//! What a call through Holdfast costs, side by side with its floor and its peers.
//!
//! Run by `bench/call/run`, which also builds it.

mod load;
mod node;
mod peers;
mod sample;
mod stack;

use load::{Calls, MUTATING, READ_ONLY};
use stack::{Caller, Log};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, subject, calls] = &arguments[..]
        && flag == "--profile"
    {
        return profile(subject, calls.parse().map_err(std::io::Error::other)?);
    }
    Ok(())
}

/// One subject alone, for a profiler to watch.
fn profile(subject: &str, calls: usize) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let sink = std::path::Path::new("/dev/null");
    let mut meter = sample::Meter::default();
    let (tool, log) = match subject {
        "floor" => {
            let round = peers::floor_round(&mut Calls::new(MUTATING, 1), calls);
            println!("{round:?}");
            return Ok(());
        }
        "tower" => {
            println!("{:?}", runtime.block_on(peers::tower().round(calls)));
            return Ok(());
        }
        "read" => (READ_ONLY, Log::Off),
        "read-log" => (READ_ONLY, Log::On),
        "mutate" => (MUTATING, Log::Off),
        "mutate-log" => (MUTATING, Log::On),
        _ => return Err(std::io::Error::other("no such subject")),
    };
    let (stack, _) = stack::stack(log, sink)?;
    let mut caller = Caller::happy(stack, tool, 1);
    runtime.block_on(caller.batches(calls, &mut meter));
    println!("{:.0} ns", meter.round().mean_ns);
    Ok(())
}
