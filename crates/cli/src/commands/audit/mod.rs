//! `holdfast audit`

mod numbers;
mod page;
mod plot;
mod replay;
mod source;
mod table;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use holdfast_transcript::audit::{Audit, Prices, Report, Tally};

use crate::app::App;
use crate::args::AuditArgs;
use crate::fail::{Failure, Outcome};
use crate::output::{self, bold, dim, green, yellow};
use numbers::{counted, money, percent, time, tokens, whole};
use replay::Replay;
use table::{COLUMNS, cells};

/// Rows of one table on a terminal; all of them are in `--json` and on the page.
const ROWS_SHOWN_MAX: usize = 15;

pub(super) fn run(app: &App, args: &AuditArgs, json: bool) -> Outcome<ExitCode> {
    let mut audit = Audit::new(prices(args.prices.as_deref())?);
    let mut judge = Replay::new(&app.config.guard)?;
    let went = source::each_session(&args.paths, args.since.as_deref(), json, |found| {
        audit.add(
            &found.name,
            &found.session,
            found.orphaned_results.len() as u64,
            &mut judge,
        );
    })?;
    let report = audit.finish();
    if let Some(path) = &args.html {
        write_page(path, &report)?;
    }
    if json {
        output::json(&report);
    } else {
        print(&report, args, went.older);
    }
    Ok(if went.has_failed {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    })
}

fn prices(file: Option<&Path>) -> Outcome<Prices> {
    let Some(file) = file else {
        return Ok(Prices::list());
    };
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("{shown} can not be read: {error}")))?;
    Prices::parse(&text).map_err(|error| {
        Failure::usage(format!("{shown}: {error}"))
            .hint("US dollars for a million tokens: {\"gpt-4o\": {\"input\": 2.5, \"output\": 10}}")
    })
}

fn write_page(path: &Path, report: &Report) -> Outcome<()> {
    std::fs::write(path, page::render(report)).map_err(|error| {
        Failure::failed(format!(
            "the page can not be written to {}: {error}",
            path.display()
        ))
    })
}

fn print(report: &Report, args: &AuditArgs, older: u64) {
    let total = &report.total;
    match &args.since {
        Some(since) if report.sessions == 0 && older > 0 => {
            let older = counted(older, "older session");
            output::line(&format!(
                "Nothing was answered on {since} or later; {older} left out."
            ));
            return;
        }
        _ if report.sessions == 0 => {
            output::line("No sessions were found. Name a file or a folder: holdfast audit PATH");
            return;
        }
        _ => {}
    }
    output::line(&format!(
        "{}, {} of models, {} of tools",
        counted(report.sessions, "session"),
        counted(total.requests, "answer"),
        counted(total.calls, "call"),
    ));
    if total.trouble() + total.orphaned_results == 0 {
        output::line(&green("No loops, no duplicates, no orphans."));
    } else {
        print_sums(total);
        print_table("by model", &report.by_model, Order::ByTrouble);
        print_table("by tool", &report.by_tool, Order::ByTrouble);
        print_table("by day", &report.by_day, Order::LatestLast);
        print_worst(report);
    }
    print_footnotes(report);
    if let Some(path) = &args.html {
        output::line(&format!("The page is in {}", path.display()));
    }
}

fn print_sums(total: &Tally) {
    let (wasted, saved) = (&total.wasted, &total.saved);
    output::line(&yellow(&format!(
        "Went nowhere: {} ({} in loops, {}, {}): {} tokens ({}), {}, {}",
        counted(total.trouble(), "call"),
        whole(total.loops),
        counted(total.duplicates, "duplicate"),
        counted(total.orphans, "orphan"),
        tokens(wasted.tokens),
        percent(wasted.tokens, total.spent.tokens),
        time(wasted.ms),
        money(wasted),
    )));
    output::line(&green(&format!(
        "Holdfast would have stopped {} of them: {} tokens, {}, {}",
        whole(total.stopped),
        tokens(saved.tokens),
        time(saved.ms),
        money(saved),
    )));
    if total.orphaned_results > 0 {
        output::line(&yellow(&format!(
            "And {} results belong to no call: `holdfast scan` names them",
            whole(total.orphaned_results)
        )));
    }
    if total.stopped_that_worked > 0 {
        output::line(&dim(&format!(
            "  {} of those did return a result when they ran",
            whole(total.stopped_that_worked)
        )));
    }
}

/// Which rows of a long table are shown, and how.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    ByTrouble,
    LatestLast,
}

fn print_table(title: &str, rows: &BTreeMap<String, Tally>, order: Order) {
    let mut rows: Vec<_> = rows
        .iter()
        .filter(|(_, tally)| tally.trouble() > 0)
        .collect();
    if rows.is_empty() {
        return;
    }
    let left_out = rows.len().saturating_sub(ROWS_SHOWN_MAX);
    if order == Order::ByTrouble {
        rows.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.trouble()));
        rows.truncate(ROWS_SHOWN_MAX);
    } else {
        rows.drain(..left_out);
    }
    let mut header = vec![title];
    header.extend(COLUMNS);
    let lines = rows.into_iter().map(|(name, tally)| {
        let mut line = vec![output::harmless(name)];
        line.extend(cells(tally));
        line
    });
    output::line(&format!("\n{}", output::table(&header, lines)));
    if left_out > 0 {
        output::line(&dim(&format!("{left_out} more: --json or --html")));
    }
}

fn print_worst(report: &Report) {
    output::line(&format!("\n{}", bold("Sessions with the most trouble")));
    for worst in report.worst.iter().take(5) {
        output::line(&format!(
            "  {:>6} calls  {}",
            whole(worst.tally.trouble()),
            output::harmless(&worst.session)
        ));
    }
}

fn print_footnotes(report: &Report) {
    output::line(&dim(&format!(
        "\nMoney: what the transcripts say, else {}.",
        report.prices_of
    )));
    if !report.models_without_price.is_empty() {
        let names: Vec<&str> = report
            .models_without_price
            .iter()
            .take(8)
            .map(String::as_str)
            .collect();
        output::line(&dim(&format!(
            "No price is known for {}.",
            output::harmless(&names.join(", "))
        )));
    }
}
