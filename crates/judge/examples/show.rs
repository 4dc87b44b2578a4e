//! Prints what is read of a text: `cargo run -p holdfast-judge --example show -- 'git push'`.
#![expect(clippy::print_stdout, reason = "an example prints")]

fn main() {
    for text in std::env::args().skip(1) {
        let reading = holdfast_judge::read(&text);
        println!("{text:?}");
        for simple in &reading.commands {
            let loose = if simple.loose { "loose " } else { "" };
            println!("  {loose}{:?} {}", simple.program(), simple.shown());
        }
        for unread in &reading.unreadable {
            println!("  unread {:?}: {}", unread.could_be, unread.text);
        }
    }
}
