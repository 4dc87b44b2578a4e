//! Whether words around a tool's name make a wish of it: the languages differ, the tables say how.

use std::sync::LazyLock;

use crate::cues::WordSet;

macro_rules! words {
    ($name:ident, $($word:literal),+ $(,)?) => {
        static $name: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(&[$($word),+]));
    };
}

words!(
    DENIED,
    "not",
    "never",
    "without",
    "cannot",
    "avoid",
    "avoiding",
    "refuse",
    "n't",
    "dont",
    "cant",
    "wont",
    "no need",
    "needn't",
    "needless",
    "unnecessary",
    "rather than",
    "instead of",
    "forbidden",
    "forbids",
    "nothing to",
    "neither",
    "nor",
    "no longer",
    "no point",
    "skip",
    "skipping",
    "hardly",
    "against",
    "nicht",
    "kein",
    "keine",
    "keinen",
    "keiner",
    "ohne",
    "niemals",
    "statt",
    "anstatt",
    "unnötig",
    "pas",
    "jamais",
    "sans",
    "inutile",
    "plutôt que",
    "au lieu de",
    "sin",
    "nunca",
    "en vez de",
    "no hace falta",
    "no necesito",
    "tampoco",
    "innecesario",
    "não",
    "sem",
    "em vez de",
    "desnecessário",
    "non",
    "senza",
    "niet",
    "geen",
    "zonder",
    "ikke",
    "ingen",
    "aldri",
    "uten",
    "unødvendig",
    "istedenfor",
    "inte",
    "utan",
    "不",
    "没",
    "無",
    "无",
    "别",
    "勿",
    "ない",
    "せず",
    "ません",
    "せずに",
    "ずに",
    " не ",
    " нет ",
    " без ",
    "нельзя",
    "незачем",
    " ни ",
    "не нужно",
);
words!(
    PAST,
    "used",
    "called",
    "tried",
    "did",
    "had",
    "have",
    "has",
    "was",
    "were",
    "already",
    "earlier",
    "previously",
    "having",
    "finished",
    "result of",
    "results of",
    "output of",
    "outcome of",
    "returned",
    "after",
    "failed",
    "made",
    "yesterday",
    "last time",
    "my search",
    "so far",
    "done",
    "issued",
    "invoked",
    "searched",
    "fetched",
    "opened",
    "habe",
    "haben",
    "hat",
    "hatte",
    "wurde",
    "wurden",
    "bereits",
    "schon",
    "j'ai",
    "a été",
    "avons",
    "déjà",
    "usé",
    "busqué",
    "leí",
    "ejecuté",
    "había",
    "fue",
    "usei",
    "busquei",
    "já",
    "foi",
    "har",
    "hadde",
    "ble",
    "brukte",
    "allerede",
    "已",
    "用过",
    "了",
    "刚才",
    "結果",
    "した",
    "ました",
    "すでに",
    "уже",
    "вызвал",
    "использовал",
    "результат",
);
/// What puts off or puts to choice, wherever it stands before the name.
const UNREAL: &[&str] = &[
    "if",
    "unless",
    "could",
    "might",
    "maybe",
    "perhaps",
    "suppose",
    "supposing",
    "imagine",
    "would have",
    "would be",
    "in case",
    "were i",
    "had i",
    "were it",
    "should i",
    "should we",
    "in theory",
    "perfect world",
    "options",
    "option",
    "alternatives",
    "one way",
    "whether",
    "until",
    "whenever",
    "i can",
    "i may",
    "we may",
    "it may",
    "may need",
    "what would",
    "alternatively",
    "ideally",
    "otherwise",
    "either",
    "wenn",
    "falls",
    "würde",
    "könnte",
    "müsste",
    "vielleicht",
    "sofern",
    "pourrait",
    "pourrais",
    "peut-être",
    "si",
    "podría",
    "podríamos",
    "quizás",
    "tal vez",
    "se o",
    "se a",
    "poderia",
    "talvez",
    "caso",
    "hvis",
    "dersom",
    "kunne",
    "kanskje",
    "om man",
    "ville",
    "如果",
    "要是",
    "假如",
    "也许",
    "可能",
    "もし",
    "かも",
    "なら",
    "если",
    " бы ",
    "возможно",
    "может быть",
    "можно было",
];
static IS_UNREAL: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(UNREAL));
words!(
    UNREAL_BEHIND,
    "unless",
    "if needed",
    "if necessary",
    "if they",
    "if the",
    "if you",
    "if it",
    "would give",
    "would help",
    "would be",
    "might help",
    "falls",
    "sofern",
    "hvis",
    "dersom",
    "если",
    "のだが",
    "ところだが",
);
words!(
    TALK,
    "example",
    "examples",
    "e.g.",
    "for instance",
    "such as",
    "means",
    "mean",
    "meaning",
    "how to",
    "syntax",
    "looks like",
    "look like",
    "todo",
    "tip",
    "note",
    "warning",
    "advice",
    "usage",
    "named",
    "titled",
    "the word",
    "the phrase",
    "the string",
    "the text",
    "the line",
    "the comment",
    "the description",
    "there is a tool",
    "tools:",
    "describes",
    "the call",
    "a call",
    "this call",
    "is called",
    "beispiel",
    "bedeutet",
    "exemple",
    "signifie",
    "ejemplo",
    "significa",
    "exemplo",
    "eksempel",
    "betyr",
    "例子",
    "例如",
    "意思",
    "例えば",
    "например",
    "пример",
    "означает",
    "用户问",
    "supposed call",
    "would look",
);
words!(
    REPORTS,
    "says",
    "said",
    "states",
    "stated",
    "reads",
    "wrote",
    "writes",
    "tells",
    "told",
    "asks",
    "asked",
    "suggests",
    "recommends",
    "recommend",
    "contains",
    "contained",
    "ends with",
    "claims",
    "instructs",
    "orders",
    "wants me",
    "pasted",
    "sagt",
    "schreibt",
    "steht",
    "dit",
    "écrit",
    "contient",
    "dice",
    "escribe",
    "diz",
    "sier",
    "skriver at",
    "står det",
    "写着",
    "说",
    "пишет",
    "говорит",
    "написано",
);
words!(
    OTHERS,
    "the user",
    "user",
    "users",
    "they",
    "he",
    "she",
    "you",
    "your",
    "docs",
    "page",
    "readme",
    "someone",
    "somebody",
    "nobody",
    "one",
    "everybody",
    "everyone",
    "people",
    "colleague",
    "script",
    "program",
    "agent",
    "bot",
    "model",
    "assistant",
    "developers",
    "the test",
    "this command",
    "it",
    "the server",
    "der nutzer",
    "l'utilisateur",
    "el usuario",
    "brukeren",
    "用户",
    "пользователь",
);
words!(
    OWN, "i", "i'll", "i'd", "i'm", "we", "we'll", "we'd", "we're", "let's", "lets", "let me",
    "let us", "me", "my", "need to", "must", "have to", "going to", "ich", "wir", "je", "j'",
    "nous", "on va", "yo", "voy a", "vamos", "vou", "jeg", "vi", "la oss", "我", "我们", "私",
    "мы", "так",
);
words!(
    PLANNED,
    "i'll",
    "we'll",
    "i will",
    "we will",
    "let's",
    "lets",
    "let me",
    "let us",
    "need to",
    "needs to",
    "must",
    "should",
    "have to",
    "going to",
    "want to",
    "will",
    "shall",
    "now",
    "next",
    "so",
    "then",
    "so let",
    "we call",
    "i call",
    "do",
    "to use",
    "just",
    "therefore",
    "jetzt",
    "also",
    "dann",
    "muss",
    "werde",
    "rufe",
    "zuerst",
    "donc",
    "faut",
    "vais",
    "va",
    "ahora",
    "voy",
    "vamos",
    "vou",
    "agora",
    "må",
    "skal",
    "nå",
    "så",
    "需要",
    "先",
    "要",
    "现在",
    "する",
    "します",
    "しよう",
    "надо",
    "нужно",
    "сейчас",
    "теперь",
);

/// What stands around one name: in lower case, without what is in marks.
pub(super) struct Around<'a> {
    /// The clause before the name.
    pub(super) clause: &'a str,
    /// The whole sentence before the name.
    pub(super) before: &'a str,
    /// The sentence behind the name.
    pub(super) after: &'a str,
    /// What follows the last literal of the name.
    pub(super) behind: &'a str,
    /// Whether the name can be nothing but a tool's.
    pub(super) distinct: bool,
}

/// What speaks against a wish, when something does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Against {
    Denied,
    Past,
    Unreal,
    Talk,
    Foreign,
    Told,
}

pub(super) fn against(around: &Around<'_>) -> Option<Against> {
    let Around {
        clause,
        before,
        after,
        behind,
        distinct,
    } = *around;
    if is_denied(clause) || is_denied_behind(after) {
        return Some(Against::Denied);
    }
    if tells_outcome(behind) || is_settled(after) {
        return Some(Against::Told);
    }
    if is_unreal(before, after) {
        return Some(Against::Unreal);
    }
    let plans = PLANNED.is_in(clause);
    if PAST.is_in(&without_have_to(clause)) && !(plans && distinct) || clause_says_past(clause) {
        return Some(Against::Past);
    }
    let own = OWN.is_in(clause);
    if !own && (TALK.is_in(clause) || TALK.is_in(before) && !plans) || TALK.is_in(after) && !plans {
        return Some(Against::Talk);
    }
    let turned = own || clause.len() < before.len() && distinct && plans;
    if !turned && (REPORTS.is_in(before) || OTHERS.is_in(clause) && !distinct) {
        return Some(Against::Foreign);
    }
    None
}

/// "have to" is no past.
fn without_have_to(clause: &str) -> String {
    clause
        .replace("have to", "must")
        .replace("had better", "must")
        .replace("has to", "must")
        .replace("have the", "the")
        .replace("have a", "a")
        .replace("have both", "both")
        .replace("after that", "then")
        .replace("after this", "then")
}

fn clause_says_past(clause: &str) -> bool {
    let words: Vec<&str> = clause.split_whitespace().rev().take(3).collect();
    // "I read …", "I first read …": who plans says so.
    matches!(
        words.as_slice(),
        ["i", ..] | ["first" | "then" | "also" | "just" | "already", "i", ..]
    ) || matches!(words.first(), Some(&("was" | "were" | "been")))
}

fn is_denied(clause: &str) -> bool {
    let words = clause.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    let mut last = words.filter(|word| !word.is_empty()).rev();
    // "no web_search", "no need for".
    let no = last
        .by_ref()
        .take(3)
        .any(|word| matches!(word, "no" | "nein" | "nei" | "kein"));
    no || clause.contains("n't ") || clause.contains("n’t ") || DENIED.is_in(clause)
}

/// "web_search is not needed", "web_search、不要".
fn is_denied_behind(after: &str) -> bool {
    let head = first_words(after, 5);
    [
        "isn't",
        "is not",
        "not needed",
        "won't",
        "can't",
        "cannot",
        "unnecessary",
        "overkill",
        "ist nicht",
        "nicht nötig",
        "n'est pas",
        "no es",
        "não é",
        "er ikke",
        "不需要",
        "不用",
        "不必",
        "は不要",
        "は使わ",
        "не нуж",
        "isnt",
        "wouldn't",
        "doesn't",
    ]
    .iter()
    .any(|word| head.contains(word))
}

/// Verbs that tell what a call gave, right behind it.
const OUTCOMES: &[&str] = &[
    "gave",
    "gives",
    "give",
    "returned",
    "returns",
    "showed",
    "shows",
    "showing",
    "says",
    "said",
    "printed",
    "prints",
    "failed",
    "fails",
    "succeeded",
    "done",
    "finished",
    "ok",
    "came",
    "comes",
    "went",
    "took",
    "takes",
    "exited",
    "was",
    "were",
    "is",
    "are",
    "has",
    "had",
    "did",
    "does",
    "found",
    "finds",
    "worked",
    "works",
    "ran",
    "timed",
    "turned",
    "yielded",
    "yields",
    "produced",
    "reported",
    "reports",
    "revealed",
    "reveals",
    "would",
    "could",
    "might",
    "may",
    "can",
    "complete",
    "completed",
    "told",
    "tells",
    "reads",
    "contains",
    "lists",
    "listed",
    "already",
    "hit",
    "errored",
    "threw",
    "passed",
    "confirmed",
    "confirms",
    "opened",
    "loaded",
    "ergab",
    "ergibt",
    "hat",
    "wurde",
    "liefert",
    "lieferte",
    "zeigt",
    "zeigte",
    "war",
    "ist",
    "a",
    "donne",
    "donné",
    "retourné",
    "renvoyé",
    "est",
    "devolvió",
    "dio",
    "mostró",
    "fue",
    "da",
    "dice",
    "retornou",
    "deu",
    "mostrou",
    "foi",
    "ga",
    "gav",
    "viste",
    "viser",
    "var",
    "ble",
    "er",
    "feilet",
    "returnerte",
    "sier",
    "вернул",
    "показал",
    "дал",
    "показывает",
    "нашёл",
    "was:",
    "saved",
    "sent",
    "unknown",
];
/// The same where words have no blanks between them.
const OUTCOME_PARTS: &[&str] = &[
    "返回",
    "结果显示",
    "显示",
    "の結果",
    "が返",
    "はもう",
    "失败",
    "成功",
];
/// Small words before such a verb.
const BEFORE_OUTCOME: &[&str] = &[
    "just", "then", "only", "both", "all", "already", "also", "command", "call", "tool", "now",
    "file",
];

/// Whether what follows a call tells how it went.
pub(super) fn tells_outcome(behind: &str) -> bool {
    let rest = behind.trim_start_matches(|letter: char| {
        letter.is_whitespace() || matches!(letter, ')' | '"' | '*' | '`')
    });
    if rest.starts_with("=>")
        || rest.starts_with('✓')
        || rest.starts_with('✔')
        || rest.starts_with('→') && rest.contains(|letter: char| letter.is_ascii_digit())
    {
        return true;
    }
    let said = rest.trim_start_matches(['(', ',', ':', '-', '–', '—', ' ']);
    let adverb = said.len() == rest.len();
    let mut words = said
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .filter(|word| !word.is_empty());
    let mut word = words.next().unwrap_or_default();
    if BEFORE_OUTCOME.contains(&word)
        && !OUTCOMES.contains(&words.clone().next().unwrap_or_default())
    {
        word = "";
    } else if BEFORE_OUTCOME.contains(&word) {
        word = words.next().unwrap_or_default();
    }
    let finished = matches!(
        word,
        "done"
            | "ok"
            | "failed"
            | "succeeded"
            | "returned"
            | "gave"
            | "finished"
            | "complete"
            | "completed"
    );
    (adverb && OUTCOMES.contains(&word))
        || finished
        || adverb
            && OUTCOME_PARTS
                .iter()
                .any(|part| first_words(rest, 3).contains(part))
}

/// "exec git pull ok", "web_search … → done".
fn is_settled(after: &str) -> bool {
    let end = after.trim_end_matches(['.', '!', ' ']);
    let last = end.rsplit(char::is_whitespace).next().unwrap_or_default();
    matches!(
        last,
        "ok" | "ok)" | "✓" | "✔" | "✅" | "passed" | "failed" | "done"
    ) && !end.is_empty()
        || after.contains("结果显示")
}

fn is_unreal(before: &str, after: &str) -> bool {
    let lasting = after_turn(before);
    IS_UNREAL.is_in(&without_asking(lasting))
        || UNREAL_BEHIND.is_in(after)
        || (lasting.contains("'d ") || lasting.contains("would ") || lasting.contains("was to "))
            && [" but ", ", but", " however"]
                .iter()
                .any(|turn| after.contains(turn))
        || lasting.trim_end().ends_with(" or")
}

/// "to see if it is there" sets no condition.
fn without_asking(text: &str) -> String {
    let mut text = text.to_owned();
    for asking in [
        "see if ",
        "check if ",
        "know if ",
        "tell if ",
        "find out if ",
        "see whether ",
        "check whether ",
        "know whether ",
        "verify whether ",
        "even if ",
        "as if ",
    ] {
        text = text.replace(asking, "see ");
    }
    text
}

/// What stands behind the last turn of a sentence: what was only thought of before it counts no more.
fn after_turn(before: &str) -> &str {
    const TURNS: &[&str] = &[
        " but ",
        " so ",
        " aber ",
        " also ",
        " mais ",
        " donc ",
        " pero ",
        " así que ",
        " mas ",
        " então ",
        " men ",
        " så ",
        " но ",
        " поэтому ",
        "但",
        "所以",
        "だから",
        "ので",
        "; ",
        "；",
        " instead ",
        "— ",
        " no, ",
    ];
    let from = TURNS
        .iter()
        .filter_map(|turn| before.rfind(turn).map(|at| at + turn.len()))
        .max();
    from.map_or(before, |from| &before[from..])
}

/// Where the clause begins that the end of this text belongs to.
pub(super) fn clause_start(before: &str) -> usize {
    let from = last_bound(before, before.len());
    let clause = before[from..].trim();
    let is_item = clause.is_empty() || LINKERS.contains(&clause);
    if from == 0 || !is_item {
        return from;
    }
    // The item of a list: what is said of the first one is said of all.
    let end = before[..from]
        .trim_end_matches([' ', ',', '，', '、'])
        .len();
    let first = last_bound(before, end);
    let said = before[first..end].trim();
    if before[end..from].contains([',', '，', '、']) && said.split_whitespace().count() > 1 {
        first
    } else {
        from
    }
}

const LINKERS: &[&str] = &[
    "and", "or", "nor", "und", "oder", "et", "ou", "y", "o", "e", "og", "eller", "и", "или", "和",
    "或",
];

fn last_bound(text: &str, end: usize) -> usize {
    const BOUNDS: &[&str] = &[
        ", ",
        ",",
        "; ",
        ": ",
        " — ",
        " – ",
        " - ",
        "... ",
        "… ",
        " but ",
        " so ",
        " aber ",
        " mais ",
        " pero ",
        " mas ",
        " men ",
        " но ",
        " then ",
        "，",
        "；",
        "：",
        "、",
        "— ",
        ") ",
        " because ",
        " since ",
    ];
    let ends = |bound: &&str| text[..end].rfind(*bound).map(|at| at + bound.len());
    BOUNDS.iter().filter_map(ends).max().unwrap_or(0)
}

/// So many words of a text.
pub(super) fn first_words(text: &str, many: usize) -> &str {
    let mut end = 0;
    for _ in 0..many {
        let rest = &text[end..];
        let lead = rest.len() - rest.trim_start().len();
        let word = rest[lead..]
            .find(char::is_whitespace)
            .unwrap_or(rest.len() - lead);
        end += lead + word;
    }
    &text[..end]
}

/// Words with which somebody decides, right before a name.
const DECIDES: &[&str] = &[
    "so",
    "now",
    "then",
    "next",
    "first",
    "second",
    "third",
    "finally",
    "lastly",
    "try",
    "just",
    "again",
    "instead",
    "ok",
    "okay",
    "better",
    "only",
    "no",
    "yes",
    "and",
    "go",
    "also",
    "simply",
    "alright",
    "right",
    "well",
    "thus",
    "hence",
    "therefore",
    "good",
    "great",
    "fine",
    "hmm",
    "both",
    "or rather",
    "rather",
    "best",
    "step",
    "action",
    "do",
    "plan",
    "call",
    "also,",
    "dann",
    "jetzt",
    "zuerst",
    "erst",
    "ok,",
    "donc",
    "puis",
    "ensuite",
    "d'abord",
    "luego",
    "ahora",
    "primero",
    "después",
    "agora",
    "depois",
    "primeiro",
    "først",
    "så",
    "nå",
    "deretter",
    "先",
    "然后",
    "再",
    "请",
    "次に",
    "まず",
    "сначала",
    "затем",
    "потом",
    "теперь",
    "итак",
    "afterwards",
    "actually",
    "please",
    "let's",
    "still",
];
/// Words right before a name that make an instrument of it.
const CALLS: &[&str] = &[
    "use",
    "using",
    "call",
    "calling",
    "invoke",
    "invoking",
    "do",
    "doing",
    "with",
    "via",
    "through",
    "tool",
    "function",
    "by",
    "issue",
    "mit",
    "avec",
    "con",
    "com",
    "med",
    "через",
    "via",
    "using:",
    "per",
    "mittels",
    "benutze",
    "nutze",
    "verwende",
    "rufe",
    "aufrufen",
    "utilise",
    "utiliser",
    "appelle",
    "appeler",
    "lance",
    "lancer",
    "uso",
    "usar",
    "usaré",
    "llamar",
    "llamo",
    "ejecutar",
    "uso",
    "chamar",
    "chamo",
    "bruk",
    "bruker",
    "bruke",
    "kaller",
    "kalle",
    "kjør",
    "kjøre",
    "sender",
    "send",
    "sende",
    "вызову",
    "вызываю",
    "вызываем",
    "вызвать",
    "использую",
    "использовать",
    "trigger",
    "run",
    "running",
    "fire",
    "execute",
    "try",
    "rufen",
    "gebruik",
    "använder",
    "använd",
    "uses",
    "anrop",
    "usando",
    "usiamo",
    "gebruiken",
    "need",
];
const CALLS_UNSPACED: &[&str] = &[
    "用",
    "使用",
    "调用",
    "通过",
    "利用",
    "运行",
    "执行",
    "呼叫",
    "使って",
    "で",
];
/// The same where the name comes first.
const CALLED_BEHIND: &[&str] = &[
    "で",
    "を使",
    "を呼",
    "を実行",
    "工具",
    "来",
    "ツール",
    "tool",
    "-tool",
    "function",
    "aufrufen",
    "verwenden",
    "benutzen",
    "nutzen",
    "命令",
    "を用",
];
const PLANS: &[&str] = &[
    "let's",
    "lets",
    "let me",
    "let us",
    "i'll",
    "i’ll",
    "i will",
    "we'll",
    "we’ll",
    "we will",
    "i must",
    "we must",
    "i need to",
    "we need to",
    "need to",
    "i should",
    "we should",
    "i have to",
    "we have to",
    "i'm going to",
    "we're going to",
    "going to",
    "i want to",
    "we want to",
    "best to",
    "better to",
    "time to",
    "step is to",
    "thing is to",
    "plan is to",
    "idea is to",
    "move is to",
    "gonna",
    "we can",
    "i still need to",
    "ich werde",
    "wir",
    "on va",
    "vamos a",
    "voy a",
    "vou",
    "jeg må",
    "jeg skal",
    "vi må",
    "la oss",
    "i'd",
    "we'd",
    "i would",
    "we would",
    "must",
    "should",
    "i'd like to",
    "让我",
    "我来",
    "надо",
    "нужно",
    "давай",
];

/// How a name stands in its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stand {
    /// As any word does.
    Word,
    /// Where an order begins.
    Order,
    /// Behind words that make a plan of it.
    Planned,
    /// Behind a word that calls it, or with a mark of a call.
    Called,
}

pub(super) fn stand(before: &str, after: &str) -> Stand {
    let said = before.trim_end_matches(|letter: char| {
        letter.is_whitespace() || matches!(letter, '"' | '*' | '`' | '(')
    });
    let bare = said
        .trim_end_matches([
            ',', ':', '-', '–', '—', '.', '>', '→', '!', '，', '：', '；',
        ])
        .trim_end();
    let behind = after.trim_start_matches(['*', '`', '"', ' ', '-']);
    if CALLED_BEHIND.iter().any(|word| behind.starts_with(word)) {
        return Stand::Called;
    }
    let without_article = [
        "the",
        "a",
        "our",
        "my",
        "le",
        "la",
        "l'outil",
        "el",
        "den",
        "das",
        "die",
        "o",
        "tool",
        "outil",
        "verktøyet",
    ]
    .iter()
    .find_map(|article| {
        said.strip_suffix(article)
            .filter(|head| head.ends_with(' '))
    })
    .map_or(said, str::trim_end);
    let last = |text: &'_ str| {
        text.rsplit(|letter: char| letter.is_whitespace() || letter == '(')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let word = last(without_article);
    if CALLS.contains(&word.as_str()) || CALLS_UNSPACED.iter().any(|word| said.ends_with(word)) {
        return Stand::Called;
    }
    let ends_with = |text: &str, words: &&str| {
        text.strip_suffix(*words).is_some_and(|head| {
            head.is_empty() || !head.ends_with(|letter: char| letter.is_ascii_alphanumeric())
        })
    };
    let adverb = [
        "now", "just", "then", "first", "also", "quickly", "simply", "next",
    ]
    .iter()
    .find_map(|adverb| bare.strip_suffix(adverb))
    .map_or(bare, str::trim_end);
    if PLANS
        .iter()
        .any(|plan| ends_with(bare, plan) || ends_with(adverb, plan))
    {
        return Stand::Planned;
    }
    let closed = bare.len() < said.len() && !said.ends_with(',') && !said.ends_with('，');
    let number = bare
        .trim_end_matches(|letter: char| letter.is_ascii_digit())
        .trim_end();
    if bare.is_empty()
        || number.is_empty()
        || closed
        || DECIDES.contains(&last(bare).as_str())
        || last(bare) == "tool"
        || last(number) == "step"
    {
        return Stand::Order;
    }
    Stand::Word
}

/// Whether words make a plan.
pub(super) fn is_planned(text: &str) -> bool {
    PLANNED.is_in(text) || OWN.is_in(text)
}

/// Whether the name behind these words is what is called or used, and not what something is done with.
pub(super) fn is_called_by_name(before: &str) -> bool {
    const BY_NAME: &[&str] = &[
        "use",
        "using",
        "call",
        "calling",
        "invoke",
        "invoking",
        "mit",
        "avec",
        "con",
        "com",
        "med",
        "через",
        "via",
        "open",
        "do",
    ];
    let said = before.trim_end();
    let said = ["the", "a", "an"]
        .iter()
        .find_map(|article| {
            said.strip_suffix(article)
                .filter(|head| head.ends_with(' '))
        })
        .map_or(said, str::trim_end);
    let last = said.rsplit(char::is_whitespace).next().unwrap_or_default();
    BY_NAME.contains(&last) || CALLS_UNSPACED.iter().any(|word| said.ends_with(word))
}
