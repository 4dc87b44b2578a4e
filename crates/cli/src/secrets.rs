//! The secrets that are known here by their values: hidden from whoever reads along on a channel.

use std::path::PathBuf;

use holdfast_contract::redact::Redactor;
use holdfast_toolbox::token::{ADMIN_TOKEN_FILE, APPROVER_TOKEN_FILE, TOKEN_FILE, Token};

use crate::app::App;
use crate::config::{Config, expand};
use crate::environment;

/// The one redactor, and what it knows.
pub(crate) fn redactor(app: &App) -> Redactor {
    let shapes = app.config.redactor();
    let values = environment::secrets(&shapes).into_iter();
    let named = named_variables(&app.config).into_iter();
    let named = named.filter_map(|name| environment::named(&name));
    let known = shapes.knowing(values.chain(named).chain(in_files(&app.config)));
    let tokens = token_files(app)
        .into_iter()
        .filter_map(|path| Token::read_all(&path).ok())
        .flatten();
    tokens.fold(known, |known, token| token.known_to(known))
}

/// Variables that the configuration names, whatever they are called.
fn named_variables(config: &Config) -> Vec<String> {
    let mut names = vec![
        config.executor.api_key_env.clone(),
        environment::REDIS_URL.to_owned(),
    ];
    let embeddings = config.memory.embeddings.as_ref();
    names.extend(embeddings.and_then(|it| it.api_key_env.clone()));
    #[cfg(feature = "web")]
    {
        use holdfast_web::ChannelConfig;
        use holdfast_web::config::SearchConfig;
        names.extend(config.gateway.iter().map(|it| it.token_env.clone()));
        if let Some(SearchConfig::Brave { api_key_env, .. }) = &config.web.search {
            names.push(api_key_env.clone());
        }
        if let Some(ChannelConfig::Webhook { url_env, .. }) = &config.channel {
            names.push(url_env.clone());
        }
    }
    names
}

/// Secrets that stand in the configuration itself.
fn in_files(config: &Config) -> Vec<String> {
    let redis = &config.reliability.store.redis;
    let urls = std::iter::once(&redis.url).chain(&redis.nodes);
    let with_password = urls.filter(|url| url.reveal().contains('@'));
    let mut found: Vec<String> = with_password.map(|url| url.reveal().to_owned()).collect();
    if let Some(file) = &config.file {
        let keys = file.models.values().map(|model| &model.api_key);
        let texts = keys.chain([&file.gateway_token]);
        found.extend(texts.filter_map(|text| text.reveal().map(str::to_owned)));
    }
    found
}

fn token_files(app: &App) -> Vec<PathBuf> {
    let server = &app.config.server;
    let set = [
        &server.token_file,
        &server.admin_token_file,
        &app.config.executor.keys_file,
    ];
    let made = [TOKEN_FILE, ADMIN_TOKEN_FILE, APPROVER_TOKEN_FILE];
    let made = made.map(|name| app.state_dir.join(name));
    let set = set.into_iter().flatten().map(|path| expand(path));
    set.chain(made).collect()
}
