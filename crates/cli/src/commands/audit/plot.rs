//! Bar charts as SVG text. Colours are classes, so that the page decides for light and dark.

use std::fmt::Write;

/// One bar, its parts from the axis outwards.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) parts: Vec<Part>,
}

/// A part of a bar.
pub(super) struct Part {
    /// The class that colours it.
    pub(super) class: &'static str,
    /// What it is, for the tooltip.
    pub(super) label: &'static str,
    pub(super) value: f64,
}

impl Bar {
    fn sum(&self) -> f64 {
        self.parts.iter().map(|part| part.value).sum()
    }
}

const WIDTH: f64 = 900.0;
const COLUMN_HEIGHT: f64 = 240.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 28.0;
const TOP: f64 = 12.0;
const ROW: f64 = 26.0;
const ROW_LEFT: f64 = 190.0;
const ROW_RIGHT: f64 = 90.0;
const LABELS_MAX: usize = 8;
const NAME_CHARS_MAX: usize = 26;

/// Upright bars along a time axis.
pub(super) fn columns(id: &str, bars: &[Bar], show: impl Fn(f64) -> String) -> String {
    let top = round_up(bars.iter().map(Bar::sum).fold(0.0, f64::max));
    let height = COLUMN_HEIGHT + TOP + BOTTOM;
    let mut svg = open(id, height);
    for line in 0..=4 {
        let value = top * f64::from(line) / 4.0;
        let y = TOP + COLUMN_HEIGHT * (1.0 - f64::from(line) / 4.0);
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1}" y2="{y:.1}"/><text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
            LEFT - 8.0,
            y + 4.0,
            escape(&show(value)),
        );
    }
    let step = (WIDTH - LEFT) / count(bars.len().max(1));
    let width = (step * 0.72).min(48.0);
    let every = bars.len().div_ceil(LABELS_MAX).max(1);
    for (index, bar) in bars.iter().enumerate() {
        let x = LEFT + step * (count(index) + 0.5) - width / 2.0;
        let mut y = TOP + COLUMN_HEIGHT;
        for part in bar.parts.iter().filter(|part| part.value > 0.0) {
            let tall = COLUMN_HEIGHT * part.value / top;
            y -= tall;
            let _ = write!(
                svg,
                r#"<rect class="bar {}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{tall:.1}"><title>{}: {} {}</title></rect>"#,
                part.class,
                escape(&bar.name),
                escape(&show(part.value)),
                part.label,
            );
        }
        if index % every == 0 {
            let _ = write!(
                svg,
                r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                x + width / 2.0,
                height - 8.0,
                escape(&bar.name),
            );
        }
    }
    svg + "</svg>"
}

/// Lying bars, one a name.
pub(super) fn rows(id: &str, bars: &[Bar], show: impl Fn(f64) -> String) -> String {
    let longest = bars
        .iter()
        .map(Bar::sum)
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let mut svg = open(id, ROW * count(bars.len()) + 8.0);
    let room = WIDTH - ROW_LEFT - ROW_RIGHT;
    for (index, bar) in bars.iter().enumerate() {
        let y = ROW * count(index) + 4.0;
        let _ = write!(
            svg,
            r#"<text class="name" x="{:.1}" y="{:.1}" text-anchor="end">{}<title>{}</title></text>"#,
            ROW_LEFT - 10.0,
            y + 14.0,
            escape(&short(&bar.name)),
            escape(&bar.name),
        );
        let mut x = ROW_LEFT;
        for part in bar.parts.iter().filter(|part| part.value > 0.0) {
            let wide = room * part.value / longest;
            let _ = write!(
                svg,
                r#"<rect class="bar {}" x="{x:.1}" y="{y:.1}" width="{wide:.1}" height="{:.1}"><title>{}: {} {}</title></rect>"#,
                part.class,
                ROW - 8.0,
                escape(&bar.name),
                escape(&show(part.value)),
                part.label,
            );
            x += wide;
        }
        let _ = write!(
            svg,
            r#"<text class="tick" x="{:.1}" y="{:.1}">{}</text>"#,
            x + 8.0,
            y + 14.0,
            escape(&show(bar.sum())),
        );
    }
    svg + "</svg>"
}

fn open(id: &str, height: f64) -> String {
    format!(
        r#"<svg id="{id}" viewBox="0 0 {WIDTH} {height}" role="img" preserveAspectRatio="xMinYMin meet">"#
    )
}

#[expect(clippy::cast_precision_loss, reason = "a chart has few bars")]
fn count(number: usize) -> f64 {
    number as f64
}

/// The next number that reads well on an axis with four steps.
fn round_up(value: f64) -> f64 {
    if value <= 4.0 {
        return 4.0;
    }
    let magnitude = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        .into_iter()
        .map(|step| step * magnitude)
        .find(|top| *top >= value)
        .unwrap_or(value)
}

fn short(name: &str) -> String {
    if name.chars().count() <= NAME_CHARS_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_CHARS_MAX - 1).chain(['…']).collect()
}

/// Text from outside as text of the page.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            sign if sign.is_control() && sign != '\n' => safe.push('\u{fffd}'),
            sign => safe.push(sign),
        }
    }
    safe
}
