//! Which token a route asks for. Every route names its access where it is declared.

use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use http::header::{AUTHORIZATION, HeaderMap};
use parking_lot::RwLock;

use crate::front::one;
use crate::respond::{Refusal, whole_seconds};
use crate::strikes::{Strikes, network};
use crate::token::Token;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody who can reach the server.
    Open,
    /// Everybody on this machine; on others, whoever has one of the tokens.
    Monitor,
    /// Everybody on this machine, unless keys for clients were configured; then, and on other
    /// machines, whoever has one of them or the token for tool calls.
    Client,
    /// Whoever has the token for tool calls.
    Caller,
    /// Whoever has the admin token.
    Admin,
    /// Whoever has the approver's token: nobody else answers for people, not even the admin.
    Approver,
}

impl Access {
    /// Whether people answer or operate here, so that no command may, whatever it has found.
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self, Self::Admin | Self::Approver)
    }
}

/// The tokens of one server.
#[derive(Debug)]
pub struct Tokens {
    /// Lets tools be called.
    pub caller: Token,
    /// Lets the reliability layer be looked at and changed.
    pub admin: Token,
    /// Lets approvals be looked at and answered.
    pub approver: Token,
    /// Each lets one client talk to the model.
    pub clients: Vec<Token>,
}

/// Who asks for a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Client {
    /// Somebody on this machine who showed no key.
    Anyone(IpAddr),
    /// Whoever has the key with this fingerprint.
    Key(String),
    /// Whoever has the token for tool calls, with its fingerprint.
    Caller(String),
}

impl Client {
    /// The name in logs, records and runs. Keys are in none of them.
    pub fn name(&self) -> String {
        match self {
            Self::Anyone(_) => "local".to_owned(),
            Self::Key(print) => format!("key-{print}"),
            Self::Caller(print) => format!("caller-{print}"),
        }
    }

    /// Whose requests count together.
    pub(crate) fn counted_as(&self) -> String {
        match self {
            Self::Anyone(peer) => network(*peer).to_string(),
            Self::Key(_) | Self::Caller(_) => self.name(),
        }
    }

    /// Whether a run of that client is any of its business.
    pub(crate) fn may_see(&self, owner: &str) -> bool {
        matches!(self, Self::Caller(_)) || self.name() == owner
    }
}

/// Whether the server can be reached from other machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Only from this one.
    Local,
    /// From others too.
    Network,
}

/// Asks for tokens.
#[derive(Debug)]
pub struct Gate {
    tokens: Tokens,
    /// The keys of clients as they are now.
    clients: RwLock<Arc<[Token]>>,
    strikes: Strikes,
    reach: Reach,
}

impl Gate {
    /// Lets the bearers of these tokens in.
    pub fn new(mut tokens: Tokens, wrong_tokens_max: u32, reach: Reach) -> Self {
        Self {
            clients: RwLock::new(std::mem::take(&mut tokens.clients).into()),
            tokens,
            strikes: Strikes::new(wrong_tokens_max),
            reach,
        }
    }

    /// From now on the clients with these keys are let in, and no others.
    pub fn exchange_clients(&self, keys: Vec<Token>) {
        *self.clients.write() = keys.into();
    }

    /// The tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Lets a request in, or says why not.
    pub fn check(&self, access: Access, headers: &HeaderMap, peer: IpAddr) -> Result<(), Refusal> {
        let (caller, admin) = (&self.tokens.caller, &self.tokens.admin);
        match (access, self.reach) {
            (Access::Open, _) | (Access::Monitor, Reach::Local) => Ok(()),
            (Access::Monitor, Reach::Network) => self.ask(&[caller, admin], headers, peer),
            (Access::Client, _) => self.client(headers, peer).map(|_| ()),
            (Access::Caller, _) => self.ask(&[caller], headers, peer),
            (Access::Admin, _) => self.ask(&[admin], headers, peer),
            (Access::Approver, _) => self.ask(&[&self.tokens.approver], headers, peer),
        }
    }

    /// Who asks for a completion, or why nobody is let in.
    pub fn client(&self, headers: &HeaderMap, peer: IpAddr) -> Result<Client, Refusal> {
        let (caller, keys) = (&self.tokens.caller, self.clients.read().clone());
        let open = self.reach == Reach::Local && keys.is_empty();
        if !open {
            let all: Vec<&Token> = std::iter::once(caller).chain(&*keys).collect();
            self.ask(&all, headers, peer)?;
        }
        // All of them are compared, always.
        let presented = bearer(headers)?.unwrap_or_default();
        let mut found = Client::Anyone(peer);
        for key in keys.iter().filter(|key| key.matches(presented)) {
            found = Client::Key(key.fingerprint());
        }
        if caller.matches(presented) {
            found = Client::Caller(caller.fingerprint());
        }
        Ok(found)
    }

    fn ask(&self, tokens: &[&Token], headers: &HeaderMap, peer: IpAddr) -> Result<(), Refusal> {
        // See `strikes` for why a peer on this machine is still listened to.
        if !peer.is_loopback()
            && let Some(wait) = self.strikes.wait(peer)
        {
            return Err(too_many(wait));
        }
        let Some(presented) = bearer(headers)? else {
            // Nothing was guessed, so nothing is counted.
            return Err(unauthorized());
        };
        // All of them are compared, always.
        let fits = tokens
            .iter()
            .fold(false, |fits, token| token.matches(presented) | fits);
        if fits {
            return Ok(());
        }
        let wait = self.strikes.wait(peer);
        self.strikes.count(peer);
        Err(wait.map_or_else(unauthorized, too_many))
    }
}

/// The token a request presents.
fn bearer(headers: &HeaderMap) -> Result<Option<&[u8]>, Refusal> {
    const SCHEME: &[u8] = b"bearer ";
    Ok(one(headers, &AUTHORIZATION)?.and_then(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(SCHEME.len())?;
        scheme
            .eq_ignore_ascii_case(SCHEME)
            .then(|| token.trim_ascii())
    }))
}

fn unauthorized() -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized")
}

fn too_many(wait: std::time::Duration) -> Refusal {
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    Refusal::new(
        StatusCode::TOO_MANY_REQUESTS,
        "rate_limited",
        "Too many failed authentication attempts. Please try again later.",
    )
    .after(whole_seconds(wait_ms))
}

#[cfg(test)]
mod tests {
    use http::header::HeaderValue;

    use super::*;

    const CALLER: &str = "caller-token-caller-token-caller-token";
    const ADMIN: &str = "admin-token-admin-token-admin-token!";
    const APPROVER: &str = "approver-token-approver-token-approver";

    fn gate(reach: Reach) -> Gate {
        let tokens = Tokens {
            caller: Token::chosen(CALLER).expect("fits"),
            admin: Token::chosen(ADMIN).expect("fits"),
            approver: Token::chosen(APPROVER).expect("fits"),
            clients: Vec::new(),
        };
        Gate::new(tokens, 3, reach)
    }

    fn with(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(
            AUTHORIZATION,
            HeaderValue::from_str(value).expect("a value"),
        );
        headers
    }

    fn peer(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn status(answer: Result<(), Refusal>) -> u16 {
        answer.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[tokio::test(start_paused = true)]
    async fn each_token_opens_its_own_doors_only() {
        let (here, none) = (peer("127.0.0.1"), HeaderMap::new());
        let (caller, admin) = (
            with(&format!("Bearer {CALLER}")),
            with(&format!("bearer  {ADMIN}")),
        );
        for (reach, access, expected) in [
            (Reach::Local, Access::Open, [200, 200, 200]),
            (Reach::Local, Access::Monitor, [200, 200, 200]),
            (Reach::Local, Access::Client, [200, 200, 200]),
            (Reach::Network, Access::Client, [401, 200, 401]),
            (Reach::Local, Access::Caller, [401, 200, 401]),
            (Reach::Local, Access::Admin, [401, 401, 200]),
            (Reach::Network, Access::Open, [200, 200, 200]),
            (Reach::Network, Access::Monitor, [401, 200, 200]),
        ] {
            let gate = gate(reach);
            let found =
                [&none, &caller, &admin].map(|headers| status(gate.check(access, headers, here)));
            assert_eq!(found, expected, "{reach:?} {access:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_is_known_by_its_key() {
        let key = Token::chosen("a-key-of-a-client-a-key-of-a-client").expect("fits");
        let print = key.fingerprint();
        let gate = gate(Reach::Local);
        let here = peer("127.0.0.1");
        let wrong = with("Bearer local");
        assert_eq!(gate.client(&wrong, here), Ok(Client::Anyone(here)));
        let caller = gate.client(&with(&format!("Bearer {CALLER}")), here);
        assert!(matches!(caller, Ok(Client::Caller(_))));
        let right = with(&key.bearer());
        gate.exchange_clients(vec![key]);
        assert_eq!(gate.client(&right, here), Ok(Client::Key(print)));
        // Once there are keys, everybody needs one.
        assert_eq!(status(gate.client(&wrong, here).map(|_| ())), 401);
        assert_eq!(
            status(gate.client(&HeaderMap::new(), here).map(|_| ())),
            401
        );
    }

    #[tokio::test(start_paused = true)]
    async fn other_schemes_and_two_headers_are_no_token() {
        let gate = gate(Reach::Local);
        let here = peer("127.0.0.1");
        for value in [
            "",
            "Bearer",
            CALLER,
            &format!("Basic {CALLER}"),
            &format!("Token {CALLER}"),
        ] {
            assert_eq!(
                status(gate.check(Access::Caller, &with(value), here)),
                401,
                "{value}"
            );
        }
        let mut two = with(&format!("Bearer {CALLER}"));
        two.append(AUTHORIZATION, HeaderValue::from_static("Bearer other"));
        assert_eq!(status(gate.check(Access::Caller, &two, here)), 400);
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_are_rate_limited_by_peer() {
        let gate = gate(Reach::Network);
        let (right, wrong) = (with(&format!("Bearer {CALLER}")), with("Bearer wrong"));
        for peer in [peer("127.0.0.1"), peer("192.0.2.1")] {
            for _ in 0..3 {
                assert_eq!(status(gate.check(Access::Caller, &wrong, peer)), 401);
            }
            let refusal = gate
                .check(Access::Caller, &wrong, peer)
                .expect_err("refused");
            assert_eq!(refusal.status, 429);
            assert!(refusal.retry_after_s.is_some_and(|seconds| seconds > 0));
        }
        // A guesser elsewhere is not listened to; on this machine the others are.
        assert_eq!(
            status(gate.check(Access::Caller, &right, peer("192.0.2.1"))),
            429
        );
        assert_eq!(
            status(gate.check(Access::Caller, &right, peer("192.0.2.2"))),
            200
        );
        assert_eq!(
            status(gate.check(Access::Caller, &right, peer("127.0.0.1"))),
            200
        );
    }
}
