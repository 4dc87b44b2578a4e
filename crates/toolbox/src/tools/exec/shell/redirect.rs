//! Where a command's input comes from and its output goes.

use super::expand::Quotes;
use super::{Next, Open, Quoting, Reader};

impl Reader {
    /// The bodies of here-documents that the line just ended has asked for.
    pub(super) fn bodies(&mut self) {
        for asked in std::mem::take(&mut self.heredocs) {
            let mut body = String::new();
            loop {
                let from = self.at;
                self.skip_line();
                let line: String = self.rest.iter().skip(from).take(self.at - from).collect();
                if self.take().is_none() && line.is_empty() {
                    // Whoever reads on elsewhere finds commands where others find a text.
                    self.script.is_unreadable = true;
                    break;
                }
                let line = if asked.sheds_tabs {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                if line == asked.end.text {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            let mut inside = Vec::new();
            if asked.end.quoting == Quoting::Bare {
                inside = self.nested(&body, Self::expanded_text);
            }
            if let Some(simple) = asked
                .command
                .and_then(|at| self.script.commands.get_mut(at))
            {
                simple.input = Some(body);
                simple.input_quoting = asked.end.quoting;
                simple.inside.extend(inside);
            }
        }
    }

    /// What runs inside a text that is expanded and nothing else. The commands found.
    fn expanded_text(&mut self) -> Vec<usize> {
        let mut open = Open::default();
        while let Some(sign) = self.take() {
            match sign {
                '\\' => self.at += 1,
                '$' | '`' => self.expansion(sign, Quotes::Double, &mut open),
                _ => {}
            }
        }
        open.simple.inside
    }

    pub(super) fn redirect(&mut self, open: &mut Open) {
        // `2>`: the number belongs to the redirection.
        if open
            .word
            .as_ref()
            .is_some_and(|word| word.text.chars().all(|sign| sign.is_ascii_digit()))
        {
            open.word = None;
        }
        open.end_word();
        open.is_redirected = true;
        let mut signs = String::new();
        while let Some(sign) = self.peek(0) {
            let fits = matches!(sign, '<' | '>' | '&' | '|' | '-') && signs.len() < 3;
            if !fits || (sign == '|' && signs != ">") || (sign == '-' && !signs.starts_with("<<")) {
                break;
            }
            signs.push(sign);
            self.at += 1;
        }
        if self.peek(0) == Some('(') {
            // Process substitution: what stands in it runs.
            self.at += 1;
            let inside = self.list(Some(')'));
            open.simple.inside.extend(inside);
            open.word().has_substitution = true;
            return;
        }
        open.next = match signs.as_str() {
            "<<<" => Next::HereString,
            "<<" => Next::HereDocument { sheds_tabs: false },
            "<<-" => Next::HereDocument { sheds_tabs: true },
            "<" => Next::Read,
            "<&" => Next::Skip,
            // `2>&1` copies a descriptor.
            ">&" if self
                .peek(0)
                .is_some_and(|sign| sign.is_ascii_digit() || sign == '-') =>
            {
                Next::Skip
            }
            _ => Next::Write,
        };
    }
}
