use serde_json::{Value, json};

use crate::fixture::{app, call, classify, tool_json};

#[tokio::test]
async fn c20_c21_c23_a_verdict_has_its_members_and_no_probabilities_unless_asked() {
    let app = app();
    let verdict =
        tool_json(&call(&app, "classify_text", json!({ "text": "who was the first pharaoh" })).await.unwrap());
    assert_eq!(verdict["class"], 3);
    assert!(verdict["confidence"].as_f64().unwrap() > 0.7);
    assert_eq!(verdict["model"], "openai/gpt-oss-20b");
    assert_eq!(verdict["use_reasoning"], false);
    assert_eq!(verdict["category"], "history");
    assert_eq!(verdict["top"][0], json!({ "category": "history", "score": verdict["confidence"] }));
    assert_eq!(verdict["top"].as_array().unwrap().len(), 3);
    assert!(verdict.get("probabilities").is_none() && verdict.get("entropy").is_none());
}

#[tokio::test]
async fn c22_with_probabilities_the_whole_distribution_is_told() {
    let verdict = classify(&app(), "my printer is offline").await;
    let probabilities: Vec<f64> = serde_json::from_value(verdict["probabilities"].clone()).unwrap();
    assert_eq!(probabilities.len(), 5);
    assert_eq!(json!(probabilities[2]), verdict["confidence"]);
    assert!(verdict["entropy"].as_f64().unwrap() >= 0.0);
}

#[tokio::test]
async fn x30_c27_entropy_is_in_bits_and_computed() {
    for text in ["what is 17 * 3", "how do bees know the way home", "explain the printing press"] {
        let verdict = classify(&app(), text).await;
        let probabilities: Vec<f64> = serde_json::from_value(verdict["probabilities"].clone()).unwrap();
        let bits: f64 = probabilities.iter().filter(|p| **p > 0.0).map(|p| -p * p.log2()).sum();
        assert!((verdict["entropy"].as_f64().unwrap() - bits).abs() < 1e-4, "{verdict}");
    }
}

#[tokio::test]
async fn c29_c34_c40_simple_math_goes_to_the_fast_model() {
    let app = app();
    for text in ["What is 2 + 2?", "What is the derivative of x squared?"] {
        let verdict = classify(&app, text).await;
        assert_eq!(verdict["class"], 0, "{text}");
        assert_eq!(verdict["model"], "openai/gpt-oss-20b", "{text}");
        assert_eq!(verdict["use_reasoning"], false, "{text}");
        assert_eq!(verdict["rule"], json!({ "model": "simple-math", "reasoning": "simple-math" }));
    }
}

#[tokio::test]
async fn c35_z02_clear_questions_are_recognised_with_confidence_and_small_talk_is_general() {
    let app = app();
    for (text, category, least) in [
        ("What started the Peloponnesian War?", "history", 0.7),
        ("tell me about the battle of gettysburg", "history", 0.7),
        ("how does TCP avoid congestion", "technology", 0.7),
        ("what does DHCP do", "technology", 0.7),
        ("How do cells copy their DNA?", "science", 0.7),
        ("what happens during osmosis", "science", 0.7),
        ("integrate x^3 from 0 to 2", "math", 0.7),
        ("three friends split a 78 euro bill, how much each", "math", 0.7),
        ("hey, how's it going?", "general", 0.6),
        ("thanks a lot, have a great weekend", "general", 0.6),
        ("what should i wear to a job interview", "general", 0.6),
    ] {
        let verdict = classify(&app, text).await;
        assert_eq!(verdict["category"], category, "{text}: {verdict}");
        assert!(verdict["confidence"].as_f64().unwrap() >= least, "{text}: {verdict}");
    }
}

#[tokio::test]
async fn c33_an_unsure_verdict_still_names_the_best_class() {
    let app = app();
    for text in ["bank", "spring", "that thing over there", "x"] {
        let verdict = classify(&app, text).await;
        let probabilities: Vec<f64> = serde_json::from_value(verdict["probabilities"].clone()).unwrap();
        let most = probabilities.iter().copied().fold(0.0, f64::max);
        assert_eq!(probabilities[verdict["class"].as_u64().unwrap() as usize], most, "{text}");
        if most < 0.6 && verdict["category"] != "math" {
            assert_eq!(verdict["model"], "openai/gpt-4", "{verdict}");
            assert_eq!(verdict["use_reasoning"], true, "{verdict}");
        }
    }
}

/// Questions that were not known when the examples were written.
#[tokio::test]
async fn everyday_questions_are_right_and_sure() {
    let app = app();
    let (mut right, mut sure, mut all) = (0, 0, 0);
    for line in include_str!("everyday.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let verdict = classify(&app, line["text"].as_str().unwrap()).await;
        let is_right = verdict["category"] == line["label"];
        all += 1;
        right += usize::from(is_right);
        sure += usize::from(is_right && verdict["confidence"].as_f64().unwrap() >= 0.6);
    }
    assert!(all >= 400);
    assert!(right * 100 >= all * 95 && sure * 100 >= all * 94, "{right} right and {sure} sure of {all}");
}

#[tokio::test]
async fn many_texts_are_sorted_as_each_alone_would_be() {
    let app = app();
    let texts = ["what is 2 + 2", "", "who built stonehenge", "my laptop wont charge", "why is blood red", "hi"];
    let together = call(&app, "batch_categorize", json!({ "texts": texts, "with_probabilities": true })).await.unwrap();
    let together = tool_json(&together);
    assert_eq!((&together["categorized"], &together["failed"]), (&json!(5), &json!(1)));
    assert!(together["results"][1]["error"].as_str().unwrap().contains("empty"));
    assert!(together["results"][1].get("class").is_none());
    for (index, text) in texts.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
        assert_eq!(together["results"][index], classify(&app, text).await, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c56_one_caller_with_many_texts_does_not_hold_up_the_others() {
    let app = std::sync::Arc::new(app());
    let texts: Vec<String> =
        (0..200).map(|number| format!("tell me something new about number {number} hats")).collect();
    classify(&app, "is it warm in here yet").await;
    let many = {
        let app = app.clone();
        tokio::spawn(async move { call(&app, "batch_categorize", json!({ "texts": texts })).await.unwrap() })
    };
    // Several texts in a row that need the model, while the batch is being processed.
    for text in ["where do penguins sleep in winter", "is the moon moving away from us", "do trees feel the cold"] {
        assert_eq!(classify(&app, text).await["category"], "science");
        assert!(!many.is_finished(), "the single texts were answered before the many");
    }
    assert_eq!(tool_json(&many.await.unwrap())["categorized"], 200);
}

#[tokio::test]
async fn a_text_that_no_model_can_read_fails_alone_and_impairs_nothing() {
    let app = app();
    let texts = ["where do penguins sleep in summer", "\u{10fffe}\u{e000}", "why do hippos sweat so much"];
    let together = tool_json(&call(&app, "batch_categorize", json!({ "texts": texts })).await.unwrap());
    assert_eq!(together["results"][0]["category"], "science", "{together}");
    assert_eq!(together["results"][2]["category"], "science", "{together}");
    for (index, text) in texts.iter().enumerate() {
        let alone = tool_json(&call(&app, "classify_text", json!({ "text": text })).await.unwrap());
        assert_eq!(together["results"][index], alone);
    }
    assert_eq!(app.classification.health().1, None);
}
