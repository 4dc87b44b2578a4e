//! Real conversations, broken in every way: the findings are the planted faults, exactly, and what
//! a repair leaves is what a provider accepts.

use crate::common::provider::accepts;
use crate::common::{Said, What, has_parents, is_strict, lines, made_up, text, trajectories};
use holdfast_transcript::scan::scan_bytes;
use holdfast_transcript::write::repair_bytes;
use holdfast_transcript::{Fault, Format, Strategy};

/// Numbers that repeat.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

/// A planted fault: the entry it has to be found in, and the id.
type Planted = (Fault, String, Option<String>);

fn is_result_of(said: &Said, id: &str) -> bool {
    matches!(&said.what, What::Result { call, .. } if call == id)
}

/// A call that is answered and that something follows: its id, and where it and its result are.
fn pick_call(numbers: &mut Numbers, said: &[Said]) -> Option<(String, usize, usize)> {
    let calls: Vec<(String, usize)> = said
        .iter()
        .enumerate()
        .filter_map(|(at, entry)| match &entry.what {
            What::Assistant { calls, .. } => Some((calls.first()?.id.clone(), at)),
            _ => None,
        })
        .collect();
    let (id, at) = calls.get(numbers.below(calls.len()))?.clone();
    let result = at
        + said[at..]
            .iter()
            .position(|entry| is_result_of(entry, &id))?;
    (result + 1 < said.len()).then_some((id, at, result))
}

/// Breaks a conversation in one way. None where it can not be broken like that.
fn plant(
    fault: Fault,
    format: Format,
    said: &mut Vec<Said>,
    numbers: &mut Numbers,
) -> Option<Vec<Planted>> {
    match fault {
        Fault::OrphanedToolResult => {
            let at = 1 + numbers.below(said.len());
            let ghost = Said {
                id: "planted".to_owned(),
                ..Said::new(
                    0,
                    What::Result {
                        call: "ghost".to_owned(),
                        text: "boo".to_owned(),
                    },
                )
            };
            said.insert(at, ghost);
            Some(vec![(
                fault,
                "planted".to_owned(),
                Some("ghost".to_owned()),
            )])
        }
        Fault::MissingToolResult => {
            let (id, at, result) = pick_call(numbers, said)?;
            said.remove(result);
            if may_still_run(format, &said[at + 1..]) {
                return Some(vec![]);
            }
            Some(vec![(fault, said[at].id.clone(), Some(id))])
        }
        Fault::MisplacedToolResult => {
            let (id, at, result) = pick_call(numbers, said)?;
            if numbers.below(3) == 0 && put_text_before(format, said, result) {
                return Some(vec![(fault, said[result].id.clone(), Some(id))]);
            }
            let moved = said.remove(result);
            let name = moved.id.clone();
            // Behind a later question where results have to follow at once; else before the call.
            let later = said
                .iter()
                .skip(result)
                .position(|entry| matches!(entry.what, What::User(_)));
            let to = match later {
                Some(later) if is_strict(format) => result + later + 1,
                _ => at,
            };
            said.insert(to, moved);
            Some(vec![(fault, name, Some(id))])
        }
        Fault::DuplicateToolResult => {
            let (id, _, result) = pick_call(numbers, said)?;
            let copy = Said {
                id: "planted".to_owned(),
                ..said[result].clone()
            };
            let to = result + 1 + numbers.below(said.len() - result);
            said.insert(to, copy);
            Some(vec![(fault, "planted".to_owned(), Some(id))])
        }
        Fault::DuplicateToolCallId if uses_ids_again(format) => {
            // Only within one message do ids have to differ there.
            let (id, at, _) = pick_call(numbers, said)?;
            if let What::Assistant { calls, .. } = &mut said[at].what {
                let twin = calls.first()?.clone();
                calls.push(twin);
            }
            Some(vec![(fault, said[at].id.clone(), Some(id))])
        }
        Fault::DuplicateToolCallId => {
            let (first, first_at, _) = pick_call(numbers, said)?;
            let (second, second_at, second_result) = pick_call(numbers, said)?;
            if second_at <= first_at {
                return None;
            }
            if let What::Assistant { calls, .. } = &mut said[second_at].what {
                calls
                    .iter_mut()
                    .filter(|call| call.id == second)
                    .for_each(|call| call.id.clone_from(&first));
            }
            if let What::Result { call, .. } = &mut said[second_result].what {
                call.clone_from(&first);
            }
            // OpenClaw sends calls and results under ids of its own.
            let is_fault = format != Format::OpenClaw;
            let planted = (fault, said[second_at].id.clone(), Some(first));
            Some(is_fault.then_some(planted).into_iter().collect())
        }
        Fault::InvalidLine => plant_half_a_line(format, said, numbers),
        Fault::BrokenParent => {
            if !has_parents(format) {
                return None;
            }
            let at = 1 + numbers.below(said.len() - 1);
            said[at].parent = Some("gone".to_owned());
            Some(vec![(fault, said[at].id.clone(), Some("gone".to_owned()))])
        }
    }
}

/// Whether ids have to differ within one message only.
fn uses_ids_again(format: Format) -> bool {
    matches!(
        format,
        Format::OpenAiChat | Format::LangChain | Format::Goose | Format::Crush
    )
}

/// Where one reply may stand in several entries, the last calls in a row are of one: who has no
/// result yet may still run.
fn may_still_run(format: Format, behind: &[Said]) -> bool {
    let calls = behind.iter().take_while(|entry| {
        matches!(&entry.what, What::Assistant { text, calls } if text.is_empty() && !calls.is_empty())
    });
    let results = &behind[calls.count()..];
    let is_result = |entry: &Said| matches!(entry.what, What::Result { .. });
    let splits = [
        Format::Anthropic,
        Format::Codex,
        Format::OpenAiResponses,
        Format::Goose,
    ];
    splits.contains(&format) && results.iter().all(is_result)
}

/// Puts a text before the result in its message, where a message can hold both and no other result
/// follows.
fn put_text_before(format: Format, said: &mut [Said], result: usize) -> bool {
    let can_hold = matches!(
        format,
        Format::Anthropic | Format::ClaudeCode | Format::OpenClaw
    );
    let next = said.get(result + 1).map(|next| &next.what);
    if !can_hold || matches!(next, Some(What::Result { .. })) {
        return false;
    }
    let What::Result { call, text } = said[result].what.clone() else {
        return false;
    };
    said[result].what = What::TextAndResult { call, text };
    true
}

/// Half a line takes its entry's id with it: who continued it continues nobody.
fn plant_half_a_line(
    format: Format,
    said: &mut [Said],
    numbers: &mut Numbers,
) -> Option<Vec<Planted>> {
    let texts: Vec<usize> = (0..said.len())
        .filter(|at| match &said[*at].what {
            What::User(_) => true,
            What::Assistant { calls, .. } => calls.is_empty(),
            _ => false,
        })
        .collect();
    let at = *texts.get(numbers.below(texts.len()))?;
    said[at].written = Some(1 + numbers.below(60));
    let mut planted = vec![(Fault::InvalidLine, said[at].id.clone(), None)];
    if has_parents(format) && at + 1 < said.len() {
        planted.push((
            Fault::BrokenParent,
            said[at + 1].id.clone(),
            Some(said[at].id.clone()),
        ));
    }
    Some(planted)
}

fn check(format: Format, said: &[Said], mut planted: Vec<Planted>, what: &str) {
    let lines = lines(format, said);
    let text = text(&lines);
    let report = scan_bytes("-", text.as_bytes()).expect("a transcript");
    let mut offset = 0;
    let offsets: Vec<u64> = lines
        .iter()
        .map(|(_, line)| {
            let start = offset;
            offset += line.len() as u64 + 1;
            start
        })
        .collect();
    let mut found: Vec<Planted> = Vec::new();
    for finding in &report.findings {
        let entry = finding.entry as usize;
        assert_eq!(finding.offset, offsets[entry], "{what}");
        found.push((finding.fault, lines[entry].0.clone(), finding.id.clone()));
    }
    found.sort();
    planted.sort();
    assert_eq!(found, planted, "{what}\n{text}");
    for strategy in Strategy::ALL {
        mended(format, &text, strategy, what);
    }
}

/// A provider accepts what a repair makes, and a second repair changes nothing.
fn mended(format: Format, text: &str, strategy: Strategy, what: &str) {
    let Some(repaired) = repair_bytes(text.as_bytes(), strategy).expect("a transcript") else {
        return;
    };
    let repaired = String::from_utf8(repaired).expect("UTF-8");
    let again = if repaired.trim().is_empty() {
        None
    } else {
        repair_bytes(repaired.as_bytes(), strategy).unwrap_or_default()
    };
    assert_eq!(again, None, "{what}: {} twice", strategy.name());
    if strategy != Strategy::RemoveOrphans {
        let accepted = accepts(format, &repaired);
        assert_eq!(
            accepted,
            Ok(()),
            "{what}: {}\n{text}\n->\n{repaired}",
            strategy.name()
        );
    }
}

fn everything(conversations: &[Vec<Said>], name: &str) -> usize {
    let mut cases = 0;
    for format in Format::ALL {
        for (number, conversation) in conversations.iter().enumerate() {
            let own_ids = with_own_ids(conversation);
            let conversation = if uses_ids_again(format) {
                conversation
            } else {
                &own_ids
            };
            check(
                format,
                conversation,
                Vec::new(),
                &format!("{name} {number} {format:?} clean"),
            );
            for fault in Fault::ALL {
                let mut said = own_ids.clone();
                let mut numbers = Numbers((number * 7 + fault as usize) as u64);
                let Some(planted) = plant(fault, format, &mut said, &mut numbers) else {
                    continue;
                };
                cases += 1;
                check(
                    format,
                    &said,
                    planted,
                    &format!("{name} {number} {format:?} {fault:?}"),
                );
            }
        }
    }
    cases
}

#[test]
fn planted_faults_are_the_findings() {
    assert!(everything(&made_up(), "made up") > 200);
}

#[test]
fn planted_faults_are_the_findings_in_real_conversations() {
    let real = trajectories();
    if !real.is_empty() {
        assert!(everything(&real, "real") > 6000);
    }
}

#[test]
fn several_faults_at_once() {
    for format in Format::ALL {
        for (number, conversation) in made_up().iter().enumerate() {
            // Two halves, broken on their own and put together again.
            let mut all = Vec::new();
            let mut planted = Vec::new();
            for (half, fault) in [
                (0, Fault::MissingToolResult),
                (1, Fault::OrphanedToolResult),
                (2, Fault::DuplicateToolResult),
            ] {
                let mut said: Vec<Said> = conversation.clone();
                for entry in &mut said {
                    rename(entry, half);
                }
                let mut numbers = Numbers((number * 3 + half) as u64);
                if let Some(mut more) = plant(fault, format, &mut said, &mut numbers) {
                    for entry in said.iter_mut().filter(|entry| entry.id == "planted") {
                        entry.id = format!("planted-{half}");
                    }
                    for (_, name, _) in more.iter_mut().filter(|planted| planted.1 == "planted") {
                        *name = format!("planted-{half}");
                    }
                    planted.append(&mut more);
                }
                all.append(&mut said);
            }
            check(
                format,
                &all,
                planted,
                &format!("several {number} {format:?}"),
            );
        }
    }
}

/// Real chat completions use ids again in later messages, and are clean; the other formats can not,
/// and with one id for two calls a planted result could belong to either.
fn with_own_ids(conversation: &[Said]) -> Vec<Said> {
    let mut said = conversation.to_vec();
    let mut round = 0;
    for entry in &mut said {
        round += usize::from(matches!(entry.what, What::Assistant { .. }));
        match &mut entry.what {
            What::Assistant { calls, .. } => {
                for call in calls {
                    call.id = format!("{}-{round}", call.id);
                }
            }
            What::Result { call, .. } => *call = format!("{call}-{round}"),
            _ => {}
        }
    }
    said
}

fn rename(entry: &mut Said, half: usize) {
    entry.id = format!("{}-{half}", entry.id);
    match &mut entry.what {
        What::Assistant { calls, .. } => {
            for call in calls {
                call.id = format!("{}-{half}", call.id);
            }
        }
        What::Result { call, .. }
        | What::ResultAndText { call, .. }
        | What::TextAndResult { call, .. } => {
            *call = format!("{call}-{half}");
        }
        What::User(_) | What::Compacted { .. } => {}
    }
}
