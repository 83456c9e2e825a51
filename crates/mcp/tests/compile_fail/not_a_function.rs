use corbie_mcp::mcp_tool;

/// Holds the weather.
#[mcp_tool]
struct Weather;

trait Forecasts {
    /// The weather of the coming days.
    #[mcp_tool]
    fn forecast(&self) -> String;
}

fn main() {}
