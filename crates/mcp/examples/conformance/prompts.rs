//! Prompts: with and without arguments, with non-text content, and with elicitation before the result.

use corbie_mcp::{
    Completer, ContentBlock, Context, Error, Prompt, PromptArguments, PromptResult, ResourceContents, ServerBuilder,
};

use crate::PNG;
use crate::client_requests::{form, text};

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .prompt(Prompt::new("test_simple_prompt", "A prompt without arguments.", simple))
        .prompt(
            Prompt::new("test_prompt_with_arguments", "A prompt that repeats its arguments.", with_arguments)
                .required("arg1", "First test argument")
                .required("arg2", "Second test argument"),
        )
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource", "A prompt about a resource.", with_embedded_resource)
                .required("resourceUri", "URI of the resource to embed"),
        )
        .prompt(Prompt::new("test_prompt_with_image", "A prompt about a picture.", with_image))
        .prompt(Prompt::new("test_input_required_result_prompt", "A prompt that asks what it is about.", with_question))
        .completion("test_prompt_with_arguments", "arg1", Completer::from_values(["testValue1", "testValue2", "other"]))
}

async fn simple(_: Context, _: PromptArguments) -> Result<PromptResult, Error> {
    Ok(PromptResult::user([ContentBlock::text("This is a simple prompt for testing.")]))
}

/// Required arguments can be indexed: the server rejects calls without them.
async fn with_arguments(_: Context, arguments: PromptArguments) -> Result<PromptResult, Error> {
    let (arg1, arg2) = (&arguments["arg1"], &arguments["arg2"]);
    Ok(PromptResult::user([ContentBlock::text(format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]))
}

async fn with_embedded_resource(_: Context, arguments: PromptArguments) -> Result<PromptResult, Error> {
    let text = "Embedded resource content for testing.";
    Ok(PromptResult::user([
        ContentBlock::resource(ResourceContents::text(&arguments["resourceUri"], "text/plain", text)),
        ContentBlock::text("Please process the embedded resource above."),
    ]))
}

async fn with_image(_: Context, _: PromptArguments) -> Result<PromptResult, Error> {
    Ok(PromptResult::user([
        ContentBlock::image(PNG, "image/png"),
        ContentBlock::text("Please analyze the image above."),
    ]))
}

async fn with_question(context: Context, _: PromptArguments) -> Result<PromptResult, Error> {
    let question = "What context should the prompt use?";
    let answer = context.elicit("user_context", question, form("context", "string")).await?;
    Ok(PromptResult::user([ContentBlock::text(format!("Prompt with context: {}", text(&answer, "context")))]))
}
