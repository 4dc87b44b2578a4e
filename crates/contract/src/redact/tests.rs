use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Redactor, RedactorOptions};

fn redacted(text: &str) -> String {
    Redactor::default().redact_text(text).into_owned()
}

/// What is taken out, and what is left around it.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn tr_15_secrets_are_taken_out() {
    let cases = [
        // Tokens by their looks.
        ("key sk-abcdefghijklmnop1234 end", "key [redacted] end"),
        ("sk-ant-api03-AbCdEfGhIjKlMnOpQrSt-_x", "[redacted]"),
        ("sk-proj-AbCdEfGhIjKlMnOp1234", "[redacted]"),
        ("sk_live_4eC39HqLyjWDarjtT1zdp7dc", "[redacted]"),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "[redacted]"),
        ("(gho_16C7e42F292c6912E7710c838347Ae178B4a)", "([redacted])"),
        (
            "github_pat_11ABCDEFG0123456789_abcdefghijklmnop",
            "[redacted]",
        ),
        ("glpat-abcdefghij0123456789", "[redacted]"),
        ("xoxb-123456789012-abcdefghijkl", "[redacted]"),
        ("id AKIAIOSFODNN7EXAMPLE.", "id [redacted]."),
        ("AIzaSyA-1234567890abcdefghijklmnopqrstu", "[redacted]"),
        (
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
            "[redacted]",
        ),
        (
            "bot 123456789:AAF-abcdefghijklmnopqrstuvwxyz01234",
            "bot [redacted]",
        ),
        (
            "https://hooks.slack.com/services/T000/B000/XXXX",
            "https://hooks.slack.com/services/[redacted]",
        ),
        ("got q8Zk2LmX9vBn4TrW7yHs1PdF6gJc3KaE5u==", "got [redacted]"),
        (
            "Zm9v/YmFyM2Jhejk5cXV4MTIzNDU2Nzg5MGFiY2Rl+Zg=",
            "[redacted]",
        ),
        ("k3j4h5g6f7d8s9a0q1w2e3r4t5y6u7i8o9p0", "[redacted]"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nAAA\n-----END RSA PRIVATE KEY-----\nok",
            "[redacted]\nok",
        ),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl cut off",
            "[redacted]",
        ),
        // Authorization.
        (
            "Authorization: Bearer abc.def-ghi\nHost: x",
            "Authorization: [redacted]\nHost: x",
        ),
        (
            "curl -H 'Authorization: Basic dXNlcjpwYXNz' url",
            "curl -H 'Authorization: [redacted]' url",
        ),
        (
            "sent Bearer mF_9.B5f-4.1JqM today",
            "sent Bearer [redacted] today",
        ),
        ("Basic dXNlcjpwYXNz", "Basic [redacted]"),
        ("Cookie: a=b; c=d\r\nX: y", "Cookie: [redacted]\r\nX: y"),
        ("set-cookie: sid=1; Path=/", "set-cookie: [redacted]"),
        // Pairs.
        ("password=hunter2", "password=[redacted]"),
        ("Password: hunter2, then", "Password: [redacted], then"),
        ("DB_PASSWORD='two words' x", "DB_PASSWORD='[redacted]' x"),
        (
            r#"{"password": "hun\"ter2", "a": 1}"#,
            r#"{"password": "[redacted]", "a": 1}"#,
        ),
        (
            r#"{"body":"{\"token\":\"abc\",\"a\":1}"}"#,
            r#"{"body":"{\"token\":\"[redacted]\",\"a\":1}"}"#,
        ),
        (
            r#"{"credentials": {"pin": "1}2", "b": [1]}, "a": 1}"#,
            r#"{"credentials": [redacted], "a": 1}"#,
        ),
        ("?api_key=k1&page=2", "?api_key=[redacted]&page=2"),
        ("api-key: k1", "api-key: [redacted]"),
        ("apikey=a&b", "apikey=[redacted]"),
        (
            "Server=s;Password=p;w;Database=d",
            "Server=s;Password=[redacted];Database=d",
        ),
        ("client_secret => 'x'", "client_secret => '[redacted]'"),
        (
            "AWS_SECRET_ACCESS_KEY=wJalr",
            "AWS_SECRET_ACCESS_KEY=[redacted]",
        ),
        ("token: Bearer abc", "token: [redacted]"),
        ("token=abc", "token=[redacted]"),
        (
            "private_key: \"cut off\nnext",
            "private_key: \"[redacted]\nnext",
        ),
        ("secret=\u{e4}\u{1f600}x y", "secret=[redacted] y"),
        // Flags.
        (
            "login --password hunter2 -v",
            "login --password [redacted] -v",
        ),
        (
            "x --api-key=abc --token 'd e'",
            "x --api-key=[redacted] --token '[redacted]'",
        ),
        (
            r#"["--password", "hunter2", "x"]"#,
            r#"["--password", "[redacted]", "x"]"#,
        ),
        (
            "mysql -u root -phunter2 db",
            "mysql -u root -p[redacted] db",
        ),
        ("sshpass -p hunter2 ssh h", "sshpass -p [redacted] ssh h"),
        (
            "docker login -u me -p hunter2",
            "docker login -u me -p [redacted]",
        ),
        (
            "curl -u bob:pw https://h",
            "curl -u bob:[redacted] https://h",
        ),
        // URLs and people.
        ("postgres://bob:p@ss@db/x", "postgres://[redacted]@db/x"),
        ("amqp://u:a/b@h/v", "amqp://[redacted]@h/v"),
        ("https://tok:@h/x", "https://[redacted]@h/x"),
        ("mail ann.b+c@mail.example.org.", "mail [redacted email]."),
        ("<jos\u{e9}@example.com>", "<[redacted email]>"),
    ];
    for (text, expected) in cases {
        assert_eq!(redacted(text), expected, "{text}");
        assert_eq!(redacted(expected), expected, "twice: {text}");
    }
}

#[test]
fn ordinary_text_is_left_alone() {
    let cases = [
        "The password is wrong; ask for a new token and keep the secret.",
        "max_tokens=1000 total_tokens: 512 completion_tokens 7",
        "error: unexpected token: identifier",
        "SyntaxError: Unexpected token } in JSON",
        "basic understanding, bearer of bad news, Basic authentication",
        "/usr/local/lib/python3.12/site-packages/requests/adapters.py",
        "crates/reliability/src/idempotency/key/tests.rs:17:5",
        "commit 3f2a91c and 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "integrity sha512-AbC1dEf2GhI3jKl4MnO5pQr6StU7vWx8YzA9bCd0EfG1hIj2KlM3nOp4",
        "req 0197f2c0-1a2b-7c3d-8e4f-5a6b7c8d9e0f",
        "ulid 01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "traceparent 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "12345678901234567890123456789012345678901234567890",
        "getUserAccountByIdentifierAndOrganisationName2",
        "test_tr_08_breaker_opens_after_5_failures_in_120_seconds",
        "my-very-long-branch-name-for-issue-4711-and-4712",
        "PWD=/home/me OLDPWD=/tmp",
        "git@github.com:org/repo.git",
        "npm i react@18.2.0 @types/node@20 actions/checkout@v4",
        "http://localhost:8080/users/@me and https://h:443/a@b",
        "password: null, \"token\": \"\", secret=<SECRET>",
        "--password <PASSWORD> and the --token flag, --secret --verbose",
        "mkdir -p a/b && cp -p x y && grep -u z",
        "sk-learn and task-management-with-a-long-name",
        "author: bob, key: value, sessionKey=agent:main:main",
        "keyFingerprint 3820c3176fcb",
        "12:04:17.123 took 1.5e-7 s, 99.9 %",
        // Files have such names too.
        "wrote /home/me/password/notes.txt and password.txt",
        "could not open \"/home/me/password\": there is no such file or directory",
        "could not read \"config/secrets\": it is a directory",
        "could not write \"token\": the file system does not permit it",
        "cat: /srv/credentials: No such file or directory",
        "ls: cannot open directory '/var/secrets': Permission denied",
        "grep: cookies: Is a directory",
        "src/auth/token:12:5: unused",
        "",
    ];
    let redactor = Redactor::default();
    for text in cases {
        let result = redactor.redact_text(text);
        assert_eq!(result, text);
        assert!(matches!(result, Cow::Borrowed(_)), "{text}");
    }
}

/// What stands beside a path, and is none of what is said of files, is hidden as ever.
#[test]
fn a_secret_behind_a_path_is_a_secret() {
    for (text, expected) in [
        ("user/password: hunter2", "user/password: [redacted]"),
        ("secret/app/token: s.abc9", "secret/app/token: [redacted]"),
        ("vault/password:123456", "vault/password:[redacted]"),
        (
            "https://h/password=no such file",
            "https://h/password=[redacted] such file",
        ),
        (
            "\"secret\": \"permission denied\"",
            "\"secret\": \"[redacted]\"",
        ),
        ("password: noSuchThing", "password: [redacted]"),
    ] {
        assert_eq!(redacted(text), expected);
    }
}

#[test]
fn values_are_redacted_by_name_and_by_looks() {
    let value = json!({
        "apiKey": "x", "Set-Cookie": ["a", "b"], "credentials": {"pin": 1}, "pin_token": 7,
        "password": "", "token": null, "useSecret": true, "max_tokens": 100,
        "deep": [{"x": {"client-secret": "x", "text": "Bearer abc123456"}}],
        "args": ["login", "--password", "hunter2", "--token", "-v"],
        "headers": [["Authorization", "zzz"], ["Accept", "json"]],
        "env": [{"name": "DB_PASSWORD", "value": "v"}, {"name": "PWD", "value": "/x"}],
        "ann@example.com": 1, "bob@example.com": 2,
        "files": ["src/token", "src/main.rs"],
    });
    let expected = json!({
        "apiKey": "[redacted]", "Set-Cookie": "[redacted]", "credentials": "[redacted]",
        "pin_token": "[redacted]",
        "password": "", "token": null, "useSecret": true, "max_tokens": 100,
        "deep": [{"x": {"client-secret": "[redacted]", "text": "Bearer [redacted]"}}],
        "args": ["login", "--password", "[redacted]", "--token", "-v"],
        "headers": [["Authorization", "[redacted]"], ["Accept", "json"]],
        "env": [{"name": "DB_PASSWORD", "value": "[redacted]"}, {"name": "PWD", "value": "/x"}],
        "[redacted email]": 1, "[redacted email] (2)": 2,
        "files": ["src/token", "src/main.rs"],
    });
    let redactor = Redactor::default();
    assert_eq!(redactor.redact_value(&value), expected);
    assert_eq!(redactor.redact_value(&expected), expected);
}

#[test]
fn configured_fields_count_in_values_and_in_text() {
    let redactor = Redactor::new(&RedactorOptions {
        extra_fields: vec!["taxId".to_owned(), "stra\u{df}e".to_owned()],
    });
    let value = json!({"a": [{"TAX_ID": 17, "tax": 1}], "Stra\u{df}e": "x"});
    let expected = json!({"a": [{"TAX_ID": "[redacted]", "tax": 1}], "Stra\u{df}e": "[redacted]"});
    assert_eq!(redactor.redact_value(&value), expected);
    assert_eq!(
        redactor.redact_text("tax-id=17&x=1 a=b"),
        "tax-id=[redacted]&x=1 a=b"
    );
    assert_eq!(
        redactor.redact_text(r#"{"taxID": "17"}"#),
        r#"{"taxID": "[redacted]"}"#
    );
    assert_eq!(redactor.clone().redact_text("tax=17"), "tax=17");
}

#[test]
fn depth_costs_no_stack() {
    let mut value = json!("sk-abcdefghijklmnop1234");
    for _ in 0..200_000 {
        value = Value::Array(vec![value]);
    }
    Redactor::default().redact_value_in_place(&mut value);
    // Dropping a value recurses, which is serde_json's business and not under test here.
    std::mem::forget(value);
}

/// Inputs that made naive scanners quadratic; this would take minutes if it were.
#[test]
fn hostile_texts_take_linear_time() {
    let parts = [
        "password=\"",
        "pwd='",
        "secret: {",
        "\"secret\":{",
        "\"secret\":[",
        "a@a.",
        "://a:",
        "://a:b@",
        "sk-a-",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "bearer ",
        "token ",
        "\\\"token\\\":\\\"",
        "a/",
        "A1",
        " -p",
        "curl -u a:",
        "--token ",
        "token=a&a",
        "cookie:",
        "[redacted]",
        "password=[redacted]",
    ];
    for part in parts {
        let text = part.repeat(200_000 / part.len());
        let once = redacted(&text);
        assert!(redacted(&once) == once, "{part}");
    }
}

/// Pieces that mean something to the redactor, in any order.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        2 => prop::sample::select(&[
            "password", "token", "Authorization", "cookie", "api_key", "=", ":", ": ", "\"", "'", "\\",
            "\\\"", " ", "\n", ",", "&", "{", "}", "[", "]", "@", "://", "--", "-p", "-u", "mysql ", "curl ",
            "[redacted]", "[redacted email]", "[redacted", "Bearer ", "sk-", "ghp_", "eyJ", ".", "/", "<", ">",
            "a@b.co", "u:p@h", "-----BEGIN PRIVATE KEY-----", "git", "null", "\u{e9}", "x1", "12345678:",
        ][..]).prop_map(str::to_owned),
        1 => "[A-Za-z0-9]{1,40}",
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// A secret, and a way to write it down that tells it is one.
fn planted() -> impl Strategy<Value = (String, String)> {
    let named = (
        "[a-zA-Z0-9!$%^*+?~\u{e4}]{6,20}z9",
        prop::sample::select(
            &[
                "password=@",
                "PASSWORD: @",
                "\"apiKey\": \"@\"",
                "'secret' => '@'",
                "--token @",
                "--client-secret=@",
                "x-api-key: @",
                "{\\\"passwd\\\":\\\"@\\\"}",
                "?access_token=@&a=1",
                "Authorization: Bearer @",
                "Cookie: sid=@; b=c",
                "ftp://user:@@host/",
                "sshpass -p @",
                "mysql -p@",
                "curl -u me:@ x",
                "[\"--password\", \"@\"]",
                "DB_PWD=@;x=1",
            ][..],
        ),
    );
    let looks = (
        prop_oneof![
            "sk-[a-z]{4}[0-9][A-Za-z0-9]{20}",
            "gh[po]_[A-Za-z0-9]{36}",
            "github_pat_[A-Za-z0-9_]{30}",
            "xox[bp]-[0-9]{12}-[a-z]{12}",
            "AKIA[A-Z0-9]{16}",
            "AIza[A-Za-z0-9_-]{35}",
            "glpat-[A-Za-z0-9]{20}",
            "eyJ[A-Za-z0-9]{20}\\.[A-Za-z0-9]{20}\\.[A-Za-z0-9_-]{20}",
            "([a-z][0-9][A-Z]){14}",
            "[a-z]{3,9}@[a-z]{3,9}\\.(com|org)",
        ],
        prop::sample::select(&["@", "see @.", "(@)", "\"@\"", "a=@", "https://h/?q=@&x=1"][..]),
    );
    prop_oneof![named, looks].prop_map(|(secret, frame)| {
        // In the frame of a URL the first @ is the secret and the second is the one of the URL.
        (frame.replacen('@', &secret, 1), secret)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redacting_twice_is_redacting_once(text in text()) {
        let once = redacted(&text);
        prop_assert_eq!(redacted(&once), once.clone());
    }

    #[test]
    fn tr_15_planted_secrets_never_survive((line, secret) in planted(), before in "([ a-z]{0,12} )?", after in "( [ a-z]{0,12})?") {
        let text = format!("{before}{line}{after}");
        let result = redacted(&text);
        prop_assert!(!result.contains(&secret), "{} -> {}", text, result);
        prop_assert_eq!(redacted(&result), result.clone());
        let value = json!({"list": [{"text": text, "password": secret}]});
        let value = Redactor::default().redact_value(&value).to_string();
        prop_assert!(!value.contains(&secret), "{}", value);
    }
}

/// A path may be the name of a secret; two paths are a file and another one.
#[test]
fn a_pair_of_a_path_and_a_value_is_a_name_and_its_secret() {
    let redactor = Redactor::default();
    let of = |pair: Value| redactor.redact_value(&pair);
    assert_eq!(
        of(json!(["/prod/db/password", "hunter2"])),
        json!(["/prod/db/password", "[redacted]"])
    );
    let files = json!(["src/auth/password", "src/main.rs"]);
    assert_eq!(of(files.clone()), files);
}
