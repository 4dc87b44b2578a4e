//! The page: one file, no scripts, no requests, light and dark.

use std::collections::BTreeMap;

use holdfast_transcript::audit::{Report, Tally};

use super::numbers::{counted, money, percent, time, tokens, whole};
use super::plot::{self, Bar, Part, escape};
use super::table::{COLUMNS, Shown, cells};

const TEMPLATE: &str = include_str!("page.html");
/// Days that are drawn; earlier ones are in the table.
const DAYS_DRAWN_MAX: usize = 90;
/// Tools and models that are drawn.
const ROWS_DRAWN_MAX: usize = 12;
/// Models without a price that are named.
const MODELS_NAMED_MAX: usize = 8;

/// The whole page.
pub(super) fn render(report: &Report) -> String {
    let json = serde_json::to_string(report).unwrap_or_default();
    let parts = [
        ("{{headline}}", escape(&headline(report))),
        ("{{scope}}", escape(&scope(report))),
        ("{{cards}}", cards(report)),
        ("{{plot_days}}", days(report)),
        ("{{plot_tools}}", tools(report)),
        ("{{plot_models}}", models(report)),
        ("{{tables}}", tables(report)),
        ("{{footnotes}}", escape(&footnotes(report))),
        // Escaped as JSON does it, so that it is the same text to a browser and to who reads the file.
        ("{{json}}", in_html(&json)),
    ];
    fill(TEMPLATE, &parts)
}

/// JSON that holds nothing which means something to HTML.
fn in_html(json: &str) -> String {
    let json = json.replace('&', "\\u0026");
    json.replace('<', "\\u003c").replace('>', "\\u003e")
}

/// One pass over the template: what is filled in is never looked at again.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some(at) = rest.find("{{") {
        page.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((name, value)) = parts.iter().find(|(name, _)| rest.starts_with(name)) {
            page.push_str(value);
            rest = &rest[name.len()..];
        } else {
            page.push_str("{{");
            rest = &rest[2..];
        }
    }
    page + rest
}

fn headline(report: &Report) -> String {
    let total = &report.total;
    if total.trouble() == 0 {
        return "Not one call went round in circles".to_owned();
    }
    format!(
        "{} of {} tool calls went nowhere; {} would have been stopped",
        whole(total.trouble()),
        whole(total.calls),
        whole(total.stopped),
    )
}

fn scope(report: &Report) -> String {
    let days: Vec<&String> = report
        .by_day
        .keys()
        .filter(|day| day.starts_with(|sign: char| sign.is_ascii_digit()))
        .collect();
    let span = match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => format!(", {first} to {last}"),
        (Some(first), _) => format!(", {first}"),
        _ => String::new(),
    };
    format!(
        "{}, {} of models, {} of tools{span}",
        counted(report.sessions, "session"),
        counted(report.total.requests, "answer"),
        counted(report.total.calls, "call"),
    )
}

fn cards(report: &Report) -> String {
    let total = &report.total;
    let (wasted, saved) = (&total.wasted, &total.saved);
    [
        card(
            "lost",
            "calls",
            &whole(total.trouble()),
            &format!(
                "{} loops, {} duplicates, {} orphans",
                whole(total.loops),
                whole(total.duplicates),
                whole(total.orphans)
            ),
        ),
        card(
            "lost",
            "tokens",
            &tokens(wasted.tokens),
            &format!(
                "tokens wasted, {} of all",
                percent(wasted.tokens, total.spent.tokens)
            ),
        ),
        card(
            "lost",
            "money",
            &money(wasted),
            &format!("wasted of {}", money(&total.spent)),
        ),
        card("lost", "time", &time(wasted.ms), "of waiting wasted"),
        card(
            "saved",
            "stopped",
            &whole(total.stopped),
            "calls would have been stopped",
        ),
        card(
            "saved",
            "saved",
            &tokens(saved.tokens),
            &format!("tokens and {} saved", money(saved)),
        ),
    ]
    .concat()
}

fn card(class: &str, id: &str, number: &str, text: &str) -> String {
    format!(
        r#"<div class="card {class}"><b id="card-{id}">{}</b><span class="soft">{}</span></div>"#,
        escape(number),
        escape(text),
    )
}

fn days(report: &Report) -> String {
    let bars: Vec<Bar> = report
        .by_day
        .iter()
        .rev()
        .take(DAYS_DRAWN_MAX)
        .map(|(day, tally)| Bar {
            name: day.clone(),
            parts: vec![
                part(
                    "work",
                    "calls of work",
                    tally.calls.saturating_sub(tally.trouble()),
                ),
                part("loop", "in loops", tally.loops),
                part("twice", "duplicates", tally.duplicates),
                part("orphan", "orphans", tally.orphans),
            ],
        })
        .collect();
    let in_order: Vec<Bar> = bars.into_iter().rev().collect();
    plot::columns("plot-days", &in_order, |value| whole(rounded(value)))
}

fn tools(report: &Report) -> String {
    let bars = top(&report.by_tool, |tally| exact(tally.trouble()));
    let bars: Vec<Bar> = bars
        .map(|(name, tally)| Bar {
            name: name.clone(),
            parts: vec![
                part("saved", "stopped", tally.stopped),
                part(
                    "loop",
                    "not stopped",
                    tally.trouble().saturating_sub(tally.stopped),
                ),
            ],
        })
        .collect();
    if bars.is_empty() {
        return r#"<p class="note">No tool looped, repeated itself or lost a result.</p>"#
            .to_owned();
    }
    plot::rows("plot-tools", &bars, |value| whole(rounded(value)))
}

fn models(report: &Report) -> String {
    let bars: Vec<Bar> = top(&report.by_model, |tally| tally.spent.tokens)
        .map(|(name, tally)| Bar {
            name: name.clone(),
            parts: vec![
                share(
                    "work",
                    "tokens of work",
                    tally.spent.tokens - tally.wasted.tokens,
                ),
                share("loop", "wasted", tally.wasted.tokens - tally.saved.tokens),
                share("saved", "would have been saved", tally.saved.tokens),
            ],
        })
        .collect();
    plot::rows("plot-models", &bars, tokens)
}

fn top(
    map: &BTreeMap<String, Tally>,
    weight: impl Fn(&Tally) -> f64,
) -> impl Iterator<Item = (&String, &Tally)> {
    let mut rows: Vec<_> = map
        .iter()
        .filter(|(_, tally)| weight(tally) > 0.0)
        .collect();
    rows.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)).then(a.0.cmp(b.0)));
    rows.into_iter().take(ROWS_DRAWN_MAX)
}

fn part(class: &'static str, label: &'static str, count: u64) -> Part {
    share(class, label, exact(count))
}

fn share(class: &'static str, label: &'static str, value: f64) -> Part {
    Part {
        class,
        label,
        value,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "calls are counted in millions at most"
)]
fn exact(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count that was made a float for drawing"
)]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

fn tables(report: &Report) -> String {
    let worst = report.worst.iter().map(|row| (&row.session, &row.tally));
    [
        table("Models", "models", report.by_model.iter(), Shown::Open),
        table("Tools", "tools", report.by_tool.iter(), Shown::Open),
        table("Days", "days", report.by_day.iter(), Shown::Folded),
        table(
            "Sessions with the most trouble",
            "sessions",
            worst,
            Shown::Folded,
        ),
    ]
    .concat()
}

fn table<'a>(
    title: &str,
    id: &str,
    rows: impl Iterator<Item = (&'a String, &'a Tally)>,
    shown: Shown,
) -> String {
    let heads: Vec<String> = COLUMNS
        .iter()
        .map(|name| format!("<th>{name}</th>"))
        .collect();
    let heads = heads.concat();
    let body: Vec<String> = rows.map(|(name, tally)| table_row(name, tally)).collect();
    let body = body.concat();
    let open = if shown == Shown::Open { " open" } else { "" };
    format!(
        r#"<details{open}><summary>{title}</summary><div class="scroll"><table id="table-{id}"><thead><tr><th></th>{heads}</tr></thead><tbody>{body}</tbody></table></div></details>"#
    )
}

fn table_row(name: &str, tally: &Tally) -> String {
    let cells: Vec<String> = cells(tally)
        .iter()
        .map(|cell| format!("<td>{}</td>", escape(cell)))
        .collect();
    format!(
        r#"<tr><td title="{0}">{0}</td>{1}</tr>"#,
        escape(name),
        cells.concat()
    )
}

fn footnotes(report: &Report) -> String {
    let mut notes = vec![format!(
        "Money: what the transcripts say, else {}.",
        report.prices_of
    )];
    if !report.models_without_price.is_empty() {
        let names: Vec<&str> = report
            .models_without_price
            .iter()
            .take(MODELS_NAMED_MAX)
            .map(String::as_str)
            .collect();
        notes.push(format!(
            "No price is known for {}, so nothing is counted for them.",
            names.join(", ")
        ));
    }
    notes.push(
        "Where a transcript does not say how many tokens an answer took, a quarter of its bytes is \
         taken."
            .to_owned(),
    );
    notes.join(" ")
}
