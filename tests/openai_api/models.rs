//! The list of models.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::fixture::{ApiServer, expect_error, server_command};
use crate::upstream::FakeUpstream;

#[test]
fn the_list_has_auto_and_the_models_of_the_providers_once_each() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let list = face.client.get("/v1/models").json();
    assert_eq!(list["object"], "list");
    let models = list["data"].as_array().unwrap();
    let names: Vec<&str> = models.iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names[0], "auto");
    for name in ["echo-small", "echo-large", "echo-thinking"] {
        assert_eq!(names.iter().filter(|known| **known == name).count(), 1, "{names:?}");
    }
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
    for model in models {
        assert_eq!(model["object"], "model", "{model}");
        assert!(model["created"].is_u64() && model["owned_by"].is_string(), "{model}");
        let one = face.client.get(&format!("/v1/models/{}", model["id"].as_str().unwrap()));
        assert_eq!(one.json(), *model);
    }
}

#[test]
fn a_model_that_is_not_there_is_404_with_the_code_that_sdks_know() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    let reply = face.client.get("/v1/models/no-such-model");
    assert_eq!(expect_error(&reply, 404)["code"], "model_not_found");
    assert_eq!(expect_error(&face.client.get("/v1/models/some/such/model"), 404)["code"], "model_not_found");
}

#[test]
fn without_providers_there_is_still_auto() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    let list: Value = face.client.get("/v1/models").json();
    assert_eq!(list["data"][0]["id"], "auto");
}
