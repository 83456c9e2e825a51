//! F-01, F-02, F-36, P-03, P-04: settings of providers and default models.

use corbie::config::providers::{Price, ProviderKind};
use corbie::config::secret::Secret;

use crate::ConfigMachine;

const KEY: &str = "sk-marker-0123456789";

#[test]
fn f01_f02_p03_p04_the_variables_of_spec_002_set_keys_and_defaults() {
    let config = ConfigMachine::new()
        .variable("OPENAI_API_KEY", "sk-o")
        .variable("ANTHROPIC_API_KEY", "sk-a")
        .variable("GOOGLE_API_KEY", "")
        .variable("DEFAULT_PROVIDER", "anthropic")
        .variable("DEFAULT_MODEL", "gpt-4o")
        .try_load()
        .unwrap()
        .config;
    let key = |name: &str| config.providers.named.get(name)?.api_key.as_ref().map(Secret::expose);
    assert_eq!((key("openai"), key("anthropic"), key("google")), (Some("sk-o"), Some("sk-a"), None));
    assert_eq!(config.defaults.provider.as_deref(), Some("anthropic"));
    assert_eq!(config.defaults.model.as_deref(), Some("gpt-4o"));
}

#[test]
fn f36_a_provider_is_what_its_name_or_its_type_says() {
    let config = ConfigMachine::new()
        .project("providers: {openai: {}, google: {}, house: {base_url: 'http://10.0.0.1/v1'}, claude: {type: anthropic}, try: {type: mock}}")
        .try_load()
        .unwrap()
        .config;
    let kind = |name: &str| config.providers.named[name].kind(name);
    assert_eq!(
        [kind("openai"), kind("google"), kind("house"), kind("claude"), kind("try")],
        [
            ProviderKind::OpenAi,
            ProviderKind::Google,
            ProviderKind::Compatible,
            ProviderKind::Anthropic,
            ProviderKind::Mock
        ]
    );
}

#[test]
fn f36_a_local_server_with_a_well_known_name_needs_no_address() {
    let config = ConfigMachine::new().project("providers: {ollama: {}, vllm: {timeout: 90s}, lmstudio: {}}").load();
    let url = |name: &str| config.providers.named[name].default_base_url(name);
    assert_eq!(url("ollama").as_deref(), Some("http://127.0.0.1:11434/v1"));
    assert_eq!(url("vllm").as_deref(), Some("http://127.0.0.1:8000/v1"));
    assert_eq!(url("lmstudio").as_deref(), Some("http://127.0.0.1:1234/v1"));
    let client = corbie::providers::http_client::HttpClient::default();
    let providers = &config.providers;
    let registry = corbie::providers::registry::ProviderRegistry::new(providers, &config.defaults, client);
    let ollama = registry.providers().iter().find(|provider| provider.name == "ollama").cloned().expect("configured");
    assert_eq!(ollama.address().as_deref(), Some("http://127.0.0.1:11434/v1"));
    let mistakes = ConfigMachine::new().project("providers: {house: {}}").diagnostics().join("\n");
    assert!(mistakes.contains("requires `base_url`"), "{mistakes}");
}

#[test]
fn f36_f05_settings_of_a_provider_come_from_a_file_and_from_variables() {
    let config = ConfigMachine::new()
        .project(
            "providers: {openai: {api_key: '${KEY}', timeout: 90s, headers: {OpenAI-Project: 'my project'}, \
             models: {gpt-4o: {price: {input: 2.5, output: 10}}}}}",
        )
        .variable("KEY", KEY)
        .variable("CORBIE_PROVIDERS__OPENAI__BASE_URL", "https://gateway.example/v1")
        .try_load()
        .unwrap()
        .config;
    let openai = &config.providers.named["openai"];
    assert_eq!(openai.api_key.as_ref().map(Secret::expose), Some(KEY));
    assert_eq!(openai.timeout.get().as_secs(), 90);
    assert_eq!(openai.headers["OpenAI-Project"].expose(), "my project");
    assert_eq!(openai.base_url.as_ref().unwrap().to_string(), "https://gateway.example/v1");
    assert_eq!(openai.models["gpt-4o"].price, Some(Price { input: 2.5, output: 10.0, cached: None }));
}

#[test]
fn s01_no_key_header_or_password_of_a_provider_is_shown() {
    let machine = ConfigMachine::new().project(&format!(
        "providers: {{openai: {{api_key: {KEY}, api_keys: [{KEY}], headers: {{a: 'Bearer {KEY}'}}, \
         base_url: 'https://user:{KEY}@gateway.example/v1', proxy: 'http://{KEY}@proxy.example'}}}}"
    ));
    let loaded = machine.try_load().unwrap();
    let shown = serde_json::to_string(&loaded.config.providers).unwrap();
    for text in [format!("{loaded:?}"), format!("{:?}", loaded.config), shown.clone()] {
        assert!(!text.contains(KEY), "{text}");
    }
    assert!(shown.contains("https://***@gateway.example/v1"), "{shown}");
}

#[test]
fn f36_mistakes_are_told_where_they_are() {
    let mistakes = |yaml: &str| ConfigMachine::new().project(yaml).diagnostics().join("\n");
    for (yaml, expected) in [
        ("providers: {local: {base_url: 'localhost:11434'}}", "`https://api.example/v1`"),
        ("providers: {local: {base_url: 'ftp://host'}}", "`https://api.example/v1`"),
        ("providers: {local: {type: opnai}}", "did you mean `openai`?"),
        ("providers: {local: {api_kye: x}}", "did you mean `api_key`?"),
        ("providers: {requird: true}", "requird"),
        ("providers: {openai: {timeout: 0s}}", "greater than zero"),
        ("providers: {openai: {api_key: '${NOT_SET_ANYWHERE}'}}", "`NOT_SET_ANYWHERE`, which is not set"),
        ("router: {system_prompt: after}", "before"),
    ] {
        let told = mistakes(yaml);
        assert!(told.contains(expected), "{yaml}: {told}");
    }
}
