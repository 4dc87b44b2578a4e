//! The tools that reach the web, as they are configured.

use std::sync::Arc;

use holdfast_contract::{Channel, Clock, SystemClock, Tool};
use holdfast_reliability::config::ConfigProblem;
use holdfast_web::config::SearchConfig;
use holdfast_web::search::{SearchProvider, provider};
use holdfast_web::{
    ChannelConfig, GatewayClient, GatewayTool, HttpChannel, WebFetchTool, WebSearchTool,
};

use crate::config::Config;
use crate::environment;
use crate::fail::{Failure, Outcome};

/// The tools. What can not be made is no reason to do without the others; `config check` says why.
pub(crate) fn tools(config: &Config) -> Vec<Arc<dyn Tool>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let gateway = gateway(config, &clock);
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    let search = search(config, gateway.as_ref(), &clock);
    let search = WebSearchTool::new(search, clock.clone());
    tools.push(Arc::new(match config.web.search_results_max {
        Some(most) => search.with_results_max(most),
        None => search,
    }));
    if let Ok(fetch) = WebFetchTool::new(&config.web, clock) {
        tools.push(Arc::new(fetch));
    }
    if let (Some(client), Some(config)) = (&gateway, &config.gateway) {
        tools.extend(GatewayTool::all(client, config));
    }
    tools
}

fn gateway(config: &Config, clock: &Arc<dyn Clock>) -> Option<Arc<GatewayClient>> {
    gateway_client(config, clock)?.ok().map(Arc::new)
}

/// The gateway's client, where there is a gateway; the error says why there can be none.
pub(crate) fn gateway_client(
    config: &Config,
    clock: &Arc<dyn Clock>,
) -> Option<Result<GatewayClient, String>> {
    let gateway = config.gateway.as_ref()?;
    let token = gateway_token(config);
    Some(GatewayClient::new(gateway, token.as_deref(), clock.clone()))
}

/// The token in the file, else in the variable that is named.
fn gateway_token(config: &Config) -> Option<String> {
    let in_file = config.file.as_ref().map(|file| &file.gateway_token);
    in_file
        .and_then(|token| token.reveal().map(str::to_owned))
        .or_else(|| environment::named(&config.gateway.as_ref()?.token_env))
}

fn search(
    config: &Config,
    gateway: Option<&Arc<GatewayClient>>,
    clock: &Arc<dyn Clock>,
) -> Option<Arc<dyn SearchProvider>> {
    let search = config.web.search.as_ref()?;
    let key = match search {
        SearchConfig::Brave { api_key_env, .. } => environment::named(api_key_env),
        SearchConfig::Searxng { .. } | SearchConfig::Gateway {} => None,
    };
    provider(search, key.as_deref(), gateway, clock).ok()
}

/// The channel that is configured, if it is another than the terminal.
pub(crate) fn channel(config: &Config) -> Outcome<Option<Arc<dyn Channel>>> {
    let unusable = |why: String| Failure::usage(format!("the channel can not be used: {why}"));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let made = match &config.channel {
        None | Some(ChannelConfig::Terminal {}) => return Ok(None),
        Some(ChannelConfig::Webhook { url_env, level }) => {
            let url = environment::named(url_env)
                .ok_or_else(|| unusable(format!("the variable {url_env} is not set")))?;
            HttpChannel::webhook(&url, *level, clock).map_err(unusable)?
        }
        Some(ChannelConfig::Gateway { to, level }) => {
            let client = gateway(config, &clock)
                .ok_or_else(|| unusable("`gateway` is not set, or can not be used".to_owned()))?;
            HttpChannel::gateway(client, to.clone(), *level)
        }
    };
    Ok(Some(Arc::new(made)))
}

/// What is wrong with the settings.
pub(crate) fn problems(config: &Config) -> Vec<ConfigProblem> {
    let web = config.web.problems().into_iter().map(|it| ("web", it));
    let gateway = config.gateway.iter().flat_map(|gateway| {
        let found = gateway.problems().into_iter();
        found.map(|it| ("gateway", it))
    });
    let mut problems: Vec<ConfigProblem> = web
        .chain(gateway)
        .map(|(section, (field, why))| ConfigProblem::new(format!("{section}.{field}"), why))
        .collect();
    let asks_gateway = matches!(config.web.search, Some(SearchConfig::Gateway {}));
    if asks_gateway && config.gateway.is_none() {
        let why = "it names the gateway, and `gateway` is not set";
        problems.push(ConfigProblem::new("web.search", why));
    }
    problems
}

/// What only the environment can say: whether messages can go where it says. `offline` takes the file
/// as it is. A variable that is not set here may be where the server runs: see [`warnings`].
pub(crate) fn check(config: &Config, offline: bool) -> Outcome<()> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    if let Some(Err(why)) = gateway_client(config, &clock) {
        return Err(Failure::usage(format!("gateway: {why}")));
    }
    if offline {
        return Ok(());
    }
    if unset_webhook(config).is_some() {
        return Ok(());
    }
    channel(config).map(|_| ()).map_err(|failure| {
        failure.hint(
            "A webhook's address is in the variable that channel.urlEnv names, and begins with \
             https: or http:. `--offline` only reads the file.",
        )
    })
}

/// The variable of the webhook's address, where it is not set.
fn unset_webhook(config: &Config) -> Option<&str> {
    match &config.channel {
        Some(ChannelConfig::Webhook { url_env, .. }) if environment::named(url_env).is_none() => {
            Some(url_env)
        }
        _ => None,
    }
}

/// What would not work in this environment, and what is missing for answers on the channel.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let token = config
        .gateway
        .as_ref()
        .filter(|_| gateway_token(config).is_none())
        .map(|gateway| {
            format!(
                "gateway: the variable {} is not set here, and without it the gateway refuses every call: set it to the gateway's token (`openclaw config get gateway.auth.token`), or name another \
                 variable as gateway.tokenEnv",
                gateway.token_env
            )
        });
    let webhook = unset_webhook(config).map(|name| {
        format!(
            "channel: the variable {name} is not set here, and without it nothing starts: set it to the \
             webhook's address, or name another variable as channel.urlEnv"
        )
    });
    [token, webhook, nobody_answers(config)]
        .into_iter()
        .flatten()
        .collect()
}

/// What is missing for answers on the channel.
fn nobody_answers(config: &Config) -> Option<String> {
    let asks_there = matches!(
        config.channel,
        Some(ChannelConfig::Webhook { .. } | ChannelConfig::Gateway { .. })
    );
    let nobody = config.permissions.approvals.senders.is_empty();
    (asks_there && nobody).then(|| {
        "channel: nobody can answer there; permissions.approvals.senders names who may, as the \
         channel names them"
            .to_owned()
    })
}
