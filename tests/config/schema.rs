//! The published JSON Schema is the one the program checks with.

use corbie::config::Config;
use proptest::prelude::*;
use serde_json::Value;

use crate::ConfigMachine;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/config.schema.json");

/// Set `CORBIE_BLESS=1` to regenerate the file after a change, and review the difference.
#[test]
fn f12_the_committed_schema_is_the_generated_one() {
    let generated = format!("{:#}\n", corbie::config::schema());
    if std::env::var_os("CORBIE_BLESS").is_some() {
        std::fs::write(PATH, &generated).expect("the schema folder can be written");
    }
    let committed = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(committed == generated, "schema/config.schema.json is out of date; run the tests with CORBIE_BLESS=1");
}

#[test]
fn f12_the_schema_is_valid_json_schema() {
    jsonschema::meta::validate(corbie::config::schema()).expect("a valid schema");
}

#[test]
fn f12_every_key_of_the_schema_is_explained() {
    fn check(path: &str, schema: &Value) {
        for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{key}");
            assert!(schema["description"].is_string(), "{path} has no doc comment");
            check(&path, schema);
        }
    }
    check("", corbie::config::schema());
}

/// Each default, written out in a file, is accepted and changes nothing.
#[test]
fn f12_the_defaults_in_the_schema_are_the_defaults() {
    fn defaults(schema: &Value) -> Value {
        match schema["properties"].as_object() {
            Some(properties) => properties.iter().map(|(key, schema)| (key.clone(), defaults(schema))).collect(),
            None => schema["default"].clone(),
        }
    }
    let mut written = defaults(corbie::config::schema());
    // Leaving these out means something else than writing their defaults.
    written["server"]["rate_limit"] = Value::Null;
    written["server"]["oauth"] = Value::Null;
    written["server"]["global_rate_limit"] = Value::Null;
    written["server"]["tls"] = Value::Null;
    written["classifier"]["mcp_category_model"] = Value::Null;
    let config = ConfigMachine::new().file("project/corbie.json", written.to_string()).load();
    assert_eq!(serde_json::to_value(config).unwrap(), serde_json::to_value(Config::default()).unwrap());
}

/// Any value at any key of the schema.
fn random_setting() -> impl Strategy<Value = Value> {
    let keys = schema_keys("", corbie::config::schema());
    let number = prop_oneof![
        any::<f64>(),
        -1e-4..1e-2f64,
        (0i64..40_000_000).prop_map(|number| number as f64),
        Just(1e30),
        Just(31_622_400.000_4)
    ];
    let text = prop_oneof!["[0-9]{1,9}(ms|s|m|h|d|B|KiB|MiB|GiB|)", "\\PC{0,9}", "[a-z]{1,9}(:[0-9]{1,6})?"];
    let scalar = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        number.prop_map(Value::from),
        text.prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let value = scalar.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,3}", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    });
    let settings = prop::collection::vec((prop::sample::select(keys), value), 1..4);
    settings.prop_map(|settings| {
        let mut root = Value::Object(Default::default());
        for (key, value) in settings {
            let place = key.split('.').fold(&mut root, |place, key| {
                if !place.is_object() {
                    *place = Value::Object(Default::default());
                }
                &mut place[key]
            });
            *place = value;
        }
        root
    })
}

fn schema_keys(prefix: &str, schema: &Value) -> Vec<String> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .flat_map(|(key, schema)| {
            let key = format!("{prefix}{key}");
            let below = schema_keys(&format!("{key}."), schema);
            std::iter::once(key).chain(below)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What the schema lets through, the types take: nothing fails after the check, so every mistake
    /// has its place.
    #[test]
    fn f12_what_fits_the_schema_can_be_read(written in random_setting()) {
        if let Err(error) = ConfigMachine::new().file("home/corbie/corbie.json", written.to_string()).try_load() {
            for problem in error.diagnostics {
                prop_assert!(problem.origin.is_some_and(|origin| origin.position.is_some()), "{}", problem.message);
            }
        }
    }
}
